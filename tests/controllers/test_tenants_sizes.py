"""Large values in endpoints, and in what their status quotes: they are reported, and affect no other endpoint."""

import asyncio
import copy

from pilotage.api.endpoint import EndpointSpec
from pilotage.api.names import ENDPOINTS, LABEL_REVISION, PROCESSES
from pilotage.kube import PODS, Json, ObjectKey, merge_patch
from pilotage.operator.crds import crds
from pilotage.serving import desired_objects
from pilotage.serving.parts import Capabilities, EndpointRef, ResolvedModel
from pilotage.serving.resources import SERVICES
from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import CRDS, KEY, SimulatedCluster, simulated_cluster
from tests.controllers.two_teams import FIRST, WHILE, part_labels, two_teams, uids


async def allow_any_number_of_replicas(place: SimulatedCluster) -> Json:
    """The definition as it was before there was a bound; returns the patch that brings it back."""
    (crd,) = (each for each in crds() if each["metadata"]["name"] == str(ENDPOINTS))
    strict = {"spec": {"versions": crd["spec"]["versions"]}}
    loose = copy.deepcopy(strict)
    del loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"][
        "maximum"
    ]
    await place.user.patch(CRDS, ObjectKey("", str(ENDPOINTS)), merge_patch(loose))
    return strict


@virtual
async def test_a_million_replicas_from_before_the_bound_are_reported_and_stop_nobody_else():
    async with two_teams() as place:
        strict = await allow_any_number_of_replicas(place)
        huge = ObjectKey("team-a", "huge")
        await place.deploy(huge, replicas=1_000_000, placement={"kind": "Host", "host": "gpu-1"})
        await place.user.patch(CRDS, ObjectKey("", str(ENDPOINTS)), merge_patch(strict))
        await place.deploy()
        await place.serving()
        assert place.condition("Degraded", huge)["reason"] == "InvalidSpec"
        assert "spec.replicas" in place.condition("Degraded", huge)["message"]
        assert place.world.objects(PROCESSES) == []
        await place.delete(huge)
        await place.gone(huge)


def test_the_processes_of_many_replicas_share_one_spec():
    spec = EndpointSpec.read(
        {"model": {"source": "hf://o/r/m.gguf"}, "replicas": 1000, "placement": {"kind": "Host", "host": "gpu-1"}}
    )
    subject = EndpointRef("default", "chat", "a-uid", spec)
    _, *processes = desired_objects(subject, 1, ResolvedModel("chat", "hf://o/r/m.gguf"), Capabilities())
    assert len({each.name for each in processes}) == 1000
    assert len({id(each.body["spec"]) for each in processes}) == 1


@virtual
async def test_a_history_that_no_operator_wrote_is_reported_and_nothing_is_changed():
    async with simulated_cluster() as place:
        await place.deploy()
        await place.serving()
        before = uids(place)
        past = place.status()["history"][0] | {"spec": {"model": {"source": "hf://a/b"}, "runtime": {"port": -1}}}
        patch = merge_patch({"status": {"history": [past]}})
        await place.user.patch(ENDPOINTS, KEY, patch, subresource="status")
        await place.until(lambda: place.condition("Stalled").get("reason") == "UnreadableHistory")
        await asyncio.sleep(WHILE)
        assert uids(place) == before


@virtual
async def test_thousands_of_finalizers_on_a_part_do_not_keep_the_status_from_being_written():
    async with simulated_cluster() as place:
        await place.deploy(deletion={"drainSeconds": 0})
        await place.serving()
        many = [f"attacker.example/{number:0>60}" for number in range(1000)]
        await place.user.patch(SERVICES, FIRST, merge_patch({"metadata": {"finalizers": many}}))
        await place.delete()
        await place.until(lambda: "attacker.example" in (place.status().get("waitingFor") or ""))
        assert len(place.status()["waitingFor"]) < 4000


@virtual
async def test_a_long_chain_of_owners_is_followed_to_its_end():
    async with simulated_cluster() as place:
        uid = (await place.deploy(deletion={"drainSeconds": 0}))["metadata"]["uid"]
        await place.serving()
        first = place.world.find(SERVICES, FIRST)["metadata"]["uid"]
        owners = [{"apiVersion": "v1", "kind": "Service", "name": FIRST.name, "uid": first}]
        for number in range(400):
            name = f"forged-{number}"
            metadata = {"namespace": "default", "name": name, "labels": part_labels(uid, "chat")}
            body = {"metadata": metadata | {"ownerReferences": owners}, "spec": {"ports": [{"port": 80}]}}
            made = await place.user.create(SERVICES, body)
            owners = [{"apiVersion": "v1", "kind": "Service", "name": name, "uid": made.meta.uid}]
        await place.delete()
        await place.gone()
        assert uids(place) == {}


@virtual
async def test_thousands_of_owners_of_one_object_are_not_looked_up():
    """A tenant who may create a pod would have the operator read them one by one, while others' deletions wait."""
    async with simulated_cluster() as place:
        uid = (await place.deploy(deletion={"drainSeconds": 0}))["metadata"]["uid"]
        await place.serving()
        ports = {"ports": [{"port": 80}]}
        mine = await place.user.create(SERVICES, {"metadata": {"namespace": "default", "name": "mine"}, "spec": ports})
        # Of a version that is not served: the garbage collector, which takes away owners that are gone, cannot tell.
        owners = [
            {"apiVersion": "apps/v9", "kind": "Deployment", "name": f"absent-{each}", "uid": f"{each}"}
            for each in range(2000)
        ]
        owners.append({"apiVersion": "v1", "kind": "Service", "name": "mine", "uid": mine.meta.uid})
        labels = part_labels(uid, "chat") | {LABEL_REVISION: "1"}
        metadata = {"namespace": "default", "name": "forged", "labels": labels}
        pod = {"containers": [{"name": "main", "image": "x"}]}
        await place.user.create(PODS, {"metadata": metadata | {"ownerReferences": owners}, "spec": pod})
        read = []
        place.world.intercept(lambda call: read.append(call.path) if "/deployments/absent-" in call.path else None)
        await place.change(runtime={"args": ["-c", "9"]})
        await place.serving("chat-2")
        await place.until(lambda: [each.get("status", {}).get("phase") for each in place.records()] == ["done"])
        assert read == []
