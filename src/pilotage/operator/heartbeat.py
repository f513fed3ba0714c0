"""A sign of life of an operator that runs without leader election.

Others know an operator by the Lease that it renews: `pilotage delete` leaves endpoints to one that runs, and an alert
fires where none does. One that needs no Lease takes it for their sake. It works without it as well, and never takes
it from somebody who holds it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from pilotage.runtime.leader import Election, Leader, LeaseLost
from pilotage.runtime.manager import Manager


@contextlib.asynccontextmanager
async def heartbeat(manager: Manager, election: Election) -> AsyncIterator[None]:
    """Hold the Lease within the context, whenever it is available; release it at the end."""
    leader = Leader(manager.client, election, manager.rng)
    manager.metrics.leader.labels(str(election.lease)).set_function(lambda: _is_held(leader))
    task = asyncio.create_task(_beat(leader))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await leader.release()


async def _beat(leader: Leader) -> None:
    while True:
        await leader.acquire()
        with contextlib.suppress(LeaseLost):
            await leader.keep()


def _is_held(leader: Leader) -> int:
    try:
        leader.check()
    except LeaseLost:
        return 0
    return 1
