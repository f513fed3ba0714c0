"""What an endpoint's life costs the API server: no more writes than have something to say."""

import asyncio

from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import simulated_cluster

INGRESS = {"kind": "Ingress", "host": "chat.example.com"}
STATUS = "patch servingendpoints.pilotage.dev/status default/chat"
FINALIZER = "patch servingendpoints.pilotage.dev default/chat"
RECORD_STATUS = "patch teardowns.pilotage.dev/status default/chat-"


def counted(writes: list[str], beginning: str) -> int:
    return sum(each.startswith(beginning) for each in writes)


@virtual
async def test_a_deploy_writes_the_status_when_it_begins_is_made_is_routed_and_serves():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        await asyncio.sleep(30)
        assert counted(place.writes(), STATUS) == 4, place.writes()
        assert counted(place.writes(), FINALIZER) == 1, place.writes()


@virtual
async def test_a_deletion_that_goes_at_once_writes_each_status_once_at_its_begin_and_the_record_at_its_end():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS, deletion={"drainSeconds": 0})
        await place.serving()
        before, others = len(place.writes()), len(place.writes("cluster"))
        await place.delete()
        await place.gone()
        writes = place.writes()[before:]
        assert counted(writes, STATUS) == 1, writes
        # A ReplicaSet that its controller makes once more meanwhile may have to be written down.
        again = counted(place.writes("cluster")[others:], "create replicasets.apps")
        assert 2 <= counted(writes, RECORD_STATUS) <= 2 + again, writes


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
