"""Kinds that a cluster may have or not: a manager starts without them, and takes them up when they come."""

import asyncio

from pilotage.kube import Resource
from pilotage.runtime.manager import Manager
from pilotage_sim.loop import virtual
from pilotage_sim.world import SimulatedWorld
from tests.support.kinds import CRDS, definition, delete

ROUTES = Resource("routes.example.com", "v1", "routes", "Route")
FOUND_SECONDS_MAX = 30.0


class Seen:
    """Calls of a handler, by name."""

    def __init__(self) -> None:
        self.added: list[str] = []
        self.deleted: list[str] = []

    def __call__(self, change):
        (self.deleted if change.new is None else self.added).append(change.object.meta.name)


async def serve(client):
    return await client.create(CRDS, definition(ROUTES))


async def until(condition):
    """Virtual seconds until a condition holds."""
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110 - virtual time: it costs nothing
            await asyncio.sleep(0.1)
    return asyncio.get_running_loop().time() - began


@virtual
async def test_a_kind_that_comes_and_goes_and_comes_again():
    async with SimulatedWorld() as world:
        admin, manager, seen = world.client("admin"), Manager(world.client("operator"), seed=1), Seen()
        informer = manager.informer(ROUTES, optional=True)
        informer.add_handler(seen)
        running = asyncio.create_task(manager.run())
        await manager.started.wait()
        assert informer.absent
        assert not informer.store.list()
        assert manager._unready() == []
        await asyncio.sleep(3600)  # its pauses have grown as far as they grow

        crd = await serve(admin)
        assert await until(lambda: not informer.absent) <= FOUND_SECONDS_MAX
        await admin.create(ROUTES, {"metadata": {"name": "a"}}, namespace="default")
        await until(lambda: seen.added == ["a"])

        await delete(admin, CRDS, crd)
        await until(lambda: informer.absent)
        assert seen.deleted == ["a"]
        assert not informer.store.list()
        assert manager._unready() == []

        await serve(admin)
        await admin.create(ROUTES, {"metadata": {"name": "b"}}, namespace="default")
        await until(lambda: seen.added == ["a", "b"])
        manager.stop()
        await running


@virtual
async def test_a_kind_that_goes_while_nobody_looks_is_reported_as_gone():
    async with SimulatedWorld() as world:
        admin, manager, seen = world.client("admin"), Manager(world.client("operator"), seed=1), Seen()
        crd = await serve(admin)
        await admin.create(ROUTES, {"metadata": {"name": "a"}}, namespace="default")
        informer = manager.informer(ROUTES, optional=True)
        informer.add_handler(seen)
        first = asyncio.create_task(informer.run())
        await until(lambda: seen.added == ["a"])
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await delete(admin, CRDS, crd)
        await until(lambda: not world.objects(CRDS))
        again = asyncio.create_task(informer.run())
        await until(lambda: informer.absent)
        assert seen.deleted == ["a"]
        again.cancel()


@virtual
async def test_a_kind_that_somebody_needs_is_waited_for():
    async with SimulatedWorld() as world:
        manager = Manager(world.client("operator"), seed=1)
        manager.informer(ROUTES, optional=True)
        manager.informer(ROUTES)
        running = asyncio.create_task(manager.run())
        await asyncio.sleep(60)
        assert not manager.started.is_set()
        assert "not served" in manager._unready()[0]
        await serve(world.client("admin"))
        await asyncio.wait_for(manager.started.wait(), 60)
        manager.stop()
        await running
