"""A change of an endpoint, observed until it has ended."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import Callable
from typing import NamedTuple

from pilotage.api.endpoint import REVISION_FIELDS
from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import ENDPOINTS
from pilotage.kube import Client, Json, Object
from pilotage.rollout.requests import EndpointChange
from pilotage.rollout.revisions import differing
from pilotage.rollout.status import Rollout, RolloutGoal, RolloutStatus
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
