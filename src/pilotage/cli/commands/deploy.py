"""``pilotage deploy``: a new endpoint, checked by the server first, and followed until it serves."""

from pathlib import Path
from typing import Literal

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import Patience, cluster_options, files_option, namespace_option, rollout_options
from pilotage.cli.output.text import note, say
from pilotage.cli.rollout import follow_rollout
from pilotage.cli.spec_options import spec_options
from pilotage.rollout.requests import (
    EndpointChange,
    Manifests,
    create,
    endpoint_name,
    sorted_manifests,
    with_defaults_of,
)
from pilotage.rollout.spec import SpecArguments, with_arguments
from pilotage.teardown.snapshot.dump import manifests


@click.command()
@click.argument("name", required=False)
@spec_options
@files_option("The endpoint, and Models that it needs, from files, folders, or - for stdin; instead of flags.")
@namespace_option
@click.option("--dry-run", is_flag=True, help="Let the server check it, and stop.")
@rollout_options
@cluster_options
@plain_errors
@asynchronous
async def deploy(
    name: str | None,
    arguments: SpecArguments,
    files: tuple[Path | Literal["-"], ...],
    namespace: str,
    dry_run: bool,
    patience: Patience,
    cluster: ClusterChoice,
) -> int:
    """Deploy a model as an endpoint, and wait until it serves.

    \b
    pilotage deploy assistant --model hf://Qwen/Qwen3-0.6B-GGUF/qwen3-0.6b-q4_k_m.gguf
    pilotage deploy assistant --model qwen-small --replicas 2 --route HTTPProxy --host assistant.example.com
    pilotage deploy -f assistant.yaml

    On one machine (`pilotage up`) an endpoint is placed there and behind its gateway, unless --on, --placement or
    --route say otherwise.

    The server checks everything before anything is created. An endpoint that exists is not touched: use `pilotage
    redeploy` to change it.

    Exit codes: 0 it serves (or was created, with --no-wait), 1 it does not, or somebody changed it meanwhile, 2 bad
    usage or refused by the server, 3 the API could not be reached, 130 Ctrl-C (the operator continues).
    """
    if bool(files) == bool(name) or (files and arguments):
        raise click.UsageError("Say either NAME and flags, or -f FILE.")
    if name and not arguments.model:
        raise click.UsageError("Say what is served: --model SOURCE or --model NAME.")
    async with cluster.session() as session:
        client = session.client
        if name:
            asked, arguments = arguments, await with_defaults_of(client, arguments)
            if arguments != asked:
                note(
                    "One machine: deployed on it and behind its gateway (--on, --placement and --route choose others)."
                )
            meta = {"name": name, "namespace": namespace or client.namespace}
            wanted = Manifests([], [{"metadata": meta, "spec": with_arguments({}, arguments)}])
        else:
            wanted = sorted_manifests(manifests(files), namespace, client.namespace)
        await create(client, wanted, dry_run=True)
        if dry_run:
            say(*(f"{endpoint_name(body)} would be created" for body in wanted.endpoints), err=patience.json)
            return 0
        made = await create(client, wanted, dry_run=False)
        say(*(f"{obj.ref} created" for obj in made), err=patience.json)
        return max([await follow_rollout(session, EndpointChange(None, obj), patience, cluster) for obj in made])
