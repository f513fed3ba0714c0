"""The Host that this machine is: its object, what its status says, and the Lease by which the agent lives.

The object is made at the start where there is none. One that somebody deletes while the agent runs is not made again:
whoever deletes a Host means it, and starts the agent anew when it is to come back.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from pilotage import __version__
from pilotage.agent.launch import programs
from pilotage.agent.pressure import Level
from pilotage.api.names import HOST_LEASES, HOSTS
from pilotage.kube import LEASES, Absent, AlreadyExists, ApiError, ObjectKey, Resource, merge_patch
from pilotage.runtime import Election, LeaseLost, Result, set_condition, utc_now
from pilotage.runtime.leader import Leader

if TYPE_CHECKING:
    import datetime as dt
    import random
    from collections.abc import Callable

    from pilotage.agent.pace import Pace
    from pilotage.agent.settings import AgentSettings
    from pilotage.kube import Client, Json, Object
    from pilotage.runtime import Context, Informer, Manager, Reconcile

_log = structlog.get_logger(__name__)

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 15.0, 10.0, 4.0
FREE_STEP = 64 << 20
"""What is free is said in steps, and said anew only when it has changed by more than two of them."""
TOLD_SECONDS = 5.0
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


def status_changes(old: Json, wanted: Json, level: Level, *, stopping: bool, now: dt.datetime) -> Json | None:
    """What to write into the status of the Host; None if it says so already, or nearly so."""
    phase = "Stopping" if stopping else "Pressed" if level > Level.NORMAL else "Ready"
    wanted = wanted | {"phase": phase}
    free, said = wanted["freeBytes"], old.get("freeBytes")
    if said is not None and abs(free - said) <= 2 * FREE_STEP and (free > 0) == (said > 0):
        wanted["freeBytes"] = said
    patch = {name: value for name, value in wanted.items() if old.get(name) != value}
    conditions = old.get("conditions") or []
    ready = ("AgentStops", "Its agent is stopping.") if stopping else ("AgentRuns", "")
    pressed = level > Level.NORMAL
    for type_, status, reason, message in (
        (READY, not stopping, *ready),
        (PRESSED, pressed, "MemoryPressure" if pressed else "Enough", f"Level {level}." if pressed else ""),
    ):
        changed = set_condition(conditions, type_, status=status, reason=reason, message=message, generation=0, now=now)
        if changed is not None:
            conditions = patch["conditions"] = changed
    return patch or None


class HostKeeper:
    """A controller of one object: this machine's Host."""

    def __init__(self, manager: Manager, settings: AgentSettings, address: str, pace: Pace) -> None:
        self._settings = settings
        self._address = address
        self._pace = pace
        self._seen = False
        self.key = ObjectKey("", settings.name)
        self.level = Level.NORMAL
        self.stopping = False
        self.sure: Callable[[], None] = lambda: None
        """Raises LeaseLost unless the Lease is surely ours: without it the operator has the last word on this Host, and
        what we say in between would be contradicted at once.
        """
        self.processes: Callable[[], int] = lambda: 0
        self.memory: Callable[[], tuple[int, int]] = lambda: (0, 0)
        """All of it, and what is free."""
        self._allowed_namespaces: tuple[str, ...] = ()
        self.informer: Informer = manager.informer(HOSTS, fields=f"metadata.name={settings.name}")
        self.controller = manager.add("host", self.informer, self._make)
        self.controller.queue.add(self.key)

    def _make(self, context: Context) -> Reconcile:
        self._client, self._store = context.client, context.store
        return self.reconcile

    async def reconcile(self, _key: ObjectKey) -> Result | None:
        """See `Reconcile`."""
        host = self._store.get(self.key)
        if host is None:
            if self._seen:
                _log.error("the Host was deleted; start the agent anew to make it again", host=self.key.name)
                return None
            host = await self._register()
        self._seen = True
        host = await self._label(host)
        await self.publish(host)
        return Result(requeue_after=self._pace.host)

    @property
    def allowed_namespaces(self) -> tuple[str, ...]:
        """Those of the Host's spec, as it was last seen; empty for all. Known as soon as the caches are there."""
        host = self.informer.store.get(self.key)
        if host is not None:
            self._allowed_namespaces = tuple(host.get("spec", "allowedNamespaces", default=()) or ())
        return self._allowed_namespaces

    async def publish(self, host: Object | None = None) -> None:
        """Write what is not yet said. Nothing while the Lease is not ours."""
        host = host or self._store.get(self.key)
        if host is None or not self._is_sure():
            return
        old = host.get("status", default={})
        patch = status_changes(old, self._status(), self.level, stopping=self.stopping, now=utc_now())
        if patch is not None:
            try:
                await self._client.patch(HOSTS, self.key, merge_patch({"status": patch}), subresource="status")
            except Absent:
                _log.debug("the Host is gone already")

    def _is_sure(self) -> bool:
        try:
            self.sure()
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
        """Labels that were given; others that somebody has put there stay."""
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
    """Somebody else works under this name."""


class Heart:
    """Renews the Lease. Who cannot for a while goes on: servers must not stop because an API server does.

    The identity is that of the journal, so that an agent that starts anew need not wait for itself. Somebody else who
    holds the Lease is another agent of the same name, and only one of them may work.
    """

    def __init__(self, client: Client, name: str, identity: str, rng: random.Random) -> None:
        self._lease = ObjectKey(HOST_LEASES, name)
        self._identity = f"{name}_{identity}"
        election = Election(self._lease, self._identity, LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS)
        self._client = client
        self._leader = Leader(client, election, rng)

    async def begin(self) -> None:
        """Wait until the Lease is ours."""
        await self._have_namespace()
        told = asyncio.get_running_loop().call_later(TOLD_SECONDS, self._tell)
        try:
            await self._leader.acquire()
        finally:
            told.cancel()

    async def run(self) -> None:
        """Renew it until cancelled. AnotherAgent if somebody else has it."""
        while True:
            try:
                await self._leader.keep()
            except LeaseLost:
                await self._see_who_has_it()
                await self._leader.acquire()

    def check(self) -> None:
        """Raises LeaseLost unless it is surely ours at this moment."""
        self._leader.check()

    async def stop(self) -> None:
        """Give it up."""
        await self._leader.release()

    async def _see_who_has_it(self) -> None:
        try:
            lease = await self._client.get(LEASES, self._lease)
        except ApiError:
            return  # nobody knows
        holder = lease.get("spec", "holderIdentity", default="") or ""
        if holder not in ("", self._identity):
            raise AnotherAgent(f"another agent is called {self._lease.name}, and has its Lease ({holder})")

    def _tell(self) -> None:
        _log.warning(
            "the Lease cannot be had: the API does not answer, or another agent has this name", lease=str(self._lease)
        )

    async def _have_namespace(self) -> None:
        """It comes with the installation; where nobody installed anything, it is made if that is allowed."""
        try:
            await self._client.create(NAMESPACES, {"metadata": {"name": HOST_LEASES}})
        except ApiError as error:
            _log.debug("the namespace of the Leases was not made", namespace=HOST_LEASES, error=str(error))
