"""Eviction: the loop that watches memory pressure, tells the Host, and evicts one server when it is critical."""

import asyncio
from collections.abc import Callable, Iterable

import structlog

from pilotage.agent.host import OwnHostController
from pilotage.agent.journal import AgentJournal
from pilotage.agent.metrics import AgentMetrics
from pilotage.agent.pressure import EvictionCandidate, MemoryPressure
from pilotage.agent.process_state import ProcessState
from pilotage.agent.settings import AgentSettings
from pilotage.kube import ObjectKey
from pilotage.runtime.clock import monotonic
from pilotage.runtime.events import Recorder
from pilotage.runtime.store import Store

_log = structlog.get_logger(__name__)


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
            self._host.level = level
            self._host.controller.queue.add(self._host.key)
            for obj in self._store.list():
                wake(obj.key)

    def _evict(self, wake: Callable[[ObjectKey], None]) -> None:
        chosen = self._pressure.choose(monotonic(), self._candidates())
        entry = self._journal.get(chosen) if chosen is not None else None
        if entry is None:
            return
        self._states[entry.uid].evicted = True
        _log.warning("evicted", process=str(entry.key))
        if (obj := self._store.get(entry.key)) is not None:
            self._events.warning(obj, "Evicted", "This host is short of memory, and it has the lowest priority.")
        wake(entry.key)

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
