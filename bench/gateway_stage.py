"""A gateway to be measured: harbor and the control plane in this process, a real Envoy beside it."""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from pilotage.api.names import GATEWAY_ROUTES, LABEL_KEEP_ALIVE
from pilotage.gateway import envoy
from pilotage.gateway.control import Control
from pilotage.gateway.inputs import ENDPOINT_SLICES, LABEL_SERVICE, Service
from pilotage.gateway.overload import machine_share
from pilotage.gateway.settings import Folder, GatewaySettings
from pilotage.kube import Json, KindNotServed, Object, Resource
from pilotage.operator.crds import crds
from pilotage_sim.world import SimulatedWorld

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
NAMESPACE = "default"
WAIT_SECONDS = 0.0005
SECONDS_MAX = 120.0
KEPT_SECONDS = 60
"""Time for which the server that is measured keeps connections."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():  # noqa: ASYNC110 - what is waited for knows nothing of it
            await asyncio.sleep(WAIT_SECONDS)


class Stage:
    """Routes are written to harbor; `changed` waits until Envoy has acknowledged them."""

    def __init__(self, world: SimulatedWorld, folder: Path, port: int) -> None:
        self.world = world
        self.user = world.client("user")
        self.folder = Folder(folder)
        self.port = port
        settings = GatewaySettings(
            run=str(folder), port=port, metrics_port=None, access_log=str(self.folder.access_log), log_level="error"
        )
        self.control = Control(settings, world.client("gateway"))
        self.envoy = envoy.child(
            envoy.find(), self.folder, env={"PATH": os.environ["PATH"]}, memory_bytes=machine_share()
        )
        self._acknowledged = 0.0
        self._heard = 0.0
        told, touch = self.control.program.on_change, self.control.program.touch

        def note(uids: Iterable[str], clusters: Iterable[str]) -> None:
            self._acknowledged = time.perf_counter()
            told(uids, clusters)

        def hear(route: str = "", service: Service | None = None) -> None:
            self._heard = time.perf_counter()
            touch(route, service)

        self.control.program.on_change = note
        self.control.program.touch = hear  # type: ignore[method-assign]

    async def slice(self, service: str, port: int, *, kept: bool = False) -> None:
        """EndpointSlice with the address of a Service; `kept`: its server keeps connections."""
        labels = {LABEL_SERVICE: service} | ({LABEL_KEEP_ALIVE: str(KEPT_SECONDS)} if kept else {})
        body = {
            "metadata": {"name": service, "namespace": NAMESPACE, "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": port}],
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
        }
        await self.user.create(ENDPOINT_SLICES, body)

    async def route(self, name: str, backends: dict[str, int]) -> None:
        """Write a route; do not wait."""
        listed = [{"service": service, "weight": weight} for service, weight in backends.items()]
        spec = {"endpoint": name, "models": [name], "backends": listed}
        body: Json = {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
        await self.user.apply(GATEWAY_ROUTES, body, force=True)

    async def changed(self, name: str, backends: dict[str, int]) -> float:
        """Write a route; the seconds from the moment the control plane heard of it to Envoy's acknowledgement."""
        self._acknowledged = 0.0
        await self.route(name, backends)
        await until(lambda: self._acknowledged > 0)
        return self._acknowledged - self._heard

    async def settled(self) -> None:
        """Wait until the status of each route says that it is programmed: nothing is left to be done then."""
        await until(lambda: all(map(_is_programmed, self.control.manager.informer(GATEWAY_ROUTES).store.list())))

    def accepted(self) -> int:
        """Number of routes that Envoy has accepted."""
        return len(self.control.program.accepted)


def _is_programmed(route: Object) -> bool:
    status = route.get("status", default=None) or {}
    return bool(status.get("observedGeneration") == route.meta.generation and status.get("state") == "Programmed")


@contextlib.asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Stage]:
    """A stage whose Envoy and control plane have not begun yet: see `playing`."""
    async with SimulatedWorld(latency=(0.0, 0.0)) as world:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        os.makedirs(folder)  # noqa: PTH103 - nothing waits for it
        stage = Stage(world, folder, port)
        for crd in crds():
            if crd["metadata"]["name"] == str(GATEWAY_ROUTES):
                await stage.user.create(CRDS, crd)
        while True:
            with contextlib.suppress(KindNotServed):
                await stage.user.list(GATEWAY_ROUTES)
                break
            await asyncio.sleep(0.01)
        yield stage


@contextlib.asynccontextmanager
async def playing(stage: Stage) -> AsyncIterator[float]:
    """Envoy runs, then the control plane; yields the seconds from its first offer until Envoy had all routes."""
    keeping = asyncio.create_task(stage.envoy.run())
    await until(stage.folder.admin.exists)
    running = asyncio.create_task(stage.control.run())
    try:
        await until(lambda: stage.control.ads.offered)
        began = time.perf_counter()
        await until(lambda: stage.control.program.snapshot is not None)
        yield time.perf_counter() - began
    finally:
        stage.control.stop()
        await running
        await stage.envoy.stop()
        await keeping
