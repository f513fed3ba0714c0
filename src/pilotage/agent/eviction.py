"""Eviction: the loop that watches memory pressure, tells the Host, and evicts one server when it is critical.

The runbooks docs/runbooks/host-memory-pressure.md and host-process-evicted.md explain the Events of this module.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

import structlog

from pilotage.agent.host import OwnHostController
from pilotage.agent.journal import AgentJournal
from pilotage.agent.metrics import AgentMetrics
from pilotage.agent.pressure import EvictionCandidate, MemoryPressure, PressureLevel
from pilotage.agent.process_state import ProcessState
from pilotage.agent.settings import AgentSettings
from pilotage.kube import ObjectKey
from pilotage.runtime.clock import monotonic
from pilotage.runtime.events import Recorder
from pilotage.runtime.store import Store

_log = structlog.get_logger(__name__)

_EFFECTS = {
    PressureLevel.NORMAL: "Servers are started again.",
    PressureLevel.WARNING: "No server is started.",
    PressureLevel.CRITICAL: "Servers are evicted, those of the lowest priority first.",
}


class Evictor:
    """Marks the state of the chosen process as evicted, and wakes its reconcile, which stops it."""

    def __init__(
        self,
        pressure: MemoryPressure,
        host: OwnHostController,
        journal: AgentJournal,
        states: dict[str, ProcessState],
        store: Store,
        events: Recorder,
        metrics: AgentMetrics,
        settings: AgentSettings,
    ) -> None:
        self._pressure = pressure
        self._host = host
        self._journal = journal
        self._states = states
        self._store = store
        self._events = events
        self._metrics = metrics
        self._settings = settings
        self._skipped = False
        """Whether it was said that nothing can be evicted, since the level has changed last."""

    async def run(self, wake: Callable[[ObjectKey], None], seconds: float) -> None:
        """Check the pressure every few seconds, until cancelled."""
        while True:
            self._observe(wake)
            self._evict(wake)
            await asyncio.sleep(seconds)

    def _observe(self, wake: Callable[[ObjectKey], None]) -> None:
        before, level = self._pressure.level, self._pressure.update(monotonic())
        self._metrics.pressure.labels().value = int(level)
        if level != before:
            _log.warning("memory pressure", level=str(level), before=str(before))
            self._host.level, self._skipped = level, False
            said = f"Memory pressure is {level}, and was {before}. {_EFFECTS[level]}"
            self._tell_host("MemoryPressureLevelChanged", said, normal=level < before)
            self._host.controller.queue.add(self._host.key)
            for obj in self._store.list():
                wake(obj.key)

    def _evict(self, wake: Callable[[ObjectKey], None]) -> None:
        now = monotonic()
        if not self._pressure.must_evict(now):
            return
        candidates = [*self._candidates()]
        chosen = self._pressure.choose(now, candidates)
        entry = self._journal.get(chosen) if chosen is not None else None
        if entry is None:
            self._skip(candidates)
            return
        self._states[entry.uid].evicted = True
        _log.warning("evicted", process=str(entry.key))
        if (obj := self._store.get(entry.key)) is not None:
            self._events.warning(obj, "Evicted", "This host is short of memory, and it has the lowest priority.")
        wake(entry.key)

    def _skip(self, candidates: Sequence[EvictionCandidate]) -> None:
        """Report that nothing can be evicted, once as long as it is so."""
        if self._skipped:
            return
        self._skipped = True
        why = "all servers here are protected" if candidates else "no server here is left to evict"
        _log.warning("no eviction", why=why)
        said = f"Memory pressure is critical, and {why}: something else has to use less memory."
        self._tell_host("EvictionSkipped", said)

    def _tell_host(self, reason: str, text: str, *, normal: bool = False) -> None:
        """Write an Event about this machine's Host, if it is known."""
        host = self._host.informer.store.get(self._host.key)
        if host is not None:
            (self._events.normal if normal else self._events.warning)(host, reason, text)

    def _candidates(self) -> Iterable[EvictionCandidate]:
        """Processes that are wanted and not being stopped, with their priority as far as the machine allows it."""
        for entry in self._journal.entries():
            obj, state = self._store.get(entry.key), self._states.get(entry.uid)
            if obj is None or state is None or state.evicted or obj.meta.terminating or obj.meta.uid != entry.uid:
                continue
            spec = obj.get("spec", default={})
            priority = min(spec.get("priority", 0), self._settings.priority_max)
            protected = self._settings.allow_protected and spec.get("protected", False)
            yield EvictionCandidate(entry.uid, priority, protected, entry.started)
