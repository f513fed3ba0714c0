"""Long work in threads, while the event loop serves others.

Large bodies are read, and large objects patched and compared, by plain Python that takes up to seconds. Such work needs
nothing but its arguments, so it can be done in another thread; the interpreter changes between the two every few
milliseconds. Whoever asks for it must look at the store again afterwards: others have written meanwhile.

A user has one thread at a time, and users take turns where threads are short: whoever sends much waits for himself. All
ServiceAccounts of a namespace count as one user, since whoever may write there can have any number of them.

Without threads (`at_once`, as in the simulator) nothing is offloaded, and a request is one step as ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.apimachinery.users import UserInfo

LARGE_BYTES = 16 * 1024
"""Less takes no more than a few milliseconds and is done at once: hundreds of a user's connections can ask together."""

_THREADS = 4
_ACCOUNT = "system:serviceaccount:"

_Result = TypeVar("_Result")


class Offload(Protocol):
    """Does some work on so many bytes for a user, and gives its result, or raises what it raises."""

    async def __call__(self, user: UserInfo, size: int, work: Callable[[], _Result]) -> _Result:
        """Call `work`, which must not use what others can change."""


async def at_once(user: UserInfo, size: int, work: Callable[[], _Result]) -> _Result:  # noqa: ARG001 - as `Offload` has it
    """Run the work on the spot: an `Offload` without threads."""
    return work()


class Threads:
    """Few of them, since they share one interpreter: enough to serve others beside one that asks much."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(_THREADS, "offload")
        self._served: set[str] = set()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Waiting work by user; the one that has waited longest comes first."""

    async def __call__(self, user: UserInfo, size: int, work: Callable[[], _Result]) -> _Result:
        """Run it as `Offload` promises."""
        if size < LARGE_BYTES:
            return work()
        name = _name(user)
        await self._turn(name)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        finally:
            self._pass_on(name)

    def stop(self) -> None:
        """Begin nothing more."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _turn(self, name: str) -> None:
        if name not in self._served and len(self._served) < _THREADS:
            self._served.add(name)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the turn came in the same moment
                self._pass_on(name)
            raise

    def _pass_on(self, name: str) -> None:
        """Give the thread that this user had to the next one, who may be the same."""
        self._served.discard(name)
        for other in [each for each in self._waiting if each not in self._served]:
            turns = self._waiting.pop(other)
            while turns and turns[0].done():  # it was cancelled
                turns.popleft()
            if turns:
                turns.popleft().set_result(None)
                self._served.add(other)
                if turns:
                    self._waiting[other] = turns
                return


def _name(user: UserInfo) -> str:
    return user.name.rpartition(":")[0] if user.name.startswith(_ACCOUNT) else user.name
