"""The progress of a change of an endpoint, by its status: which steps are done, and whether it has arrived.

Pure. A new revision comes up, the route is moved to it, the old one goes. What changes in place has none of these.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from pilotage.cli.output.endpoints import phase_of
from pilotage.cli.output.progress import Row, RowState
from pilotage.teardown.snapshot.fields import text

if TYPE_CHECKING:
    from pilotage.api.endpoint_status import PastRevision, StoredEndpoint

_ROUTE_WORDS = {
    "ProvenByProxy": "programmed, proven by the proxy",
    "AcceptedUnverified": "accepted; whether the proxy has it is not proven",
}


class RolloutVerdict(enum.StrEnum):
    """Whether a change has arrived."""

    GOING = "going"
    SERVING = "serving"
    FAILED = "failed"
    DELETED = "deleted"


class RolloutGoal(NamedTuple):
    """The change that was asked for."""

    uid: str
    generation: int
    before: str
    """The revision that served when it was asked for; empty for a new endpoint."""


class RolloutStatus(NamedTuple):
    """The progress of a change, by one state of the endpoint."""

    rows: tuple[Row, ...]
    verdict: RolloutVerdict
    text: str
    """One sentence: what serves, or why nothing new does."""


def rollout_status(endpoint: StoredEndpoint | None, goal: RolloutGoal) -> RolloutStatus:
    """The steps and the verdict, by the status of the endpoint; None if there is none."""
    if endpoint is None or endpoint.metadata.uid != goal.uid:
        return RolloutStatus((), RolloutVerdict.DELETED, "It was deleted in the meantime.")
    if endpoint.metadata.terminating:
        return RolloutStatus((), RolloutVerdict.DELETED, "It is being deleted.")
    if (endpoint.status.observed_generation or 0) < goal.generation:
        step = Row("operator", RowState.ACTIVE, "the operator has not reconciled it yet")
        return RolloutStatus((step,), RolloutVerdict.GOING, step.text)
    steps = tuple(_steps(endpoint, goal))
    if _is_true(endpoint, "Degraded") or phase_of(endpoint) == "Degraded":
        return RolloutStatus(steps, RolloutVerdict.FAILED, _why_failed(endpoint))
    newest = newest_revision(endpoint)
    arrived = newest is None or newest.state == "Current"
    if phase_of(endpoint) == "Serving" and arrived and not _is_true(endpoint, "Progressing"):
        return RolloutStatus(steps, RolloutVerdict.SERVING, _what_serves(endpoint))
    missing = f"{_what_is_missing(endpoint).rstrip('. ')}. {_what_keeps_serving(endpoint)}".rstrip()
    return RolloutStatus(steps, RolloutVerdict.GOING, missing)


def _steps(endpoint: StoredEndpoint, goal: RolloutGoal) -> list[Row]:
    newest = newest_revision(endpoint)
    name = revision_name(endpoint, newest) if newest else ""
    up = newest is not None and newest.state == "Current"
    steps = [_up(endpoint, name, up=up)]
    if text(endpoint.spec, "route", "kind") not in ("", "None"):
        steps.append(_route(endpoint, up=up))
    if goal.before and name and goal.before != name:
        steps.append(_gone(endpoint, goal.before, up=up))
    return steps


def _up(endpoint: StoredEndpoint, name: str, *, up: bool) -> Row:
    status = endpoint.status
    state = RowState.DONE if up else RowState.FAILED if _is_true(endpoint, "Degraded") else RowState.ACTIVE
    # While another revision serves, the replicas are that one's.
    counted = status.revision in (None, name)
    known = counted and (up or status.replicas.desired > 0)
    ready = f"{status.replicas.ready} of {status.replicas.desired} ready" if known else ""
    degraded, route = status.condition("Degraded"), status.condition("RouteProgrammed")
    missing = "" if up else degraded.reason if degraded and state is RowState.FAILED else _what_is_missing(endpoint)
    if not missing or (route is not None and missing in (route.message, f"{route.reason}: {route.message}")):
        return Row("up", state, "  ".join(filter(None, (name, ready))))  # the route waits: its own row says why
    what = [name] if ready.removesuffix(" ready") in missing else [name, ready]
    return Row("up", state, f"{missing.rstrip('. ')} ({', '.join(filter(None, what))})")


def _route(endpoint: StoredEndpoint, *, up: bool) -> Row:
    programmed = endpoint.status.condition("RouteProgrammed")
    kind = text(endpoint.spec, "route", "kind")
    if programmed is not None and programmed.status != "True":
        return Row("route", RowState.ACTIVE, programmed.message or f"{kind}  {programmed.reason}")
    if not up or programmed is None:
        return Row("route", RowState.LATER, kind)
    return Row("route", RowState.DONE, f"{kind}  {_ROUTE_WORDS.get(programmed.reason, programmed.reason)}")


def _gone(endpoint: StoredEndpoint, old: str, *, up: bool) -> Row:
    """The parts of the revision that served stand in the ledger until they are proven gone."""
    left = [entry for entry in endpoint.status.ledger if f"{endpoint.metadata.name}-{entry.revision}" == old]
    if not left:
        return Row("gone", RowState.DONE, old)
    shown = ", ".join(f"{entry.kind.lower()}/{entry.name}" for entry in left[:2])
    more = f" and {len(left) - 2} more" if len(left) > 2 else ""
    return Row("gone", RowState.ACTIVE if up else RowState.LATER, f"{shown}{more} left ({old})")


def newest_revision(endpoint: StoredEndpoint) -> PastRevision | None:
    """The revision that is wanted, whether it serves or not."""
    return max(endpoint.status.history, key=lambda each: each.number, default=None)


def revision_name(endpoint: StoredEndpoint, revision: PastRevision) -> str:
    """The name of a revision, which its parts have."""
    return f"{endpoint.metadata.name}-{revision.number}"


def _what_serves(endpoint: StoredEndpoint) -> str:
    status = endpoint.status
    where = f": {status.url}" if status.url else ""
    revision = f"revision {status.revision}, " if status.revision else ""
    return f"serves{where} ({revision}{status.replicas.ready} of {status.replicas.desired} ready)"


def _why_failed(endpoint: StoredEndpoint) -> str:
    """The reason in the operator's words, and whether anything serves all the same."""
    degraded = endpoint.status.condition("Degraded")
    told = "it is degraded, and does not say why"
    if degraded is not None and degraded.status == "True":
        told = f"{degraded.reason}: {degraded.message}" if degraded.message else degraded.reason
    return f"{told.rstrip('. ')}. {_what_keeps_serving(endpoint) or 'Nothing serves.'}"


def _what_keeps_serving(endpoint: StoredEndpoint) -> str:
    status = endpoint.status
    if not status.revision or not _is_true(endpoint, "Available"):
        return ""
    return f"{status.revision} keeps serving{f' at {status.url}' if status.url else ''}."


def _what_is_missing(endpoint: StoredEndpoint) -> str:
    """The wait, in the operator's words."""
    if endpoint.status.waiting_for:
        return endpoint.status.waiting_for
    for type_, interesting in (("Progressing", "True"), ("Available", "False")):
        condition = endpoint.status.condition(type_)
        if condition is not None and condition.status == interesting:
            return f"{condition.reason}: {condition.message}" if condition.message else condition.reason
    return phase_of(endpoint).lower()


def _is_true(endpoint: StoredEndpoint, type_: str) -> bool:
    condition = endpoint.status.condition(type_)
    return condition is not None and condition.status == "True"
