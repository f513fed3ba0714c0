"""Tenants of one cluster: what a namespace editor writes has no effect on the operator's objects for another tenant."""

import asyncio
import base64

import pytest

from pilotage.api.names import (
    ANNOTATION_SEAL,
    LABEL_ENDPOINT_UID,
    LABEL_KEPT,
    LABEL_MANAGED_BY,
    LABEL_REVISION,
)
from pilotage.controllers.seals import KEY_BYTES, SECRET_NAME, KeyUnusable, Seals
from pilotage.kube import SECRETS, Json, ObjectKey, merge_patch
from pilotage.serving.resources import CLAIMS, DEPLOYMENTS, SERVICES
from pilotage_sim.loop import virtual
from pilotage_sim.world import SimulatedWorld
from tests.controllers.simulated_cluster import ALL, KEY, NAMESPACES, SimulatedCluster, simulated_cluster
from tests.controllers.simulated_hosts import SimulatedHosts, simulated_hosts
from tests.controllers.two_teams import FIRST, HELD, WHILE, plant, restart, two_teams, uids
from tests.support.kinds import CONFIG_MAPS

VARIANTS: dict[str, Json] = {
    "Deployment": {},
    "Host": {"placement": {"kind": "Host", "host": "gpu-1"}},
    "Host behind the gateway": {"placement": {"kind": "Host", "host": "gpu-1"}, "route": {"kind": "PilotageGateway"}},
}


@virtual
@pytest.mark.parametrize("spec", VARIANTS.values(), ids=VARIANTS)
async def test_a_label_with_the_uid_of_somebody_elses_endpoint_deletes_nothing(spec):
    async with two_teams(simulated_hosts) as place:
        assert isinstance(place, SimulatedHosts)
        uid = (await place.deploy(**spec))["metadata"]["uid"]
        await place.serving()
        before = uids(place)
        await plant(place, "team-a", "bait", uid)
        await asyncio.sleep(WHILE)
        assert uids(place) == before
        assert place.records() == []
        assert uids(place, "team-a").keys() == {"Service/bait"}
        assert place.status()["phase"] == "Serving"


@virtual
@pytest.mark.parametrize("namespace", ["team-a", "default"])
async def test_a_planted_part_with_a_finalizer_holds_no_deletion_up_and_stays(namespace):
    async with two_teams() as place:
        uid = (await place.deploy(deletion={"drainSeconds": 0}))["metadata"]["uid"]
        await place.serving()
        await plant(place, namespace, "anchor", uid, endpoint="chat", finalizers=[HELD])
        await asyncio.sleep(WHILE)
        await place.delete()
        await place.gone()
        assert place.parts() == ["Service/anchor"]
        (record,) = place.records()
        assert record["status"]["receipt"]["result"] == "complete"
        said = [note for note in record["status"]["receipt"]["notes"] if "service/anchor stay" in note]
        assert len(said) == (namespace == "default"), "it is named where it looks like a part"


@virtual
async def test_what_a_vanished_endpoint_left_is_swept_and_what_others_labelled_so_is_not():
    async with two_teams() as place:
        uid = (await place.deploy())["metadata"]["uid"]
        await place.serving()
        await plant(place, "default", "mine", uid, endpoint="chat")
        await plant(place, "team-a", "mine", uid, endpoint="chat")
        await place.delete_behind_the_operators_back()
        await place.until(lambda: place.parts() == ["Service/mine", "Service/mine"])
        await asyncio.sleep(WHILE)
        assert [each["spec"]["reason"] for each in place.records()] == ["Vanished"]


@virtual
async def test_a_seal_that_is_copied_to_another_object_proves_nothing():
    async with two_teams() as place:
        uid = (await place.deploy(deletion={"drainSeconds": 0}))["metadata"]["uid"]
        await place.serving()
        seal = place.world.find(SERVICES, FIRST)["metadata"]["annotations"][ANNOTATION_SEAL]
        await plant(place, "default", "copy", uid, endpoint="chat", annotations={ANNOTATION_SEAL: seal})
        await plant(place, "team-a", "chat-1", uid, endpoint="chat", annotations={ANNOTATION_SEAL: seal})
        await plant(place, "default", "odd", uid, endpoint="chat", annotations={ANNOTATION_SEAL: "ünsinn"})
        await place.delete()
        await place.gone()
        assert place.parts() == ["Service/chat-1", "Service/copy", "Service/odd"]


@virtual
async def test_an_object_that_names_a_part_of_another_namespace_as_its_owner_is_none():
    async with two_teams() as place:
        uid = (await place.deploy(deletion={"drainSeconds": 0}))["metadata"]["uid"]
        await place.serving()
        owner = place.world.find(DEPLOYMENTS, FIRST)["metadata"]["uid"]
        owners = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat-1", "uid": owner}]
        await plant(place, "team-a", "child", uid, endpoint="chat", ownerReferences=owners, finalizers=[HELD])
        await place.delete()
        await place.gone()
        (record,) = place.records()
        assert {each["namespace"] for each in record["status"]["receipt"]["objects"]} == {"default"}


@virtual
async def test_a_seal_that_somebody_removed_is_put_back_and_nothing_is_made_anew():
    async with simulated_cluster() as place:
        await place.deploy(route={"kind": "Ingress", "host": "chat.example.com"}, cache={"size": "1Gi"})
        await place.serving()
        before, sealed = uids(place), _seals(place)
        assert {name.partition("/")[0] for name in sealed} == {
            "Deployment",
            "Service",
            "Ingress",
            "PersistentVolumeClaim",
        }
        await _strip_seals(place)
        await place.until(lambda: _seals(place) == sealed)
        assert uids(place) == before


