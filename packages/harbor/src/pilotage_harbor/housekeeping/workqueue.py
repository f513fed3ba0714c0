"""Work that is to be done once, soon, and again later if it fails: the queue behind each part of the housekeeping.

A key that is added twice before anyone takes it is done once; one that is added while it is being done is done again
afterwards, never twice at a time. Keys come in the order in which they were added. Time is the running loop's.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from pilotage_harbor.apimachinery.calls import pause
from pilotage_harbor.apimachinery.errors import StatusError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

Key = TypeVar("Key", bound="Hashable")

BACKOFF_SECONDS_MIN = 0.005
BACKOFF_SECONDS_MAX = 1000.0

_log = logging.getLogger(__name__)


class RateLimitingQueue(Generic[Key]):
    """Work queue. After a failure a key comes back in 5 ms, then in twice that time, up to a limit."""

    def __init__(self, *, backoff_seconds_max: float = BACKOFF_SECONDS_MAX) -> None:
        self._backoff_seconds_max = backoff_seconds_max
        self._waiting: deque[Key] = deque()
        self._dirty: set[Key] = set()
        self._processing: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._takers: deque[asyncio.Future[None]] = deque()

    def add(self, key: Key) -> None:
        """Add a key, to be taken as soon as possible."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._waiting.append(key)
            self._wake()

    def add_after(self, key: Key, seconds: float) -> None:
        """Then, or earlier if it is to be done earlier anyway."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self._due, key)

    def add_rate_limited(self, key: Key) -> None:
        """Later, and the later the more often it has failed."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, min(BACKOFF_SECONDS_MIN * 2.0 ** min(failures, 64), self._backoff_seconds_max))

    def forget(self, key: Key) -> None:
        """Forget the failures of a key: the next one is its first."""
        self._failures.pop(key, None)

    async def serve(self, work: Callable[[Key], Awaitable[None]]) -> None:
        """Do what comes, for ever. A refusal is a reason to try again later; so is a bug, which is logged."""
        while True:
            key = await self._take()
            try:
                await work(key)
            except StatusError as error:
                _log.debug("%s is tried again later: %s", key, error)
                self.add_rate_limited(key)
            except Exception:  # noqa: BLE001 (one failure must not end all work)
                _log.exception("%s has failed, and is tried again later", key)
                self.add_rate_limited(key)
            else:
                self.forget(key)
            finally:
                self._done(key)
            if self._waiting:  # much of the work waits for nobody, and there may be very much of it
                await pause()

    def close(self) -> None:
        """Nothing comes any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._waiting.clear()
        self._dirty.clear()

    async def _take(self) -> Key:
        while not self._waiting:
            taker = asyncio.get_running_loop().create_future()
            self._takers.append(taker)
            try:
                await taker
            except asyncio.CancelledError:
                if taker in self._takers:
                    self._takers.remove(taker)
                elif self._waiting:
                    self._wake()
                raise
        key = self._waiting.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def _done(self, key: Key) -> None:
        self._processing.discard(key)
        if key in self._dirty:
            self._waiting.append(key)
            self._wake()

    def _due(self, key: Key) -> None:
        del self._timers[key]
        self.add(key)

    def _wake(self) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return
