"""A change of an endpoint, observed until it has ended."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import Callable
from typing import Literal, NamedTuple

from pilotage.api.endpoint import REVISION_FIELDS
from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import ENDPOINTS
from pilotage.kube import Client, Json, Object
from pilotage.rollout.requests import EndpointChange
from pilotage.rollout.revisions import differing
from pilotage.rollout.status import Rollout, RolloutGoal, RolloutStatus
from pilotage.rollout.steps import ENDS, phase_words
from pilotage.runtime.clock import SteadyClock
from pilotage.runtime.live_objects import LiveObjects
from pilotage.teardown.session.operator_lease import find_operator

TICK_SECONDS = 0.5
OPERATOR_SECONDS = 5.0
"""Time without a reconcile after which the Lease shows whether an operator runs."""


class RolloutEnd(NamedTuple):
    """The end of a change."""

    status: RolloutStatus
    endpoint: Object | None
    """The endpoint as it was seen last; None if it is gone."""


async def follow(
    client: Client,
    change: EndpointChange,
    timeout: float,
    show: Callable[[RolloutStatus, dt.datetime], None],
    no_operator: Callable[[str], None],
) -> RolloutEnd:
    """The end of a change. Raises ApiError.

    `show` is called with each status, and `no_operator` with the reason why nothing happens, where no operator runs
    that could do it.
    """
    obj = change.after
    clock = SteadyClock()
    deadline = clock.now() + dt.timedelta(seconds=timeout)
    rollout = Rollout(goal_of(change), deadline)
    asking = asyncio.create_task(_ask_for_operator(client, no_operator))
    try:
        async with LiveObjects(client, ENDPOINTS, obj.meta.namespace, name=obj.meta.name) as seen:
            while True:
                now = clock.now()
                current = seen.objects.get(obj.meta.name)
                status = rollout.observe(StoredEndpoint.of(current) if current else None, now)
                show(status, now)
                if status.ended:
                    return RolloutEnd(status, current)
                if status.reconciled:
                    asking.cancel()
                await seen.changed(min(TICK_SECONDS, (deadline - now).total_seconds()))
    finally:
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking


StepsResult = Literal["Promoted", "Aborted", "Deleted", "Superseded", "Timeout"]


class StepsEnd(NamedTuple):
    """The end of a rollout in steps."""

    result: StepsResult
    text: str
    """The end in words, after the name of the endpoint."""
    endpoint: Object | None
    """The endpoint as it was seen last; None if it is gone."""


class FollowedRollout:
    """A rollout in steps, from a moment at which it was seen until it has ended. Pure."""

    def __init__(self, uid: str, revision: str, *, repeated: bool = False) -> None:
        """`repeated`: the rollout that follows that of the revision, and not that one."""
        self._uid = uid
        self._revision = revision
        self._repeated = repeated

    def observe(self, endpoint: StoredEndpoint | None) -> tuple[StepsResult, str] | None:
        """The end of it and its words, by the endpoint as it is now; None while it is under way."""
        if endpoint is None or endpoint.metadata.uid != self._uid or endpoint.metadata.terminating:
            return "Deleted", "was deleted in the meantime"
        state = endpoint.status.rollout
        if self._repeated and (state is None or state.revision == self._revision):
            return None
        if state is None:
            return "Superseded", "has no rollout any more: its spec was changed"
        if self._repeated:
            self._revision, self._repeated = state.revision, False
        if state.revision != self._revision:
            return "Superseded", f"has another rollout by now, to {state.revision}"
        if state.phase == ENDS[0]:
            return "Promoted", f"serves {state.revision}: it is promoted"
        if state.phase == ENDS[1]:
            why = f": {state.message}" if state.message else ""
            return "Aborted", f"serves {endpoint.status.revision}: the rollout of {state.revision} was aborted{why}"
        return None


async def follow_steps(
    client: Client,
    obj: Object,
    followed: FollowedRollout,
    timeout: float,
    show: Callable[[StoredEndpoint, dt.datetime], None],
) -> StepsEnd:
    """The end of a rollout in steps. `show` is called with each state that is seen. Raises ApiError."""
    clock = SteadyClock()
    begin = clock.now()
    async with LiveObjects(client, ENDPOINTS, obj.meta.namespace, name=obj.meta.name) as seen:
        while True:
            now = clock.now()
            current = seen.objects.get(obj.meta.name)
            endpoint = StoredEndpoint.of(current) if current else None
            if endpoint is not None:
                show(endpoint, now)
            if (end := followed.observe(endpoint)) is not None:
                return StepsEnd(*end, current)
            left = timeout - (now - begin).total_seconds()
            if left <= 0:
                why = f": {phase_words(endpoint)}" if endpoint is not None else ""
                return StepsEnd("Timeout", f"has a rollout that has not ended after {timeout:g} s{why}", current)
            await seen.changed(min(TICK_SECONDS, left))


def goal_of(change: EndpointChange) -> RolloutGoal:
    """The goal of a change that was written: its revision, and the fields that it changed."""
    after: Json = change.after.get("spec", default={})
    before: Json = change.before.get("spec", default={}) if change.before is not None else after
    fields = {*REVISION_FIELDS, *differing(after, before, {*after, *before})}
    served = change.before.get("status", "revision", default="") if change.before is not None else ""
    return RolloutGoal(change.after.meta.uid, change.after.meta.generation, served, after, frozenset(fields))


async def _ask_for_operator(client: Client, no_operator: Callable[[str], None]) -> None:
    await asyncio.sleep(OPERATOR_SECONDS)
    operator = await find_operator(client)
    if operator.alive is False:
        no_operator(operator.text)
