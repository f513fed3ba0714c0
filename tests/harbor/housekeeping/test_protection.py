"""Protection by a kube-controller-manager that no recorded case can show (`tests/contract/cases/protecting.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.core.admission import AdmissionAttributes, NoAdmission
from pilotage_sim.loop import virtual
from tests.harbor.housekeeping.support import World

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json

CLAIMS, VOLUMES = "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"
MERGE = "application/merge-patch+json"


def claim(name: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def user(pod: str, claim_name: str, volume: Json | None = None) -> dict[str, Any]:
    data = {"name": "data", **(volume or {"persistentVolumeClaim": {"claimName": claim_name}})}
    spec = {"containers": [{"name": "main", "image": "image"}], "nodeName": "n", "volumes": [data]}
    return {"plural": "pods", "name": pod, "spec": spec}


async def names(world: World, where: str) -> list[str]:
    return [each["metadata"]["name"] for each in (await world.ask("GET", where))["items"]]


@virtual
async def test_a_claim_that_was_deleted_while_nobody_looked_goes_after_the_start():
    async with World() as world:
        await world.housekeeping.stop()
        await world.ask("POST", CLAIMS, claim("data"))
        await world.ask("DELETE", f"{CLAIMS}/data")
        await world.settle(60)
        assert await names(world, CLAIMS) == ["data"]
        await world.housekeeping.start()
        await world.settle()
        assert await names(world, CLAIMS) == []


@virtual
async def test_a_volume_goes_when_the_claim_that_it_is_bound_to_has_gone():
    async with World() as world:
        made = await world.ask("POST", CLAIMS, claim("data"))
        reference = {"namespace": "default", "name": "data", "uid": made["metadata"]["uid"]}
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/none"},
            "claimRef": reference,
        }
        body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}
        await world.ask("POST", VOLUMES, body)
        await world.ask("PATCH", f"{VOLUMES}/v/status", {"status": {"phase": "Bound"}}, MERGE)
        await world.ask("DELETE", f"{VOLUMES}/v")
        await world.settle(60)
        assert await names(world, VOLUMES) == ["v"]
        await world.ask("DELETE", f"{CLAIMS}/data")
        await world.settle()
        assert await names(world, VOLUMES) == []


@virtual
async def test_a_claim_that_was_made_for_a_pod_goes_when_the_pod_is_shut_down_though_something_holds_the_pod():
    template = {"ephemeral": {"volumeClaimTemplate": {"spec": claim("")["spec"]}}}
    async with World() as world:
        pod = await world.create(**user("a", "", template), finalizers=["example.com/hold"])
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": pod["metadata"]["uid"], "controller": True}
        body = claim("a-data")
        body["metadata"]["ownerReferences"] = [owner]
        await world.ask("POST", CLAIMS, body)
        await world.ask("DELETE", f"{CLAIMS}/a-data")
        await world.settle(60)
        assert await names(world, CLAIMS) == ["a-data"]
        await world.ask("DELETE", "/api/v1/namespaces/default/pods/a", {"gracePeriodSeconds": 0})
        await world.settle()
        assert await names(world, CLAIMS) == []
        assert await world.names("pods") == ["a"]


@virtual
async def test_a_namespace_goes_with_its_claims():
    async with World() as world:
        await world.create("namespaces", "team")
        await world.ask("POST", CLAIMS.replace("default", "team"), claim("data"))
        await world.delete("namespaces", "team")
        await world.settle(30)
        assert await world.get("namespaces", "team") is None


class Refusing(NoAdmission):
    """Refuses every change."""

    async def validate(self, attributes: AdmissionAttributes) -> list[str]:
        if attributes.operation == "UPDATE":
            raise StatusError(403, "Forbidden", "not now")
        return []


@virtual
async def test_a_claim_that_cannot_be_released_is_tried_again():
    async with World() as world:
        await world.ask("POST", CLAIMS, claim("data"))
        admission, world.core.admission = world.core.admission, Refusing()
        await world.ask("DELETE", f"{CLAIMS}/data")
        await world.settle(5)
        assert await names(world, CLAIMS) == ["data"]
        world.core.admission = admission
        await world.settle(60)
        assert await names(world, CLAIMS) == []
