"""Each promise of the queue, by an example. That nothing else happens is for `test_queue_model` to show."""

import asyncio
from typing import Any

import pytest

from pilotage.runtime.backoff import ExponentialBackoff
from pilotage.runtime.queue import Queue, ShutDown
from pilotage_sim.loop import virtual


async def take(queue: Queue[str], n: int) -> str:
    """The next n items, which must be there at once, as a string; each is done before the next is taken."""
    items = []
    for _ in range(n):
        async with asyncio.timeout(0):
            items.append(await queue.get())
        queue.done(items[-1])
    return "".join(items)


def timers() -> list[asyncio.TimerHandle]:
    scheduled: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    return [timer for timer in scheduled if not timer.cancelled()]


@virtual
async def test_first_come_first_served() -> None:
    queue = Queue[str]()
    for item in "cab":
        queue.add(item)
    assert len(queue) == 3
    assert await take(queue, 3) == "cab"
    assert len(queue) == 0


@virtual
async def test_a_higher_priority_goes_first() -> None:
    queue = Queue[str]()
    for item, priority in [("a", 0), ("b", 5), ("c", -5), ("d", 0), ("e", 5)]:
        queue.add(item, priority)
    assert await take(queue, 5) == "beadc"


@virtual
async def test_an_add_raises_a_priority_but_never_lowers_it_and_a_raised_item_keeps_its_place() -> None:
    queue = Queue[str]()
    for item, priority in [("a", 0), ("b", 1), ("c", 0), ("a", 1), ("b", -9)]:
        queue.add(item, priority)
    assert len(queue) == 3
    assert await take(queue, 3) == "abc"


@virtual
async def test_added_many_times_handed_out_once() -> None:
    queue = Queue[str]()
    for item in "abaab":
        queue.add(item)
    assert len(queue) == 2
    assert await take(queue, 2) == "ab"
    assert len(queue) == 0


@virtual
async def test_never_worked_on_twice_at_once() -> None:
    queue = Queue[str]()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a", 3)
    queue.add("a", 1)
    assert len(queue) == 0
    queue.add("b")
    queue.add("c", 2)
    queue.done("a")
    assert await take(queue, 3) == "acb"  # at the highest of the priorities it was added with
    assert len(queue) == 0


@virtual
async def test_an_item_added_while_a_worker_has_it_goes_to_the_end_when_done() -> None:
    queue = Queue[str]()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("b")
    queue.done("a")
    assert await take(queue, 2) == "ba"


@virtual
async def test_done_of_an_item_that_no_worker_has_is_an_error() -> None:
    queue = Queue[str]()
    queue.add("a")
    with pytest.raises(KeyError):
        queue.done("a")
    assert await take(queue, 1) == "a"
    with pytest.raises(KeyError):
        queue.done("a")


@virtual
async def test_a_waiting_worker_gets_an_item_as_soon_as_there_is_one() -> None:
    queue = Queue[str]()
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(1)
    for item in "ab":
        queue.add(item)
    done, waiting = await asyncio.wait(workers, timeout=1)
    assert {task.result() for task in done} == {"a", "b"}
    queue.done("a")
    queue.add("a")
    assert await waiting.pop() == "a"


@virtual
async def test_a_waiting_worker_gets_an_item_that_another_worker_is_done_with() -> None:
    queue = Queue[str]()
    queue.add("a")
    await queue.get()
    queue.add("a")
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    queue.done("a")
    assert await waiting == "a"


@virtual
async def test_a_delayed_add_comes_at_its_time() -> None:
    queue, loop = Queue[str](), asyncio.get_running_loop()
    for item, delay in [("d", 86_400.25), ("b", 0.1), ("a", 0.1 - 1e-9), ("c", 0.1)]:
        queue.add_after(item, delay)
    seen = []
    for _ in range(4):
        item = await queue.get()
        seen.append((item, loop.time()))
        queue.done(item)
    assert seen == [("a", 0.1 - 1e-9), ("b", 0.1), ("c", 0.1), ("d", 86_400.25)]


@virtual
async def test_delayed_adds_share_one_timer() -> None:
    queue = Queue[str]()
    for n in range(100):
        queue.add_after(f"item-{n}", 100.0 - n)
    assert len(timers()) == 1


@virtual
async def test_a_delayed_item_keeps_the_earlier_time_and_the_higher_priority() -> None:
    queue = Queue[str]()
    queue.add_after("a", 10, priority=0)
    queue.add_after("a", 20, priority=2)
    queue.add_after("a", 5, priority=1)
    await asyncio.sleep(4.75)
    assert len(queue) == 0
    queue.add("b", 1)
    await asyncio.sleep(0.5)
    assert await take(queue, 2) == "ab"
    await asyncio.sleep(100)
    assert len(queue) == 0, "it came once more, at one of the later times"


@virtual
async def test_an_immediate_add_leaves_the_delayed_one_in_place() -> None:
    queue = Queue[str]()
    queue.add_after("a", 10)
    queue.add("a")
    assert await take(queue, 1) == "a"
    await asyncio.sleep(10.5)
    assert await take(queue, 1) == "a"


@virtual
async def test_a_delay_of_zero_or_less_is_an_immediate_add() -> None:
    queue = Queue[str]()
    queue.add_after("a", 0)
    queue.add_after("b", -1, priority=1)
    assert await take(queue, 2) == "ba"
    assert not timers()


