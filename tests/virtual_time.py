"""Event loops whose clock a test controls.

`VirtualTimeLoop` is for code that talks to nothing outside: when nothing is left to run, its clock jumps to the next
timer, so that a day passes in milliseconds, and the same program always runs in the same order.

`WarpLoop` is for code that talks to a real server: its time is real time plus an offset, which `warp` moves forward
from timer to timer, with a pause at each for the answers of the outside world to come in.

Both have `wall_time()`, seconds since the epoch, which moves along with `time()`.
"""

import asyncio
import functools
import math
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeAlias, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Events: TypeAlias = list[tuple[selectors.SelectorKey, int]]
Select: TypeAlias = Callable[[float | None], Events]

VIRTUAL_EPOCH = 1_750_000_000.0
"""What `wall_time()` says on a virtual loop whose `time()` is 0."""

SETTLE_SECONDS = 0.02
"""For how long, in real time, a `WarpLoop` must have seen no I/O before it moves on."""


class DeadlockError(RuntimeError):
    """Nothing is ready, no timer is set and no I/O can come: the program would wait forever."""


def run_virtual(main: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine on a fresh virtual loop, which starts at time 0."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)


def virtual(test: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    """Make a plain test out of an async one: each call runs on a fresh virtual loop."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return run_virtual(test(*args, **kwargs))

    return run


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
        loop.jump_to(min(end, _next_timer(loop, default=end)))
    await loop.settle(busy)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop on which waiting takes no time, and waiting in vain is an error."""

    def __init__(self) -> None:
        self._now = 0.0
        self._hooked = _HookedSelector(self._wait)
        super().__init__(self._hooked)

    def time(self) -> float:
        return self._now

    def wall_time(self) -> float:
        return VIRTUAL_EPOCH + self._now

    def _wait(self, select: Select, timeout: float | None) -> Events:
        if timeout is None:
            # The pipe by which signals wake the loop is always registered, and means nothing.
            if len(self._hooked.get_map()) <= 1:
                raise DeadlockError(_describe_deadlock(self))
            return select(None)
        events = select(0)
        if not events and timeout > 0:
            # Not `+= timeout`: that would round, and asyncio never waits for more than a day at once.
            self._now = _next_timer(self, default=self._now)
            # asyncio runs the timers before `now + resolution`: exactly those that are due, also a year from now,
            # where its usual nanosecond is lost in rounding.
            self._clock_resolution = math.ulp(self._now)
        return events


class WarpLoop(asyncio.SelectorEventLoop):
    """A loop in real time, which a test moves forward with `warp`."""

    def __init__(self) -> None:
        self._offset = 0.0
        self._last_io = time.monotonic()
        super().__init__(_HookedSelector(self._wait))

    def time(self) -> float:
        return super().time() + self._offset

    def wall_time(self) -> float:
        return time.time() + self._offset

    def jump_to(self, when: float) -> None:
        """Move the clock forward to `when`; never back."""
        self._offset += max(0.0, when - self.time())

    async def settle(self, busy: Callable[[], bool]) -> None:
        """Wait until there was no I/O for a while, and no answer is awaited any more."""
        while True:
            await asyncio.sleep(SETTLE_SECONDS)
            if not busy() and time.monotonic() - self._last_io >= SETTLE_SECONDS:
                return

    def _wait(self, select: Select, timeout: float | None) -> Events:
        events = select(timeout)
        if events:
            self._last_io = time.monotonic()
        return events


class _HookedSelector(selectors.DefaultSelector):
    """A selector that lets the loop decide how to wait: `select` is the one place where asyncio's time passes."""

    def __init__(self, wait: Callable[[Select, float | None], Events]) -> None:
        super().__init__()
        self._wait = wait

    def select(self, timeout: float | None = None) -> Events:
        return self._wait(super().select, timeout)


def _next_timer(loop: asyncio.BaseEventLoop, default: float) -> float:
    # A heap. asyncio removes cancelled timers from its top before it waits.
    timers: list[asyncio.TimerHandle] = loop._scheduled  # type: ignore[attr-defined]
    return timers[0].when() if timers else default


def _describe_deadlock(loop: asyncio.AbstractEventLoop) -> str:
    lines = [f"deadlock at virtual time {loop.time():g}: nothing is ready, no timer is set, no I/O is registered"]
    for task in asyncio.all_tasks(loop):
        frames = task.get_stack(limit=1)
        where = f"{frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else "nowhere"
        lines.append(f"  {task.get_name()} waits at {where}")
    return "\n".join(lines)
