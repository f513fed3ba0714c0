"""Experiments in a simulated cluster: claimed, ended, deleted."""

from __future__ import annotations

from typing import Any

from pilotage.api.names import EXPERIMENT_FINALIZER, EXPERIMENTS
from pilotage.kube import ObjectKey, Propagation, merge_patch
from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import SimulatedCluster, simulated_cluster

KEY = ObjectKey("default", "q8")
VARIANT = {"name": "q8", "weight": 10, "overrides": {"runtime": {"args": ["--ctx-size", "512"]}}}


async def experiment(place: SimulatedCluster, **spec: Any) -> None:
    body = {
        "metadata": {"namespace": KEY.namespace, "name": KEY.name},
        "spec": {"endpoint": {"name": "chat"}, "variants": [VARIANT], **spec},
    }
    await place.user.create(EXPERIMENTS, body)


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
