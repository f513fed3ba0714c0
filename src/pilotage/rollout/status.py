"""The progress of a change of an endpoint, by its status: which steps are done, and whether it has ended.

Pure. A new revision comes up, the route is moved to it, the old one goes. What changes in place has none of these.
"""

import datetime as dt
import enum
from typing import Literal, NamedTuple

from pilotage.api.endpoint_status import RolloutState, StoredEndpoint
from pilotage.kube import Json
from pilotage.rollout.revisions import differing, newest_revision, revision_named
from pilotage.rollout.steps import next_commands, shift, under_way, waits_for_person
from pilotage.teardown.snapshot.fields import text

SETTLE_SECONDS = 3.0
"""An endpoint that is degraded for a shorter time than this may just not have been reconciled again."""

EXPERIMENT_RUNS = "ExperimentRuns"
"""Reason of the condition Progressing while a change waits for the end of an experiment."""
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
    SUPERSEDED = "superseded"
    """Somebody has asked for something else since."""
    TIMEOUT = "timeout"
    """It has not, and the time for it is over."""


_ENDS = (RolloutVerdict.SERVING, RolloutVerdict.DELETED, RolloutVerdict.SUPERSEDED)


class RolloutGoal(NamedTuple):
    """The change that was asked for."""

    uid: str
    generation: int
    before: str
    """The revision that served when it was asked for; empty for a new endpoint."""
    spec: Json
    """The spec as it was written."""
    fields: frozenset[str]
    """Top-level fields of the spec whose change by somebody else means that this change is not wanted any more."""


StepState = Literal["done", "active", "later", "failed"]


class RolloutStep(NamedTuple):
    """One step of a change."""

    name: Literal["operator", "up", "route", "shift", "gone"]
    state: StepState
    text: str
    """Text for people."""
    revision: str = ""
    """The revision that comes up or goes."""
    reason: str = ""
    """The reason of the condition behind it."""
    message: str = ""
    """The message of the condition behind it."""
    commands: tuple[str, ...] = ()
    """Commands that take it on or back, where it waits for a person."""


class RolloutStatus(NamedTuple):
    """The progress of a change, by one state of the endpoint."""

    steps: tuple[RolloutStep, ...]
    verdict: RolloutVerdict
    text: str
    """One sentence: what serves, or why nothing new does."""
    reason: str = ""
    """The reason of the condition that decided it."""
    ended: bool = False
    """Whether nothing more is to be waited for."""

    @property
    def reconciled(self) -> bool:
        """Whether an operator has taken the change up."""
        return not any(step.name == "operator" for step in self.steps)


class Rollout:
    """A change, from the moment that it was asked for until it has ended."""

    def __init__(self, goal: RolloutGoal, deadline: dt.datetime) -> None:
        self._goal = goal
        self._deadline = deadline
        self._failed_since: dt.datetime | None = None

    def observe(self, endpoint: StoredEndpoint | None, now: dt.datetime) -> RolloutStatus:
        """The status by now. It ends with serving and deletion, with a failure that stays, and at the deadline."""
        status = rollout_status(endpoint, self._goal)
        self._failed_since = (self._failed_since or now) if status.verdict is RolloutVerdict.FAILED else None
        settled = self._failed_since is not None and (now - self._failed_since).total_seconds() >= SETTLE_SECONDS
        if settled or status.verdict in _ENDS:
            return status._replace(ended=True)
        return status._replace(verdict=RolloutVerdict.TIMEOUT, ended=True) if now >= self._deadline else status


def rollout_status(endpoint: StoredEndpoint | None, goal: RolloutGoal) -> RolloutStatus:
    """The steps and the verdict, by the status of the endpoint; None if there is none."""
    if endpoint is None or endpoint.metadata.uid != goal.uid:
        return RolloutStatus((), RolloutVerdict.DELETED, "It was deleted in the meantime.")
    if endpoint.metadata.terminating:
        return RolloutStatus((), RolloutVerdict.DELETED, "It is being deleted.")
    is_later = endpoint.metadata.generation > goal.generation
    if is_later and (others := differing(endpoint.spec, goal.spec, sorted(goal.fields))):
        by = f"a later change of {', '.join(others)} (generation {endpoint.metadata.generation})"
        said = f"Superseded by {by}. {_what_keeps_serving(endpoint)}".rstrip()
        return RolloutStatus((), RolloutVerdict.SUPERSEDED, said)
    if (endpoint.status.observed_generation or 0) < goal.generation:
        step = RolloutStep("operator", "active", "the operator has not reconciled it yet")
        return RolloutStatus((step,), RolloutVerdict.GOING, step.text)
    steps = tuple(_steps(endpoint, goal))
    if _is_true(endpoint, "Degraded") or endpoint.phase in ("Degraded", "Failed"):
        degraded = endpoint.status.condition("Degraded")
        return RolloutStatus(steps, RolloutVerdict.FAILED, _why_failed(endpoint), degraded.reason if degraded else "")
    newest = newest_revision(endpoint)
    arrived = newest is None or newest.state == "Current"
    if endpoint.phase in ("Serving", "ScaledToZero") and arrived and not _is_true(endpoint, "Progressing"):
        return RolloutStatus(steps, RolloutVerdict.SERVING, _what_serves(endpoint))
    missing = f"{_what_is_missing(endpoint).rstrip('. ')}. {_what_keeps_serving(endpoint)}".rstrip()
    return RolloutStatus(steps, RolloutVerdict.GOING, missing, _waits(endpoint)[0])


