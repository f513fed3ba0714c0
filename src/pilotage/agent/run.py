"""The agent's process: a manager with its controllers, its Lease, and what happens at a signal."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import ipaddress
from typing import TYPE_CHECKING

import structlog

from pilotage.agent.agent import Agent, Means
from pilotage.agent.health import Prober
from pilotage.agent.host import Heart, HostKeeper, local_port, own_address
from pilotage.agent.journal import Journal
from pilotage.agent.launch.ports import Ports
from pilotage.agent.memory import Gauge
from pilotage.agent.pace import Pace
from pilotage.agent.pressure import Kernel, Pressure
from pilotage.models import Access, FileModelStore, ModelCache
from pilotage.models.blocking import in_thread
from pilotage.models.limits import Limits
from pilotage.runtime import Manager
from pilotage.runtime.process import on_signals

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage.agent.settings import AgentSettings
    from pilotage.kube import Client
    from pilotage.models.blocking import Blocking

_log = structlog.get_logger(__name__)


class Ending(enum.IntEnum):
    """How it ended: the exit code."""

    PROVEN = 0
    """Everything was drained, stopped, unregistered, and proven to be so."""
    UNPROVEN = 3
    """Something could not be proven: the journal has it, and the next start goes on."""
    HURRIED = 4
    """As `PROVEN`, but a second signal came: requests may have been cut."""


class Running:
    """One agent. `run` returns when `stop` was called and everything is down."""

    def __init__(
        self,
        settings: AgentSettings,
        client: Client,
        server: str = "",
        *,
        pace: Pace | None = None,
        pressure: Pressure | None = None,
        gauge: Gauge | None = None,
        prober: Prober | None = None,
        blocking: Blocking = in_thread,
        at: Callable[[str], None] = lambda _: None,
    ) -> None:
        """JournalError if the folder cannot be used. `blocking` runs what waits for files; `at` is told of each point
        between two acts.
        """
        self._settings = settings
        self._pace = pace or Pace()
        address = settings.address or own_address(server)
        self._warn_of(address)
        self.journal = Journal(settings.data, at)
        self.manager = Manager(client, name="agent", address=settings.health_address)
        access = Access(
            roots=settings.file_roots,
            networks=settings.networks,
            plain_http=settings.plain_http,
            ambient=settings.ambient_credentials,
            limits=Limits(bytes_max=settings.model_bytes_max),
        )
        keeper = FileModelStore(
            ModelCache(settings.cache_root, owner=f"{server} host {settings.name}"), access, blocking=blocking
        )
        self._prober = prober or Prober(settings.bind)
        self._heart = Heart(self.manager.client, settings.name, self.journal.identity, self.manager.rng)
        means = Means(
            settings,
            self.journal,
            keeper,
            self._prober,
            pressure or Pressure(Kernel()),
            Ports(settings.bind, settings.reserved_ports),
            gauge or Gauge(),
            address,
            local_port(server, address),
            self._pace,
            blocking,
        )
        host = HostKeeper(self.manager, settings, address, self._pace)
        host.sure = self._heart.check
        self.agent = Agent(self.manager, means, host)
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Go down. The second call does not wait for requests."""
        if self._stop.is_set():
            _log.warning("in a hurry: requests are not waited for any more")
            self.agent.hurry()
        self._stop.set()

    async def run(self) -> Ending:
        """Work until `stop`. OSError where the health server's address is taken; AnotherAgent for one of this name."""
        try:
            async with self._prober, self.agent:
                return await self._work()
        finally:
            self.journal.close()

    async def _work(self) -> Ending:
        stop = asyncio.create_task(self._stop.wait())
        alive = asyncio.create_task(self._heart.begin())
        tasks: set[asyncio.Task[object]] = {stop, alive}
        try:
            await asyncio.wait({stop, alive}, return_when=asyncio.FIRST_COMPLETED)
            if not stop.done():
                alive.result()
            beating = asyncio.create_task(self._heart.run())
            running = asyncio.create_task(self.manager.run())
            failing = asyncio.create_task(self.agent.fails())
            tasks |= {beating, running, failing}
            await asyncio.wait({stop, running, beating, failing}, return_when=asyncio.FIRST_COMPLETED)
            for ended in (running, failing):
                if ended.done():
                    ended.result()
            unproven = await self.agent.shutdown()
            self.manager.stop()
            await running
            if beating.done():
                beating.result()
            beating.cancel()
            await self._heart.stop()
            return self._ending(unproven)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _ending(self, unproven: list[str]) -> Ending:
        for each in unproven:
            _log.error("not proven to be down; the next start goes on with it", what=each)
        if unproven:
            return Ending.UNPROVEN
        return Ending.HURRIED if self.agent.hurried else Ending.PROVEN

    def _warn_of(self, address: str) -> None:
        bind = ipaddress.ip_address(self._settings.bind)
        if bind.is_loopback and not ipaddress.ip_address(address).is_loopback:
            _log.warning("servers listen where only this machine reaches them; see --bind", bind=str(bind))


async def run(settings: AgentSettings, client: Client, server: str = "") -> Ending:
    """Run until SIGTERM or SIGINT. `server` is the address of the API server."""
    running = Running(settings, client, server)
    with on_signals(running.stop), contextlib.closing(running.journal):
        return await running.run()
