"""Requests of a person to a rollout in steps: annotations of its endpoint, each bound to one revision.

What is written is decided by a pure function of the endpoint as it was read. The write names that version of it: a
request never acts on a revision or a step that the person has not seen.
"""

from collections.abc import Callable
from shlex import quote
from typing import NamedTuple

from pilotage.api.endpoint_status import RolloutState, StoredEndpoint
from pilotage.api.names import ANNOTATION_ABORT, ANNOTATION_HOLD, ANNOTATION_PROMOTE, ANNOTATION_RETRY, ENDPOINTS
from pilotage.kube import Client, Conflict, Object, ObjectKey, merge_patch
from pilotage.rollout.requests import CHANGE_TRIES_MAX, ChangeConflict, get
from pilotage.rollout.revisions import retriable_revision
from pilotage.rollout.steps import (
    WITH_END,
    current_step,
    is_held_by_request,
    kind_of_step,
    step_name,
    under_way,
)
from pilotage.teardown.planning.arguments import TargetError


class Intent(NamedTuple):
    """An annotation to write, or to remove."""

    annotation: str
    value: str | None
    """None: it is removed."""
    done: str
    """The result in words, after the name of the endpoint."""

    @property
    def revision(self) -> str:
        """The revision that it is about; empty for a removal."""
        return (self.value or "").partition("/")[0]


def promotion(endpoint: StoredEndpoint, *, everything: bool) -> Intent:
    """The end of the current step, or of all steps. Raises TargetError."""
    state = _present(endpoint, "promote")
    if state.phase == "Promoting":
        raise TargetError(f"{state.revision} is being promoted already.")
    if is_held_by_request(endpoint):
        raise TargetError("It is held by request. Release it first:", _command(endpoint, "hold", "--release"))
    if everything:
        return Intent(
            ANNOTATION_PROMOTE, f"{state.revision}/all", f"is promoted to {state.revision}, without its steps"
        )
    step = current_step(endpoint)
    if kind_of_step(step) not in WITH_END:
        now = f"step {state.step}, {step_name(step)}," if step else f"{state.revision} starts, which"
        raise TargetError(
            f"There is nothing to promote: {now} ends by itself once it is proven. To leave out all steps:",
            _command(endpoint, "promote", "--all"),
        )
    done = f"goes on with {state.revision} after step {state.step} of {state.of}, {step_name(step)}"
    return Intent(ANNOTATION_PROMOTE, f"{state.revision}/{state.step}", done)


def abortion(endpoint: StoredEndpoint) -> Intent:
    """The end of a rollout, by the way back. Raises TargetError."""
    state = _present(endpoint, "abort", aborting=True)
    return Intent(ANNOTATION_ABORT, state.revision, f"goes back from {state.revision} to {endpoint.status.revision}")


def holding(endpoint: StoredEndpoint) -> Intent:
    """A halt where the rollout is. Raises TargetError."""
    state = _present(endpoint, "hold")
    where = f"step {state.step} of {state.of}" if state.step else "the begin"
    return Intent(ANNOTATION_HOLD, state.revision, f"holds {state.revision} at {where}")


def release(endpoint: StoredEndpoint) -> Intent:
    """The end of a halt. Raises TargetError."""
    if not endpoint.metadata.annotations.get(ANNOTATION_HOLD):
        raise TargetError("It is not held by request, so there is nothing to release. See:", _look(endpoint))
    return Intent(ANNOTATION_HOLD, None, "is released: its rollout goes on")


def repetition(endpoint: StoredEndpoint) -> Intent:
    """Another rollout of what was aborted. Raises TargetError."""
    if (state := under_way(endpoint)) is not None:
        raise TargetError(
            f"The rollout of {state.revision} has not ended, so there is nothing to retry. See:", _look(endpoint)
        )
    past = retriable_revision(endpoint)
    if past is None:
        raise TargetError(
            "There is nothing to retry: no rollout of what its spec asks for was aborted. See:",
            _command(endpoint, "history"),
        )
    name = f"{endpoint.metadata.name}-{past.number}"
    return Intent(ANNOTATION_RETRY, name, f"tries what {name} was made of again")


def _present(endpoint: StoredEndpoint, verb: str, *, aborting: bool = False) -> RolloutState:
    """The rollout that can be told something."""
    state = under_way(endpoint)
    if endpoint.metadata.terminating:
        raise TargetError("It is being deleted, which cannot be undone.")
    if state is None:
        serves = f": {endpoint.status.revision} serves" if endpoint.status.revision else ""
        resting = aborting and any(each.state == "Resting" for each in endpoint.status.history)
        back = ("To go back to the former revision:", _command(endpoint, "rollback"))
        text, command = back if resting else ("See:", _look(endpoint))
        raise TargetError(f"There is nothing to {verb}: no rollout is under way{serves}. {text}", command)
    if state.phase == "Aborting" and not aborting:
        raise TargetError(f"The rollout of {state.revision} is going back already. See:", _look(endpoint))
    return state


def _command(endpoint: StoredEndpoint, command: str, *more: str) -> str:
    meta = endpoint.metadata
    return " ".join(("pilotage", command, quote(meta.name), "-n", quote(meta.namespace), *more))


def _look(endpoint: StoredEndpoint) -> str:
    return _command(endpoint, "rollout")


class WrittenIntent(NamedTuple):
    """An intent, and the endpoint once it has it."""

    intent: Intent
    endpoint: Object
    anything: bool
    """Whether it was not there already."""


async def write_intent(client: Client, key: ObjectKey, decide: Callable[[StoredEndpoint], Intent]) -> WrittenIntent:
    """Write what `decide` makes of an endpoint. Raises TargetError, and ChangeConflict where the rollout moved on.

    A status that is written meanwhile is read again; it changes nothing as long as the intent is the same.
    """
    first: Intent | None = None
    for _ in range(CHANGE_TRIES_MAX):
        obj = await get(client, ENDPOINTS, key)
        endpoint = StoredEndpoint.of(obj)
        try:
            intent = decide(endpoint)
        except TargetError as error:
            raise TargetError(f"{obj.ref}: {error.text}", error.command) from None
        first = first or intent
        if intent != first:
            moved = f"{obj.ref} moved on at the same time, so nothing was written. See:"
            raise ChangeConflict(moved, _look(endpoint))
        if endpoint.metadata.annotations.get(intent.annotation) == intent.value:
            return WrittenIntent(intent, obj, anything=False)
        meta = obj.meta
        annotations = {intent.annotation: intent.value}
        named = {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": annotations}
        try:
            written = await client.patch(ENDPOINTS, key, merge_patch({"metadata": named}))
        except Conflict:
            continue
        return WrittenIntent(intent, written, anything=True)
    raise ChangeConflict(f"{key} is changed by others all the time, so nothing was written here. Try again.")