def _steps(endpoint: StoredEndpoint, goal: RolloutGoal) -> list[RolloutStep]:
    newest = newest_revision(endpoint)
    name = f"{endpoint.metadata.name}-{newest.number}" if newest else ""
    up = newest is not None and newest.state == "Current"
    state = under_way(endpoint)
    if _waits(endpoint)[0] == EXPERIMENT_RUNS:
        return [RolloutStep("up", "active", _what_is_missing(endpoint), "", *_waits(endpoint))]
    steps = [_up(endpoint, name, up=up) if state is None else _candidate(state)]
    if text(endpoint.spec, "route", "kind") not in ("", "None"):
        steps.append(_route(endpoint, up=up))
    if state is not None:
        steps.append(_shift(endpoint, state))
    if goal.before and name and goal.before != name:
        steps.append(_gone(endpoint, goal.before, up=up))
    return steps


def _up(endpoint: StoredEndpoint, name: str, *, up: bool) -> RolloutStep:
    status = endpoint.status
    state: StepState = "done" if up else "failed" if _is_true(endpoint, "Degraded") else "active"
    # While another revision serves, the replicas are that one's.
    counted = status.revision in (None, name)
    known = counted and (up or status.replicas.desired > 0)
    ready = f"{status.replicas.ready} of {status.replicas.desired} ready" if known else ""
    degraded, route = status.condition("Degraded"), status.condition("RouteProgrammed")
    missing = "" if up else degraded.reason if degraded and state == "failed" else _what_is_missing(endpoint)
    if not missing or (route is not None and missing in (route.message, f"{route.reason}: {route.message}")):
        return RolloutStep("up", state, "  ".join(filter(None, (name, ready))), name)  # the route's row says why
    unsaid = [each for each in (name, ready) if each and each.removesuffix(" ready") not in missing]
    more = f" ({', '.join(unsaid)})" if unsaid else ""
    said = (degraded.reason, degraded.message) if degraded and state == "failed" else _waits(endpoint)
    return RolloutStep("up", state, f"{missing.rstrip('. ')}{more}", name, *said)


def _route(endpoint: StoredEndpoint, *, up: bool) -> RolloutStep:
    programmed = endpoint.status.condition("RouteProgrammed")
    kind = text(endpoint.spec, "route", "kind")
    if programmed is None:
        return RolloutStep("route", "later", kind)
    said = ("", programmed.reason, programmed.message)
    if programmed.status != "True":
        return RolloutStep("route", "active", programmed.message or f"{kind}  {programmed.reason}", *said)
    if not up:
        return RolloutStep("route", "later", kind, *said)
    words = _ROUTE_WORDS.get(programmed.reason, programmed.reason)
    return RolloutStep("route", "done", f"{kind}  {words}", *said)


def _candidate(state: RolloutState) -> RolloutStep:
    """The next revision of a rollout in steps, whose size follows from the step."""
    ready = f"  {state.replicas.candidate} ready" if state.replicas.candidate else ""
    return RolloutStep("up", "active", f"{state.revision}{ready}", state.revision)


def _shift(endpoint: StoredEndpoint, state: RolloutState) -> RolloutStep:
    """The steps of the rollout. One that only a person ends names the commands for that."""
    said = ": ".join(filter(None, (shift(endpoint), state.message)))
    commands = tuple(next_commands(endpoint)) if waits_for_person(endpoint) else ()
    return RolloutStep("shift", "active", said, state.revision, state.phase, state.message, commands)


def _gone(endpoint: StoredEndpoint, old: str, *, up: bool) -> RolloutStep:
    """The parts of the revision that served stand in the ledger until they are proven gone."""
    left = [entry for entry in endpoint.status.ledger if f"{endpoint.metadata.name}-{entry.revision}" == old]
    if not left:
        return RolloutStep("gone", "done", old, old)
    past = revision_named(endpoint, old)
    if past is not None and past.state == "Resting":
        return RolloutStep("gone", "done", f"{old} rests until {past.until}: a rollback to it takes no steps", old)
    shown = ", ".join(f"{entry.kind.lower()}/{entry.name}" for entry in left[:2])
    more = f" and {len(left) - 2} more" if len(left) > 2 else ""
    return RolloutStep("gone", "active" if up else "later", f"{shown}{more} left ({old})", old)


def _what_serves(endpoint: StoredEndpoint) -> str:
    status = endpoint.status
    where = f": {status.url}" if status.url else ""
    revision = f"revision {status.revision}, " if status.revision else ""
    if endpoint.phase == "ScaledToZero":
        return f"is scaled to zero: nothing answers until it is scaled up (revision {status.revision})"
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
    reason, message = _waits(endpoint)
    return (f"{reason}: {message}" if message else reason) or endpoint.phase.lower()


def _waits(endpoint: StoredEndpoint) -> tuple[str, str]:
    """Reason and message of the condition that says what is waited for; empty where none does."""
    for type_, interesting in (("Progressing", "True"), ("Available", "False")):
        condition = endpoint.status.condition(type_)
        if condition is not None and condition.status == interesting:
            return condition.reason, condition.message
    return "", ""


def _is_true(endpoint: StoredEndpoint, type_: str) -> bool:
    condition = endpoint.status.condition(type_)
    return condition is not None and condition.status == "True"
