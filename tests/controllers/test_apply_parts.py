"""Objects that have the name of a part: only one that is proven to be the endpoint's is changed."""

import asyncio
from typing import Any

import pytest

from pilotage.api.names import ANNOTATION_SEAL, LABEL_ENDPOINT, LABEL_ENDPOINT_UID, LABEL_MANAGED_BY, MANAGED_BY
from pilotage.kube import ObjectKey, Propagation
from pilotage.serving.resources import SERVICES
from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import simulated_cluster
from tests.controllers.simulated_hosts import simulated_hosts

PART = ObjectKey("default", "chat-1")
PORTS = [{"name": "theirs", "port": 9999}]


def service(labels: dict[str, str], **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": PART.namespace, "name": PART.name, "labels": labels, **metadata},
        "spec": {"selector": {"app": "theirs"}, "ports": PORTS},
    }


@virtual
@pytest.mark.parametrize("whose", ["nobody", "another", "this"])
async def test_an_object_with_the_name_of_a_part_is_not_touched_whatever_its_labels_say(whose):
    """Labels can be written by any client, and they bring an object into the operator's caches."""
    async with simulated_cluster(operate=False) as place:
        uid = (await place.deploy())["metadata"]["uid"]
        labels = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_ENDPOINT: "chat", LABEL_ENDPOINT_UID: uid}
        if whose == "another":
            labels[LABEL_ENDPOINT_UID] = "00000000-0000-0000-0000-000000000000"
        before = (await place.user.create(SERVICES, service({} if whose == "nobody" else labels))).to_dict()
        place.operate()
        await place.until(lambda: place.condition("Degraded").get("reason") == "NameTaken")
        await asyncio.sleep(600.0)
        assert place.world.find(SERVICES, PART) == before
        assert "service/chat-1 -n default exists" in place.condition("Degraded")["message"]


@virtual
async def test_a_seal_of_another_object_proves_nothing():
    async with simulated_cluster(operate=False) as place:
        uid = (await place.deploy())["metadata"]["uid"]
        labels = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_ENDPOINT: "chat", LABEL_ENDPOINT_UID: uid}
        manager = place.operate()
        await place.serving()
        seal = place.world.find(SERVICES, PART)["metadata"]["annotations"][ANNOTATION_SEAL]
        manager.stop()
        await asyncio.sleep(30.0)
        forged = service(labels, annotations={ANNOTATION_SEAL: seal})
        forged["metadata"]["name"] = "chat-2"
        before = (await place.user.create(SERVICES, forged)).to_dict()
        await place.change(runtime={"args": ["--ctx-size", "4096"]})
        place.operate()
        await place.until(lambda: place.condition("Degraded").get("reason") == "NameTaken")
        await asyncio.sleep(600.0)
        assert place.world.find(SERVICES, ObjectKey("default", "chat-2")) == before
        assert place.status()["revision"] == "chat-1"


@virtual
async def test_a_name_that_becomes_free_is_noticed_soon():
    """No cache has the object that had it, so nothing tells."""
    async with simulated_hosts() as place:
        theirs = await place.user.create(SERVICES, service({}))
        await place.deploy(placement={"kind": "Host", "host": "gpu-1"}, route={"kind": "PilotageGateway"})
        await place.until(lambda: place.condition("Degraded").get("reason") == "NameTaken")
        await place.user.delete(SERVICES, PART, uid=theirs.meta.uid, propagation=Propagation.BACKGROUND)
        freed = asyncio.get_running_loop().time()
        await place.serving()
        assert asyncio.get_running_loop().time() - freed < 30.0
