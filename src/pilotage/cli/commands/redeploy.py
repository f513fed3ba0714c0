"""``pilotage redeploy``: change an endpoint, and follow how the new revision takes over."""

from pathlib import Path
from typing import Literal

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import BadTarget, plain_errors
from pilotage.cli.model_option import with_model
from pilotage.cli.options import Patience, cluster_options, files_option, names_of, namespace_option, rollout_options
from pilotage.cli.rollout import carry_out
from pilotage.cli.spec_options import changed_spec_options
from pilotage.kube import ObjectKey
from pilotage.rollout.requests import sorted_manifests
from pilotage.rollout.spec import SpecArguments, as_written, changed
from pilotage.teardown.snapshot.dump import manifests


@click.command()
@click.argument("name", required=False, shell_complete=names_of("endpoint"))
@changed_spec_options
@files_option("What it should be from now on, from a file, or - for stdin; instead of flags.")
@namespace_option
@rollout_options
@cluster_options
@plain_errors
@asynchronous
async def redeploy(
    name: str | None,
    arguments: SpecArguments,
    files: tuple[Path | Literal["-"], ...],
    namespace: str,
    patience: Patience,
    cluster: ClusterChoice,
) -> int:
    """Change an endpoint: a new revision starts, takes over the route, and the old one is removed.

    \b
    pilotage redeploy assistant --model hf://Qwen/Qwen3-1.7B-GGUF/qwen3-1.7b-q4_k_m.gguf
    pilotage redeploy assistant --image example.com/llama-server:b4719 --arg --ctx-size --arg 8192
    pilotage redeploy assistant --model qwen-small-q8 --canary 5,25,50
    pilotage redeploy -f assistant.yaml

    Flags change the fields that they name; a file replaces the whole spec. The server checks it first. If the new
    revision does not become ready, the old one keeps serving: `pilotage rollback` undoes the change. With strategy
    Canary (--canary, or the spec) requests move in steps; where one waits for a person, the command is printed.

    If somebody else changes the same fields at the same time, one of the two changes is refused, or superseded.

    Exit codes: 0 the new revision serves, 1 it does not, or somebody else's change came in between, 2 bad usage or
    refused by the server, 3 the API could not be reached, 130 Ctrl-C (the operator continues).
    """
    if bool(files) == bool(name) or (files and arguments):
        raise click.UsageError("Say either NAME and flags, or -f FILE.")
    if name and not arguments:
        raise click.UsageError("Say what changes: --model, --image, --arg, … (pilotage redeploy --help).")
    async with cluster.session(changes=True) as session:
        client = session.client
        if name:
            key = ObjectKey(namespace or client.namespace, name)
            arguments = await with_model(session, cluster, arguments, key.namespace)
            return await carry_out(session, key, lambda old: changed(old, arguments), patience, cluster)
        wanted = sorted_manifests(manifests(files), namespace, client.namespace)
        if wanted.models or len(wanted.endpoints) != 1:
            raise BadTarget("One endpoint is redeployed at a time: give a file with one ServingEndpoint and no more.")
        body = wanted.endpoints[0]
        key = ObjectKey(body["metadata"]["namespace"], body["metadata"]["name"])
        return await carry_out(session, key, lambda old: as_written(old, body), patience, cluster)
