"""The agent's process: a manager with its controllers, its Lease, and its shutdown at a signal."""

import asyncio
import contextlib
import enum
import ipaddress
from collections.abc import Callable
from typing import Any

import structlog

from pilotage.agent.controller import AgentController, AgentDependencies
from pilotage.agent.health import Prober
from pilotage.agent.host import Heartbeat, OwnHostController, local_port, own_address
from pilotage.agent.intervals import Intervals
from pilotage.agent.journal import AgentJournal
from pilotage.agent.launch.ports import Ports
from pilotage.agent.memory import MemoryGauge
from pilotage.agent.pressure import KernelPressure, MemoryPressure
from pilotage.agent.settings import AgentSettings
from pilotage.kube import Client
from pilotage.models import FileModelStore, ModelCache
from pilotage.models.blocking import Blocking, in_thread
from pilotage.runtime.manager import Manager
from pilotage.runtime.process import on_signals

_log = structlog.get_logger(__name__)


class AgentExit(enum.IntEnum):
    """The exit code of an agent."""

    PROVEN = 0
    """Everything was drained, stopped, unregistered, and proven to be so."""
    UNPROVEN = 3
    """Incomplete proof: the journal has the rest, and the next agent continues."""
    HURRIED = 4
    """Same as `PROVEN`, but a second signal came: requests may have been cut off."""


class AgentProcess:
    """One agent. `run` returns when `stop` was called and everything has stopped."""

    def __init__(
        self,
        settings: AgentSettings,
        client: Client,
        server: str = "",
        *,
        intervals: Intervals | None = None,
        pressure: MemoryPressure | None = None,
        gauge: MemoryGauge | None = None,
        prober: Prober | None = None,
        blocking: Blocking = in_thread,
        at: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`blocking` runs calls that wait for files; `at` is told each point between two acts. Raises JournalError."""
        self._settings = settings
        self._intervals = intervals or Intervals()
        address = settings.address or own_address(server)
        self._warn_of(address)
        self.journal = AgentJournal(settings.data, at)
        self.manager = Manager(client, name="agent", address=settings.health_address)
        cache = ModelCache(settings.cache_root, owner=f"{server} host {settings.name}")
        store = FileModelStore(cache, settings.access, blocking=blocking)
        self._prober = prober or Prober(settings.bind)
        self._heartbeat = Heartbeat(self.manager.client, settings.name, self.journal, self.manager.rng)
        self.manager.wait_for(self._heartbeat.acquired, f"the Lease of host {settings.name}: not acquired yet")
        dependencies = AgentDependencies(
            settings,
            self.journal,
            store,
            self._prober,
            pressure or MemoryPressure(KernelPressure()),
            Ports(settings.bind, settings.reserved_ports),
            gauge or MemoryGauge(),
            address,
            local_port(server, address),
            self._intervals,
            blocking,
        )
        host = OwnHostController(self.manager, settings, address, self._intervals)
        host.require_lease = self._heartbeat.check
        self.agent = AgentController(self.manager, dependencies, host)
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Shut down. The second call does not wait for requests."""
        if self._stop.is_set():
            _log.warning("second signal: requests are not waited for any more")
            self.agent.hurry()
        self._stop.set()

    async def run(self) -> AgentExit:
        """Run until `stop`. OSError if the health server's address is taken; AnotherAgent if the name is."""
        try:
            async with self._prober, self.agent:
                return await self._work()
        finally:
            self.journal.close()

    async def _work(self) -> AgentExit:
        stop = asyncio.create_task(self._stop.wait())
        renewing = asyncio.create_task(self._heartbeat.run())
        running = asyncio.create_task(self.manager.run())
        failing = asyncio.create_task(self.agent.fails())
        tasks: set[asyncio.Task[Any]] = {stop, renewing, running, failing}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for ended in (running, failing):
                if ended.done():
                    ended.result()
            unproven = await self.agent.shutdown() if self._heartbeat.acquired.is_set() else self._left_alone()
            self.manager.stop()
            await running
            if renewing.done():
                renewing.result()
            renewing.cancel()
            await self._heartbeat.stop()
            return self._exit_code(unproven)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _left_alone(self) -> list[str]:
        """Processes in the journal of an agent that never had its Lease: another one may be in charge of them."""
        return [f"{entry.key}: this agent never had its Lease" for entry in self.journal.entries()]

    def _exit_code(self, unproven: list[str]) -> AgentExit:
        for each in unproven:
            _log.error("not proven to have stopped; the next agent continues with it", what=each)
        if unproven:
            return AgentExit.UNPROVEN
        return AgentExit.HURRIED if self.agent.hurried else AgentExit.PROVEN

    def _warn_of(self, address: str) -> None:
        bind = ipaddress.ip_address(self._settings.bind)
        if bind.is_loopback and not ipaddress.ip_address(address).is_loopback:
            _log.warning(
                "servers listen on a loopback address, which only this machine reaches; see --bind", bind=str(bind)
            )


async def run(settings: AgentSettings, client: Client, server: str = "") -> AgentExit:
    """Run until SIGTERM or SIGINT. `server` is the address of the API server."""
    running = AgentProcess(settings, client, server)
    with on_signals(running.stop), contextlib.closing(running.journal):
        return await running.run()
