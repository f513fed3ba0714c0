"""A scenario: a small story that is played again and again, each time with other faults.

It names the processes that the faults are done to, plays everybody else, and says at the end what is wrong. It must end
by itself, also when everything goes wrong that a plan can hold: faults are finite, so a story waits until they are over
(`after_faults`) and only then expects the world to be in order.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage_sim.process import Main, Process
    from pilotage_sim.world import SimulatedWorld

FAULT_SECONDS_MAX = 120.0
"""A fault that has not happened by then will not: an earlier one has changed the story."""


class Scenario(ABC):
    """One telling of a story, in one world."""

    lies: ClassVar[bool] = True
    """Whether plans may hold answers that are not true (`pilotage_sim.plan.LIES`)."""
    same_end: ClassVar[bool] = False
    """Whether the world has to end as it does without faults."""
    ends: ClassVar[tuple[type[BaseException], ...]] = ()
    """The exceptions by which a process may end."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world = world
        self.running: Mapping[str, Process] = {}
        """The processes, by name, once they run."""

    @abstractmethod
    def processes(self) -> Mapping[str, Main]:
        """Those to whom the faults are done."""

    async def prepare(self) -> None:  # noqa: B027 - a story may begin with nothing
        """Create the objects that exist before the processes start."""

    @abstractmethod
    async def play(self) -> None:
        """Act while the processes run."""

    def problems(self) -> list[str]:
        """Problems of the end state, in sentences."""
        return []

    async def after_faults(self, seconds: float) -> None:
        """Wait until all faults have happened, and for so long after. What is done from here on is not disturbed."""
        for process in self.running.values():
            process.injection.counts.freeze()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FAULT_SECONDS_MAX
        injections = [process.injection for process in self.running.values()]
        await self.world.until(lambda: loop.time() >= deadline or all(each.over for each in injections))
        await asyncio.sleep(seconds)
