"""``pilotage deploy``: a new endpoint, checked by the server first, and followed until it serves."""

from __future__ import annotations

import sys
from shlex import quote
from typing import TYPE_CHECKING, Literal

import click

from pilotage.cli.connection import connected, run_briefly
from pilotage.cli.endpoints import checking
from pilotage.cli.errors import BadTarget, endpoint_errors
from pilotage.cli.options import cluster_options, files_option, namespace_option, output_option, rollout_options
from pilotage.cli.output.text import say
from pilotage.cli.spec_flags import Flags, spec_options, with_flags

if TYPE_CHECKING:
    from pathlib import Path

    from pilotage.cli.manifests import Manifests
    from pilotage.cli.rollout import Patience
    from pilotage.kube import Client, Json, Object


@click.command()
@click.argument("name", required=False)
@spec_options
@files_option("The endpoint, and Models that it needs, from files, folders, or - for stdin; instead of flags.")
@namespace_option
@click.option("--dry-run", is_flag=True, help="Let the server check it, and stop.")
@rollout_options
@cluster_options
@output_option
@endpoint_errors
def deploy(
    name: str | None,
    flags: Flags,
    files: tuple[Path | Literal["-"], ...],
    namespace: str,
    dry_run: bool,
    no_wait: bool,
    timeout: float,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Deploy a model as an endpoint, and wait until it serves.

    \b
    pilotage deploy assistant --model hf://Qwen/Qwen3-0.6B-GGUF/qwen3-0.6b-q4_k_m.gguf
    pilotage deploy assistant --model qwen-small --replicas 2 --route HTTPProxy --host assistant.example.com
    pilotage deploy -f assistant.yaml

    The server checks everything before anything is created. An endpoint that exists is not touched: use `pilotage
    redeploy` to change it.

    Exit codes: 0 it serves (or was created, with --no-wait), 1 it does not, 2 bad usage or refused by the server, 3 the
    API could not be reached, 130 Ctrl-C (the operator continues).
    """
    from pilotage.cli.rollout import Patience

    if bool(files) == bool(name) or (files and flags):
        raise click.UsageError("Say either NAME and flags, or -f FILE.")
    if name and not flags.model:
        raise click.UsageError("Say what is served: --model SOURCE or --model NAME.")
    patience = Patience(not no_wait, timeout, output == "json")
    sys.exit(run_briefly(_deploy(name, flags, files, namespace, dry_run, patience, kubeconfig, context)))


async def _deploy(
    name: str | None,
    flags: Flags,
    files: tuple[Path | Literal["-"], ...],
    namespace: str,
    dry_run: bool,
    patience: Patience,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    from pilotage.cli.manifests import Manifests, read_manifests
    from pilotage.cli.rollout import follow_rollout

    async with connected(kubeconfig, context) as session:
        client = session.client
        if name:
            meta = {"name": name, "namespace": namespace or client.namespace}
            wanted = Manifests([], [{"metadata": meta, "spec": with_flags({}, flags)}])
        else:
            wanted = await read_manifests(files, namespace, client.namespace)
        await _send(client, wanted, dry_run=True)
        if dry_run:
            _say([f"{_name(body)} would be created" for body in wanted.endpoints], patience)
            return 0
        made = await _send(client, wanted, dry_run=False)
        _say([f"{obj.ref} created" for obj in made], patience)
        codes = [await follow_rollout(session, obj, "", patience) for obj in made]
        return max(codes)


async def _send(client: Client, wanted: Manifests, *, dry_run: bool) -> list[Object]:
    """Make everything, or let the server say whether it could be made. Raises BadTarget."""
    from pilotage.api.names import ENDPOINTS, MODELS
    from pilotage.kube import Absent, AlreadyExists, Terminating

    made = []
    for body in wanted.models:
        applied = client.apply(MODELS, body, force=True, dry_run=dry_run)
        await checking(f"model/{body['metadata']['name']}", applied)
    for body in wanted.endpoints:
        what, place = _name(body), body["metadata"]["namespace"]
        try:
            if dry_run:
                await _check_model(client, body, wanted)
            made.append(await checking(what, client.create(ENDPOINTS, body, dry_run=dry_run)))
        except AlreadyExists as error:
            raise BadTarget(f"{what} exists already. Change it with: pilotage redeploy") from error
        except Terminating as error:
            raise BadTarget(
                f"{what} cannot be created, because it or its namespace is being deleted. Wait until that is gone: "
                f"pilotage wait {quote('servingendpoint/' + body['metadata']['name'])} -n {quote(place)}"
            ) from error
        except Absent as error:
            raise BadTarget(
                f"There is no namespace {place}. Create it with: kubectl create namespace {quote(place)}"
            ) from error
    return made


async def _check_model(client: Client, body: Json, wanted: Manifests) -> None:
    """Refuse what names a Model that is not there. Who may not read Models is told by the endpoint's status."""
    from pilotage.api.names import MODELS
    from pilotage.kube import Absent, Forbidden, ObjectKey
    from pilotage.teardown.snapshot.fields import text

    name, place = text(body, "spec", "model", "name"), body["metadata"]["namespace"]
    along = {(model["metadata"]["namespace"], model["metadata"]["name"]) for model in wanted.models}
    if not name or (place, name) in along:
        return
    try:
        await client.get(MODELS, ObjectKey(place, name), metadata_only=True)
    except Absent:
        raise BadTarget(
            f"There is no model/{name} -n {place}. Create it first, or give a source, such as --model hf://…"
        ) from None
    except Forbidden:
        return


def _name(body: Json) -> str:
    meta = body["metadata"]
    return f"servingendpoint/{meta['name']} -n {meta['namespace']}"


def _say(lines: list[str], patience: Patience) -> None:
    for line in lines:
        say(line, err=patience.json)
