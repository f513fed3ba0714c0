"""Memory pressure of the host, and which server is evicted. Pure, apart from `KernelPressure`, which asks the system.

Warning: nothing new is started. Critical: the server with the lowest priority is evicted, one at a time, and never a
protected one. The level falls when it has been lower for a while; then evicted servers are started again.
"""

import enum
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from pilotage.agent.memory import MemoryGauge

_PSI = Path("/proc/pressure/memory")

WARNING_STALLED, CRITICAL_STALLED = 10.0, 40.0
"""Percent of the last ten seconds in which some tasks (warning), or all (critical), waited for memory."""
WARNING_AVAILABLE, CRITICAL_AVAILABLE = 0.08, 0.03
"""Fractions of the memory."""
CALM_SECONDS = 30.0
"""The level falls only after this time: a server that came back at once would raise it again."""
NEXT_SECONDS = 15.0
"""Interval between two evictions: the effect of one takes a while."""


class PressureLevel(enum.IntEnum):
    """Levels of memory pressure."""

    NORMAL = 0
    WARNING = 1
    CRITICAL = 2

    def __str__(self) -> str:
        return self.name.lower()


class MemoryStrain(NamedTuple):
    """Memory pressure as the system reports it."""

    available: float
    """Fraction of the memory that is available."""
    some: float = 0.0
    """Percent of time in which some tasks waited for memory."""
    full: float = 0.0
    """Percent of time in which all tasks did."""


class EvictionCandidate(NamedTuple):
    """A server that could be evicted."""

    uid: str
    priority: int
    protected: bool
    started: float


class PressureSource(Protocol):
    """Reports memory pressure."""

    def read(self) -> MemoryStrain:
        """The pressure now."""


class KernelPressure:
    """The system: Linux's pressure-stall information where there is any, and what is available."""

    def __init__(self) -> None:
        self._gauge = MemoryGauge()

    def read(self) -> MemoryStrain:
        """The pressure now."""
        memory = self._gauge.read()
        available = memory.available / memory.total if memory.total else 1.0
        try:
            some, full = (_average(line) for line in _PSI.read_text().splitlines()[:2])
        except (OSError, ValueError):
            return MemoryStrain(available)
        return MemoryStrain(available, some, full)


def judge(strain: MemoryStrain) -> PressureLevel:
    """The level of a strain."""
    if strain.available < CRITICAL_AVAILABLE or strain.full >= CRITICAL_STALLED:
        return PressureLevel.CRITICAL
    if strain.available < WARNING_AVAILABLE or strain.some >= WARNING_STALLED:
        return PressureLevel.WARNING
    return PressureLevel.NORMAL


def victim(candidates: Iterable[EvictionCandidate]) -> str | None:
    """The lowest priority; of those, the youngest, which has done the least work. None if all are protected."""
    may_go = [each for each in candidates if not each.protected]
    return min(may_go, key=lambda each: (each.priority, -each.started)).uid if may_go else None


class MemoryPressure:
    """The level that is acted upon: it rises at once and falls after a while."""

    def __init__(
        self, source: PressureSource, *, calm_seconds: float = CALM_SECONDS, next_seconds: float = NEXT_SECONDS
    ) -> None:
        self.level = PressureLevel.NORMAL
        self._source = source
        self._calm_seconds = calm_seconds
        self._next_seconds = next_seconds
        self._lower_since: float | None = None
        self._evict_from = 0.0

    def update(self, now: float) -> PressureLevel:
        """Read the source; the level that counts now."""
        level = judge(self._source.read())
        if level >= self.level:
            self.level, self._lower_since = level, None
        elif self._lower_since is None:
            self._lower_since = now
        elif now - self._lower_since >= self._calm_seconds:
            self.level, self._lower_since = level, None
        return self.level

    def must_evict(self, now: float) -> bool:
        """Whether a server has to go now: it is critical, does not get better, and the last eviction is a while ago."""
        return self.level is PressureLevel.CRITICAL and now >= self._evict_from and self._lower_since is None

    def choose(self, now: float, candidates: Iterable[EvictionCandidate]) -> str | None:
        """The uid of the server to evict now; None if none must go, or none may."""
        if not self.must_evict(now):
            return None
        chosen = victim(candidates)
        if chosen is not None:
            self._evict_from = now + self._next_seconds
        return chosen


def _average(line: str) -> float:
    """First average in a line such as ``some avg10=0.12 avg60=…``."""
    return float(line.split()[1].removeprefix("avg10="))
