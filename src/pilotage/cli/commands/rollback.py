"""``pilotage rollback``: go back to what an earlier revision was made of."""

from __future__ import annotations

import sys
from shlex import quote
from typing import TYPE_CHECKING

import click

from pilotage.api.endpoint import REVISION_FIELDS
from pilotage.cli.connection import connected, run_briefly
from pilotage.cli.errors import BadTarget, endpoint_errors
from pilotage.cli.options import cluster_options, name_argument, namespace_option, output_option, rollout_options

if TYPE_CHECKING:
    from pilotage.api.endpoint_status import PastRevision, StoredEndpoint
    from pilotage.cli.rollout import Patience
    from pilotage.kube import Json, Object


@click.command()
@name_argument
@click.option(
    "--to", "number", metavar="N", type=click.IntRange(min=1), help="The revision.  [default: the one before]"
)
@namespace_option
@rollout_options
@cluster_options
@output_option
@endpoint_errors
def rollback(
    name: str,
    number: int | None,
    namespace: str,
    no_wait: bool,
    timeout: float,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Return an endpoint to an earlier revision.

    \b
    pilotage rollback assistant
    pilotage rollback assistant --to 3

    Model, runtime, placement, resources and cache become what they were, in a new revision. Replicas, route and the
    rest stay as they are. After a redeploy that failed, it returns to the revision that still serves.

    Exit codes: 0 it serves, 1 it does not, 2 bad usage or no such revision, 3 the API could not be reached, 130 Ctrl-C
    (the operator continues).
    """
    from pilotage.cli.rollout import Patience

    patience = Patience(not no_wait, timeout, output == "json")
    sys.exit(run_briefly(_rollback(name, number, namespace, patience, kubeconfig, context)))


async def _rollback(
    name: str, number: int | None, namespace: str, patience: Patience, kubeconfig: str | None, context: str | None
) -> int:
    from pilotage.api.endpoint_status import StoredEndpoint
    from pilotage.cli.commands.redeploy import carry_out
    from pilotage.kube import ObjectKey

    def alter(old: Object) -> Json:
        endpoint = StoredEndpoint.of(old)
        target = choose(endpoint, number)
        body = old.to_dict()
        return body | {"spec": restored(body["spec"], target.spec)}

    async with connected(kubeconfig, context) as session:
        key = ObjectKey(namespace or session.client.namespace, name)
        return await carry_out(session, key, alter, patience)


def choose(endpoint: StoredEndpoint, number: int | None) -> PastRevision:
    """The revision that is meant. Without a number: the newest that served and was made of something else."""
    history = sorted(endpoint.status.history, key=lambda each: each.number, reverse=True)
    name = endpoint.metadata.name
    if number is not None:
        found = next((each for each in history if each.number == number), None)
        known = ", ".join(str(each.number) for each in reversed(history)) or "none"
        problem = f"{name} has no revision {number} on record. There is: {known}."
    else:
        served = (each for each in history if each.state in ("Current", "Previous"))
        found = next((each for each in served if not _is_so(endpoint.spec, each.spec)), None)
        problem = f"{name} has no earlier revision to go back to. See: pilotage history {quote(name)}"
    if found is None:
        raise BadTarget(problem)
    return found


def _is_so(spec: Json, old: Json) -> bool:
    """Whether the spec asks for what a revision was made of."""
    return all(_essence(spec.get(field)) == _essence(old.get(field)) for field in REVISION_FIELDS)


def _essence(value: object) -> object:
    """Without what is empty or 0, as defaults are, and with quantities as text: 1 and "1" are the same limit."""
    if isinstance(value, dict):
        kept = {name: _essence(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each} or None
    if isinstance(value, list):
        return [_essence(each) for each in value] or None
    return str(value) if value and isinstance(value, int) else value or None


def restored(spec: Json, old: Json) -> Json:
    """The spec, with what a revision is made of as it was in the old one."""
    kept = {field: value for field, value in spec.items() if field not in REVISION_FIELDS}
    return kept | {field: old[field] for field in REVISION_FIELDS if field in old}