@virtual
async def test_with_another_key_the_parts_of_live_endpoints_are_sealed_anew_and_go_in_order():
    async with simulated_cluster() as place:
        await place.deploy(deletion={"drainSeconds": 0})
        await place.serving()
        before, sealed = uids(place), _seals(place)
        await restart(place, key=b"another")
        assert uids(place) == before
        assert _seals(place).keys() == sealed.keys()
        assert not set(_seals(place).values()) & set(sealed.values())
        await place.delete()
        await place.gone()
        assert place.parts() == []


@virtual
async def test_an_endpoint_that_is_deleted_while_the_key_is_lost_still_takes_its_parts_along():
    async with simulated_cluster() as place:
        await place.deploy(deletion={"drainSeconds": 0})
        await place.serving()
        place.managers[-1].stop()
        await asyncio.sleep(30.0)
        await place.delete()
        place.operate(key=b"another")
        await place.gone()
        assert place.parts() == []


@virtual
async def test_what_was_labelled_as_kept_by_somebody_else_is_not_taken_up():
    async with simulated_cluster() as place:
        labels = {LABEL_MANAGED_BY: "pilotage", LABEL_KEPT: "chat"}
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        metadata = {"namespace": "default", "name": "chat-cache", "labels": labels}
        await place.user.create(CLAIMS, {"metadata": metadata, "spec": spec})
        await place.deploy(cache={"size": "1Gi"})
        await place.until(lambda: place.condition("Degraded").get("reason") == "NameTaken")
        assert "not the operator's seal" in place.condition("Degraded")["message"]
        claim = place.world.find(CLAIMS, ObjectKey("default", "chat-cache"))
        assert LABEL_ENDPOINT_UID not in claim["metadata"]["labels"]


@virtual
async def test_a_part_that_somebody_gave_an_owner_still_goes_with_its_revision():
    async with simulated_cluster() as place:
        await place.deploy(deletion={"drainSeconds": 0})
        await place.serving()
        owner = await place.user.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": "mine"}})
        owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": owner.meta.uid}]
        await place.user.patch(SERVICES, FIRST, merge_patch({"metadata": {"ownerReferences": owners}}))
        await place.change(runtime={"args": ["--ctx-size", "2"]})
        await place.serving("chat-2")
        await place.until(lambda: not any("chat-1" in part for part in place.parts()))


@virtual
async def test_a_revision_label_that_is_no_number_stops_nothing():
    async with simulated_cluster() as place:
        await place.deploy(deletion={"drainSeconds": 0})
        await place.serving()
        await place.user.patch(DEPLOYMENTS, FIRST, merge_patch({"metadata": {"finalizers": [HELD]}}))
        await place.change(runtime={"args": ["--ctx-size", "2"]})
        await place.serving("chat-2")
        await place.user.patch(SERVICES, FIRST, merge_patch({"metadata": {"labels": {LABEL_REVISION: "nine"}}}))
        await place.change(replicas=2)
        await place.until(lambda: place.status()["observedGeneration"] == place.endpoint()["metadata"]["generation"])
        await place.user.patch(DEPLOYMENTS, FIRST, merge_patch({"metadata": {"finalizers": None}}))
        await place.until(lambda: not any("chat-1" in part for part in place.parts()))


# The key


@virtual
async def test_two_operators_that_start_at_once_agree_on_one_key():
    async with SimulatedWorld(3) as world:
        client = world.client("admin")
        await client.create(NAMESPACES, {"metadata": {"name": "pilotage-system"}})
        both = [Seals("pilotage-system") for _ in range(2)]
        await asyncio.gather(*(each.unlock(world.client(f"operator-{number}")) for number, each in enumerate(both)))
        first, second = (each.seal(SERVICES, FIRST, "a-uid") for each in both)
        assert first == second
        again = Seals("pilotage-system")
        await again.unlock(client)
        assert again.seal(SERVICES, FIRST, "a-uid") == first
        (secret,) = world.objects(SECRETS)
        assert len(base64.b64decode(secret["data"]["key"])) == KEY_BYTES


@virtual
async def test_a_secret_without_a_key_is_refused_and_not_overwritten():
    async with SimulatedWorld(3) as world:
        client = world.client("admin")
        await client.create(NAMESPACES, {"metadata": {"name": "pilotage-system"}})
        metadata = {"namespace": "pilotage-system", "name": SECRET_NAME}
        await client.create(SECRETS, {"metadata": metadata, "data": {"key": "c2hvcnQ="}})
        with pytest.raises(KeyUnusable, match=r"Restore it from a backup, or delete it"):
            await Seals("pilotage-system").unlock(client)
        assert world.objects(SECRETS)[0]["data"] == {"key": "c2hvcnQ="}


def _seals(place: SimulatedCluster) -> dict[str, str]:
    """The seals of what the operator has made."""
    return {
        f"{resource.kind}/{each['metadata']['name']}": each["metadata"]["annotations"][ANNOTATION_SEAL]
        for resource in ALL
        for each in place.world.objects(resource, KEY.namespace)
        if ANNOTATION_SEAL in each["metadata"].get("annotations", {}) and not each["metadata"].get("ownerReferences")
    }


async def _strip_seals(place: SimulatedCluster) -> None:
    nothing = merge_patch({"metadata": {"annotations": {ANNOTATION_SEAL: None}}})
    for resource in ALL:
        for each in place.world.objects(resource, KEY.namespace):
            if ANNOTATION_SEAL in each["metadata"].get("annotations", {}):
                await place.user.patch(resource, ObjectKey(KEY.namespace, each["metadata"]["name"]), nothing)
