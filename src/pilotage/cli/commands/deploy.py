"""``pilotage deploy``: a new endpoint, checked by the server first, and followed until it serves."""

from pathlib import Path
from shlex import join
from typing import Literal

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import BadTarget, plain_errors
from pilotage.cli.model_option import with_model
from pilotage.cli.options import Patience, cluster_options, files_option, namespace_option, rollout_options
from pilotage.cli.output.objects import print_list, print_object
from pilotage.cli.output.text import note, say
from pilotage.cli.rollout import carry_out, follow_rollout
from pilotage.cli.spec_options import as_flags, new_spec_options
from pilotage.kube import Json, Object
from pilotage.rollout.requests import (
    EndpointChange,
    EndpointExists,
    Manifests,
    create,
    sorted_manifests,
    with_defaults_of,
)
from pilotage.rollout.spec import SpecArguments, as_written, with_arguments
from pilotage.teardown.planning.arguments import TargetError
from pilotage.teardown.session import Session
from pilotage.teardown.snapshot.dump import manifests


@click.command()
@click.argument("name", required=False)
@new_spec_options
@files_option("The endpoint, and Models that it needs, from files, folders, or - for stdin; instead of flags.")
@namespace_option
@click.option("--dry-run", is_flag=True, help="Let the server check it, and stop.")
@click.option("--replace", is_flag=True, help="Replace the spec of an endpoint that exists and has never served.")
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
    replace: bool,
    patience: Patience,
    cluster: ClusterChoice,
) -> int:
    """Deploy a model as an endpoint, and wait until it serves.

    \b
    pilotage deploy assistant --model ./qwen3-0.6b-q4_k_m.gguf
    pilotage deploy assistant --model hf://Qwen/Qwen3-0.6B-GGUF/qwen3-0.6b-q4_k_m.gguf
    pilotage deploy assistant --model qwen-small --replicas 2 --route HTTPProxy --host assistant.example.com
    pilotage deploy -f assistant.yaml

    On one machine (`pilotage up`) an endpoint is placed there and behind its gateway, unless --on, --placement or
    --route say otherwise.

    The server checks everything before anything is created. An endpoint that exists is not touched: use `pilotage
    redeploy` to change it, or --replace for one that has never served, such as one that failed for a typo.

    Exit codes: 0 it serves (or was created, with --no-wait), 1 it does not, or somebody changed it meanwhile, 2 bad
    usage or refused by the server, 3 the API could not be reached, 130 Ctrl-C (the operator continues).
    """
    if bool(files) == bool(name) or (files and arguments):
        raise click.UsageError("Say either NAME and flags, or -f FILE.")
    if name and not arguments.model:
        raise click.UsageError("Say what is served: --model PATH, --model SOURCE or --model NAME.")
    async with cluster.session(changes=True) as session:
        on_machine = False
        if name:
            place = namespace or session.client.namespace
            body, on_machine = await _endpoint(session, cluster, name, place, arguments)
            wanted = Manifests([], [body])
        else:
            wanted = sorted_manifests(manifests(files), namespace, session.client.namespace)
        try:
            checked = await create(session.client, wanted, dry_run=True)
        except EndpointExists as error:
            if not replace:
                again = [name, *as_flags(arguments)] if name else [word for file in files for word in ("-f", str(file))]
                raise _refusal(error, [*again, "-n", error.endpoint.meta.namespace]) from error
            _note_machine(on_machine)
            return await _replace(session, cluster, error.endpoint, wanted, patience, dry_run=dry_run)
        _note_machine(on_machine)
        if dry_run:
            _show_checked(checked, "would be created", patience)
            return 0
        made = await create(session.client, wanted, dry_run=False)
        if not patience.wait and not patience.text and len(made) > 1:
            print_list(patience.output, made)
            return 0
        return max([await follow_rollout(session, EndpointChange(None, obj), patience, cluster) for obj in made])


async def _endpoint(
    session: Session, cluster: ClusterChoice, name: str, namespace: str, given: SpecArguments
) -> tuple[Json, bool]:
    """The endpoint that the flags describe, and whether it has the defaults of one machine."""
    asked = await with_model(session, cluster, given, namespace)
    arguments = await with_defaults_of(session.client, asked)
    body = {"metadata": {"name": name, "namespace": namespace}, "spec": with_arguments({}, arguments)}
    return body, arguments != asked


def _note_machine(on_machine: bool) -> None:
    """Say that it has the defaults of one machine; not before the server has agreed to it."""
    if on_machine:
        note("One machine: deployed on it and behind its gateway (--on, --placement and --route choose others).")


def _refusal(error: EndpointExists, again: list[str]) -> TargetError:
    """The refusal to deploy an endpoint again, with the command that changes it: with the flags that were given."""
    command, more = ("redeploy", []) if error.has_served else ("deploy", ["--replace"])
    return TargetError(f"{error} Change it with:", join(["pilotage", command, *again, *more]))


def _show_checked(objects: list[Object], what: str, patience: Patience) -> None:
    """The result of a dry run."""
    if patience.text:
        say(*(f"{obj.ref} {what}" for obj in objects))
    elif len(objects) == 1:
        print_object(patience.output, objects[0])
    else:
        print_list(patience.output, objects)


async def _replace(
    session: Session, cluster: ClusterChoice, there: Object, wanted: Manifests, patience: Patience, *, dry_run: bool
) -> int:
    """Give an endpoint that has never served the spec that is wanted; returns the exit code."""
    if len(wanted.endpoints) != 1:
        raise BadTarget("--replace works on one endpoint at a time: give a file with one ServingEndpoint.")

    def alter(old: Object) -> Json:
        exists = EndpointExists(old)
        if exists.has_served:
            raise BadTarget(f"{old.ref} has served, so it is not replaced. Leave out --replace.")
        return as_written(old, wanted.endpoints[0])

    if dry_run:
        _show_checked([Object.from_dict(alter(there))], "would be replaced", patience)
        return 0
    await create(session.client, wanted._replace(endpoints=[]), dry_run=False)
    return await carry_out(session, there.key, alter, patience, cluster)
