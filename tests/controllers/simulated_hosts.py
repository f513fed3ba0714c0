"""A simulated cluster with Hosts: stand-ins for their agents and for the gateway, which speak to the API only."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Callable
from typing import Any

from pilotage.api.names import (
    GATEWAY_ROUTES,
    HOST_LEASES,
    HOSTS,
    LABEL_ENDPOINT,
    LABEL_ENDPOINT_UID,
    LABEL_HOST,
    LABEL_MANAGED_BY,
    LABEL_PROCESS_UID,
    LABEL_REVISION,
    MANAGED_BY,
    PROCESS_FINALIZER,
    PROCESSES,
)
from pilotage.kube import (
    LEASES,
    Absent,
    AlreadyExists,
    ApiError,
    Client,
    Foreign,
    ObjectKey,
    Propagation,
    merge_patch,
    without_finalizer,
)
from pilotage.kube.wire import format_micro_time
from pilotage.runtime.clock import utc_now
from pilotage.runtime.manager import Manager
from pilotage.runtime.types import Result
from pilotage.serving.resources import SERVICES, SLICES
from tests.controllers.simulated_cluster import SimulatedCluster, simulated_cluster

LEASE_SECONDS = 15
BEAT_SECONDS = 5.0
BACKGROUND = Propagation.BACKGROUND


class Agent:
    """One Host's: it starts what is placed there, and stops it in order."""

    def __init__(self, client: Client, name: str, *, labels: dict[str, str] | None = None, free: int = 2**34) -> None:
        self.client = client
        self.name = name
        self.labels = labels or {}
        self.free = free
        self.failing: Callable[[str], str] = lambda _: ""
        """Why a process cannot be started, by its name; nothing: it can."""
        self.start_seconds = 2.0
        self.beat_seconds = BEAT_SECONDS
        self.lease_seconds = LEASE_SECONDS
        self.stop_seconds = 0.0
        self.clock_error = 0.0
        self.re_registers = True
        """Whether it recreates its Host after another client has deleted it."""
        self.alive = True
        self._registered = False
        self._since: dict[str, float] = {}

    async def run(self) -> None:
        manager = Manager(self.client, name=f"agent-{self.name}", seed=1)
        self._processes = manager.informer(PROCESSES, labels=f"{LABEL_HOST}={self.name}")
        manager.add("agent", self._processes, lambda _: self._reconcile)
        async with asyncio.TaskGroup() as group:
            group.create_task(manager.run())
            group.create_task(self._live())

    async def _live(self) -> None:
        while True:
            if self.alive:
                with contextlib.suppress(ApiError):
                    await self._beat()
            await asyncio.sleep(self.beat_seconds)

    async def _beat(self) -> None:
        """The Host and its Lease, as they should be."""
        key = ObjectKey(HOST_LEASES, self.name)
        spec = {"holderIdentity": f"{self.name}-agent", "leaseDurationSeconds": self.lease_seconds}
        spec["renewTime"] = format_micro_time(utc_now() + dt.timedelta(seconds=self.clock_error))
        try:
            await self.client.patch(LEASES, key, merge_patch({"spec": spec}))
        except Absent:
            if self._registered and not self.re_registers:
                return
            self._registered = True
            await self.client.create(LEASES, {"metadata": {"namespace": HOST_LEASES, "name": self.name}, "spec": spec})
        key = ObjectKey("", self.name)
        try:
            found = await self.client.get(HOSTS, key)
        except Absent:
            found = await self.client.create(HOSTS, {"metadata": {"name": self.name, "labels": self.labels}})
        if not found.meta.terminating and found.get("status", "phase") is None:
            status = {"phase": "Ready", "addresses": ["10.0.0.9"], "freeBytes": self.free}
            await self.client.patch(HOSTS, key, merge_patch({"status": status}), subresource="status")

    async def _reconcile(self, key: ObjectKey) -> Result | None:
        process = self._processes.store.get(key)
        if process is None:
            return None
        if not self.alive:
            return Result(requeue_after=BEAT_SECONDS)
        if process.meta.terminating:
            await self._stop(process)
            return None
        now = asyncio.get_running_loop().time()
        if process.meta.uid not in self._since:
            await self._reckon(process)
        begun = self._since.setdefault(process.meta.uid, now)
        if why := self.failing(process.meta.name):
            await self._say(process, {"phase": "Failed", "ready": False, "message": why})
            return Result(requeue_after=BEAT_SECONDS)
        if now - begun < self.start_seconds:
            await self._say(process, {"phase": "Starting", "ready": False, "message": "it loads its weights"})
            return Result(requeue_after=max(begun + self.start_seconds - now, 0.1))
        await self._register(process, ready=True)
        await self._say(process, {"phase": "Running", "ready": True, "address": "10.0.0.9", "message": None})
        return None

    async def _reckon(self, process: Any) -> None:
        """Take the memory of a new process off what is free, before the process says that it is taken up."""
        self.free -= process.get("spec", "memoryBytes", default=0)
        patch = merge_patch({"status": {"freeBytes": self.free}})
        await self.client.patch(HOSTS, ObjectKey("", self.name), patch, subresource="status")

    async def _say(self, process: Any, status: dict[str, Any]) -> None:
        old = process.get("status", default={}) or {}
        status = status | {"memoryBytes": process.get("spec", "memoryBytes", default=0)}
        if any(old.get(name) != value for name, value in status.items()):
            patch = merge_patch({"metadata": {"uid": process.meta.uid}, "status": status})
            await self.client.patch(PROCESSES, process.key, patch, subresource="status")

    async def _slices(self, process: Any) -> list[Any]:
        labels = f"{LABEL_PROCESS_UID}={process.meta.uid}"
        return list((await self.client.list(SLICES, process.meta.namespace, labels=labels)).items)

    async def _register(self, process: Any, *, ready: bool) -> None:
        conditions = {"ready": ready, "serving": True, "terminating": not ready}
        for each in await self._slices(process):
            if (each.get("endpoints") or [{}])[0].get("conditions") != conditions:
                endpoints = [{"addresses": ["10.0.0.9"], "conditions": conditions}]
                await self.client.patch(SLICES, each.key, merge_patch({"endpoints": endpoints}))
            return
        if not ready:
            return
        spec = process.get("spec")
        service = await self.client.get(SERVICES, ObjectKey(process.meta.namespace, spec["service"]))
        own = {name: process.meta.labels[name] for name in (LABEL_ENDPOINT, LABEL_ENDPOINT_UID, LABEL_REVISION)}
        body = {
            "metadata": {
                "namespace": process.meta.namespace,
                "name": process.meta.name,
                "labels": {
                    "kubernetes.io/service-name": spec["service"],
                    "endpointslice.kubernetes.io/managed-by": "pilotage.dev",
                    LABEL_MANAGED_BY: MANAGED_BY,
                    **own,
                    LABEL_HOST: self.name,
                    LABEL_PROCESS_UID: process.meta.uid,
                },
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Service", "name": service.meta.name, "uid": service.meta.uid}
                ],
            },
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": [{"addresses": ["10.0.0.9"], "conditions": conditions}],
        }
        with contextlib.suppress(AlreadyExists):
            await self.client.create(SLICES, body)

    async def _stop(self, process: Any) -> None:
        if PROCESS_FINALIZER not in process.meta.finalizers:
            return
        await self._register(process, ready=False)
        await asyncio.sleep(self.stop_seconds)
        for each in await self._slices(process):
            with contextlib.suppress(Absent, Foreign):
                await self.client.delete(SLICES, each.key, uid=each.meta.uid, propagation=BACKGROUND)
        patch = without_finalizer(process, PROCESS_FINALIZER)
        assert patch is not None
        await self.client.patch(PROCESSES, process.key, patch)
        self._since.pop(process.meta.uid, None)


