"""Reconcile of a process that should run: started, probed, registered while it is healthy, restarted when it fails.

One call is one step, and says when the next one is due. Nothing here waits for long.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import structlog

from pilotage.agent import process_status
from pilotage.agent.health import Health, Prober, ProbeResult
from pilotage.agent.intervals import Intervals
from pilotage.agent.journal import AgentJournal, JournalEntry, LifecycleState
from pilotage.agent.launch import logs, process
from pilotage.agent.launch.failures import LaunchFailure, explain
from pilotage.agent.metrics import AgentMetrics
from pilotage.agent.process_state import ProcessState
from pilotage.agent.process_status import DesiredStatus, sentence
from pilotage.agent.process_stop import ProcessStop, StopReason, stopping
from pilotage.agent.registration import Registrar, RegistrationRefused, SliceState
from pilotage.agent.starter import Starter, StartWait
from pilotage.api.host import ProcessSpec
from pilotage.kube import ApiError, Object
from pilotage.processes import census
from pilotage.processes.identity import ProcessId
from pilotage.runtime.clock import monotonic, uptime
from pilotage.runtime.leader import LeaseLost

_log = structlog.get_logger(__name__)


class RunOutcome(NamedTuple):
    """The result of one step: the status to write (None: unchanged), and when the next is due (None: it is woken)."""

    status: DesiredStatus | None
    seconds: float | None


class Runner:
    """Reconciles one process at a time; see `run`."""

    def __init__(
        self,
        journal: AgentJournal,
        starter: Starter,
        registrar: Registrar,
        prober: Prober,
        process_stop: ProcessStop,
        intervals: Intervals,
        metrics: AgentMetrics,
    ) -> None:
        self._journal = journal
        self._starter = starter
        self._registrar = registrar
        self._prober = prober
        self._process_stop = process_stop
        self._intervals = intervals
        self._metrics = metrics

    async def run(
        self, obj: Object, spec: ProcessSpec, state: ProcessState, wake: Callable[[], None], hold: str
    ) -> RunOutcome:
        """One step for a process that should run. `hold`: why nothing is started now; empty if it may be."""
        entry = self._journal.get(obj.meta.uid)
        if entry is not None and entry.pid == 0:
            entry = self._find(entry)
        if entry is not None and (entry.state is LifecycleState.LEAVING or state.evicted):
            return await self._stop(entry, state)
        if entry is None:
            return await self._start(obj, spec, state, wake, hold)
        self._watch(entry, state, wake)
        return await self._probe(obj, spec, entry, state)

    # Start

    async def _start(
        self, obj: Object, spec: ProcessSpec, state: ProcessState, wake: Callable[[], None], hold: str
    ) -> RunOutcome:
        if hold:
            phase = process_status.EVICTED if state.evicted else process_status.PENDING
            reason = "RespawnBlocked" if state.has_run else "Held"
            return RunOutcome(DesiredStatus(phase, reason, hold), self._intervals.memory)
        state.evicted = False
        started = await self._starter.start(obj, spec, state, wake)
        if isinstance(started, StartWait):
            return RunOutcome(*started)
        state.start_probe = self._intervals.start_probe
        self._watch(started, state, wake)
        _log.info("started", process=str(started.key), pid=started.pid, port=started.port)
        return RunOutcome(state.status or _starting(started), state.start_probe)

    def _find(self, entry: JournalEntry) -> JournalEntry:
        """Adopt the process of an agent that ended before it could record it, if there is one."""
        found = census.Family(self._journal.mark(entry.uid), ProcessId(0, "")).members()
        leaders = [each for each in found if each.session == each.pid]
        if len(leaders) == 1:
            leader = leaders[0]
            return self._journal.note(entry.but(pid=leader.pid, born=leader.born), "its process")
        # Whatever may be left of it is ended.
        return entry.but(state=LifecycleState.LEAVING, why=str(StopReason.FAILED))

    def _watch(self, entry: JournalEntry, state: ProcessState, wake: Callable[[], None]) -> None:
        if state.watched_pid == entry.pid:
            return
        state.stop_watching()

        def ended() -> None:
            state.just_ended = True
            wake()

        state.exit_watcher, state.watched_pid = process.ExitWatcher(entry.pid, ended), entry.pid

    # Health

    async def _probe(self, obj: Object, spec: ProcessSpec, entry: JournalEntry, state: ProcessState) -> RunOutcome:
        health = await self._prober.check(entry)
        self._metrics.checks.labels(health.result.value).value += 1
        if health.result is ProbeResult.DEAD:
            return await self._ended(entry, state)
        self._rotate_log(entry, state)
        if health.result is ProbeResult.HEALTHY:
            return await self._healthy(obj, entry, state)
        if entry.state is LifecycleState.STARTING:
            return await self._not_ready(spec, entry, state, health)
        return await self._unhealthy(obj, entry, state, health)

    def _rotate_log(self, entry: JournalEntry, state: ProcessState) -> None:
        """A log that cannot be rotated, on a full disk for instance, does not affect its server."""
        if monotonic() < state.log_due:
            return
        try:
            logs.rotate(Path(entry.log))
        except OSError as error:
            if not state.log_due:
                _log.warning("a log cannot be rotated, which is retried", log=entry.log, error=str(error))
            state.log_due = monotonic() + self._intervals.permanent_failure
        else:
            state.log_due = 0.0

    async def _healthy(self, obj: Object, entry: JournalEntry, state: ProcessState) -> RunOutcome:
        try:
            entry = await self._registrar.show(obj, entry, SliceState.READY)
        except RegistrationRefused as error:
            phase = process_status.FAILED if error.reason == "NameTaken" else process_status.STARTING
            message = f"It runs, and cannot be registered: {error.message.rstrip('.')}."
            return RunOutcome(DesiredStatus(phase, error.reason, message, entry=entry), self._intervals.service)
        except (ApiError, LeaseLost) as error:  # nothing is known; the server goes on
            _log.warning("not registered", process=str(entry.key), error=str(error))
            return RunOutcome(None, self._intervals.probe_again)
        if entry.state is LifecycleState.STARTING:
            entry = self._journal.note(entry.but(state=LifecycleState.RUNNING), "that it is healthy")
            _log.info("healthy", process=str(entry.key), seconds=round(uptime() - entry.begun, 3))
        state.healthy(self._intervals)
        return RunOutcome(
            DesiredStatus(process_status.RUNNING, "Healthy", ready=True, entry=entry), self._intervals.probe
        )

    async def _not_ready(
        self, spec: ProcessSpec, entry: JournalEntry, state: ProcessState, health: Health
    ) -> RunOutcome:
        left = entry.begun + spec.start_seconds - uptime()
        if left <= 0:
            why = f"it was not healthy {spec.start_seconds} s after its start ({health.why})"
            return await self._restart(entry, state, LaunchFailure("StartTimeout", why), ran=False)
        pause = max(state.start_probe, self._intervals.start_probe) * 1.5
        state.start_probe = min(pause, self._intervals.start_probe_max)
        return RunOutcome(state.status or _starting(entry), min(state.start_probe, left))

    async def _unhealthy(self, obj: Object, entry: JournalEntry, state: ProcessState, health: Health) -> RunOutcome:
        now = monotonic()
        state.failed_probes += 1
        state.unhealthy_since = now if state.unhealthy_since is None else state.unhealthy_since
        if state.failed_probes < self._intervals.failure_threshold:
            return RunOutcome(None, self._intervals.probe_again)
        if now - state.unhealthy_since >= self._intervals.unhealthy:
            return await self._restart(entry, state, LaunchFailure("Unhealthy", health.why), ran=True)
        try:
            entry = await self._registrar.show(obj, entry, SliceState.UNHEALTHY)
        except (ApiError, RegistrationRefused) as error:
            _log.warning("not withdrawn", process=str(entry.key), error=str(error))
        status = DesiredStatus(process_status.UNHEALTHY, "Unhealthy", sentence(health.why), entry=entry)
        return RunOutcome(status, self._intervals.probe_again)

    # Restart

    async def _ended(self, entry: JournalEntry, state: ProcessState) -> RunOutcome:
        now = monotonic()
        if state.ending_since is None:
            state.ending_since = now
        if process.is_ending(entry.pid) and now - state.ending_since < self._intervals.grace:
            return RunOutcome(None, self._intervals.start_probe)
        state.ending_since = None
        failure = explain(process.reap(entry.pid), logs.tail(Path(entry.log), state.log_from))
        ran = entry.state is LifecycleState.RUNNING
        # A server that was healthy had all that a start needs: if its failure is permanent, the next start shows it.
        failure = failure._replace(permanent=failure.permanent and not ran)
        return await self._restart(entry, state, failure, ran=ran)

    async def _restart(
        self, entry: JournalEntry, state: ProcessState, failure: LaunchFailure, *, ran: bool
    ) -> RunOutcome:
        """Stop it; a later step starts it again, when the backoff is over."""
        state.fail(failure, self._intervals, ran=ran)
        self._metrics.restarts.labels().value += ran
        _log.warning("failed", process=str(entry.key), reason=failure.reason, message=failure.message)
        return await self._stop(entry.but(why=str(StopReason.FAILED)), state)

    async def _stop(self, entry: JournalEntry, state: ProcessState) -> RunOutcome:
        reason = StopReason.EVICTED if state.evicted else StopReason(entry.why or StopReason.FAILED)
        hurry = reason is StopReason.FAILED
        progress = await self._process_stop.advance(entry, reason, state, hurry=hurry)
        if not progress.done:
            return RunOutcome(stopping(progress, entry, reason), progress.wait)
        return RunOutcome(state.status, max(0.0, state.due - monotonic()))


def _starting(entry: JournalEntry) -> DesiredStatus:
    return DesiredStatus(process_status.STARTING, "Starting", entry=entry)
