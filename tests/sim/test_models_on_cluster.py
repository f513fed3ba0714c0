"""The models against the real controllers: the same story, told to both, ends in the same state."""

import asyncio

import pytest

from pilotage.kube import Client, Json, load_config
from pilotage_sim import models
from pilotage_sim.loop import run_virtual
from pilotage_sim.models.common import NAMESPACES
from pilotage_sim.oracles import differences
from pilotage_sim.world import SimulatedWorld
from tests.sim.settled import settled
from tests.sim.stories import STORIES, Story

SETTLED_SECONDS_MAX = 40.0


async def in_the_simulator(story: Story) -> Json:
    """Final state with harbor and the models."""
    async with SimulatedWorld(1) as world:
        world.live(models.run_all(world.client("models"), seed=1), "models")
        client = world.client("author")
        await client.create(NAMESPACES, {"metadata": {"name": "story"}})
        await world.settle(5.0)
        await story(client, "story")
        await world.settle(60.0)
        return await settled(client, "story")


async def on_kubernetes(story: Story, client: Client, namespace: str, expected: Json) -> Json:
    """Final state with kube-apiserver and kube-controller-manager, or the state after a time limit."""
    await story(client, namespace)
    found: Json = {}
    try:
        async with asyncio.timeout(SETTLED_SECONDS_MAX):
            while (found := await settled(client, namespace)) != expected:  # noqa: ASYNC110 - many kinds at once
                await asyncio.sleep(0.3)
    except TimeoutError:
        pass
    return found


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
async def test_a_story_ends_alike(cluster, namespace, story):
    expected = await asyncio.to_thread(run_virtual, in_the_simulator(story))
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        found = await on_kubernetes(story, client, namespace, expected)
    assert differences(found, expected) == []
