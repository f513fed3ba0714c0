"""The queue against a model of client-go's rules: the same calls give the same results on both."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from pilotage.kube.ratelimit import TokenBucket
from pilotage.runtime.backoff import ExponentialBackoff, MaxOf, OverallLimit
from pilotage.runtime.queue import Queue, ShutDown
from pilotage_sim.loop import VirtualTimeLoop

# Every time is a multiple of a power of two, so that the model may compute it in another way and get the same float.
TICK = 1 / 256
BASE, MAX = TICK, 2.0
QPS, BURST = 8, 2

ITEMS = st.sampled_from("abcd")
PRIORITIES = st.integers(-2, 2)
DELAYS = st.integers(-1, 20).map(lambda n: n * TICK)
PAUSES = (st.integers(1, 20) | st.integers(100, 600)).map(lambda n: n * TICK)
SELDOM = st.integers(0, 12)  # 0 means: now. A queue that is shut down early shows little.


@dataclass
class Model:
    """Model of client-go's queue in lists and sets, with controller-runtime's priorities."""

    now: float = 0.0
    queue: list[str] = field(default_factory=list)  # in the order of arrival
    dirty: set[str] = field(default_factory=set)  # needs work: queued, or to be queued when done
    processing: set[str] = field(default_factory=set)
    priority: dict[str, int] = field(default_factory=dict)  # of the dirty ones
    later: list[tuple[float, str, int]] = field(default_factory=list)  # (time, item, priority), as they were set
    failures: dict[str, int] = field(default_factory=dict)
    bucket_full_at: float = 0.0
    shutting_down: bool = False

    def add(self, item: str, priority: int) -> None:
        if self.shutting_down:
            return
        if item in self.dirty:
            self.priority[item] = max(priority, self.priority[item])
            return
        self.dirty.add(item)
        self.priority[item] = priority
        if item not in self.processing:
            self.queue.append(item)

    def get(self) -> str:
        highest = max(self.priority[item] for item in self.queue)
        item = next(item for item in self.queue if self.priority[item] == highest)
        self.queue.remove(item)
        self.dirty.remove(item)
        self.processing.add(item)
        return item

    def done(self, item: str) -> None:
        self.processing.remove(item)
        if item in self.dirty:
            self.queue.append(item)

    def add_after(self, item: str, delay: float, priority: int) -> None:
        if self.shutting_down:
            return
        if delay <= 0:
            self.add(item, priority)
            return
        at = self.now + delay
        for place, (old_at, old_item, old_priority) in enumerate(self.later):
            if old_item == item:
                if at < old_at:
                    del self.later[place]
                    self.later.append((at, item, max(priority, old_priority)))
                else:
                    self.later[place] = (old_at, item, max(priority, old_priority))
                return
        self.later.append((at, item, priority))

    def add_rate_limited(self, item: str) -> None:
        backoff = min(MAX, BASE * 2 ** self.failures.get(item, 0))
        self.failures[item] = self.failures.get(item, 0) + 1
        # The bucket is full again one step later than it was; it is empty when that is a whole burst ahead.
        self.bucket_full_at = max(self.bucket_full_at, self.now) + 1 / QPS
        overall = max(0.0, self.bucket_full_at - BURST / QPS - self.now)
        self.add_after(item, max(backoff, overall), 0)

    def next_time(self) -> float | None:
        return min((at for at, _, _ in self.later), default=None)

    def add_what_is_due(self) -> None:
        for entry in [entry for entry in self.later if entry[0] <= self.now]:
            self.later.remove(entry)
            self.add(entry[1], entry[2])

    def shut_down(self) -> None:
        self.shutting_down = True
        self.later.clear()


class QueueAndModel(RuleBasedStateMachine):
    """Does everything to both; workers that find the queue empty wait, as many as the rules have started."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualTimeLoop()
        limiter = MaxOf[str](ExponentialBackoff(BASE, MAX), OverallLimit(TokenBucket(QPS, BURST)))
        self.queue = Queue[str](limiter)
        self.model = Model()
        self.getters: list[asyncio.Task[str]] = []
        self.got: list[tuple[str, float]] = []  # results of the waiting getters, in order, and when
        self.model_got: list[tuple[str, float]] = []
        self.ended = 0  # how many of them were told of the shutdown
        self.model_waiting = 0
        self.model_ended = 0
        self.drains: list[asyncio.Task[None]] = []
        self.model_drained: list[bool] = []

    def teardown(self) -> None:
        self.finish_everything()
        self.queue.shut_down()
        self.settle()
        tasks = asyncio.all_tasks(self.loop)
        timers = [timer for timer in self.loop._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        self.loop.close()
        assert not tasks, "shut_down left a task behind"
        assert not timers, "shut_down left a timer behind"

    # --- everything that can be done to a queue

    @rule(item=ITEMS)
    def add(self, item: str) -> None:
        self.queue.add(item)
        self.model.add(item, 0)
        self.settle()

    @rule(item=ITEMS, priority=PRIORITIES)
    def add_with_priority(self, item: str, priority: int) -> None:
        self.queue.add(item, priority)
        self.model.add(item, priority)
        self.settle()

    @rule(adds=st.lists(st.tuples(ITEMS, PRIORITIES), min_size=2, max_size=4))
    def add_several_at_once(self, adds: list[tuple[str, int]]) -> None:
        for item, priority in adds:
            self.queue.add(item, priority)
            self.model.add(item, priority)
        self.settle()

    @rule(item=ITEMS, delay=DELAYS, priority=PRIORITIES)
    def add_after(self, item: str, delay: float, priority: int) -> None:
        async def call() -> None:
            self.queue.add_after(item, delay, priority)

        self.loop.run_until_complete(call())
        self.model.add_after(item, delay, priority)
        self.settle()

    @rule(item=ITEMS)
    def add_rate_limited(self, item: str) -> None:
        async def call() -> None:
            self.queue.add_rate_limited(item)

        self.loop.run_until_complete(call())
        self.model.add_rate_limited(item)
        self.settle()

    @rule(item=ITEMS)
    def forget(self, item: str) -> None:
        self.queue.forget(item)
        self.model.failures.pop(item, None)

    @rule(pause=PAUSES)
    def let_time_pass(self, pause: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(pause))
        end = self.model.now + pause
        while (at := self.model.next_time()) is not None and at <= end:
            self.model.now = at
            self.model.add_what_is_due()
            self.serve_model_getters()
        self.model.now = end
        self.settle()

    @precondition(lambda self: self.model.later)
    @rule(early=st.booleans())
    def let_time_pass_up_to_the_next_delayed_item(self, early: bool) -> None:
        at = self.model.next_time()
        assert at is not None
        if pause := at - self.model.now - early * TICK:
            self.let_time_pass(pause)

    @precondition(lambda self: self.model.queue)
    @rule()
    def get(self) -> None:
        assert self.loop.run_until_complete(self.queue.get()) == self.model.get()

    @precondition(lambda self: not self.model.queue and len(self.getters) < 3)
    @rule(n=st.integers(1, 2))
    def get_and_wait(self, n: int) -> None:
        async def get() -> str:
            try:
                item = await self.queue.get()
            except ShutDown:
                self.ended += 1
                raise
            self.got.append((item, self.loop.time()))
            return item

        self.getters += [self.loop.create_task(get()) for _ in range(n)]
        self.model_waiting += n
        self.settle()

    @precondition(lambda self: self.model_waiting)
    @rule(item=ITEMS, too_late=st.booleans())
    def cancel_a_waiting_get_just_as_an_item_comes(self, item: str, too_late: bool) -> None:
        getter = next(task for task in self.getters if not task.done())
        if too_late:
            self.queue.add(item)
            getter.cancel()
        else:
            getter.cancel()
            self.queue.add(item)
        self.model_waiting -= 1
        self.model.add(item, 0)
        self.settle()

    @precondition(lambda self: self.model.processing)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(sorted(self.model.processing)))
        self.queue.done(item)
        self.model.done(item)
        self.settle()

    @rule()
    def finish_everything(self) -> None:
        """Finish all work, which shows the whole order at once, also of items that were added during their work."""
        for item in sorted(self.model.processing):
            self.queue.done(item)
            self.model.done(item)
        self.settle()
        while self.model.queue:
            self.get()
        for item in sorted(self.model.processing):
            self.queue.done(item)
            self.model.done(item)
        self.settle()

    @rule(chance=SELDOM)
    def shut_down(self, chance: int) -> None:
        if chance and not self.model.shutting_down:
            return
        self.queue.shut_down()
        self.model.shut_down()
        self.model_drained = [True for _ in self.model_drained]
        self.settle()

    @precondition(lambda self: len(self.drains) < 2)
    @rule(chance=SELDOM)
    def shut_down_with_drain(self, chance: int) -> None:
        if chance and not self.model.shutting_down:
            return
        self.drains.append(self.loop.create_task(self.queue.shut_down_with_drain()))
        self.model.shut_down()
        self.model_drained.append(False)
        self.settle()

    # --- both are the same, after every step

    @invariant()
    def same_state(self) -> None:
        assert self.loop.time() == self.model.now
        assert len(self.queue) == len(self.model.queue)
        assert self.queue.shutting_down == self.model.shutting_down
        assert {i: self.queue.num_requeues(i) for i in "abcd"} == {i: self.model.failures.get(i, 0) for i in "abcd"}

    @invariant()
    def same_items_to_those_who_waited(self) -> None:
        assert self.got == self.model_got
        assert self.ended == self.model_ended

    @invariant()
    def same_drains_ended(self) -> None:
        assert [drain.done() for drain in self.drains] == self.model_drained

    def settle(self) -> None:
        """Let the loop run what is ready, without letting time pass; and the model hand out what it has to."""
        self.loop.run_until_complete(_yield_often())
        self.getters = [task for task in self.getters if not _is_over(task)]
        self.serve_model_getters()
        if not self.model.dirty and not self.model.processing:
            self.model_drained = [True for _ in self.model_drained]

    def serve_model_getters(self) -> None:
        while self.model_waiting and self.model.queue:
            self.model_got.append((self.model.get(), self.model.now))
            self.model_waiting -= 1
        if self.model.shutting_down:
            self.model_ended += self.model_waiting
            self.model_waiting = 0


async def _yield_often() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def _is_over(task: asyncio.Task[str]) -> bool:
    if task.done() and not task.cancelled():
        task.exception()  # ShutDown is counted elsewhere; asyncio complains of an exception that is never retrieved
    return task.done()


@pytest.mark.timeout(400)  # a success takes seconds; a failure is shrunk by Hypothesis for up to 300
def test_the_queue_does_what_the_model_does() -> None:
    run_state_machine_as_test(
        QueueAndModel,
        settings=settings(
            max_examples=320, stateful_step_count=30, deadline=None, derandomize=True, report_multiple_bugs=False
        ),
    )
