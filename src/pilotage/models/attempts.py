"""Fetch attempts, one for each object that needs a source, beside the reconciles: weights take hours.

A reconcile begins an attempt and returns. The end of the attempt wakes the object again, and so does its progress, at
most every few seconds. So no worker waits for a slow source, and a change of the spec or a deletion is handled at once.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

import structlog

from pilotage.models import Kept, Problem, Reason, TransientError
from pilotage.models.fetch import Progress
from pilotage.runtime.backoff import exponential
from pilotage.runtime.clock import monotonic

_log = structlog.get_logger(__name__)

PROGRESS_SECONDS = 5.0
"""Least time between two reports of progress."""
RECHECK_SECONDS = 300.0
"""Pause before a source is checked again whose last check succeeded, or failed for a reason that lasts."""
FIRST_SECONDS = 1.0
"""Time before the first report: a shorter attempt has none."""
RETRY_SECONDS = (1.0, RECHECK_SECONDS)
"""First and longest pause after a transient error; doubled each time."""
RETRY_AFTER_SECONDS_MAX = 3600.0
"""Longest pause that a source can ask for."""

R = TypeVar("R", bound="Hashable")


class Fetching(NamedTuple):
    """Progress of a fetch in bytes; `total` where it is known."""

    done: int
    total: int | None


class Attempt(Generic[R]):
    """One attempt: its progress, or its outcome and when the next one is due."""

    def __init__(self, request: R, failures: int, shown: Fetching | None) -> None:
        self.request = request
        self.failures = failures
        self.shown = shown
        """The progress that was reported last."""
        self.outcome: Kept | Problem | None = None
        self.due = 0.0
        self.slow = False
        """Whether it has taken so long that a status should say so."""
        self.last: Fetching | None = None
        """The latest progress; None: no byte has come."""


class Pause(NamedTuple):
    """The pause after an outcome."""

    seconds: float
    failures: int


def pause_after(outcome: Kept | Problem, failures: int, chance: float) -> Pause:
    """The pause before the next attempt: exponential after transient errors, else `RECHECK_SECONDS`.

    A source that asks for a longer one gets up to `RETRY_AFTER_SECONDS_MAX`.

    `chance`, from 0 to 1, takes up to a quarter off, so that those who failed together do not come back together.
    """
    if not isinstance(outcome, TransientError):
        return Pause(RECHECK_SECONDS, 0)
    first, longest = RETRY_SECONDS
    backoff = exponential(first, longest, failures) * (1 - chance / 4)
    return Pause(max(backoff, min(outcome.retry_after, RETRY_AFTER_SECONDS_MAX)), failures + 1)


class Attempts(Generic[R]):
    """All attempts, by the uid of their object. `close` cancels those that run."""

    def __init__(self, look: Callable[[R, Progress], Awaitable[Kept]], rng: random.Random) -> None:
        """`look` fetches, or raises a `Problem`."""
        self._look = look
        self._rng = rng
        self._of: dict[str, Attempt[R]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def get(self, uid: str) -> Attempt[R] | None:
        """The last attempt, running or ended."""
        return self._of.get(uid)

    async def begin(self, uid: str, request: R, wake: Callable[[], None]) -> None:
        """Begin an attempt, in place of any other. `wake` is called at its end, and when there is progress."""
        before = self._of.get(uid)
        await self.drop(uid)
        again = before is not None and before.request == request
        attempt = Attempt(request, *(before.failures, before.shown) if before is not None and again else (0, None))
        self._of[uid] = attempt
        self._tasks[uid] = asyncio.create_task(self._run(uid, attempt, wake), name=f"fetch for {uid}")

    async def drop(self, uid: str) -> None:
        """Cancel an attempt and forget it. It has ended when this returns."""
        self._of.pop(uid, None)
        task = self._tasks.pop(uid, None)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def close(self) -> None:
        """Cancel all attempts."""
        for uid in [*self._tasks]:
            await self.drop(uid)

    async def _run(self, uid: str, attempt: Attempt[R], wake: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        told = monotonic()

        def tell() -> None:
            nonlocal told
            told = monotonic()
            attempt.slow = True
            attempt.shown = attempt.last or attempt.shown
            wake()

        def progress(done: int, total: int | None) -> None:
            attempt.last = Fetching(done, total)
            if monotonic() - told >= PROGRESS_SECONDS:
                tell()

        timer = loop.call_later(FIRST_SECONDS, tell)

        try:
            attempt.outcome = await self._look(attempt.request, progress)
        except Problem as problem:
            attempt.outcome = problem
        except Exception:  # noqa: BLE001 - a bug is seen, and does not end the others
            _log.exception("a fetch failed unexpectedly", request=str(attempt.request))
            attempt.outcome = TransientError(Reason.INTERNAL, "Pilotage itself failed; its log says how")
        finally:
            timer.cancel()
            self._tasks.pop(uid, None)
        pause = pause_after(attempt.outcome, attempt.failures, self._rng.random())
        attempt.failures = pause.failures
        attempt.due = monotonic() + pause.seconds
        wake()
