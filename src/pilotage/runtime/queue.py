"""The workqueue: which items need work, and whose turn is next.

Its rules are those of client-go's workqueue, its priorities those of controller-runtime's. It promises:

- first come, first served: items are handed out in the order in which they were added;
- a higher priority goes first: that order holds within a priority, and a new add may raise an item's priority, which
  keeps its place in the order of arrival, but never lowers it;
- added many times, handed out once: adds of an item that waits for a worker collapse into one;
- never worked on twice at once: an item added while a worker has it waits until that worker calls `done`, and is then
  queued once, at the end;
- a delayed add comes at its time, neither earlier nor twice: an item that waits already keeps the earlier time and the
  higher priority; an immediate add leaves the delayed one in place; a delay of zero or less is an immediate add;
- a failed item waits longer each time, until it is forgotten (see `backoff`);
- after `shut_down` nothing is added, what was queued is still handed out, then every `get` raises `ShutDown`;
- `shut_down_with_drain` returns when all of that is done (client-go's may return sooner: when there is still an item
  queued, but no worker happens to have one);
- a cancelled `get` loses nothing, and no task or timer is left behind after a shutdown.

The queue is layered: the order of what is ready (here), what is due later (`delaying`), how much later (`backoff`).
It belongs to one event loop and takes no locks.
"""

import asyncio
from collections import deque
from collections.abc import Hashable
from contextlib import suppress
from itertools import count
from typing import Generic, Protocol, TypeVar

from pilotage.runtime.backoff import RateLimiter, default_limiter
from pilotage.runtime.delaying import Delays
from pilotage.runtime.itemheap import ItemHeap

T = TypeVar("T", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)


class ShutDown(Exception):
    """The queue is shut down and empty: a worker that gets this is to end."""


class QueueObserver(Protocol[T_contra]):
    """Told what happens in a queue, for metrics; what counts is what client-go counts."""

    def added(self, item: T_contra) -> None:
        """The item needs work now; not called for an add that collapsed into an earlier one."""

    def got(self, item: T_contra, waited_seconds: float) -> None:
        """A worker has the item, so long after it was added."""

    def finished(self, item: T_contra, worked_seconds: float) -> None:
        """The worker is done with the item."""

    def retried(self) -> None:
        """An item was added with a delay, also if that was zero."""

    def depth(self, n: int) -> None:
        """Number of items that wait for a worker; called at each change."""


