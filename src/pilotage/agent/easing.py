"""Looks for memory pressure, tells the Host, and lets go of one server when it has to be."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from pilotage.agent.pressure import Candidate
from pilotage.runtime import monotonic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pilotage.agent.host import HostKeeper
    from pilotage.agent.journal import Journal
    from pilotage.agent.pressure import Pressure
    from pilotage.agent.settings import AgentSettings
    from pilotage.agent.tally import Tally
    from pilotage.agent.ward import Ward
    from pilotage.kube import ObjectKey
    from pilotage.runtime import Recorder, Store

_log = structlog.get_logger(__name__)


async def ease(
    pressure: Pressure,
    host: HostKeeper,
    journal: Journal,
    wards: dict[str, Ward],
    store: Store,
    events: Recorder,
    tally: Tally,
    wake: Callable[[ObjectKey], None],
    settings: AgentSettings,
    seconds: float,
) -> None:
    """Until cancelled. Whoever is chosen is marked in its ward, and woken: the next look takes it down."""
    while True:
        before, level = pressure.level, pressure.look(monotonic())
        tally.pressure.labels().value = int(level)
        if level != before:
            _log.warning("memory pressure", level=str(level), before=str(before))
            host.level = level
            host.controller.queue.add(host.key)
            for obj in store.list():
                wake(obj.key)
        chosen = pressure.choose(monotonic(), candidates(journal, wards, store, settings))
        entry = journal.get(chosen) if chosen is not None else None
        if entry is not None:
            wards[entry.uid].evicted = True
            _log.warning("evicted", process=str(entry.key))
            if (chosen_one := store.get(entry.key)) is not None:
                events.warning(chosen_one, "Evicted", "This host is short of memory, and it has the lowest priority.")
            wake(entry.key)
        await asyncio.sleep(seconds)


def candidates(journal: Journal, wards: dict[str, Ward], store: Store, settings: AgentSettings) -> Iterable[Candidate]:
    """Those that are wanted and not on their way down, with their claims as far as the machine allows them."""
    for entry in journal.entries():
        obj, ward = store.get(entry.key), wards.get(entry.uid)
        if obj is None or ward is None or ward.evicted or obj.meta.terminating or obj.meta.uid != entry.uid:
            continue
        spec = obj.get("spec", default={})
        priority = min(spec.get("priority", 0), settings.priority_max)
        protected = settings.allow_protected and spec.get("protected", False)
        yield Candidate(entry.uid, priority, protected, entry.started)
