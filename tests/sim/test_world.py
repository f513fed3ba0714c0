"""The world itself: the same seed, the same trace; clients, settling, what is true."""

import asyncio
import subprocess
import sys

import pytest

from pilotage.kube import Absent, AlreadyExists, Forbidden, ObjectKey, Propagation, Resource, merge_patch
from pilotage_harbor.housekeeping.bootstrap_objects import Beginnings
from pilotage_sim.loop import virtual
from pilotage_sim.world import NotSettled, SimulatedWorld

NAMESPACES = Resource("", "v1", "namespaces", "Namespace")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
A = ObjectKey("default", "a")

PROGRAM = """
from pilotage_sim import models
from pilotage_sim.loop import run_virtual
from pilotage_sim.world import SimulatedWorld
from tests.sim.stories import a_rolling_update

async def main():
    async with SimulatedWorld({seed}) as world:
        world.live(models.run_all(world.client("models"), seed=1), "models")
        await world.settle(5.0)
        await a_rolling_update(world.client("author"), "default")
        await world.settle()
        return world.trace.text

print(run_virtual(main()))
"""


def trace_of(seed: int, hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(seed=seed)],
        env={"PYTHONHASHSEED": hash_seed, "PATH": "", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_same_seed_gives_the_same_trace_in_every_process():
    """Sets of strings have another order in every process of Python: the trace does not depend on it."""
    first = trace_of(1, "1")
    assert first.count("models") > 50
    assert first == trace_of(1, "2")
    assert first != trace_of(2, "1")


def config_map(name, **data):
    return {"metadata": {"namespace": "default", "name": name}, "data": data}


@virtual
async def test_a_world_begins_with_all_that_harbor_makes():
    async with SimulatedWorld() as world:
        assert {obj["metadata"]["name"] for obj in world.objects(NAMESPACES)} >= {"default", "kube-system"}
        version = world.core.store.version
        await Beginnings(world.core, world.harbor.handle).make()
        assert world.core.store.version == version, "nothing was missing"


@virtual
async def test_a_client_does_all_it_does_over_http():
    async with SimulatedWorld() as world:
        client = world.client("me")
        made = await client.create(CONFIG_MAPS, config_map("a", n="1"))
        with pytest.raises(AlreadyExists):
            await client.create(CONFIG_MAPS, config_map("a"))
        async with client.watch(CONFIG_MAPS, "default", resource_version=made.meta.resource_version) as watch:
            patched = await client.patch(CONFIG_MAPS, A, merge_patch({"data": {"n": "2"}}))
            event = await anext(watch)
        assert (event.type, event.object.meta.resource_version) == ("MODIFIED", patched.meta.resource_version)
        listed = await client.list(CONFIG_MAPS, "default", fields="metadata.name=a")
        assert [obj.get("data") for obj in listed.items] == [{"n": "2"}]
        assert await client.delete(CONFIG_MAPS, A, uid=made.meta.uid, propagation=Propagation.BACKGROUND) is None
        with pytest.raises(Absent):
            await client.get(CONFIG_MAPS, A)
        with pytest.raises(Forbidden):
            await world.client("nobody", groups=()).list(CONFIG_MAPS)


@virtual
async def test_the_trace_says_who_wrote_what_when_and_with_which_outcome():
    async with SimulatedWorld() as world:
        client = world.client("me")
        await asyncio.sleep(10)
        made = await client.create(CONFIG_MAPS, config_map("a"))
        with pytest.raises(AlreadyExists):
            await client.create(CONFIG_MAPS, config_map("a"))
        await client.list(CONFIG_MAPS)
        await client.delete(CONFIG_MAPS, A, uid=made.meta.uid, propagation=Propagation.BACKGROUND)
        seen = [
            (write.who, write.verb, write.resource, write.key, write.code, write.reason) for write in world.trace.writes
        ]
        assert seen == [
            ("me", "create", "configmaps", "default/a", 201, ""),
            ("me", "create", "configmaps", "default/", 409, "AlreadyExists"),
            ("me", "delete", "configmaps", "default/a", 200, ""),
        ]
        assert all(10 < write.at < 11 for write in world.trace.writes)
        assert world.trace.writes[-1].uid == made.meta.uid


@virtual
async def test_the_time_of_the_api_is_virtual():
    async with SimulatedWorld() as world:
        client = world.client("me")
        first = await client.create(CONFIG_MAPS, config_map("a"))
        await asyncio.sleep(3600)
        second = await client.create(CONFIG_MAPS, config_map("b"))
        assert first.meta.creation_timestamp == "2025-06-15T15:06:40Z"
        assert second.meta.creation_timestamp == "2025-06-15T16:06:40Z"


@virtual
async def test_settling_waits_for_the_last_write():
    async with SimulatedWorld() as world:
        client = world.client("me")

        async def write():
            for number in range(5):
                await client.create(CONFIG_MAPS, config_map(f"n{number}"))
                await asyncio.sleep(20)

        world.live(write(), "writer")
        await world.settle(30)
        assert len(world.objects(CONFIG_MAPS)) == 5
        assert 110 < asyncio.get_running_loop().time() < 120


@virtual
async def test_a_world_that_does_not_settle_says_who_writes():
    async with SimulatedWorld() as world:
        client = world.client("busybody")
        await client.create(CONFIG_MAPS, config_map("a"))

        async def write():
            for number in range(10_000):
                await client.patch(CONFIG_MAPS, A, merge_patch({"data": {"n": str(number)}}))
                await asyncio.sleep(5)

        world.live(write(), "writer")
        with pytest.raises(NotSettled, match=r"(?s)still writes:.*busybody +patch +configmaps default/a -> 200"):
            await world.settle(10, limit=100)


@virtual
async def test_a_program_that_fails_is_not_overlooked():
    async def fails():
        raise RuntimeError("no good")

    async with SimulatedWorld() as world:
        world.live(fails(), "bad")
        with pytest.raises(RuntimeError, match="no good"):
            await world.settle()
