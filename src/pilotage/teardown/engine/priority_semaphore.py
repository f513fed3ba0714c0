"""A semaphore whose waiters are served by rank, the highest first."""

import asyncio
import contextlib
import heapq
from collections.abc import AsyncIterator


class PrioritySemaphore:
    """A semaphore with `width` places."""

    def __init__(self, width: int) -> None:
        self._free = width
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._number = 0

    @contextlib.asynccontextmanager
    async def passing(self, rank: int) -> AsyncIterator[None]:
        """Wait for a place, and hold it; a higher rank gets one earlier."""
        if self._free and not self._waiting:
            self._free -= 1
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._number += 1
            heapq.heappush(self._waiting, (-rank, self._number, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave()  # it was given a place in the same moment
                raise
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        while self._waiting:
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
