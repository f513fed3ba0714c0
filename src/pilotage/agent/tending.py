"""Keeps one wanted process going: started, watched, registered while it is healthy, started again when it is not.

One call is one look, and says when the next one is due. Nothing here waits for anything that takes long.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog

from pilotage.agent import process_status
from pilotage.agent.health import Verdict
from pilotage.agent.journal import State
from pilotage.agent.launch import logs, process
from pilotage.agent.launch.failures import Failure, explain
from pilotage.agent.process_status import Said
from pilotage.agent.registration import Refused, Shown
from pilotage.agent.starting import Waits
from pilotage.agent.takedown import Why
from pilotage.kube import ApiError
from pilotage.processes import census
from pilotage.processes.identity import ProcessId
from pilotage.runtime import LeaseLost, monotonic, uptime

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage.agent.health import Health, Prober
    from pilotage.agent.journal import Entry, Journal
    from pilotage.agent.pace import Pace
    from pilotage.agent.registration import Registrar
    from pilotage.agent.starting import Starter
    from pilotage.agent.takedown import Progress, Takedown
    from pilotage.agent.tally import Tally
    from pilotage.agent.ward import Ward
    from pilotage.api.host import ProcessSpec
    from pilotage.kube import Object

_log = structlog.get_logger(__name__)


class Look(NamedTuple):
    """What came of a look: what to say (None: nothing new), and when the next one is due (None: it is woken)."""

    said: Said | None
    seconds: float | None


class Tending:
    """See the module."""

    def __init__(
        self,
        journal: Journal,
        starter: Starter,
        registrar: Registrar,
        prober: Prober,
        takedown: Takedown,
        pace: Pace,
        tally: Tally,
    ) -> None:
        self._journal = journal
        self._starter = starter
        self._registrar = registrar
        self._prober = prober
        self._takedown = takedown
        self._pace = pace
        self._tally = tally

    async def tend(self, obj: Object, spec: ProcessSpec, ward: Ward, wake: Callable[[], None], hold: str) -> Look:
        """One look at a process that is wanted. `hold`: why nothing new is started now; empty if it may be."""
        entry = self._journal.get(obj.meta.uid)
        if entry is not None and entry.pid == 0:
            entry = self._find(entry)
        if entry is not None and (entry.state is State.LEAVING or ward.evicted):
            return await self._leave(entry, ward)
        if entry is None:
            return await self._start(obj, spec, ward, wake, hold)
        self._listen(entry, ward, wake)
        return await self._look(obj, spec, entry, ward)

    # Up

    async def _start(self, obj: Object, spec: ProcessSpec, ward: Ward, wake: Callable[[], None], hold: str) -> Look:
        if hold:
            phase, reason = (process_status.EVICTED, "Evicted") if ward.evicted else (process_status.PENDING, "Held")
            return Look(Said(phase, reason, hold), self._pace.memory)
        ward.evicted = False
        started = await self._starter.start(obj, spec, ward, wake)
        if isinstance(started, Waits):
            return Look(*started)
        ward.look = self._pace.start_look
        self._listen(started, ward, wake)
        _log.info("started", process=str(started.key), pid=started.pid, port=started.port)
        return Look(ward.said or _starting(started), ward.look)

    def _find(self, entry: Entry) -> Entry:
        """The process of an agent that ended before it could note it: taken up if there is one."""
        found = census.Family(self._journal.mark(entry.uid), ProcessId(0, "")).members()
        leaders = [each for each in found if each.session == each.pid]
        if len(leaders) == 1:
            leader = leaders[0]
            return self._journal.put(entry.but(pid=leader.pid, born=leader.born), "its process")
        return entry.but(state=State.LEAVING, why=str(Why.FAILED))  # whatever may be left of it is ended

    def _listen(self, entry: Entry, ward: Ward, wake: Callable[[], None]) -> None:
        if ward.ear_pid == entry.pid:
            return
        ward.deafen()

        def heard() -> None:
            ward.just_ended = True
            wake()

        ward.ear, ward.ear_pid = process.ExitWatcher(entry.pid, heard), entry.pid

    # How it is

    async def _look(self, obj: Object, spec: ProcessSpec, entry: Entry, ward: Ward) -> Look:
        health = await self._prober.check(entry)
        self._tally.checks.labels(health.verdict.value).value += 1
        if health.verdict is Verdict.DEAD:
            return await self._ended(entry, ward)
        self._keep_short(entry, ward)
        if health.verdict is Verdict.HEALTHY:
            return await self._well(obj, entry, ward)
        if entry.state is State.STARTING:
            return await self._not_yet(spec, entry, ward, health)
        return await self._sick(obj, entry, ward, health)

    def _keep_short(self, entry: Entry, ward: Ward) -> None:
        """A log that cannot be put aside, on a full disk say, keeps nobody from looking after its server."""
        if monotonic() < ward.log_due:
            return
        try:
            logs.rotate(Path(entry.log))
        except OSError as error:
            if not ward.log_due:
                _log.warning("a log cannot be put aside", log=entry.log, error=str(error))
            ward.log_due = monotonic() + self._pace.lasting
        else:
            ward.log_due = 0.0

    async def _well(self, obj: Object, entry: Entry, ward: Ward) -> Look:
        try:
            entry = await self._registrar.show(obj, entry, Shown.READY)
        except Refused as error:
            phase = process_status.FAILED if error.reason == "NameTaken" else process_status.STARTING
            said = Said(phase, error.reason, f"It runs, and cannot be registered: {error.message}.", entry=entry)
            return Look(said, self._pace.service)
        except (ApiError, LeaseLost) as error:  # nothing is known; the server goes on
            _log.warning("not registered", process=str(entry.key), error=str(error))
            return Look(None, self._pace.recheck)
        if entry.state is State.STARTING:
            entry = self._journal.put(entry.but(state=State.RUNNING), "that it is healthy")
            _log.info("healthy", process=str(entry.key), seconds=round(uptime() - entry.begun, 3))
        ward.is_well(self._pace)
        return Look(Said(process_status.RUNNING, "Healthy", ready=True, entry=entry), self._pace.check)

    async def _not_yet(self, spec: ProcessSpec, entry: Entry, ward: Ward, health: Health) -> Look:
        left = entry.begun + spec.start_seconds - uptime()
        if left <= 0:
            why = f"it was not healthy {spec.start_seconds} s after its start ({health.why})"
            return await self._replace(entry, ward, Failure("StartTimeout", why), ran=False)
        ward.look = min(max(ward.look, self._pace.start_look) * 1.5, self._pace.start_look_max)
        return Look(ward.said or _starting(entry), min(ward.look, left))

    async def _sick(self, obj: Object, entry: Entry, ward: Ward, health: Health) -> Look:
        now = monotonic()
        ward.bad += 1
        ward.bad_since = now if ward.bad_since is None else ward.bad_since
        if ward.bad < self._pace.failures:
            return Look(None, self._pace.recheck)
        if now - ward.bad_since >= self._pace.sick:
            return await self._replace(entry, ward, Failure("Unhealthy", health.why), ran=True)
        try:
            entry = await self._registrar.show(obj, entry, Shown.SICK)
        except (ApiError, Refused) as error:
            _log.warning("not withdrawn", process=str(entry.key), error=str(error))
        message = f"{health.why[:1].upper()}{health.why[1:]}."
        return Look(Said(process_status.UNHEALTHY, "Unhealthy", message, entry=entry), self._pace.recheck)

    # Down

    async def _ended(self, entry: Entry, ward: Ward) -> Look:
        now = monotonic()
        if ward.ending_since is None:
            ward.ending_since = now
        if process.is_ending(entry.pid) and now - ward.ending_since < self._pace.grace:
            return Look(None, self._pace.start_look)
        ward.ending_since = None
        failure = explain(process.reap(entry.pid), logs.tail(Path(entry.log), ward.log_from))
        ran = entry.state is State.RUNNING
        # What has served had all that a start needs: if it fails for good, the next start shows it.
        return await self._replace(entry, ward, failure._replace(lasting=failure.lasting and not ran), ran=ran)

    async def _replace(self, entry: Entry, ward: Ward, failure: Failure, *, ran: bool) -> Look:
        """Take it down; the next look starts another one, when its time has come."""
        ward.fail(failure, self._pace, ran=ran)
        self._tally.restarts.labels().value += ran
        _log.warning("failed", process=str(entry.key), reason=failure.reason, message=failure.message)
        return await self._leave(entry.but(why=str(Why.FAILED)), ward)

    async def _leave(self, entry: Entry, ward: Ward) -> Look:
        """A part of `tend`: it goes, and comes back later."""
        why = Why.EVICTED if ward.evicted else Why(entry.why or Why.FAILED)
        hurry = why is Why.FAILED
        progress = await self._takedown.advance(entry, why, hurry=hurry, just_ended=ward.just_ended)
        if not progress.done:
            return Look(leaving(progress, entry, why), progress.wait)
        ward.just_ended = False
        ward.deafen()
        ward.healthy_since = None
        return Look(ward.said, max(0.0, ward.due - monotonic()))


def leaving(progress: Progress, entry: Entry, why: Why) -> Said:
    """What to say of one that goes."""
    text = progress.text
    message = f"{text[:1].upper()}{text[1:]}." if text else ""
    return Said(process_status.STOPPING, str(why), message, in_flight=progress.in_flight, entry=entry)


def _starting(entry: Entry) -> Said:
    return Said(process_status.STARTING, "Starting", entry=entry)
