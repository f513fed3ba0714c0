"""The record of a Teardown: its ledger while it is under way."""

import asyncio

from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import simulated_cluster


@virtual
async def test_the_ledger_in_the_status_names_phases_and_resources():
    async with simulated_cluster() as place:
        await place.deploy(route={"kind": "Ingress", "host": "chat.example.com"}, deletion={"drainSeconds": 60})
        await place.serving()
        await place.delete()
        await place.until(place.records)
        await asyncio.sleep(5.0)
        (record,) = place.records()
        entries = {entry["resource"]["kind"]: entry for entry in record["status"]["ledger"]["entries"]}
        assert entries["Deployment"]["resource"] == {
            "group": "apps",
            "version": "v1",
            "plural": "deployments",
            "kind": "Deployment",
            "namespaced": True,
        }
        assert {kind: entry["phase"] for kind, entry in entries.items()} == {
            "Ingress": "detach",
            "Deployment": "stop",
            "ReplicaSet": "stop",
            "Pod": "stop",
            "Service": "remove",
            "EndpointSlice": "remove",
        }
