"""The faults of a plan for one process: which are due, and what it cannot reach at the moment.

A `FaultInjection` outlives the crashes of its process: it counts the calls, reads, writes and events of all
incarnations.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from pilotage_sim.plan import SUBJECT, CallCounts, Fault, FaultKind, Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.access.attributes import AccessAttributes
    from pilotage_sim.world import SimulatedWorld


class OpenWatch(Protocol):
    """A watch of the process that can break."""

    number: int
    """Number of the watch, in the order in which they were opened."""

    def break_off(self) -> None:
        """Break the connection."""


class FaultInjection:
    """The faults of one process, and its calls and writes so far."""

    def __init__(self, world: SimulatedWorld, plan: Plan = (), process: str = SUBJECT, *, lies: bool = True) -> None:
        self.process = process
        self.lies = lies
        """Whether an answer may be untrue. An earlier fault may have moved one to a call where it would be."""
        self.counts = CallCounts()
        self.done: list[Fault] = []
        """The faults that have happened, in their order."""
        self.crash: Callable[[], None] = lambda: None
        """Ends the running incarnation."""
        self.watches: set[OpenWatch] = set()
        self.expired: set[str] = set()
        """Paths whose next watch begins at a version that is no longer known."""
        self.replayed: dict[str, str] = {}
        """Paths whose next watch begins at an earlier version than asked for."""
        self.unreachable: dict[str, float] = {}
        """Paths that cannot be reached until a time."""
        self.partitioned_until = 0.0
        self._world = world
        self._faults = {(fault.kind, fault.number): fault for fault in plan if fault.process == process}

    def due(self, kind: FaultKind, number: int) -> Fault | None:
        """The fault of this kind that happens to this call, write, read or event, if one does."""
        fault = self._faults.get((kind, number))
        if fault is not None:
            self.done.append(fault)
            self._world.trace.remark(f"fault {fault}")
        return fault

    @property
    def over(self) -> bool:
        """Whether everything that was planned has happened."""
        return len(self.done) == len(self._faults)

    def stale_version(self, wanted: AccessAttributes, versions: int) -> int:
        """The version before the last so many changes of what is read."""
        qualified = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
        kind = self._world.core.registry.storage(qualified)
        if kind is None:
            return 0
        key = f"{wanted.namespace if kind.namespaced else ''}/{wanted.name}" if wanted.name else ""
        return self._world.version_before(kind.storage, versions, key)

    def part(self, seconds: float) -> None:
        """Cut the process off from the API server."""
        self.partitioned_until = asyncio.get_running_loop().time() + seconds
        self.cut()

    def reaches(self, path: str) -> bool:
        """Whether a request to this path gets through at the moment."""
        return asyncio.get_running_loop().time() >= max(self.partitioned_until, self.unreachable.get(path, 0.0))

    def cut(self) -> None:
        """Break all watches of the process."""
        for watch in sorted(self.watches, key=lambda each: each.number):
            watch.break_off()