class Gateway:
    """It acknowledges every GatewayRoute a moment after it was changed, and counts what is under way."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.alive = True
        self.rejects: Callable[[dict[str, Any]], str] = lambda _: ""
        """Envoy's text, for a route that it refuses."""
        self.in_flight: dict[str, int] = {}
        self.counts = True
        """Whether it can tell how many requests are under way."""
        self.seen: list[dict[str, int]] = []
        """The weights of each version that was acknowledged."""

    async def run(self) -> None:
        manager = Manager(self.client, name="gateway", seed=1)
        self._routes = manager.informer(GATEWAY_ROUTES)
        manager.add("gateway", self._routes, lambda _: self._reconcile)
        await manager.run()

    async def _reconcile(self, key: ObjectKey) -> Result | None:
        route = self._routes.store.get(key)
        if route is not None and self.alive:
            await self._take_up(route)
        busy = route is not None and (not self.alive or self.in_flight or self.rejects(route.to_dict()))
        return Result(requeue_after=1.0) if busy else None

    async def _take_up(self, route: Any) -> None:
        body = route.to_dict()
        why = self.rejects(body)
        weights = {each["service"]: each["weight"] for each in body["spec"]["backends"]}
        idle = [name for name, weight in weights.items() if not weight]
        status: dict[str, Any] = {"observedGeneration": route.meta.generation}
        if why:
            status |= {"state": "Rejected", "message": why}
        else:
            counts = [
                {"service": name, "inFlight": self.in_flight.get(name, 0)} for name in sorted(idle) if self.counts
            ]
            status |= {"state": "Programmed", "message": None, "version": str(route.meta.generation), "counts": counts}
        old = body.get("status", {})
        if any(old.get(name) != value for name, value in status.items()):
            if not why and (not self.seen or self.seen[-1] != weights):
                self.seen.append(weights)
            patch = merge_patch({"metadata": {"uid": route.meta.uid}, "status": status})
            await self.client.patch(GATEWAY_ROUTES, route.key, patch, subresource="status")


