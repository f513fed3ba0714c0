"""Promises of the models beyond the end of a story: the order and times of what happens on the way."""

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.kube import ObjectKey, Propagation
from pilotage_sim import models
from pilotage_sim.loop import virtual
from pilotage_sim.models.common import DEPLOYMENTS, PODS, REPLICA_SETS, SLICES, is_ready
from pilotage_sim.models.kubelet import EXIT
from pilotage_sim.models.rollout import ReplicaCounts, RolloutSpec, next_step
from pilotage_sim.world import SimulatedWorld
from tests.sim.stories import change, deploy, rolled_out, serve, template

POD = ObjectKey("default", "one")


@contextlib.asynccontextmanager
async def living(*leave_out, seed=1):
    async with SimulatedWorld(seed) as world:
        world.live(models.run_all(world.client("models"), seed=1, leave_out=frozenset(leave_out)), "models")
        await world.settle(5)
        yield world, world.client("me")


async def make_pod(client, *, exits="0", grace=30):
    metadata = {"namespace": "default", "name": "one", "annotations": {EXIT: exits}, "labels": {"app": "web"}}
    spec = template("web")["spec"] | {"terminationGracePeriodSeconds": grace}
    return await client.create(PODS, {"metadata": metadata, "spec": spec})


async def delete_pod(client, pod, grace=None):
    await client.delete(PODS, POD, uid=pod.meta.uid, propagation=Propagation.BACKGROUND, grace_seconds=grace)


async def lasts(world):
    """Seconds until the pod is gone."""
    began = asyncio.get_running_loop().time()
    await world.until(lambda: world.find(PODS, POD) is None)
    return asyncio.get_running_loop().time() - began


@pytest.mark.parametrize(("exits", "grace", "seconds"), [("0", 30, 0), ("10", 30, 10), ("100", 30, 30), ("5", 2, 2)])
def test_a_pod_goes_when_its_containers_have_ended_at_the_latest_after_its_grace(exits, grace, seconds):
    @virtual
    async def run():
        async with living() as (world, client):
            pod = await make_pod(client, exits=exits, grace=grace)
            await world.settle(5)
            await delete_pod(client, pod)
            assert seconds - 1.1 < await lasts(world) < seconds + 1.1  # the API counts in whole seconds

    run()


@virtual
async def test_a_shorter_grace_is_taken_and_a_longer_one_is_not():
    async with living() as (world, client):
        pod = await make_pod(client, exits="1000", grace=100)
        await world.settle(5)
        await delete_pod(client, pod)
        await asyncio.sleep(10)
        await delete_pod(client, pod, grace=500)
        await asyncio.sleep(10)
        await delete_pod(client, pod, grace=40)
        assert 18 < await lasts(world) < 22


@virtual
async def test_a_pod_without_a_node_goes_at_once():
    async with living("kubelet") as (world, client):
        pod = await make_pod(client)
        await delete_pod(client, pod)
        assert world.find(PODS, POD) is None


@virtual
async def test_while_it_ends_an_endpoint_is_serving_and_terminating_but_not_ready():
    async with living() as (world, client):
        await serve(client, "default")
        pod = await make_pod(client, exits="20")
        await world.settle(5)
        (endpoint,) = world.objects(SLICES, "default")[0]["endpoints"]
        assert endpoint["conditions"] == {"ready": True, "serving": True, "terminating": False}
        await delete_pod(client, pod)
        await asyncio.sleep(1)
        (endpoint,) = world.objects(SLICES, "default")[0]["endpoints"]
        assert endpoint["conditions"] == {"ready": False, "serving": True, "terminating": True}
        await world.settle(30)
        assert not world.objects(SLICES, "default")[0]["endpoints"]


@pytest.mark.parametrize(("surge", "unavailable", "most", "least"), [(1, 0, 5, 4), (0, 1, 4, 3), ("50%", "25%", 6, 3)])
def test_a_rolling_update_never_has_more_or_fewer_pods_than_it_may(surge, unavailable, most, least):
    @virtual
    async def run():
        async with living() as (world, client):
            strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
            key = await deploy(client, "default", 4, strategy=strategy)
            seen = []

            def count(_event):
                pods = [pod for pod in world.objects(PODS) if "deletionTimestamp" not in pod["metadata"]]
                seen.append((len(pods), sum(map(is_ready, pods))))

            stop = world.core.store.listen("pods", count)
            await change(client, key, {"template": template("web", "two")})
            await rolled_out(client, key)
            await world.settle(5)
            stop()
            assert max(pods for pods, _ in seen) == most
            assert min(ready for _, ready in seen) == least

    run()


@pytest.mark.parametrize("seed", range(5))
def test_a_deleted_replica_set_makes_no_pods_however_its_pods_go(seed):
    """Its cache may see the pods go before it sees that the owner does."""

    @virtual
    async def run():
        async with living(seed=seed) as (world, client):
            key = await deploy(client, "default", 4)
            made = sum(write.resource == "pods" and write.verb == "create" for write in world.trace.writes)
            uid = (await client.get(DEPLOYMENTS, key)).meta.uid
            await client.delete(DEPLOYMENTS, key, uid=uid, propagation=Propagation.FOREGROUND)
            await world.settle(30)
            assert world.objects(REPLICA_SETS) == world.objects(PODS) == []
            assert sum(write.resource == "pods" and write.verb == "create" for write in world.trace.writes) == made

    run()


@virtual
async def test_a_rollout_that_does_not_get_on_says_so_after_its_deadline():
    async with living("kubelet") as (world, client):
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")}
        body = {"metadata": {"namespace": "default", "name": "web"}, "spec": {**spec, "progressDeadlineSeconds": 60}}
        key = (await client.create(DEPLOYMENTS, body)).key

        def reasons():
            return {each["type"]: each["reason"] for each in world.find(DEPLOYMENTS, key)["status"]["conditions"]}

        await asyncio.sleep(50)
        assert reasons()["Progressing"] in ("NewReplicaSetCreated", "ReplicaSetUpdated")
        await asyncio.sleep(30)
        assert reasons() == {"Progressing": "ProgressDeadlineExceeded", "Available": "MinimumReplicasUnavailable"}


counts = st.integers(0, 6)


@given(
    wanted=st.builds(RolloutSpec, st.integers(0, 6), st.just(False), st.integers(0, 3), st.integers(1, 3)),
    new=counts,
    old=st.lists(counts, max_size=3),
)
def test_a_rollout_ends_with_the_new_one_alone_and_never_exceeds_its_bounds(wanted, new, old):
    """All pods become available at once; a rollout ends from any state."""
    most = max(wanted.replicas + wanted.surge, new + sum(old))
    for _ in range(100):
        step = next_step(
            wanted,
            ReplicaCounts(new, new, new),
            [ReplicaCounts(each, each, each) for each in old],
            sum(old),
            paused=False,
        )
        if step.settled:
            break
        new, old = step.new, step.old
        assert new + sum(old) <= most
        assert new + sum(old) >= min(wanted.replicas - wanted.unavailable, most)
    assert (new, sum(old)) == (wanted.replicas, 0)
