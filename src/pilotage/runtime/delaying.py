"""Items that are due later: kept by time, and handed over when their time has come.

One timer of the loop, set to the earliest time, serves them all.
"""

import asyncio
from collections.abc import Callable, Hashable
from itertools import count
from typing import Generic, TypeVar

from pilotage.runtime.itemheap import ItemHeap

T = TypeVar("T", bound=Hashable)


class Delays(Generic[T]):
    """Calls `due(item, priority)` for each item at its time; those of the same time in the order it was set."""

    __slots__ = ("_by_time", "_due", "_priorities", "_seq", "_timer")

    def __init__(self, due: Callable[[T, int], None]) -> None:
        self._due = due
        self._by_time: ItemHeap[T] = ItemHeap()
        self._priorities: dict[T, int] = {}
        self._seq = count()
        # Set whenever an item waits, and never later than the first of them is due.
        self._timer: asyncio.TimerHandle | None = None

    def put(self, item: T, at: float, priority: int) -> None:
        """Hand the item over at the loop's time `at`.

        An item that waits already keeps the earlier of the times and the higher of the priorities.
        """
        waiting = self._by_time.entries.get(item)
        if waiting is None:
            self._priorities[item] = priority
        else:
            self._priorities[item] = max(priority, self._priorities[item])
            if waiting[0] <= at:
                return
        self._by_time.put(item, at, next(self._seq))
        self._set_timer()

    def clear(self) -> None:
        """Forget every item, and stop the timer."""
        self._by_time.clear()
        self._priorities.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        if not self._by_time.entries:
            return
        at = self._by_time.first()[0]
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(at, self._fire)

    def _fire(self) -> None:
        assert self._timer is not None
        # A loop may run a timer a clock tick early; what the timer was set for is due all the same.
        now = max(asyncio.get_running_loop().time(), self._timer.when())
        self._timer = None
        ready: list[tuple[T, int]] = []
        while self._by_time.entries and self._by_time.first()[0] <= now:
            item = self._by_time.pop()
            ready.append((item, self._priorities.pop(item)))
        self._set_timer()
        for item, priority in ready:
            self._due(item, priority)