class SimulatedHosts(SimulatedCluster):
    """Simulated cluster with Hosts, stand-ins for their agents, and a stand-in for the gateway."""

    agents: dict[str, Agent]
    gateway: Gateway

    def add_host(self, name: str, **about: Any) -> Agent:
        agent = self.agents[name] = Agent(self.world.client(f"agent-{name}"), name, **about)
        self.world.live(agent.run(), f"agent {name}")
        return agent

    def process(self, name: str) -> dict[str, Any]:
        return self.world.find(PROCESSES, ObjectKey("default", name)) or {}

    def host(self, name: str) -> dict[str, Any]:
        return self.world.find(HOSTS, ObjectKey("", name)) or {}

    def processes(self) -> list[str]:
        return sorted(each["metadata"]["name"] for each in self.world.objects(PROCESSES))

    def routed(self) -> dict[str, int]:
        """The weights that the gateway was told."""
        found = self.world.find(GATEWAY_ROUTES, ObjectKey("default", "chat"))
        return {each["service"]: each["weight"] for each in found["spec"]["backends"]} if found else {}

    def in_traffic(self) -> list[str]:
        """The slices with an address that gets requests."""
        return sorted(
            each["metadata"]["name"]
            for each in self.world.objects(SLICES)
            if LABEL_HOST in each["metadata"].get("labels", {})
            and any(address["conditions"]["ready"] for address in each["endpoints"])
        )


@contextlib.asynccontextmanager
async def simulated_hosts(*hosts: str, operate: bool = True) -> AsyncIterator[SimulatedHosts]:
    """A simulated cluster with some Hosts, whose agents run, and a gateway."""
    async with simulated_cluster(kind=SimulatedHosts, operate=operate) as made:
        assert isinstance(made, SimulatedHosts)
        made.agents = {}
        made.gateway = Gateway(made.world.client("gateway"))
        made.world.live(made.gateway.run(), "gateway")
        for name in hosts or ("gpu-1",):
            made.add_host(name)
        yield made
