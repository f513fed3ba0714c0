"""Experiments in a simulated cluster: claimed, ended, deleted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilotage.api.names import EXPERIMENT_FINALIZER, EXPERIMENTS, GATEWAY_ROUTES, TEARDOWNS
from pilotage.controllers.endpoint.experiments import CLAIMS_MAX
from pilotage.kube import PODS, ObjectKey, Propagation, merge_patch
from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import SimulatedCluster, simulated_cluster
from tests.controllers.test_endpoint_rollout import GATEWAY, NEXT, OTHER, RolloutCluster, of, place
from tests.controllers.test_tenants_sizes import allow_any_number_of_replicas

KEY, ENDPOINT = ObjectKey("default", "q8"), ObjectKey("default", "chat")
VARIANT: dict[str, Any] = {"name": "q8", "weight": 10, "overrides": {"runtime": {"args": ["--ctx-size", "512"]}}}


async def experiment(place: SimulatedCluster, name: str = KEY.name, **spec: Any) -> None:
    body = {
        "metadata": {"namespace": KEY.namespace, "name": name},
        "spec": {"endpoint": {"name": "chat"}, "variants": [VARIANT], **spec},
    }
    await place.user.create(EXPERIMENTS, body)


async def serving(cluster: RolloutCluster) -> None:
    await cluster.deploy(route=GATEWAY, deletion={"drainSeconds": 5})
    await cluster.serving()


async def delete(place: SimulatedCluster) -> None:
    found = await place.user.get(EXPERIMENTS, KEY)
    await place.user.delete(EXPERIMENTS, KEY, uid=found.meta.uid, propagation=Propagation.BACKGROUND)


def asked_of_the_gateway(cluster: RolloutCluster) -> tuple[bool, int]:
    """Whether it measures requests, and for how many seconds it leaves them out."""
    spec = (cluster.world.find(GATEWAY_ROUTES, ENDPOINT) or {})["spec"]
    return spec.get("measure", False), spec.get("warmupSeconds", 0)


def status(place: SimulatedCluster) -> dict[str, Any]:
    found: dict[str, Any] = (place.world.find(EXPERIMENTS, KEY) or {}).get("status", {})
    return found


@virtual
async def test_an_experiment_on_a_missing_endpoint_says_so_and_can_be_deleted():
    async with simulated_cluster() as place:
        await experiment(place)
        await place.until(lambda: "servingendpoint/chat does not exist" in status(place).get("waitingFor", ""))
        found = await place.user.get(EXPERIMENTS, KEY)
        assert (status(place)["phase"], status(place)["summary"]) == ("Pending", "q8 10")
        assert EXPERIMENT_FINALIZER in found.meta.finalizers
        await place.user.delete(EXPERIMENTS, KEY, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
        await place.until(lambda: place.world.find(EXPERIMENTS, KEY) is None)


@virtual
async def test_one_that_is_terminated_before_it_began_ends_and_goes_when_its_time_is_over():
    async with simulated_cluster() as place:
        await experiment(place, ttlSecondsAfterFinished=50)
        await place.user.patch(EXPERIMENTS, KEY, merge_patch({"spec": {"terminate": True}}))
        await place.until(lambda: status(place).get("phase") == "Ended")
        assert status(place)["reason"] == "Terminated"
        await place.until(lambda: place.world.find(EXPERIMENTS, KEY) is None, 60.0)


@virtual
async def test_an_experiment_from_its_start_to_its_end_with_nothing_left():
    async with place() as cluster:
        await serving(cluster)
        await experiment(cluster, duration="10m")
        await cluster.until(lambda: status(cluster).get("phase") == "Running")
        assert cluster.mix() == {"chat-1": 90, "chat-2": 10}
        assert [each for each in cluster.mixes if each.get("chat-2")] == [{"chat-1": 90, "chat-2": 10}]
        assert {"chat-1": 100, "chat-2": 0} in cluster.mixes, "it enters at weight 0"
        found = status(cluster)["variants"][0]
        assert (found["revision"], found["replicas"]) == ("chat-2", {"ready": 1, "desired": 1})
        assert (found["weight"]["wanted"], found["weight"]["programmed"]) == (10, 10)
        assert cluster.status()["phase"] == "Serving"
        assert asked_of_the_gateway(cluster) == (True, 120)
        started = asyncio.get_running_loop().time()
        await cluster.until(lambda: status(cluster).get("phase") == "Ended", 2000.0)
        assert 590 < asyncio.get_running_loop().time() - started < 700
        assert status(cluster)["reason"] == "Completed"
        assert asked_of_the_gateway(cluster) == (False, 0)
        assert cluster.mix() == {"chat-1": 100}
        assert not any("chat-2" in each for each in cluster.parts())
        reasons = {each["spec"]["reason"] for each in cluster.world.objects(TEARDOWNS)}
        assert reasons == {"Ended"}


@virtual
@pytest.mark.parametrize("how", ["terminate", "delete"])
async def test_one_that_is_ended_early_leaves_in_the_same_order(how):
    async with place() as cluster:
        await serving(cluster)
        await experiment(cluster)
        await cluster.until(lambda: status(cluster).get("phase") == "Running")
        if how == "terminate":
            await cluster.user.patch(EXPERIMENTS, KEY, merge_patch({"spec": {"terminate": True}}))
            await cluster.until(lambda: status(cluster).get("phase") == "Ended")
        else:
            await delete(cluster)
            await cluster.until(lambda: cluster.world.find(EXPERIMENTS, KEY) is None)
        assert cluster.mix() == {"chat-1": 100}
        assert not any("chat-2" in each for each in cluster.parts())


@virtual
async def test_one_that_is_deleted_as_soon_as_it_has_a_part_goes_after_that_part():
    async with place() as cluster:
        await serving(cluster)
        await experiment(cluster)
        await cluster.until(lambda: any("chat-2" in each for each in cluster.parts()))
        await delete(cluster)
        await cluster.until(lambda: cluster.world.find(EXPERIMENTS, KEY) is None)
        assert not any("chat-2" in each for each in cluster.parts())


@virtual
async def test_more_experiments_than_an_endpoint_can_speak_of_do_not_stop_it():
    async with place() as cluster:
        await serving(cluster)
        for number in range(10):
            await experiment(cluster, f"e{number}", variants=[{**VARIANT, "weight": 1, "overrides": {"replicas": 3}}])
        await cluster.until(lambda: len(cluster.status().get("experiments", [])) == CLAIMS_MAX)
        await cluster.change(runtime=NEXT)
        await cluster.serving("chat-2")
        for each in cluster.world.objects(EXPERIMENTS):
            metadata = each["metadata"]
            await cluster.user.delete(
                EXPERIMENTS,
                ObjectKey("default", metadata["name"]),
                uid=metadata["uid"],
                propagation=Propagation.BACKGROUND,
            )
        await cluster.until(lambda: not cluster.world.objects(EXPERIMENTS))


@virtual
async def test_one_that_nothing_was_made_for_goes_though_its_endpoint_has_a_spec_that_cannot_be_read():
    async with place() as cluster:
        await serving(cluster)
        await experiment(cluster, variants=[{**VARIANT, "overrides": {"replicas": 3}}])
        await cluster.until(lambda: "overrides may have" in status(cluster).get("waitingFor", ""))
        await allow_any_number_of_replicas(cluster)
        await cluster.change(replicas=1_000_000)
        await cluster.until(lambda: cluster.condition("Degraded").get("reason") == "InvalidSpec")
        await delete(cluster)
        await cluster.until(lambda: cluster.world.find(EXPERIMENTS, KEY) is None)


@virtual
async def test_an_endpoint_that_is_deleted_takes_its_experiment_with_it():
    async with place() as cluster:
        await serving(cluster)
        await experiment(cluster)
        await cluster.until(lambda: status(cluster).get("phase") == "Running")
        await cluster.delete()
        await cluster.gone()
        await cluster.until(lambda: status(cluster).get("phase") == "Ended")
        assert status(cluster)["reason"] == "EndpointDeleted"
        assert cluster.parts() == []
        records = [each for each in cluster.world.objects(TEARDOWNS) if each["spec"]["reason"] == "Deleted"]
        assert len(records) == 1, "one receipt for all roles"


@virtual
async def test_a_new_spec_waits_for_the_experiment_and_returns_to_its_variant_without_a_restart():
    async with place() as cluster:
        await serving(cluster)
        await experiment(cluster)
        await cluster.until(lambda: status(cluster).get("phase") == "Running")
        variant = VARIANT["overrides"]
        pods = {each["metadata"]["uid"] for each in cluster.world.objects(PODS) if of(each) == "2"}
        await cluster.change(runtime=variant["runtime"])
        await cluster.until(lambda: "experiment/q8 runs" in cluster.status().get("waitingFor", ""))
        assert cluster.mix() == {"chat-1": 90, "chat-2": 10}
        await cluster.user.patch(EXPERIMENTS, KEY, merge_patch({"spec": {"terminate": True}}))
        await cluster.serving("chat-2")
        assert pods == {each["metadata"]["uid"] for each in cluster.world.objects(PODS) if of(each) == "2"}
        await cluster.until(lambda: status(cluster).get("phase") == "Ended")


@virtual
async def test_what_cannot_be_is_refused_and_changes_nothing():
    async with place() as cluster:
        await serving(cluster)
        before = cluster.mixes[:]
        await experiment(cluster, variants=[{**VARIANT, "overrides": {"replicas": 3}}])
        await cluster.until(lambda: "overrides may have" in status(cluster).get("waitingFor", ""))
        condition = next(each for each in status(cluster)["conditions"] if each["type"] == "Accepted")
        assert (condition["status"], condition["reason"]) == ("False", "Refused")
        assert cluster.mixes == before
        assert cluster.states() == {1: "Current"}
        await delete(cluster)
        await cluster.until(lambda: cluster.world.find(EXPERIMENTS, KEY) is None)


@virtual
async def test_one_that_waits_for_a_rollout_is_pending_and_keeps_its_time_to_start():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        await experiment(cluster, startDeadlineSeconds=60)
        await cluster.until(
            lambda: "until the rollout of the endpoint is over" in status(cluster).get("waitingFor", "")
        )
        await asyncio.sleep(600)
        assert (status(cluster)["phase"], status(cluster).get("reason")) == ("Pending", None)
        await cluster.annotate(promote="chat-2/2")
        await cluster.until(lambda: status(cluster).get("phase") == "Running")


@virtual
async def test_variants_that_never_start_leave_when_their_time_is_over():
    async with place() as cluster:
        await serving(cluster)
        allow = cluster.refuse_pods("chat-2")
        await experiment(cluster, startDeadlineSeconds=60)
        await cluster.until(lambda: status(cluster).get("reason") == "NotStarted", 200.0)
        assert cluster.mix() == {"chat-1": 100}
        await cluster.until(lambda: status(cluster).get("phase") == "Ended")
        allow()


@virtual
async def test_variants_without_an_experiment_leave_all_the_same():
    async with place() as cluster:
        await serving(cluster)
        await experiment(cluster)
        await cluster.until(lambda: status(cluster).get("phase") == "Running")
        cluster.managers[-1].stop()
        await asyncio.sleep(30)
        await cluster.user.patch(EXPERIMENTS, KEY, merge_patch({"metadata": {"finalizers": None}}))
        await delete(cluster)
        cluster.operate()
        await cluster.until(lambda: cluster.mix() == {"chat-1": 100})
        await cluster.until(lambda: not any("chat-2" in each for each in cluster.parts()))


@virtual
async def test_an_operator_that_restarts_at_any_moment_brings_it_to_the_same_end():
    async with place() as cluster:
        await serving(cluster)
        await experiment(cluster, duration="1m")
        for seconds in (1, 2, 3, 5, 8, 20, 40, 3, 5, 8):
            await asyncio.sleep(seconds)
            cluster.managers[-1].stop()
            await asyncio.sleep(1)
            cluster.operate()
        await cluster.until(lambda: status(cluster).get("phase") == "Ended", 2000.0)
        assert cluster.mix() == {"chat-1": 100}
        assert not any("chat-2" in each for each in cluster.parts())


@virtual
async def test_an_experiment_may_be_a_step_of_a_rollout():
    step = {"experiment": {"duration": "2m", "variants": [{**VARIANT, "overrides": {"runtime": OTHER}}]}}
    async with place() as cluster:
        await cluster.canary({"setWeight": 20}, step, {"pause": {}}, replicas=1)
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Experimenting", 2)
        await cluster.until(lambda: cluster.mix() == {"chat-1": 70, "chat-2": 20, "chat-3": 10})
        begun = asyncio.get_running_loop().time()
        await cluster.rolled("Pausing", 3)
        assert 119 < asyncio.get_running_loop().time() - begun < 150
        await cluster.until(lambda: cluster.mix() == {"chat-1": 80, "chat-2": 20})
        await cluster.until(lambda: not any("chat-3" in each for each in cluster.parts()))
        await cluster.annotate(promote="chat-2/3")
        await cluster.serving("chat-2")


@virtual
async def test_a_rollout_whose_experiment_does_not_start_goes_back():
    late = {
        "experiment": {
            "duration": "2m",
            "startDeadlineSeconds": 60,
            "variants": [{**VARIANT, "overrides": {"runtime": OTHER}}],
        }
    }
    async with place() as cluster:
        await cluster.canary({"setWeight": 20}, late, replicas=1)
        cluster.refuse_pods("chat-3")
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Aborted")
        assert "has not started in time" in cluster.rollout["message"]
        assert cluster.mix() == {"chat-1": 100}
        await cluster.until(lambda: cluster.states() == {1: "Current", 2: "Aborted", 3: "Abandoned"})


@virtual
async def test_an_experiment_after_an_abort_does_not_try_the_aborted_spec_again():
    async with place() as cluster:
        await cluster.canary({"setWeight": 20}, {"pause": {}}, replicas=1)
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        await cluster.annotate(abort="chat-2")
        await cluster.rolled("Aborted")
        await experiment(cluster, variants=[{**VARIANT, "overrides": {"runtime": OTHER}}], duration="1m")
        await cluster.until(lambda: status(cluster).get("phase") == "Ended", 2000.0)
        await asyncio.sleep(60)
        assert cluster.states() == {1: "Current", 2: "Aborted", 3: "Abandoned"}


@virtual
async def test_one_that_was_refused_in_the_middle_is_taken_up_again():
    async with place() as cluster:
        await serving(cluster)
        await experiment(cluster)
        await cluster.until(lambda: status(cluster).get("phase") == "Running")
        await cluster.user.patch(EXPERIMENTS, KEY, merge_patch({"spec": {"analysis": {"against": "nobody"}}}))
        await cluster.until(lambda: cluster.states() == {1: "Current", 2: "Abandoned"})
        assert cluster.mix() == {"chat-1": 100}
        await cluster.user.patch(EXPERIMENTS, KEY, merge_patch({"spec": {"analysis": {"against": "Serving"}}}))
        await cluster.until(lambda: cluster.mix() == {"chat-1": 90, "chat-3": 10})
