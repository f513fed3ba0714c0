"""A loop for tests that talk to a real server: its time is real time plus an offset, which `warp` moves forward.

`warp` goes from timer to timer, with a pause at each for the answers of the outside world to come in. For code that
talks to nothing outside, `pilotage_sim.loop` has a loop on which waiting takes no time at all. Both have `wall_time()`,
seconds since the epoch, which moves along with `time()`.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from pilotage_sim.loop import Events, HookedSelector, Select, next_timer

R = TypeVar("R")

SETTLE_SECONDS = 0.02
"""Real time without I/O after which a `WarpLoop` moves on."""


def run_warp(main: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine on a fresh `WarpLoop`."""
    with asyncio.Runner(loop_factory=WarpLoop) as runner:
        return runner.run(main)


async def warp(seconds: float, busy: Callable[[], bool] = lambda: False) -> None:
    """Let `seconds` pass on the running `WarpLoop`, timer by timer.

    Between two timers it waits until there was no I/O for `SETTLE_SECONDS`. A server may take longer than that to
    answer; a test that must not outrun it says by `busy` that an answer is still awaited.
    """
    loop = asyncio.get_running_loop()
    assert isinstance(loop, WarpLoop)
    end = loop.time() + seconds
    while loop.time() < end:
        await loop.settle(busy)
        loop.jump_to(min(end, next_timer(loop, default=end)))
    await loop.settle(busy)


class WarpLoop(asyncio.SelectorEventLoop):
    """A loop in real time, which a test moves forward with `warp`."""

    def __init__(self) -> None:
        self._offset = 0.0
        self._last_io = time.monotonic()
        super().__init__(HookedSelector(self._wait))

    def time(self) -> float:
        return super().time() + self._offset

    def wall_time(self) -> float:
        return time.time() + self._offset

    def jump_to(self, when: float) -> None:
        """Move the clock forward to `when`; never back."""
        self._offset += max(0.0, when - self.time())

    async def settle(self, busy: Callable[[], bool]) -> None:
        """Wait until there was no I/O for a while, no answer is awaited, and no other task is ready."""
        while True:
            await asyncio.sleep(SETTLE_SECONDS)
            # On a busy machine any two steps of a program may lie further apart than that.
            idle = not self._ready  # type: ignore[attr-defined]
            if idle and not busy() and time.monotonic() - self._last_io >= SETTLE_SECONDS:
                return

    def _wait(self, select: Select, timeout: float | None) -> Events:
        events = select(timeout)
        if events:
            self._last_io = time.monotonic()
        return events
