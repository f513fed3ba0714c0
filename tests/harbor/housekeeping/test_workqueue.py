"""The promises of the queue."""

from __future__ import annotations

import asyncio

import pytest

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.housekeeping.workqueue import RateLimitingQueue
from pilotage_sim.loop import virtual


class Work:
    """Notes when each key is done; takes a second for each."""

    def __init__(self, workers: int = 1) -> None:
        self.queue: RateLimitingQueue[str] = RateLimitingQueue()
        self.done: list[tuple[str, float]] = []
        self.at_once = self.at_once_max = 0
        self.failing: set[str] = set()
        self._tasks = [asyncio.create_task(self.queue.serve(self._one)) for _ in range(workers)]

    async def _one(self, key: str) -> None:
        self.at_once += 1
        self.at_once_max = max(self.at_once_max, self.at_once)
        await asyncio.sleep(1)
        self.at_once -= 1
        self.done.append((key, asyncio.get_running_loop().time()))
        if key in self.failing:
            raise StatusError(409, "Conflict", "not now")

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.queue.close()


@virtual
async def test_what_is_added_twice_is_done_once_and_in_order() -> None:
    work = Work()
    for key in "bacba":
        work.queue.add(key)
    await asyncio.sleep(10)
    assert work.done == [("b", 1), ("a", 2), ("c", 3)]
    await work.stop()


@virtual
async def test_what_is_added_while_it_is_done_is_done_again_but_not_at_the_same_time() -> None:
    work = Work(workers=3)
    work.queue.add("a")
    await asyncio.sleep(0.5)
    work.queue.add("a")
    work.queue.add("a")
    await asyncio.sleep(10)
    assert work.done == [("a", 1), ("a", 2)]
    assert work.at_once_max == 1
    await work.stop()


@virtual
async def test_several_keys_are_done_at_the_same_time() -> None:
    work = Work(workers=2)
    for key in "abc":
        work.queue.add(key)
    await asyncio.sleep(10)
    assert work.at_once_max == 2
    assert sorted(work.done) == [("a", 1), ("b", 1), ("c", 2)]
    await work.stop()


@virtual
async def test_the_earliest_time_counts() -> None:
    work = Work()
    work.queue.add_after("a", 50)
    work.queue.add_after("a", 5)
    work.queue.add_after("a", 20)
    await asyncio.sleep(100)
    assert work.done == [("a", 6)]
    await work.stop()


@virtual
async def test_failures_come_back_ever_later_until_one_success() -> None:
    work = Work()
    work.failing.add("a")
    work.queue.add("a")
    await asyncio.sleep(3.5)
    assert [round(when, 3) for _, when in work.done] == [1, 2.005, 3.015]
    work.failing.clear()
    await asyncio.sleep(1)
    work.failing.add("a")
    work.queue.add("a")
    await asyncio.sleep(5)
    later, again = work.done[4][1], work.done[5][1]
    assert again - later == pytest.approx(1.005)
    await work.stop()


@virtual
async def test_after_its_end_nothing_is_done() -> None:
    work = Work()
    work.queue.add_after("a", 5)
    await work.stop()
    await asyncio.sleep(100)
    assert work.done == []
