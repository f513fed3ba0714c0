"""The one way down: for a delete, a scale to zero, an eviction, a restart, a shutdown, and what an agent has left.

In this order, by the phases of every teardown: withdrawn (detach), its requests end (drain), it is stopped and proven
dead (stop), unregistered and proven gone (remove), its finalizer goes (release), and only then it is forgotten (prove).
A step that fails does not keep the later ones from being tried, save the last two. All errors are reported together,
and it is tried again until everything is proven; also by the next agent, because the journal says so until then.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

import structlog

from pilotage.agent.journal import State
from pilotage.agent.launch import process
from pilotage.agent.pace import backed_off
from pilotage.agent.registration import Refused
from pilotage.catalogue import Phase
from pilotage.kube import ApiError
from pilotage.processes.identity import is_running
from pilotage.processes.terminate import StillRunning
from pilotage.runtime import monotonic, uptime
from pilotage.serving.runtimes import RUNTIMES
from pilotage.traffic.drain import DrainLimits, undrained

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pilotage.agent.health import Prober
    from pilotage.agent.journal import Entry, Journal
    from pilotage.agent.pace import Pace
    from pilotage.agent.registration import Registrar
    from pilotage.agent.tally import Tally

_log = structlog.get_logger(__name__)


class Why(enum.StrEnum):
    """Why something goes."""

    DELETED = "Deleted"
    VANISHED = "Vanished"
    """Its HostProcess is gone, or is another's now."""
    EVICTED = "Evicted"
    FAILED = "Failed"
    """It has ended by itself, or is sick: another one takes its place."""
    SHUTDOWN = "Shutdown"


class Progress(NamedTuple):
    """How far it is."""

    phase: Phase
    done: bool = False
    wait: float = 0.0
    """When to go on, in seconds."""
    in_flight: int | None = None
    errors: tuple[Exception, ...] = ()

    @property
    def text(self) -> str:
        """For people, with all that went wrong."""
        if self.errors:
            return "; ".join(str(error).rstrip(".") for error in self.errors)
        if self.phase is Phase.DRAIN:
            return "it waits for the requests that are under way"
        return ""


async def nothing() -> None:
    """Nothing is to be released."""


class Takedown:
    """Takes processes down, step by step. What it has to remember between two calls is in the journal, or soon over."""

    def __init__(self, journal: Journal, registrar: Registrar, prober: Prober, pace: Pace, tally: Tally) -> None:
        self._journal = journal
        self._registrar = registrar
        self._prober = prober
        self._pace = pace
        self._tally = tally
        self.hurry = False
        """Whether nobody waits for requests any more."""
        self._withdrawn: set[str] = set()
        self._idle_since: dict[str, float] = {}
        self._failures: dict[str, int] = {}

    async def advance(
        self,
        entry: Entry,
        why: Why,
        *,
        hurry: bool = False,
        just_ended: bool = False,
        release: Callable[[], Awaitable[None]] = nothing,
    ) -> Progress:
        """Do all that can be done now. `release` lets go of the HostProcess, once nothing is left of it.

        `hurry`: requests are not waited for. `just_ended`: its first process was seen to end a moment ago, so that what
        is left in its session is its own. What goes wrong is in the answer, never raised.
        """
        if entry.state is not State.LEAVING or entry.since > uptime():  # it may be from before the system was booted
            change = entry.but(state=State.LEAVING, since=uptime(), why=str(why))
            entry = self._journal.put(change, "that it leaves")
        errors: list[Exception] = []
        lives = is_running(entry.process)
        if lives and entry.uid not in self._withdrawn and await self._try(self._registrar.withdraw(entry), errors):
            self._withdrawn.add(entry.uid)
        if lives and entry.registered and not (hurry or self.hurry):
            progress = await self._drain(entry)
            if progress is not None:
                return progress._replace(errors=tuple(errors))
        cannot_withdraw, errors = errors, []
        await self._try(self._stop(entry, hurry=hurry, just_ended=just_ended), errors)
        phase = Phase.STOP if errors else Phase.REMOVE
        await self._try(self._registrar.unregister(entry), errors)
        if not errors:  # it is unregistered, so that it is withdrawn, too
            phase = Phase.RELEASE
            await self._try(release(), errors)
        if errors:
            return self._again(entry, phase, [*cannot_withdraw, *errors])
        self._journal.forget(entry.uid)
        self._withdrawn.discard(entry.uid)
        self._idle_since.pop(entry.uid, None)
        self._failures.pop(entry.uid, None)
        self._tally.takedowns.labels(str(why)).value += 1
        return Progress(Phase.PROVE, done=True)

    async def _drain(self, entry: Entry) -> Progress | None:
        """Wait until it has no more requests; None if that is so, or if the time for them is over."""
        detached = uptime() - entry.since
        if detached >= entry.drain_seconds:  # a server that hangs is not asked first
            self._idle_since.pop(entry.uid, None)
            return None
        withdrawn, countable = entry.uid in self._withdrawn, RUNTIMES[entry.runtime].request_metrics
        in_flight = await self._prober.in_flight(entry)
        if not withdrawn or in_flight or (in_flight is None and countable):
            self._idle_since.pop(entry.uid, None)
            idle = 0.0
        else:
            idle = monotonic() - self._idle_since.setdefault(entry.uid, monotonic())
        # A server that cannot be asked has to finish its requests after SIGTERM, and gets the time for it there.
        uncounted = None if countable or not withdrawn else self._pace.idle
        limits = DrainLimits(entry.drain_seconds, self._pace.idle, uncounted)
        wait = undrained(in_flight if withdrawn else None, detached, limits, idle_seconds=idle)
        if wait is None:
            self._idle_since.pop(entry.uid, None)
            return None
        return Progress(Phase.DRAIN, wait=min(wait.seconds, self._pace.drain_look), in_flight=in_flight)

    async def _stop(self, entry: Entry, *, hurry: bool, just_ended: bool) -> None:
        began, patience = monotonic(), self._pace.grace
        if not RUNTIMES[entry.runtime].request_metrics and entry.registered and not hurry:
            patience = max(patience, entry.since + entry.drain_seconds - uptime())
        self._tally.killed.labels().value += await process.end(
            self._journal.mark(entry.uid),
            entry.process,
            lambda: began + (self._pace.grace if self.hurry else patience),
            self._journal.at,
            just_ended=just_ended,
        )

    async def _try(self, step: Awaitable[None], errors: list[Exception]) -> bool:
        try:
            await step
        except (ApiError, Refused, StillRunning, OSError) as error:
            errors.append(error)
            return False
        return True

    def _again(self, entry: Entry, phase: Phase, errors: list[Exception]) -> Progress:
        failures = self._failures[entry.uid] = self._failures.get(entry.uid, 0) + 1
        self._tally.failures.labels().value += 1
        progress = Progress(phase, wait=backed_off(self._pace.retry, failures), errors=tuple(errors))
        _log.warning("not taken down yet", process=str(entry.key), why=entry.why, errors=progress.text)
        return progress