class Queue(Generic[T]):
    """A workqueue (the module says what it promises). A worker calls `get`, works, and calls `done`, always.

    Around that, a worker calls `forget` after a success, or `add_rate_limited` after a failure.
    """

    def __init__(self, limiter: RateLimiter[T] | None = None, observer: QueueObserver[T] | None = None) -> None:
        self._limiter: RateLimiter[T] = default_limiter() if limiter is None else limiter
        self._watch = None if observer is None else _Stopwatch(observer)
        # Those that wait for a worker, by the negated priority and the order of arrival.
        self._ready: ItemHeap[T] = ItemHeap()
        # Those that a worker has, never in `_ready`; with the priority to queue them at when done, if added meanwhile.
        self._processing: dict[T, int | None] = {}
        self._delays = Delays(self.add)
        self._arrivals = count()
        self._getters: deque[asyncio.Future[None]] = deque()
        self._drains: list[asyncio.Future[None]] = []
        self._shutting_down = False

    def __len__(self) -> int:
        """Number of items that wait for a worker; those that wait for their time, or for a `done`, do not count."""
        return len(self._ready.entries)

    @property
    def shutting_down(self) -> bool:
        """Whether the queue was shut down."""
        return self._shutting_down

    def add(self, item: T, priority: int = 0) -> None:
        """Say that the item needs work."""
        if self._shutting_down:
            return
        if item in self._processing:
            again = self._processing[item]
            if again is None and self._watch is not None:
                self._watch.added(item)
            if again is None or priority > again:
                self._processing[item] = priority
            return
        queued = self._ready.entries.get(item)
        if queued is None:
            if self._watch is not None:
                self._watch.added(item)
            self._push(item, priority)
        elif priority > -queued[0]:
            self._ready.put(item, -priority, queued[1])

    def add_after(self, item: T, delay: float, priority: int = 0) -> None:
        """Add the item `delay` seconds from now."""
        if self._shutting_down:
            return
        if self._watch is not None:
            self._watch.retried()
        if delay <= 0:
            self.add(item, priority)
        else:
            self._delays.put(item, asyncio.get_running_loop().time() + delay, priority)

    def add_rate_limited(self, item: T, at_least: float = 0.0) -> None:
        """Add the item when its backoff says, or after `at_least` seconds if that is later: its work has failed."""
        self.add_after(item, max(at_least, self._limiter.when(item)))

    def forget(self, item: T) -> None:
        """Forget the item's failures: for an item whose work has succeeded, or was given up."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """Number of failures of the item since it was last forgotten."""
        return self._limiter.num_requeues(item)

    async def get(self) -> T:
        """Wait for the next item to work on; `done` must follow. Raises `ShutDown` when none will come."""
        while not self._ready.entries:
            if self._shutting_down:
                raise ShutDown
            await self._wait_for_item()
        item = self._ready.pop()
        self._processing[item] = None
        if self._watch is not None:
            self._watch.got(item)
        return item

    def done(self, item: T) -> None:
        """Say that the work on an item from `get` has ended, well or not. KeyError for any other item."""
        again = self._processing.pop(item)
        if self._watch is not None:
            self._watch.finished(item)
        if again is not None:
            self._push(item, again)
        elif self._drains and self._is_drained():
            self._release_drains()

    def shut_down(self) -> None:
        """Take no more items, and drop those whose time has not come; ends a `shut_down_with_drain` that is waiting."""
        self._stop_adding()
        self._release_drains()

    async def shut_down_with_drain(self) -> None:
        """Shut down, and wait until every item that was queued is done; its workers must go on until `ShutDown`."""
        self._stop_adding()
        if not self._is_drained():
            drained = asyncio.get_running_loop().create_future()
            self._drains.append(drained)
            await drained

    def _push(self, item: T, priority: int) -> None:
        self._ready.put(item, -priority, next(self._arrivals))
        if self._getters:
            self._wake_getter()

    async def _wait_for_item(self) -> None:
        getter = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            with suppress(ValueError):
                self._getters.remove(getter)
            if self._ready.entries and not getter.cancelled():
                # It was woken for an item and cancelled before it could take it: the item is for the next one.
                self._wake_getter()
            raise

    def _wake_getter(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _stop_adding(self) -> None:
        self._shutting_down = True
        self._delays.clear()
        while self._getters:
            self._wake_getter()

    def _is_drained(self) -> bool:
        return not self._ready.entries and not self._processing

    def _release_drains(self) -> None:
        for drained in self._drains:
            if not drained.done():
                drained.set_result(None)
        self._drains.clear()


class _Stopwatch(Generic[T]):
    """Tells an observer what happened, with the times that took; a queue without an observer has none, and no cost."""

    def __init__(self, observer: QueueObserver[T]) -> None:
        self._observer = observer
        self._added_at: dict[T, float] = {}
        self._started_at: dict[T, float] = {}

    def added(self, item: T) -> None:
        self._added_at[item] = asyncio.get_running_loop().time()
        self._observer.added(item)
        self._observer.depth(len(self._added_at))

    def got(self, item: T) -> None:
        now = self._started_at[item] = asyncio.get_running_loop().time()
        self._observer.got(item, now - self._added_at.pop(item))
        self._observer.depth(len(self._added_at))

    def finished(self, item: T) -> None:
        self._observer.finished(item, asyncio.get_running_loop().time() - self._started_at.pop(item))

    def retried(self) -> None:
        self._observer.retried()
