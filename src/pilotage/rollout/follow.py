"""A change of an endpoint, observed until it has ended."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import Callable

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import ENDPOINTS
from pilotage.kube import Client, Object
from pilotage.rollout.status import Rollout, RolloutGoal, RolloutStatus
from pilotage.runtime.clock import SteadyClock
from pilotage.runtime.live_objects import LiveObjects
from pilotage.teardown.session.operator_lease import find_operator

TICK_SECONDS = 0.5
OPERATOR_SECONDS = 5.0
"""Time without a reconcile after which the Lease shows whether an operator runs."""


async def follow(
    client: Client,
    obj: Object,
    before: str,
    timeout: float,
    show: Callable[[RolloutStatus, dt.datetime], None],
    no_operator: Callable[[str], None],
) -> RolloutStatus:
    """The status with which a change ended; `obj` is the endpoint as it was written. Raises ApiError.

    `before`: the revision that served. `show` is called with each status, and `no_operator` with the reason why nothing
    happens, where no operator runs that could do it.
    """
    clock = SteadyClock()
    deadline = clock.now() + dt.timedelta(seconds=timeout)
    rollout = Rollout(RolloutGoal(obj.meta.uid, obj.meta.generation, before), deadline)
    asking = asyncio.create_task(_ask_for_operator(client, no_operator))
    try:
        async with LiveObjects(client, ENDPOINTS, obj.meta.namespace, name=obj.meta.name) as seen:
            while True:
                now = clock.now()
                current = seen.objects.get(obj.meta.name)
                status = rollout.observe(StoredEndpoint.of(current) if current else None, now)
                show(status, now)
                if status.ended:
                    return status
                if status.reconciled:
                    asking.cancel()
                await seen.changed(min(TICK_SECONDS, (deadline - now).total_seconds()))
    finally:
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking


async def _ask_for_operator(client: Client, no_operator: Callable[[str], None]) -> None:
    await asyncio.sleep(OPERATOR_SECONDS)
    operator = await find_operator(client)
    if operator.alive is False:
        no_operator(operator.text)