@virtual
async def test_a_failed_item_waits_longer_each_time_until_it_is_forgotten() -> None:
    queue, loop = Queue[str](ExponentialBackoff(1, 5)), asyncio.get_running_loop()

    async def waits(n: int) -> list[float]:
        times = []
        for _ in range(n):
            began = loop.time()
            queue.add_rate_limited("a")
            queue.done(await queue.get())
            times.append(loop.time() - began)
        return times

    assert await waits(5) == [1, 2, 4, 5, 5]
    assert queue.num_requeues("a") == 5
    queue.forget("a")
    assert queue.num_requeues("a") == 0
    assert await waits(2) == [1, 2]


@virtual
async def test_after_shut_down_nothing_is_added_and_what_was_queued_is_still_handed_out() -> None:
    queue = Queue[str]()
    for item in "ab":
        queue.add(item)
    assert await queue.get() == "a"
    queue.add("a")
    queue.add_after("later", 1)
    queue.shut_down()
    for add in (queue.add, queue.add_rate_limited):
        add("c")
    queue.add_after("c", 1)
    queue.add_after("c", 0)
    queue.done("a")
    await asyncio.sleep(2)
    assert await take(queue, 2) == "ba"
    assert queue.num_requeues("c") == 1
    with pytest.raises(ShutDown):
        await queue.get()


@virtual
async def test_shut_down_ends_every_worker_that_waits() -> None:
    queue = Queue[str]()
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(1)
    queue.shut_down()
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert [type(result) for result in results] == [ShutDown] * 3


@virtual
async def test_shut_down_leaves_no_timer() -> None:
    queue = Queue[str]()
    queue.add_after("a", 10)
    queue.shut_down()
    assert not timers()


@virtual
async def test_shut_down_with_drain_returns_when_all_that_was_queued_is_done() -> None:
    queue, finished = Queue[str](), list[str]()

    async def worker() -> None:
        while True:
            try:
                item = await queue.get()
            except ShutDown:
                return
            await asyncio.sleep(1)
            finished.append(item)
            queue.done(item)

    for item in "abcd":
        queue.add(item)
    workers = [asyncio.create_task(worker()) for _ in range(2)]
    await asyncio.sleep(0.5)
    queue.add("a")  # which a worker has: it is to be done once more
    await queue.shut_down_with_drain()
    assert sorted(finished) == ["a", "a", "b", "c", "d"]
    await asyncio.gather(*workers)


@virtual
async def test_shut_down_with_drain_waits_also_for_what_no_worker_has_begun() -> None:
    queue = Queue[str]()
    queue.add("a")
    drain = asyncio.create_task(queue.shut_down_with_drain())
    await asyncio.sleep(1)
    assert not drain.done()
    assert await take(queue, 1) == "a"
    await drain


@virtual
async def test_shut_down_ends_a_drain_that_waits() -> None:
    queue = Queue[str]()
    queue.add("a")
    await queue.get()
    drains = [asyncio.create_task(queue.shut_down_with_drain()) for _ in range(3)]
    await asyncio.sleep(1)
    drains[0].cancel()
    queue.shut_down()
    done, waiting = await asyncio.wait(drains, timeout=1)
    assert len(done) == 3
    assert not waiting


@virtual
async def test_a_cancelled_get_loses_nothing() -> None:
    queue = Queue[str]()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(1)
    queue.add("a")
    first.cancel()  # it has been woken for the item, and has not run yet
    assert await second == "a"
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(1)
    first.cancel()  # the queue cannot know of it when the item comes
    queue.add("b")
    assert await second == "b"
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 1)
    queue.add("c")
    assert await take(queue, 1) == "c"


@virtual
async def test_an_item_that_is_moved_again_and_again_takes_no_more_memory() -> None:
    """Neither raised priorities nor earlier times may leave anything behind that is removed only when it is due."""
    queue = Queue[str]()
    queue.add("last", -10)
    for _ in range(1000):
        queue.add("a", -5)
        queue.add("a", 5)
        queue.add_after("b", 86_400)
        queue.add_after("b", 1)
        assert await take(queue, 1) == "a"
        await asyncio.sleep(2)
        assert await take(queue, 1) == "b"
    assert len(queue._ready._heap) < 50
    assert len(queue._delays._by_time._heap) < 50


class Recorder:
    """An observer that records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def added(self, item: str) -> None:
        self.calls.append(("added", item))

    def got(self, item: str, waited_seconds: float) -> None:
        self.calls.append(("got", item, waited_seconds))

    def finished(self, item: str, worked_seconds: float) -> None:
        self.calls.append(("finished", item, worked_seconds))

    def retried(self) -> None:
        self.calls.append(("retried",))

    def depth(self, n: int) -> None:
        self.calls.append(("depth", n))


@virtual
async def test_an_observer_is_told_what_happened_and_how_long_it_took() -> None:
    recorder = Recorder()
    queue = Queue[str](observer=recorder)

    def told() -> list[tuple[Any, ...]]:
        calls, recorder.calls = recorder.calls, []
        return calls

    queue.add("a")
    queue.add("a")
    queue.add("a", 3)
    assert told() == [("added", "a"), ("depth", 1)]
    await asyncio.sleep(2)
    await queue.get()
    assert told() == [("got", "a", 2), ("depth", 0)]
    queue.add("a")
    queue.add("a")
    assert told() == [("added", "a"), ("depth", 1)]
    await asyncio.sleep(3)
    queue.done("a")
    assert told() == [("finished", "a", 3)]
    assert await take(queue, 1) == "a"
    assert told() == [("got", "a", 3), ("depth", 0), ("finished", "a", 0)]
    queue.add_after("b", 0)
    assert told() == [("retried",), ("added", "b"), ("depth", 1)]
    queue.add_after("c", 1)
    assert told() == [("retried",)]
    await asyncio.sleep(1.5)
    assert told() == [("added", "c"), ("depth", 2)]
    queue.shut_down()
    queue.add("d")
    queue.add_after("d", 1)
    assert told() == []
