"""Cost of failing Models to an idle controller: an hour of virtual time, in CPU seconds.

Everything else in the process counts too (the API server's core, the loop), so the share is an upper bound. The files
are looked for on a real disk. `python -m bench.models` measures this alone, without a cluster.
"""

import asyncio
import tempfile
import time
from pathlib import Path

from bench import steadiness
from bench.figures import PILOTAGE, Goal, Section
from bench.progress import say
from bench.run import Run
from pilotage.api.names import ENDPOINTS, MODELS
from pilotage.controllers.model.controller import Models
from pilotage.kube import Resource
from pilotage.models import Access, FetchRequest, FileModelStore, Kept, ModelCache, SourceCredentials
from pilotage.models.blocking import inline
from pilotage.models.fetch import Progress
from pilotage.runtime.manager import Manager
from pilotage_sim.loop import run_virtual
from pilotage_sim.scenarios.model import definition
from pilotage_sim.world import SimulatedWorld

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
FAILING = 1_000
HOUR_SECONDS = 3600.0
SHARE_MAX_PERCENT = 1.0


def run(_: Run | None = None) -> Section:
    """A thousand Models whose file is not there."""
    say(f"models: {FAILING:,} that fail, for an hour of virtual time")
    steadiness.sample()
    with tempfile.TemporaryDirectory(prefix="pilotage-bench-") as folder:
        cpu_seconds, writes, looks = run_virtual(_hour(Path(folder)))
    section = Section("models", f"{FAILING:,} Models whose file is missing: what an hour costs")
    section.add("CPU in an hour", "s", {PILOTAGE: cpu_seconds})
    section.add("share of a core", "%", {PILOTAGE: 100 * cpu_seconds / HOUR_SECONDS})
    section.add("looks at each source", "", {PILOTAGE: looks / FAILING})
    section.add("CPU per look", "µs", {PILOTAGE: 1e6 * cpu_seconds / looks})
    section.add("API writes", "", {PILOTAGE: float(writes)})
    section.goals.append(Goal("share of a core", 100 * cpu_seconds / HOUR_SECONDS, SHARE_MAX_PERCENT, "%"))
    section.goals.append(Goal("API writes", float(writes), 0.0, ""))
    return section


class _Counting(FileModelStore):
    looks = 0

    async def keep(self, request: FetchRequest, credentials: SourceCredentials, progress: Progress) -> Kept:
        self.looks += 1
        return await super().keep(request, credentials, progress)


async def _hour(folder: Path) -> tuple[float, int, int]:
    async with SimulatedWorld(1) as world:
        user = world.client("user")
        for resource in (MODELS, ENDPOINTS):
            await user.create(CRDS, definition(resource))
        await asyncio.sleep(1)
        manager = Manager(world.client("operator"), name="operator", seed=1)
        keeper = _Counting(ModelCache(folder / "cache"), Access(roots=(folder,)), blocking=inline)
        controller = Models(manager, keeper)

        async def operate() -> None:
            async with controller:
                await manager.run()

        world.live(operate(), "operator")
        for number in range(FAILING):
            metadata = {"namespace": "default", "name": f"model-{number}"}
            await user.create(MODELS, {"metadata": metadata, "spec": {"source": f"file://{folder}/{number}.gguf"}})
        await asyncio.sleep(60)
        assert _failed(world) == FAILING
        began, writes, looks = time.process_time(), len(world.trace.writes), keeper.looks
        await asyncio.sleep(HOUR_SECONDS)
        return time.process_time() - began, len(world.trace.writes) - writes, keeper.looks - looks


def _failed(world: SimulatedWorld) -> int:
    return sum(model.get("status", {}).get("phase") == "Failed" for model in world.objects(MODELS))


if __name__ == "__main__":
    print(run())
