"""Cost of an endpoint's life to the API server: no write without new information."""

import asyncio

from pilotage.kube import EVENTS, PODS, ObjectKey, merge_patch
from pilotage.serving.resources import DEPLOYMENTS
from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_sim.loop import virtual
from pilotage_sim.models.kubelet import EXIT
from tests.controllers.simulated_cluster import simulated_cluster

INGRESS = {"kind": "Ingress", "host": "chat.example.com"}
STATUS = "patch servingendpoints.pilotage.dev/status default/chat"


def counted(writes: list[str], beginning: str) -> int:
    return sum(each.startswith(beginning) for each in writes)


@virtual
async def test_a_deploy_takes_five_writes():
    async with simulated_cluster() as place:
        await place.deploy()
        await place.serving()
        await asyncio.sleep(30)
        assert [each.partition(" default/chat")[0] for each in place.writes()] == [
            "patch servingendpoints.pilotage.dev",
            "patch servingendpoints.pilotage.dev/status",
            "create services",
            "create deployments.apps",
            "patch servingendpoints.pilotage.dev/status",
        ]
        assert all(entry["uid"] for entry in place.status()["ledger"])


@virtual
async def test_a_deploy_with_a_route_writes_the_status_when_it_begins_is_routed_and_serves():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        await asyncio.sleep(30)
        assert counted(place.writes(), STATUS) == 3, place.writes()


@virtual
async def test_a_deletion_that_goes_at_once_takes_six_writes():
    async with simulated_cluster() as place:
        await place.deploy(deletion={"drainSeconds": 0})
        await place.serving()
        await asyncio.sleep(30)
        before = len(place.writes())
        await place.delete()
        await place.gone()
        writes = [each.partition(" default/chat")[0] for each in place.writes()[before:]]
        assert writes == [
            "create teardowns.pilotage.dev",
            "patch teardowns.pilotage.dev/status",
            "delete deployments.apps",
            "delete services",
            "patch teardowns.pilotage.dev/status",
            "patch servingendpoints.pilotage.dev",
        ]


@virtual
async def test_of_many_deletions_that_take_their_time_each_writes_little():
    """Pods have a grace period: nothing blocks, and there is no news."""
    count = 25
    async with simulated_cluster() as place:
        keys = [ObjectKey("default", f"chat-{number}") for number in range(count)]
        for key in keys:
            await place.deploy(key, deletion={"drainSeconds": 0})
        for key in keys:
            await place.serving(f"{key.name}-1", key)
        await asyncio.sleep(30)
        slow = merge_patch({"metadata": {"annotations": {EXIT: "2"}}})
        for pod in place.world.objects(PODS):
            await place.user.patch(PODS, ObjectKey("default", pod["metadata"]["name"]), slow)
        before = len(place.writes())
        for key in keys:
            await place.delete(key)
        for key in keys:
            await place.gone(key)
        assert len(place.writes()) - before == 6 * count


@virtual
async def test_after_many_deletions_a_single_one_tells_of_itself_at_once():
    """Also where one of the many is stuck, and where the record of another was deleted."""
    async with simulated_cluster() as place:
        keys = [ObjectKey("default", f"chat-{number}") for number in range(25)]
        for key in keys:
            await place.deploy(key, deletion={"drainSeconds": 0})
        for key in keys:
            await place.serving(f"{key.name}-1", key)
        hold = merge_patch({"metadata": {"finalizers": ["example.com/hold"]}})
        await place.user.patch(DEPLOYMENTS, ObjectKey("default", "chat-0-1"), hold)
        for key in keys[:-1]:
            await place.delete(key)
        for key in keys[1:-1]:
            await place.gone(key)
        await asyncio.sleep(300)
        slow = merge_patch({"metadata": {"annotations": {EXIT: "20"}}})
        for pod in place.world.objects(PODS):
            await place.user.patch(PODS, ObjectKey("default", pod["metadata"]["name"]), slow)
        await place.delete(keys[-1])
        asked = asyncio.get_running_loop().time()
        await place.until(lambda: place.status(keys[-1]).get("phase") == "Deleting")
        assert asyncio.get_running_loop().time() - asked <= 2.0


@virtual
async def test_a_deletion_that_takes_its_time_is_shown_by_the_endpoint_and_its_events():
    async with simulated_cluster() as place:
        await place.deploy(deletion={"drainSeconds": 0})
        await place.serving()
        hold = merge_patch({"metadata": {"finalizers": ["example.com/hold"]}})
        await place.user.patch(DEPLOYMENTS, ObjectKey("default", "chat-1"), hold)
        await place.delete()
        await place.until(lambda: place.status()["phase"] == "Deleting")
        await place.user.patch(
            DEPLOYMENTS, ObjectKey("default", "chat-1"), merge_patch({"metadata": {"finalizers": None}})
        )
        await place.gone()
        await place.until(lambda: {"Deleting", "Deleted"} <= {each["reason"] for each in place.world.objects(EVENTS)})


@virtual
async def test_the_proof_of_a_few_replicas_does_not_read_all_pods_of_the_namespace():
    async with simulated_cluster() as place:
        await place.deploy(replicas=5, deletion={"drainSeconds": 0})
        await place.serving()
        lists: list[str] = []

        def note(call: Call) -> ServerResponse | None:
            everything = not call.option("labelSelector")
            if call.method == "GET" and call.path.endswith("/namespaces/default/pods") and everything:
                lists.append(call.path)
            return None

        place.world.intercept(note)
        await place.delete()
        await place.gone()
        assert len(place.records()[0]["status"]["receipt"]["objects"]) >= 5
        assert not lists
