"""A heap in which every item stands at most once and can be moved: what the queue's two orders are made of."""

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class ItemHeap(Generic[T]):
    """Items in the order of `(rank, seq)`, lowest first. The caller gives no two entries the same pair."""

    __slots__ = ("_heap", "entries")

    def __init__(self) -> None:
        self.entries: dict[T, tuple[float, int, T]] = {}
        """The `(rank, seq, item)` of every item that is in; to be read, not written."""
        # Also holds the entries that `put` has replaced: they are skipped when they come up.
        self._heap: list[tuple[float, int, T]] = []

    def put(self, item: T, rank: float, seq: int) -> None:
        """Insert the item, or move it to a new place."""
        entry = (rank, seq, item)
        self.entries[item] = entry
        heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self.entries) + 16:
            # Replaced entries with a high rank may never come up: without this they would pile up.
            self._heap = list(self.entries.values())
            heapify(self._heap)

    def first(self) -> tuple[float, int, T]:
        """The `(rank, seq, item)` that `pop` would take; IndexError when empty."""
        heap = self._heap
        while self.entries.get((entry := heap[0])[2]) is not entry:
            heappop(heap)
        return entry

    def pop(self) -> T:
        """Take out the first item; IndexError when empty."""
        while True:
            entry = heappop(self._heap)
            item = entry[2]
            if self.entries.get(item) is entry:
                del self.entries[item]
                return item

    def clear(self) -> None:
        """Take out everything."""
        self.entries.clear()
        self._heap.clear()
