"""The Host object of this machine, its status, and the Lease that shows that its agent is alive.

The object is created at the start if there is none. One that is deleted while the agent runs is not created again:
whoever deletes a Host restarts its agent when it is to come back.
"""

import asyncio
import datetime as dt
import os
import random
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import structlog

from pilotage import __version__
from pilotage.agent.intervals import Intervals
from pilotage.agent.journal import AgentJournal
from pilotage.agent.launch import programs
from pilotage.agent.pressure import PressureLevel
from pilotage.agent.settings import AgentSettings
from pilotage.api.names import HOST_LEASES, HOSTS
from pilotage.kube import (
    LEASES,
    NAMESPACES,
    Absent,
    AlreadyExists,
    ApiError,
    Client,
    Json,
    Object,
    ObjectKey,
    merge_patch,
)
from pilotage.runtime.clock import utc_now
from pilotage.runtime.conditions import set_condition
from pilotage.runtime.controller import Context
from pilotage.runtime.informer import Informer
from pilotage.runtime.leader import Election, Leader, LeaseLost
from pilotage.runtime.manager import Manager
from pilotage.runtime.types import Reconcile, Result

_log = structlog.get_logger(__name__)

LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 15.0, 10.0, 4.0
FREE_STEP = 64 << 20
"""Free memory is reported in steps, and again only when it has changed by more than two of them."""
REPORT_SECONDS = 5.0
"""A Lease that is not ours after this time is reported."""
READY, PRESSED = "Ready", "MemoryPressure"


def own_address(server: str) -> str:
    """The address of this machine from which the API server is reached. Nothing is sent."""
    target = urlsplit(server)
    host = target.hostname or "127.0.0.1"
    try:
        found = socket.getaddrinfo(host, target.port or 443, type=socket.SOCK_DGRAM)[0]
        with socket.socket(found[0], socket.SOCK_DGRAM) as probe:
            probe.connect(found[4])
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"


def local_port(server: str, address: str) -> int:
    """The port of an API server on this machine; 0 if it is elsewhere."""
    target = urlsplit(server)
    here = target.hostname in ("localhost", "127.0.0.1", "::1", address)
    return (target.port or 443) if here else 0


def status_changes(old: Json, wanted: Json, level: PressureLevel, *, stopping: bool, now: dt.datetime) -> Json | None:
    """The changes of the status of the Host; None if there are none, or only small ones."""
    phase = "Stopping" if stopping else "Pressed" if level > PressureLevel.NORMAL else "Ready"
    wanted = wanted | {"phase": phase}
    free, said = wanted["freeBytes"], old.get("freeBytes")
    if said is not None and abs(free - said) <= 2 * FREE_STEP and (free > 0) == (said > 0):
        wanted["freeBytes"] = said
    patch = {name: value for name, value in wanted.items() if old.get(name) != value}
    conditions = old.get("conditions") or []
    ready = ("AgentStops", "Its agent is stopping.") if stopping else ("AgentRuns", "")
    pressed = level > PressureLevel.NORMAL
    for type_, status, reason, message in (
        (READY, not stopping, *ready),
        (PRESSED, pressed, "MemoryPressure" if pressed else "Enough", f"Level {level}." if pressed else ""),
    ):
        changed = set_condition(conditions, type_, status=status, reason=reason, message=message, generation=0, now=now)
        if changed is not None:
            conditions = patch["conditions"] = changed
    return patch or None


