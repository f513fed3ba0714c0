"""Models in a simulated cluster: harbor, the real fetcher, and virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pilotage.api.names import ENDPOINTS, MODELS
from pilotage.controllers.model.controller import Models
from pilotage.kube import ObjectKey, Propagation, Resource, merge_patch
from pilotage.models import Access, FetchRequest, FileModelStore, Kept, ModelCache
from pilotage.models.blocking import inline
from pilotage.operator.crds import crds
from pilotage.runtime.manager import Manager
from pilotage_sim.scenarios.model import definition
from pilotage_sim.world import SimulatedWorld

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
HOUR = 3600.0
OPERATOR = "operator"


class CountingStore(FileModelStore):
    """The real one. It says how often it was asked, and what became of it."""

    looks: list[str]

    async def keep(self, request: FetchRequest, *args: Any) -> Kept:
        self.looks = [*getattr(self, "looks", []), str(request.source)]
        return await super().keep(request, *args)


class SimulatedModels:
    """Models in a simulated cluster, in the namespace default. `user` is a client with all rights."""

    def __init__(self, world: SimulatedWorld, folder: Path) -> None:
        self.world = world
        self.folder = folder
        self.user = world.client("user")
        access = Access(roots=(folder / "models",), host="gpu-3")
        self.keeper = CountingStore(ModelCache(folder / "cache"), access, blocking=inline)
        self.manager: Manager | None = None
        (folder / "models").mkdir(exist_ok=True)

    async def start(self, keeping: Any = None, **options: Any) -> None:
        """Start an operator; it ends with the world."""
        manager = self.manager = Manager(self.world.client(OPERATOR), name=OPERATOR, seed=1)
        started = Models(manager, keeping or self.keeper, **options)

        async def run() -> None:
            async with started:
                await manager.run()

        self.running = self.world.live(run(), OPERATOR)
        await manager.started.wait()

    async def stop(self) -> None:
        """Stop the operator, as by SIGTERM."""
        assert self.manager is not None
        self.manager.stop()
        await self.running

    async def make(self, name: str, source: str, **spec: Any) -> None:
        body = {"metadata": {"namespace": "default", "name": name}, "spec": {"source": source, **spec}}
        await self.user.create(MODELS, body)

    async def change(self, name: str, **spec: Any) -> None:
        await self.user.patch(MODELS, ObjectKey("default", name), merge_patch({"spec": spec}))

    async def serve(self, name: str, model: str) -> None:
        body = {"metadata": {"namespace": "default", "name": name}, "spec": {"model": {"name": model}}}
        await self.user.create(ENDPOINTS, body)

    async def delete(self, resource: Resource, name: str) -> None:
        key = ObjectKey("default", name)
        uid = (await self.user.get(resource, key)).meta.uid
        await self.user.delete(resource, key, uid=uid, propagation=Propagation.BACKGROUND)

    def model(self, name: str) -> dict[str, Any] | None:
        return self.world.find(MODELS, ObjectKey("default", name))

    def status(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = (self.model(name) or {}).get("status", {})
        return status

    def phase(self, name: str) -> str:
        return str(self.status(name).get("phase", ""))

    def condition(self, name: str, type_: str) -> dict[str, Any]:
        return next((each for each in self.status(name).get("conditions", []) if each["type"] == type_), {})

    async def until(self, name: str, phase: str, limit: float = 60.0) -> None:
        await self.world.until(lambda: self.phase(name) == phase, limit)

    def writes(self) -> list[str]:
        """Writes of the operator, Events included."""
        return [str(write) for write in self.world.trace.writes if write.who == OPERATOR]

    def status_times(self) -> list[float]:
        return [w.at for w in self.world.trace.writes if w.who == OPERATOR and w.resource.endswith("/status")]

    def events(self) -> list[tuple[str, str]]:
        return [(event["type"], event["reason"]) for event in self.world.objects(EVENTS)]

    def notes(self) -> list[str]:
        return [event["note"] for event in self.world.objects(EVENTS)]

    def metric(self, name: str, **labels: str) -> float:
        assert self.manager is not None
        return self.manager.metrics.registry.get_sample_value(name, labels) or 0.0

    def cached(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "cache").rglob("*.gguf"))


@contextlib.asynccontextmanager
async def simulated_models(folder: Path, *, real: bool = False) -> AsyncIterator[SimulatedModels]:
    """A world with the kinds in it: as they are installed (`real`), or as open ones, which cost less."""
    async with SimulatedWorld(1) as world:
        simulated = SimulatedModels(world, folder)
        for crd in crds() if real else (definition(MODELS), definition(ENDPOINTS)):
            await simulated.user.create(CRDS, crd)
        await asyncio.sleep(1)
        yield simulated
