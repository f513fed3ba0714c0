"""When the host runs out of memory: how bad it is, and who has to go. Pure, apart from `Kernel`, which asks the system.

Warning: nothing new is started. Critical: the server with the lowest priority goes, one at a time, and never one that
is protected. It is over when it has been calm for a while; then those who went come back.
"""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pilotage.agent.memory import Gauge

if TYPE_CHECKING:
    from collections.abc import Iterable

_PSI = Path("/proc/pressure/memory")

WARNING_STALLED, CRITICAL_STALLED = 10.0, 40.0
"""Percent of the last ten seconds in which somebody, and in which everybody, had to wait for memory."""
WARNING_AVAILABLE, CRITICAL_AVAILABLE = 0.08, 0.03
"""Parts of the memory."""
CALM_SECONDS = 30.0
"""So long it has to be better before it counts as better: whoever comes back at once makes it worse at once."""
NEXT_SECONDS = 15.0
"""After somebody went, the next one waits so long: it takes a while to be felt."""


class Level(enum.IntEnum):
    """How bad it is."""

    NORMAL = 0
    WARNING = 1
    CRITICAL = 2

    def __str__(self) -> str:
        return self.name.lower()


class Strain(NamedTuple):
    """What the system says."""

    available: float
    """The part of the memory that could be had."""
    some: float = 0.0
    """Percent of time in which somebody waited for memory."""
    full: float = 0.0
    """Percent of time in which everybody did."""


class Candidate(NamedTuple):
    """A server that could go."""

    uid: str
    priority: int
    protected: bool
    started: float


class Source(Protocol):
    """Says how it is."""

    def read(self) -> Strain:
        """Now."""


class Kernel:
    """The system: Linux's pressure-stall information where there is any, and what is available."""

    def __init__(self) -> None:
        self._gauge = Gauge()

    def read(self) -> Strain:
        """See `Source`."""
        memory = self._gauge.read()
        available = memory.available / memory.total if memory.total else 1.0
        try:
            some, full = (_average(line) for line in _PSI.read_text().splitlines()[:2])
        except (OSError, ValueError):
            return Strain(available)
        return Strain(available, some, full)


def judge(strain: Strain) -> Level:
    """How bad that is."""
    if strain.available < CRITICAL_AVAILABLE or strain.full >= CRITICAL_STALLED:
        return Level.CRITICAL
    if strain.available < WARNING_AVAILABLE or strain.some >= WARNING_STALLED:
        return Level.WARNING
    return Level.NORMAL


def victim(candidates: Iterable[Candidate]) -> str | None:
    """Who goes: the lowest priority; of those, the youngest, which has done the least. None: nobody may."""
    may_go = [each for each in candidates if not each.protected]
    return min(may_go, key=lambda each: (each.priority, -each.started)).uid if may_go else None


class Pressure:
    """The level, as it is acted upon: it rises at once and falls after a while."""

    def __init__(
        self, source: Source, *, calm_seconds: float = CALM_SECONDS, next_seconds: float = NEXT_SECONDS
    ) -> None:
        self.level = Level.NORMAL
        self._source = source
        self._calm_seconds = calm_seconds
        self._next_seconds = next_seconds
        self._lower_since: float | None = None
        self._evict_from = 0.0

    def look(self, now: float) -> Level:
        """Ask, and say what counts now."""
        level = judge(self._source.read())
        if level >= self.level:
            self.level, self._lower_since = level, None
        elif self._lower_since is None:
            self._lower_since = now
        elif now - self._lower_since >= self._calm_seconds:
            self.level, self._lower_since = level, None
        return self.level

    def choose(self, now: float, candidates: Iterable[Candidate]) -> str | None:
        """Who goes now, if somebody has to. The next one is chosen no earlier than the last one can be felt."""
        if self.level < Level.CRITICAL or now < self._evict_from or self._lower_since is not None:
            return None
        chosen = victim(candidates)
        if chosen is not None:
            self._evict_from = now + self._next_seconds
        return chosen


def _average(line: str) -> float:
    """Of ``some avg10=0.12 avg60=…``."""
    return float(line.split()[1].removeprefix("avg10="))