class OwnHostController:
    """The controller of one object: this machine's Host."""

    def __init__(self, manager: Manager, settings: AgentSettings, address: str, intervals: Intervals) -> None:
        self._settings = settings
        self._address = address
        self._intervals = intervals
        self._seen = False
        self.key = ObjectKey("", settings.name)
        self.level = PressureLevel.NORMAL
        self.stopping = False
        self.require_lease: Callable[[], None] = lambda: None
        """Raises LeaseLost unless the Lease is surely ours: without it the operator writes the status of this Host, and
        would contradict ours at once.
        """
        self.processes: Callable[[], int] = lambda: 0
        self.memory: Callable[[], tuple[int, int]] = lambda: (0, 0)
        """Total and free memory in bytes."""
        self._allowed_namespaces: tuple[str, ...] = ()
        self.informer: Informer = manager.informer(HOSTS, fields=f"metadata.name={settings.name}")
        self.controller = manager.add("host", self.informer, self._make)
        self.controller.queue.add(self.key)

    def _make(self, context: Context) -> Reconcile:
        self._client, self._store = context.client, context.store
        return self.reconcile

    async def reconcile(self, _key: ObjectKey) -> Result | None:
        """Create the Host if need be, and update its labels and status."""
        host = self._store.get(self.key)
        if host is None:
            if self._seen:
                _log.error("the Host was deleted; restart the agent to create it again", host=self.key.name)
                return None
            host = await self._register()
        self._seen = True
        host = await self._label(host)
        await self.publish(host)
        return Result(requeue_after=self._intervals.host)

    @property
    def allowed_namespaces(self) -> tuple[str, ...]:
        """Those of the Host's spec, as last seen; empty for all. Known as soon as the caches have synced."""
        host = self.informer.store.get(self.key)
        if host is not None:
            self._allowed_namespaces = tuple(host.get("spec", "allowedNamespaces", default=()) or ())
        return self._allowed_namespaces

    async def publish(self, host: Object | None = None) -> None:
        """Write the status if it has changed. Nothing while the Lease is not ours."""
        host = host or self._store.get(self.key)
        if host is None or not self._has_lease():
            return
        old = host.get("status", default={})
        patch = status_changes(old, self._status(), self.level, stopping=self.stopping, now=utc_now())
        if patch is not None:
            try:
                await self._client.patch(HOSTS, self.key, merge_patch({"status": patch}), subresource="status")
            except Absent:
                _log.debug("the Host is gone already")

    def _has_lease(self) -> bool:
        try:
            self.require_lease()
        except LeaseLost:
            return False
        return True

    async def _register(self) -> Object:
        body = {"metadata": {"name": self.key.name, "labels": self._settings.label_map}, "spec": {}}
        try:
            made = await self._client.create(HOSTS, body)
        except AlreadyExists:
            found = await self._client.list(HOSTS, fields=f"metadata.name={self.key.name}")
            return found.items[0]
        _log.info("registered", host=self.key.name)
        return made

    async def _label(self, host: Object) -> Object:
        """Apply the labels of the settings; others are kept."""
        wanted = self._settings.label_map
        missing = {name: value for name, value in wanted.items() if host.meta.labels.get(name) != value}
        if not missing or host.meta.terminating:
            return host
        return await self._client.patch(HOSTS, self.key, merge_patch({"metadata": {"labels": missing}}))

    def _status(self) -> Json:
        total, free = self.memory()
        found = programs.find_all(self._settings.llama_server)
        return {
            "addresses": [self._address],
            "cpus": os.cpu_count(),
            "memoryBytes": total,
            "freeBytes": free // FREE_STEP * FREE_STEP,
            "runtimes": [{"name": each.runtime, "path": each.path, "version": ""} for each in found],
            "processes": self.processes(),
            "namespaces": list(self._settings.namespaces),
            "agentVersion": __version__,
        }


class AnotherAgent(Exception):
    """Another agent runs under this name. The message is one sentence, and what to do."""


class Heartbeat:
    """Renews the Lease. A renewal that fails stops nothing: servers must not stop because an API server does.

    The identity is that of the journal in its place, so that a restarted agent need not wait for its own Lease to
    expire, and an agent with a copy of the journal has another one. Any other holder is another agent of the same name,
    and only one of them may run.
    """

    def __init__(self, client: Client, name: str, journal: AgentJournal, rng: random.Random) -> None:
        self._lease = ObjectKey(HOST_LEASES, name)
        self._journal = f"{name}_{journal.identity}_"
        self._identity = f"{self._journal}{journal.place}"
        election = Election(self._lease, self._identity, LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS)
        self._client = client
        self._leader = Leader(client, election, rng)
        self.acquired = asyncio.Event()
        """Set once the Lease was ours."""

    async def run(self) -> None:
        """Acquire it, and renew it until cancelled. Raises AnotherAgent if another holder renews it."""
        await self._create_namespace()
        report = asyncio.get_running_loop().call_later(REPORT_SECONDS, self._report)
        try:
            await self._leader.acquire(self._refuse)
        finally:
            report.cancel()
        self.acquired.set()
        while True:
            try:
                await self._leader.keep()
            except LeaseLost:
                await self._check_holder()
                await self._leader.acquire(self._refuse)

    def check(self) -> None:
        """Raises LeaseLost unless it is surely ours at this moment."""
        self._leader.check()

    async def stop(self) -> None:
        """Release it."""
        await self._leader.release()

    async def _check_holder(self) -> None:
        try:
            lease = await self._client.get(LEASES, self._lease)
        except ApiError:
            return  # unknown
        holder = lease.get("spec", "holderIdentity", default="") or ""
        if holder not in ("", self._identity):
            self._refuse(holder)

    def _refuse(self, holder: str) -> None:
        """Raise AnotherAgent."""
        said = f"Another agent is called {self._lease.name}, and has its Lease ({holder})."
        if not holder.startswith(self._journal):
            raise AnotherAgent(f"{said} Choose another --name.")
        copied = "It has a copy of this --data, or this is a copy of its."
        raise AnotherAgent(f"{said} {copied} Choose another --name and an empty --data for this machine.")

    def _report(self) -> None:
        _log.warning(
            "the Lease is not acquired yet: the API does not answer, or another agent has this name",
            lease=str(self._lease),
        )

    async def _create_namespace(self) -> None:
        """Create the namespace of the Leases, if that is allowed; an installation brings it along."""
        try:
            await self._client.create(NAMESPACES, {"metadata": {"name": HOST_LEASES}})
        except ApiError as error:
            _log.debug("the namespace of the Leases was not created", namespace=HOST_LEASES, error=str(error))
