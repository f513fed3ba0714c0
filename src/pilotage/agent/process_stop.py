"""The stop of a server: one sequence for a deletion, an eviction, a restart, a shutdown, and after a crash.

In the order of the phases of every teardown: its address is withdrawn (detach), its requests end (drain), its processes
are ended and proven gone (stop), its EndpointSlice is deleted and proven gone (remove), its finalizer is removed
(release), and only then its journal entry (prove). A step that fails does not prevent the later ones, except the last
two. All errors are reported together, and the stop is retried until everything is proven; also by the next agent,
because the journal has it until then. A journal that cannot be written is reported, and holds nothing up.
"""

import enum
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog

from pilotage.agent.health import Prober
from pilotage.agent.intervals import Intervals
from pilotage.agent.journal import AgentJournal, JournalEntry, LifecycleState
from pilotage.agent.launch import process
from pilotage.agent.metrics import AgentMetrics
from pilotage.agent.process_state import ProcessState
from pilotage.agent.process_status import STOPPING, DesiredStatus, sentence
from pilotage.agent.registration import Registrar, RegistrationRefused
from pilotage.catalogue.phase import Phase
from pilotage.kube import ApiError
from pilotage.processes.identity import is_running
from pilotage.processes.terminate import StillRunning
from pilotage.runtime.backoff import ExponentialBackoff
from pilotage.runtime.clock import monotonic, uptime
from pilotage.serving.runtimes import RUNTIMES
from pilotage.traffic.drain import DrainLimits, undrained

_log = structlog.get_logger(__name__)


class StopReason(enum.StrEnum):
    """Why a server is stopped."""

    DELETED = "Deleted"
    VANISHED = "Vanished"
    """Its HostProcess is gone, or is on another host now."""
    EVICTED = "Evicted"
    FAILED = "Failed"
    """It has ended by itself, or is unhealthy: it is restarted."""
    SHUTDOWN = "Shutdown"


class StopProgress(NamedTuple):
    """The phase that a stop has reached."""

    phase: Phase
    done: bool = False
    wait: float = 0.0
    """Seconds until the next step."""
    in_flight: int | None = None
    errors: tuple[Exception, ...] = ()
    warning: str = ""
    """A phrase about what went wrong and holds nothing up."""

    @property
    def text(self) -> str:
        """A phrase for people, with all errors."""
        found = [str(error).rstrip(".") for error in self.errors]
        if not found and self.phase is Phase.DRAIN:
            found = ["it waits for requests in flight"]
        return "; ".join([*found, self.warning] if self.warning else found)


async def nothing() -> None:
    """Release nothing."""


class ProcessStop:
    """Stops servers, step by step. What has to outlive the agent between two steps is in the journal."""

    def __init__(
        self, journal: AgentJournal, registrar: Registrar, prober: Prober, intervals: Intervals, metrics: AgentMetrics
    ) -> None:
        self._journal = journal
        self._registrar = registrar
        self._prober = prober
        self._intervals = intervals
        self._metrics = metrics
        self.hurry = False
        """Whether requests are not waited for any more."""
        self._withdrawn: set[str] = set()
        self._idle_since: dict[str, float] = {}
        self._backoff = ExponentialBackoff[str](*intervals.stop_backoff)

    async def advance(
        self,
        entry: JournalEntry,
        reason: StopReason,
        state: ProcessState | None,
        *,
        hurry: bool = False,
        release: Callable[[], Awaitable[None]] = nothing,
    ) -> StopProgress:
        """Do all that can be done now. `release` removes the finalizer, once nothing of the server is left.

        `hurry`: requests are not waited for. Errors are in the result, never raised.
        """
        progress = await self._advance(entry, reason, state, hurry=hurry, release=release)
        return progress._replace(warning=self._journal.problem)

    async def _advance(
        self,
        entry: JournalEntry,
        reason: StopReason,
        state: ProcessState | None,
        *,
        hurry: bool,
        release: Callable[[], Awaitable[None]],
    ) -> StopProgress:
        if entry.state is not LifecycleState.LEAVING or entry.since > uptime():  # that was before a reboot
            change = entry.but(state=LifecycleState.LEAVING, since=uptime(), why=str(reason))
            entry = self._journal.note(change, "that it leaves")
        errors: list[Exception] = []
        alive = is_running(entry.process)
        if alive and entry.uid not in self._withdrawn and await self._try(self._registrar.withdraw(entry), errors):
            self._withdrawn.add(entry.uid)
        if alive and entry.registered and not (hurry or self.hurry):
            progress = await self._drain(entry)
            if progress is not None:
                return progress._replace(errors=tuple(errors))
        withdrawal, errors = errors, []
        await self._try(self._end(entry, hurry=hurry, just_ended=state is not None and state.just_ended), errors)
        phase = Phase.STOP if errors else Phase.REMOVE
        await self._try(self._registrar.unregister(entry), errors)
        if not errors:  # unregistered means withdrawn, too
            phase = Phase.RELEASE
            await self._try(release(), errors)
        if errors:
            return self._again(entry, phase, [*withdrawal, *errors])
        self._journal.forget(entry.uid)
        self._withdrawn.discard(entry.uid)
        self._idle_since.pop(entry.uid, None)
        self._backoff.forget(entry.uid)
        if state is not None:
            state.stopped()
        self._metrics.stops.labels(str(reason)).value += 1
        return StopProgress(Phase.PROVE, done=True)

    async def _drain(self, entry: JournalEntry) -> StopProgress | None:
        """Wait until it has no more requests; None if it has none, or if the drain timeout is over."""
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
        uncounted = None if countable or not withdrawn else self._intervals.idle
        limits = DrainLimits(entry.drain_seconds, self._intervals.idle, uncounted)
        wait = undrained(in_flight if withdrawn else None, detached, limits, idle_seconds=idle)
        if wait is None:
            self._idle_since.pop(entry.uid, None)
            return None
        return StopProgress(Phase.DRAIN, wait=min(wait.seconds, self._intervals.drain_poll), in_flight=in_flight)

    async def _end(self, entry: JournalEntry, *, hurry: bool, just_ended: bool) -> None:
        began, patience = monotonic(), self._intervals.grace
        if not RUNTIMES[entry.runtime].request_metrics and entry.registered and not hurry:
            patience = max(patience, entry.since + entry.drain_seconds - uptime())
        self._metrics.killed.labels().value += await process.end(
            self._journal.mark(entry.uid),
            entry.process,
            lambda: began + (self._intervals.grace if self.hurry else patience),
            self._journal.at,
            just_ended=just_ended,
        )

    async def _try(self, step: Awaitable[None], errors: list[Exception]) -> bool:
        try:
            await step
        except (ApiError, RegistrationRefused, StillRunning, OSError) as error:
            errors.append(error)
            return False
        return True

    def _again(self, entry: JournalEntry, phase: Phase, errors: list[Exception]) -> StopProgress:
        self._metrics.failures.labels().value += 1
        progress = StopProgress(phase, wait=self._backoff.when(entry.uid), errors=tuple(errors))
        _log.warning("not stopped yet", process=str(entry.key), why=entry.why, errors=progress.text)
        return progress


def stopping(progress: StopProgress, entry: JournalEntry, reason: StopReason) -> DesiredStatus:
    """The status of a process that is being stopped."""
    return DesiredStatus(
        STOPPING,
        str(reason),
        sentence(progress.text),
        in_flight=progress.in_flight,
        entry=entry,
        expected=not progress.errors and not progress.warning,
    )
