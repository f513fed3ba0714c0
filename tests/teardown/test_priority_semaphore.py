"""The semaphore that lets an endpoint that has begun finish before the next one begins."""

import asyncio

from pilotage.teardown.engine.observers import PrioritySemaphore
from pilotage_sim.loop import virtual


async def hold(places: PrioritySemaphore, rank: int, seconds: float, served: list[int]) -> None:
    async with places.passing(rank):
        served.append(rank)
        await asyncio.sleep(seconds)


@virtual
async def test_a_higher_rank_is_served_first():
    places, served = PrioritySemaphore(1), []
    await asyncio.gather(*(hold(places, rank, 1.0, served) for rank in (0, 1, 3, 2)))
    assert served == [0, 3, 2, 1]  # the first one found it free


@virtual
async def test_a_waiter_that_is_cancelled_takes_no_place():
    places, served = PrioritySemaphore(1), []
    first = asyncio.create_task(hold(places, 0, 1.0, served))
    cancelled = asyncio.create_task(hold(places, 2, 1.0, served))
    last = asyncio.create_task(hold(places, 1, 1.0, served))
    await asyncio.sleep(0.5)
    cancelled.cancel()
    await asyncio.gather(first, last)
    assert served == [0, 1]
