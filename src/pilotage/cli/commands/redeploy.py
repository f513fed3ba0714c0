"""``pilotage redeploy``: change an endpoint, and follow how the new revision takes over."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from pilotage.cli.connection import connected, run_briefly
from pilotage.cli.endpoints import change
from pilotage.cli.errors import BadTarget, endpoint_errors
from pilotage.cli.options import cluster_options, files_option, namespace_option, output_option, rollout_options
from pilotage.cli.output.text import say
from pilotage.cli.spec_flags import Flags, spec_options, with_flags

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pilotage.cli.rollout import Patience
    from pilotage.kube import Json, Object, ObjectKey
    from pilotage.teardown.session import Session


@click.command()
@click.argument("name", required=False)
@spec_options
@files_option("What it should be from now on, from a file, or - for stdin; instead of flags.")
@namespace_option
@rollout_options
@cluster_options
@output_option
@endpoint_errors
def redeploy(
    name: str | None,
    flags: Flags,
    files: tuple[Path | Literal["-"], ...],
    namespace: str,
    no_wait: bool,
    timeout: float,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Change an endpoint: a new revision starts, takes over the route, and the old one is removed.

    \b
    pilotage redeploy assistant --model hf://Qwen/Qwen3-1.7B-GGUF/qwen3-1.7b-q4_k_m.gguf
    pilotage redeploy assistant --image example.com/llama-server:b4719 --arg --ctx-size --arg 8192
    pilotage redeploy -f assistant.yaml

    Flags change the fields that they name; a file replaces the whole spec. The server checks it first. If the new
    revision does not become ready, the old one keeps serving: `pilotage rollback` undoes the change.

    Exit codes: 0 the new revision serves, 1 it does not, 2 bad usage or refused by the server, 3 the API could not be
    reached, 130 Ctrl-C (the operator continues).
    """
    from pilotage.cli.rollout import Patience

    if bool(files) == bool(name) or (files and flags):
        raise click.UsageError("Say either NAME and flags, or -f FILE.")
    if name and not flags:
        raise click.UsageError("Say what changes: --model, --image, --arg, … (pilotage redeploy --help).")
    patience = Patience(not no_wait, timeout, output == "json")
    sys.exit(run_briefly(_redeploy(name, flags, files, namespace, patience, kubeconfig, context)))


async def _redeploy(
    name: str | None,
    flags: Flags,
    files: tuple[Path | Literal["-"], ...],
    namespace: str,
    patience: Patience,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    from pilotage.cli.manifests import read_manifests
    from pilotage.kube import ObjectKey

    async with connected(kubeconfig, context) as session:
        if name:
            key = ObjectKey(namespace or session.client.namespace, name)
            return await carry_out(session, key, lambda old: _with_spec(old, flags), patience)
        wanted = await read_manifests(files, namespace, session.client.namespace)
        if wanted.models or len(wanted.endpoints) != 1:
            raise BadTarget("One endpoint is redeployed at a time: give a file with one ServingEndpoint and no more.")
        body = wanted.endpoints[0]
        key = ObjectKey(body["metadata"]["namespace"], body["metadata"]["name"])
        return await carry_out(session, key, lambda old: _as_written(old, body), patience)


async def carry_out(session: Session, key: ObjectKey, alter: Callable[[Object], Json], patience: Patience) -> int:
    """Change an endpoint and follow it; returns the exit code. `rollback` does the same."""
    from pilotage.cli.rollout import follow_rollout

    changed = await change(session.client, key, alter)
    if not changed.anything:
        say(f"{changed.after.ref} is unchanged: the spec is the same", err=patience.json)
        return 0
    say(f"{changed.after.ref} changed", err=patience.json)
    before = changed.before.get("status", "revision", default="")
    return await follow_rollout(session, changed.after, before, patience)


def _with_spec(old: Object, flags: Flags) -> Json:
    body = old.to_dict()
    return body | {"spec": with_flags(body["spec"], flags)}


def _as_written(old: Object, wanted: Json) -> Json:
    """The spec as the file has it; labels and annotations of the file come in, and no others go."""
    body = old.to_dict()
    meta = body["metadata"]
    for field in ("labels", "annotations"):
        if field in wanted["metadata"]:
            meta[field] = {**meta.get(field, {}), **wanted["metadata"][field]}
    return body | {"spec": wanted.get("spec", {})}
