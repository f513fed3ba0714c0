"""Fair shares of a few places: work of many namespaces goes on in them, and none of them keeps the others out.

- Who holds fewest places is served first; of those who hold equally many, who came first.
- Where all places are taken, one that came later takes a place from whoever holds at least two more, at once.
- One that holds none takes the place that was held longest, once that was held for a turn.

Work that loses its place is cancelled, and begins again when it has one; so it has to be able to go on.
"""

import asyncio
import collections
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

TURN_SECONDS = 3600.0


@dataclass(eq=False, slots=True)
class _Held:
    """A place that is taken."""

    share: str
    since: float
    cancel: Callable[[], object] = lambda: None
    lost: bool = False


class Shares:
    """Places of the fetcher, shared by namespaces."""

    def __init__(self, places: int, *, turn_seconds: float = TURN_SECONDS) -> None:
        self._places = places
        self._turn = turn_seconds
        self._held: list[_Held] = []
        """Slots in the order in which they were taken."""
        self._waiting: list[tuple[str, asyncio.Future[_Held]]] = []
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, share: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work` in a place of this share. It is called again if it lost its place."""
        while True:
            held = await self._take(share)
            with self._giving_back(held):
                task: asyncio.Task[T] = asyncio.create_task(_as_coroutine(work))
                held.cancel = task.cancel
                if held.lost:
                    task.cancel()
                try:
                    return await task
                except asyncio.CancelledError:
                    current = asyncio.current_task()
                    if not held.lost or (current is not None and current.cancelling()):
                        raise

    async def _take(self, share: str) -> _Held:
        waiting: asyncio.Future[_Held] = asyncio.get_running_loop().create_future()
        self._waiting.append((share, waiting))
        self._settle()
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self._give_back(waiting.result())
            else:
                self._waiting.remove((share, waiting))
            raise

    @contextlib.contextmanager
    def _giving_back(self, held: _Held) -> Iterator[None]:
        try:
            yield
        finally:
            self._give_back(held)

    def _give_back(self, held: _Held) -> None:
        self._held.remove(held)
        self._settle()

    def _settle(self) -> None:
        """Give free places to who waits; where there are none, see who has to make room."""
        self._waiting = [each for each in self._waiting if not each[1].done()]
        while self._waiting and len(self._held) < self._places:
            counts = self._counts()
            chosen = min(self._waiting, key=lambda each: counts[each[0]])
            self._waiting.remove(chosen)
            held = _Held(chosen[0], asyncio.get_running_loop().time())
            self._held.append(held)
            chosen[1].set_result(held)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting and not any(held.lost for held in self._held):  # one at a time: then it is seen who waits
            self._make_room()

    def _make_room(self) -> None:
        counts = self._counts()
        fewest = min(counts[share] for share, _ in self._waiting)
        most = max(counts.values())
        if most >= fewest + 2:
            self._revoke(next(held for held in reversed(self._held) if counts[held.share] == most))
        elif fewest == 0:
            loop = asyncio.get_running_loop()
            left = self._held[0].since + self._turn - loop.time()
            if left > 0:
                self._timer = loop.call_later(left, self._settle)
            else:
                self._revoke(self._held[0])

    def _revoke(self, held: _Held) -> None:
        held.lost = True
        held.cancel()

    def _counts(self) -> collections.Counter[str]:
        return collections.Counter(held.share for held in self._held)


async def _as_coroutine(work: Callable[[], Awaitable[T]]) -> T:
    return await work()
