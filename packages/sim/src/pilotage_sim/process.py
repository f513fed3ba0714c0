"""A process of the simulated world: a program with one way to the API server, which can crash and is started again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pilotage.kube import Client
from pilotage_sim.fault_injection import FaultInjection
from pilotage_sim.faulty_transport import FaultyTransport
from pilotage_sim.plan import SUBJECT

if TYPE_CHECKING:
    from pilotage_sim.plan import Plan
    from pilotage_sim.world import SimulatedWorld

RESTART_SECONDS = 2.0
ENDS_MAX = 50
"""A program that ends more often than this by itself is not started again, and is reported."""

Main = Callable[[Client], Awaitable[None]]
"""A program: it is given its client, and runs until it is cancelled. Everything else it remembers dies with it."""


class Process:
    """Runs `main` again and again until `stop`: after a crash, and after it ended by itself, as a kubelet would."""

    def __init__(
        self, world: SimulatedWorld, main: Main, *, name: str = SUBJECT, plan: Plan = (), lies: bool = True
    ) -> None:
        self.name = name
        self.injection = FaultInjection(world, plan, name, lies=lies)
        self.injection.crash = self._crash
        self.incarnation = 0
        self.ends: list[BaseException | None] = []
        """The reason of each end that was not a crash of the plan."""
        self._world = world
        self._main = main
        self._crashed = False
        self._transport: FaultyTransport | None = None
        self._running: asyncio.Task[None] | None = None
        self._supervisor: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._supervisor = asyncio.get_running_loop().create_task(self._supervise(), name=f"process {self.name}")

    async def stop(self) -> None:
        """Kill it, and start it no more."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.gather(self._supervisor, return_exceptions=True)

    async def _supervise(self) -> None:
        loop = asyncio.get_running_loop()
        while len(self.ends) < ENDS_MAX:
            self.incarnation += 1
            self._crashed = False
            self._transport = FaultyTransport(self._world.transport(self.name), self.injection)
            client = Client(self._transport, name=self.name)
            self._running = loop.create_task(_run(self._main, client), name=f"{self.name}-{self.incarnation}")
            try:
                await asyncio.wait({self._running})
            finally:
                await self._bury(self._running)
            if not self._crashed:
                self.ends.append(None if self._running.cancelled() else self._running.exception())
                if self.ends[-1] is None:
                    return
                self._world.trace.remark(f"{self.name} ended: {self.ends[-1]!r}")
            await asyncio.sleep(RESTART_SECONDS)
            self._world.trace.remark(f"{self.name} starts again")

    def _crash(self) -> None:
        self._crashed = True
        if self._transport is not None:
            self._transport.kill()
        if self._running is not None:
            self._running.cancel()

    async def _bury(self, task: asyncio.Task[None]) -> None:
        """Nothing of a dead process runs on, whatever it does about being cancelled."""
        if self._transport is not None:
            self._transport.kill()
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=1.0)


async def _run(main: Main, client: Client) -> None:
    await main(client)
