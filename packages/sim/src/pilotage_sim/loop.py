"""An event loop on which waiting takes no time.

For programs that talk to nothing outside: when nothing is left to run, the clock jumps to the next timer, so that a day
passes in milliseconds, and the same program always runs in the same order. Two things are errors here that would be a
hang elsewhere: nothing is left to wait for (`DeadlockError`), and nothing ever waits (`LivelockError`).

The order is fixed because nothing of it depends on memory addresses or on real time: callbacks run first in, first out,
timers by their time, and sets of tasks (which asyncio cancels in the order of their hashes) by the tasks' numbers.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import math
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeAlias, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Events: TypeAlias = list[tuple[selectors.SelectorKey, int]]
Select: TypeAlias = Callable[[float | None], Events]

VIRTUAL_EPOCH = 1_750_000_000.0
"""The result of `wall_time()` on a virtual loop whose `time()` is 0."""

TURNS_MAX = 200_000
"""Number of turns of the loop without time passing that is taken for a program that never waits."""


class DeadlockError(RuntimeError):
    """Nothing is ready, no timer is set and no I/O can come: the program would wait forever."""


class LivelockError(RuntimeError):
    """The program is always busy: its clock does not move any more."""


def run_virtual(main: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine on a fresh virtual loop, which starts at time 0."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)


def virtual(test: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    """Make a plain function out of an async one: each call runs on a fresh virtual loop."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return run_virtual(test(*args, **kwargs))

    return run


class NumberedTask(asyncio.Task[R]):
    """A task whose hash is its number, so that a set of tasks has the same order in every run."""

    def __init__(self, coro: Coroutine[Any, Any, R], number: int, **options: Any) -> None:  # noqa: ANN401 - asyncio's
        self._number = number  # first: asyncio puts the task into a set, and all with one hash would make that slow
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Event loop in virtual time: its clock jumps to the next timer when nothing can run."""

    def __init__(self) -> None:
        self._now = 0.0
        self._turns = 0
        self._numbers = itertools.count()
        self._hooked = HookedSelector(self._wait)
        super().__init__(self._hooked)
        self.set_task_factory(self._make_task)  # type: ignore[arg-type]

    def time(self) -> float:
        """Seconds since the loop was made; only waiting moves it."""
        return self._now

    def wall_time(self) -> float:
        """Seconds since the epoch, as this program is to believe."""
        return VIRTUAL_EPOCH + self._now

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: Coroutine[Any, Any, R],
        **options: Any,  # noqa: ANN401 - asyncio's
    ) -> NumberedTask[R]:
        return NumberedTask(coro, next(self._numbers), loop=loop, **options)

    def _wait(self, select: Select, timeout: float | None) -> Events:
        # The pipe by which signals wake the loop is always registered, and means nothing.
        has_io = len(self._hooked.get_map()) > 1
        if timeout is None:
            if not has_io:
                raise DeadlockError(describe_deadlock(self))
            return select(None)
        events = select(0) if has_io else []
        if not events and timeout > 0:
            self._turns = 0
            # Not `+= timeout`: that would round, and asyncio never waits for more than a day at once.
            self._now = next_timer(self, default=self._now)
            # asyncio runs the timers before `now + resolution`: exactly those that are due, also a year from now,
            # where its usual nanosecond is lost in rounding.
            self._clock_resolution = math.ulp(self._now)
            return events
        self._turns += 1
        if self._turns > TURNS_MAX:
            self._turns = 0
            raise LivelockError(f"at virtual time {self._now:g} the program is busy without end; " + _tasks(self))
        return events


class HookedSelector(selectors.DefaultSelector):
    """A selector that lets the loop decide how to wait: `select` is the one place where asyncio's time passes."""

    def __init__(self, wait: Callable[[Select, float | None], Events]) -> None:
        super().__init__()
        self._wait = wait

    def select(self, timeout: float | None = None) -> Events:
        """Ready file objects; waiting advances the virtual clock."""
        return self._wait(super().select, timeout)


def next_timer(loop: asyncio.BaseEventLoop, default: float) -> float:
    """Time of the next timer of a loop."""
    # A heap. asyncio removes cancelled timers from its top before it waits.
    timers: list[asyncio.TimerHandle] = loop._scheduled  # type: ignore[attr-defined]
    return timers[0].when() if timers else default


def describe_deadlock(loop: asyncio.AbstractEventLoop) -> str:
    """The stack of every task: the calls from its outermost coroutine to the one that waits, with their lines."""
    head = f"deadlock at virtual time {loop.time():g}: nothing is ready, no timer is set, no I/O is registered; "
    return head + _tasks(loop)


def _tasks(loop: asyncio.AbstractEventLoop) -> str:
    """All tasks, in the order in which they were made; those that wait for the same in the same place only once."""
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: getattr(task, "_number", 0))
    names: dict[str, list[str]] = {}
    for task in tasks:
        names.setdefault(_describe_task(task), []).append(task.get_name())
    lines = [f"  {', '.join(dict.fromkeys(each))} ({len(each)}) {waits}" for waits, each in names.items()]
    return "\n".join([f"{len(tasks)} task(s):", *lines])


def _describe_task(task: asyncio.Task[Any]) -> str:
    chain, awaited = _await_chain(task.get_coro())
    waiter = getattr(task, "_fut_waiter", None)
    if isinstance(waiter, asyncio.Task):
        what = f"the end of {waiter.get_name()}"
    elif waiter is not None:
        what = type(waiter).__name__
    else:
        what = type(awaited).__name__ if awaited is not None else "its turn"
    return "\n".join([f"waits for {what}", *(f"      in {step}" for step in chain)])


def _await_chain(awaited: Any) -> tuple[list[str], Any]:  # noqa: ANN401 - whatever a coroutine awaits
    """The coroutines that wait for each other, from the outside in, and what the last one waits for."""
    chain: list[str] = []
    while True:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is None:
            return chain, awaited
        chain.append(f"{awaited.__qualname__} ({frame.f_code.co_filename}:{frame.f_lineno})")
        inner = awaited.cr_await if hasattr(awaited, "cr_await") else awaited.gi_yieldfrom
        awaited = inner
