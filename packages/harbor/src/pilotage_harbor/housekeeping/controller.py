"""The frame of one part of the housekeeping: events of the store add keys to a queue, and tasks deal with each."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, Generic

from pilotage_harbor.housekeeping.workqueue import BACKOFF_SECONDS_MAX, Key, RateLimitingQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable


class StoreController(abc.ABC, Generic[Key]):
    """A controller: `begin` looks at all there is and listens, then `tasks` do the work, until `end`."""

    def __init__(self, *, workers: int = 1, backoff_seconds_max: float = BACKOFF_SECONDS_MAX) -> None:
        self._queue: RateLimitingQueue[Key] = RateLimitingQueue(backoff_seconds_max=backoff_seconds_max)
        self._workers = workers
        self._stop_listening: Callable[[], None] | None = None

    @abc.abstractmethod
    def begin(self) -> None:
        """Take in what is stored, and listen from now on."""

    def tasks(self) -> Iterable[Coroutine[Any, Any, None]]:
        """The work, as coroutines that run until they are cancelled."""
        yield from (self._queue.serve(self._sync) for _ in range(self._workers))

    def end(self) -> None:
        """Listen no more."""
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
        self._queue.close()

    @abc.abstractmethod
    async def _sync(self, key: Key) -> None:
        """Deal with one key. A StatusError is a reason to try again later."""
