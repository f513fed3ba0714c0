"""Those who get in the way do what they are said to do."""

import asyncio

import pytest

from pilotage.kube import Forbidden, ObjectKey, Propagation, Unavailable
from pilotage_sim import models
from pilotage_sim.adversaries import autoscaler, dead_api, denying_webhook, finalizer_stripper, gitops, recreator
from pilotage_sim.loop import virtual
from pilotage_sim.models.common import CONFIG_MAPS, DEPLOYMENTS, REPLICA_SETS
from pilotage_sim.world import SimulatedWorld
from tests.sim.stories import deploy

A = ObjectKey("default", "a")
BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "a"}, "data": {"n": "1"}}


async def unmake(client):
    uid = (await client.get(CONFIG_MAPS, A)).meta.uid
    await client.delete(CONFIG_MAPS, A, uid=uid, propagation=Propagation.BACKGROUND)
    return uid


@virtual
async def test_an_autoscaler_fights_everything_but_zero():
    async with SimulatedWorld() as world:
        world.live(models.run_all(world.client("models"), seed=1), "models")
        client = world.client("me")
        key = await deploy(client, "default", 3)
        world.live(autoscaler(world.client("hpa"), DEPLOYMENTS, key, least=2), "hpa")
        await client.scale(DEPLOYMENTS, key, 1)
        await world.settle(30)
        assert world.find(DEPLOYMENTS, key)["spec"]["replicas"] == 2
        await client.scale(DEPLOYMENTS, key, 0)
        await world.settle(30)
        assert world.find(DEPLOYMENTS, key)["spec"]["replicas"] == 0


@virtual
async def test_gitops_brings_back_what_was_deleted_or_changed():
    async with SimulatedWorld() as world:
        client = world.client("me")
        world.live(gitops(world.client("gitops"), [(CONFIG_MAPS, BODY)]), "gitops")
        await asyncio.sleep(1)
        first = await unmake(client)
        await asyncio.sleep(60)
        again = world.find(CONFIG_MAPS, A)
        assert again["data"] == {"n": "1"}
        assert again["metadata"]["uid"] != first


@virtual
async def test_a_recreator_takes_the_name_at_once():
    async with SimulatedWorld() as world:
        client = world.client("me")
        world.live(recreator(world.client("other"), CONFIG_MAPS, BODY), "recreator")
        await asyncio.sleep(1.5)
        first = await unmake(client)
        await asyncio.sleep(1.5)
        assert world.find(CONFIG_MAPS, A)["metadata"]["uid"] != first


@virtual
async def test_a_human_strips_finalizers_of_what_does_not_go():
    async with SimulatedWorld() as world:
        client = world.client("me")
        held = {**BODY, "metadata": {**BODY["metadata"], "finalizers": ["example.com/hold"]}}
        await client.create(CONFIG_MAPS, held)
        world.live(finalizer_stripper(world.client("human"), [CONFIG_MAPS]), "human")
        await asyncio.sleep(30)
        assert world.find(CONFIG_MAPS, A)["metadata"]["finalizers"], "what is not being deleted is left alone"
        await unmake(client)
        await asyncio.sleep(5)
        assert world.find(CONFIG_MAPS, A) is not None
        await asyncio.sleep(10)
        assert world.find(CONFIG_MAPS, A) is None


@virtual
async def test_a_webhook_denies_until_it_is_taken_away():
    async with SimulatedWorld() as world:
        client = world.client("me")
        await client.create(CONFIG_MAPS, BODY)
        webhook, end = denying_webhook(world, operations=["DELETE"], plurals=["configmaps"], why="it is Friday")
        with pytest.raises(Forbidden, match="denied the request: it is Friday"):
            await unmake(client)
        assert webhook.denied == 1
        end()
        await unmake(client)
        assert world.find(CONFIG_MAPS, A) is None


@virtual
async def test_a_dead_api_is_unavailable_and_not_empty():
    async with SimulatedWorld() as world:
        client = world.client("me")
        end = dead_api(world, "apps")
        with pytest.raises(Unavailable):
            await client.list(REPLICA_SETS)
        assert (await client.list(CONFIG_MAPS)).items == []
        end()
        assert (await client.list(REPLICA_SETS)).items == []
