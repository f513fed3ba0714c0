"""Rollouts that do not go on by themselves: held, paused until somebody acts, aborted, or not begun. Pure."""

from collections.abc import Iterator
from shlex import quote

from pilotage.api.names import ANNOTATION_HOLD
from pilotage.kube import Json
from pilotage.teardown.diagnosis.remedies import EDIT, REPAIR, Remedy
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.controllers import short
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.fields import condition, entries, mapping, number, text
from pilotage.teardown.snapshot.world import Item

_RUNNING = ("Starting", "Entering", "Running", "Leaving", "Stopping")


def rollout_cause(item: Item, body: Json, below: tuple[StuckCause, ...]) -> StuckCause | None:
    """Why the rollout of an endpoint does not go on; None if it does. `below`: what is wrong with its parts."""
    state = mapping(body, "status", "rollout")
    phase, revision = text(state, "phase"), text(state, "revision")
    where = f"the rollout to {revision}, at step {number(state, 'step')} of {number(state, 'of')}"
    if text(condition(body, "Degraded"), "reason") == "RolloutAborted":
        line, remedies = f"ABORTED: {short(text(state, 'message') or 'the rollout was aborted')}", _after_abort(item)
    elif phase == "Held":
        line, remedies = f"HELD: {where}: {short(text(state, 'message'))}", _held(item, revision)
    elif phase == "Pausing" and _has_no_end(body, number(state, "step")):
        line, remedies = f"WAITS FOR A PERSON: {where}: {short(text(state, 'message'))}", _paused(item)
    else:
        return None
    evidence = (f"The status of {item} says so.",)
    return StuckCause(CauseCode.ROLLOUT_WAITS, item, line, evidence, because=below, remedies=tuple(remedies))


def held_change(item: Item, body: Json) -> StuckCause | None:
    """Why a change of an endpoint that serves is not begun: an experiment compares with what serves."""
    progressing = condition(body, "Progressing")
    if (text(progressing, "reason"), text(progressing, "status")) != ("ExperimentRuns", "True"):
        return None
    running = [text(each, "name") for each in entries(body, "status", "experiments") if text(each, "phase") in _RUNNING]
    remedies = tuple(
        Remedy(
            "End the experiment",
            f"pilotage terminate {quote(name)} -n {quote(item.meta.namespace)}",
            "Its variants leave the route, and the change begins. Its verdict stays.",
            EDIT,
            item,
        )
        for name in running
    )
    line = f"HELD: {short(text(progressing, 'message'))}"
    evidence = (f"The status of {item} says so.",)
    return StuckCause(CauseCode.ROLLOUT_WAITS, item, line, evidence, remedies=remedies)


def _has_no_end(body: Json, step: int) -> bool:
    """Whether a pause ends by request alone: it has no duration, or is one after an analysis without a result."""
    steps = entries(body, "spec", "strategy", "canary", "steps")
    current = steps[step - 1] if 0 < step <= len(steps) else {}
    return "pause" not in current or not text(current, "pause", "duration")


def _after_abort(item: Item) -> Iterator[Remedy]:
    yield _command(item, "rollback", "Ask for what serves again", "Nothing is started: what serves serves on.")
    yield _command(item, "retry", "Try the same again", "It begins with the first step, as a new revision.")


def _held(item: Item, revision: str) -> Iterator[Remedy]:
    if item.meta.annotations.get(ANNOTATION_HOLD) == revision:
        yield _command(item, "hold", "Let it go on", "It goes on in the same step.", " --release")
    yield _abort(item)


def _paused(item: Item) -> Iterator[Remedy]:
    look = "Read the verdict first, if there is one: pilotage verdict."
    yield _command(item, "promote", "Go on with the next step", look)
    yield _abort(item)


def _abort(item: Item) -> Remedy:
    return _command(item, "abort", "Take it back", "All requests return to the revision that serves.", level=EDIT)


def _command(item: Item, verb: str, title: str, effect: str, more: str = "", level: int = REPAIR) -> Remedy:
    command = f"pilotage {verb} {quote(item.meta.name)} -n {quote(item.meta.namespace)}{more}"
    return Remedy(title, command, effect, level, item)
