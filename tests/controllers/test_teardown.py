"""Teardowns of endpoints: the ledger in the record, and kinds that vanish meanwhile."""

import asyncio

import pytest

from pilotage.api.names import LABEL_ENDPOINT_UID, LABEL_KEPT, TEARDOWNS
from pilotage.kube import PODS, ObjectKey, Propagation, merge_patch
from pilotage.serving.resources import CLAIMS, DEPLOYMENTS
from pilotage.traffic.routers.httpproxy import HTTP_PROXIES
from pilotage.traffic.routers.ingress import INGRESSES
from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import CRDS, KEY, simulated_cluster
from tests.controllers.test_routing import PROXY, edge, receipt_of_route
from tests.teardown.onharbor import unserve


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


@virtual
async def test_a_route_whose_kind_is_uninstalled_meanwhile_does_not_hold_the_teardown_up():
    """Its definition is gone, and a definition outlives the objects of its kind."""
    async with edge() as place:
        await place.deploy(route=PROXY, deletion={"drainSeconds": 0})
        await place.serving()
        await place.user.patch(HTTP_PROXIES, KEY, merge_patch({"metadata": {"finalizers": ["example.com/slow"]}}))
        await place.delete()
        await place.until(lambda: "example.com/slow" in str(place.status().get("waitingFor")))
        place.managers[-1].stop()
        await asyncio.sleep(30.0)
        key = ObjectKey("", "httpproxies.projectcontour.io")
        definition = await place.user.get(CRDS, key)
        await place.user.delete(CRDS, key, uid=definition.meta.uid, propagation=Propagation.BACKGROUND)
        await place.user.patch(HTTP_PROXIES, KEY, merge_patch({"metadata": {"finalizers": None}}))
        await place.until(lambda: place.world.find(CRDS, key) is None)
        place.operate()
        await place.gone()
        assert place.parts() == []
        route = receipt_of_route(place)
        assert (route["state"], route["proof"]["request"].rpartition("/")[2]) == ("gone", key.name)


@pytest.mark.parametrize("restart", [True, False], ids=["seen by a new operator", "seen by the one that had it cached"])
@virtual
async def test_a_route_whose_kind_is_not_served_for_a_while_holds_the_teardown_up(restart):
    async with edge() as place:
        await place.deploy(route=PROXY, deletion={"drainSeconds": 0})
        await place.serving()
        await place.user.patch(HTTP_PROXIES, KEY, merge_patch({"metadata": {"finalizers": ["example.com/slow"]}}))
        await place.delete()
        await place.until(lambda: "example.com/slow" in str(place.status().get("waitingFor")))
        if restart:
            place.managers[-1].stop()
            await asyncio.sleep(30.0)
        back = unserve(place.world, "projectcontour.io")
        if restart:
            place.operate()
        await asyncio.sleep(1200.0)  # longer than a watch lasts
        assert "Deployment/chat-1" in place.parts()
        assert place.endpoint() is not None
        back()
        await place.user.patch(HTTP_PROXIES, KEY, merge_patch({"metadata": {"finalizers": None}}))
        await place.gone()


@virtual
async def test_what_the_garbage_collector_takes_the_operator_does_not_delete():
    async with simulated_cluster() as place:
        await place.deploy(deletion={"drainSeconds": 0})
        await place.serving()
        await place.delete()
        await place.gone()
        deleted = {write.split()[1] for write in place.writes() if write.startswith("delete ")}
        assert deleted == {"deployments.apps", "services"}


@virtual
async def test_the_cause_of_a_wait_is_in_the_status_within_two_seconds():
    async with simulated_cluster() as place:
        await place.deploy(deletion={"drainSeconds": 0})
        await place.serving()
        deployment = ObjectKey("default", "chat-1")
        await place.user.patch(DEPLOYMENTS, deployment, merge_patch({"metadata": {"finalizers": ["example.com/hold"]}}))
        await place.delete()
        asked = asyncio.get_running_loop().time()
        await place.until(lambda: "deployment/chat-1" in str(place.status().get("waitingFor")))
        assert asyncio.get_running_loop().time() - asked <= 2.0
        assert "finalizer example.com/hold" in place.status()["waitingFor"]


@virtual
async def test_nothing_runs_on_below_a_deployment_that_a_finalizer_keeps():
    async with simulated_cluster() as place:
        await place.deploy(deletion={"drainSeconds": 0})
        await place.serving()
        deployment = ObjectKey("default", "chat-1")
        await place.user.patch(DEPLOYMENTS, deployment, merge_patch({"metadata": {"finalizers": ["example.com/hold"]}}))
        await place.delete()
        await place.until(lambda: not place.world.objects(PODS), limit=60.0)
        kinds = {part.partition("/")[0] for part in place.parts()}
        assert kinds == {"Deployment", "Service", "EndpointSlice"}, "the owner waits, and what comes after it"
        await place.user.patch(DEPLOYMENTS, deployment, merge_patch({"metadata": {"finalizers": None}}))
        await place.gone()
        assert place.parts() == []


@virtual
async def test_a_route_that_has_lost_its_label_still_counts():
    """No cache shows it any more, and it still sends requests."""
    async with simulated_cluster() as place:
        await place.deploy(route={"kind": "Ingress", "host": "chat.example.com"}, deletion={"drainSeconds": 0})
        await place.serving()
        await place.user.patch(INGRESSES, KEY, merge_patch({"metadata": {"finalizers": ["example.com/hold"]}}))
        await place.delete()
        await place.until(lambda: "example.com/hold" in str(place.status().get("waitingFor")))
        await place.user.patch(INGRESSES, KEY, merge_patch({"metadata": {"labels": {LABEL_ENDPOINT_UID: None}}}))
        await asyncio.sleep(60.0)
        assert {"Deployment/chat-1", "Service/chat-1"} <= {*place.parts()}
        assert "example.com/hold" in place.status()["waitingFor"]
        await place.user.patch(INGRESSES, KEY, merge_patch({"metadata": {"finalizers": None}}))
        await place.gone()
        assert (place.parts(), place.world.objects(INGRESSES)) == ([], [])


@virtual
async def test_what_was_detached_to_be_kept_does_not_hold_a_new_operator_up():
    """It was proven by its owner alone, and has none any more."""
    async with simulated_cluster() as place:
        await place.deploy(deletion={"drainSeconds": 0, "keep": ["Volumes"]})
        await place.serving()
        deployment = ObjectKey("default", "chat-1")
        await place.user.patch(DEPLOYMENTS, deployment, merge_patch({"metadata": {"finalizers": ["example.com/hold"]}}))
        owner = (await place.user.get(DEPLOYMENTS, deployment)).meta
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": owner.name, "uid": owner.uid}
        claim = {
            "metadata": {
                "namespace": "default",
                "name": "scratch",
                "labels": {**owner.labels},
                "ownerReferences": [reference],
            },
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        uid = (await place.user.create(CLAIMS, claim)).meta.uid
        await asyncio.sleep(1.0)
        await place.delete()
        await place.until(lambda: "example.com/hold" in str(place.status().get("waitingFor")))
        found = place.world.find(CLAIMS, ObjectKey("default", "scratch")) or {}
        assert "ownerReferences" not in found["metadata"]
        place.managers[-1].stop()
        await asyncio.sleep(30.0)
        place.operate()
        await place.user.patch(DEPLOYMENTS, deployment, merge_patch({"metadata": {"finalizers": None}}))
        await place.gone()
        found = place.world.find(CLAIMS, ObjectKey("default", "scratch")) or {}
        assert found["metadata"]["uid"] == uid
        assert "scratch" in str(place.records()[0]["status"]["receipt"]["notes"])


@virtual
async def test_what_is_kept_is_in_the_receipt_of_an_operator_that_was_stopped_before_the_end():
    def refuse_the_end(call: Call) -> ServerResponse | None:
        ends = call.method == "PATCH" and call.path.endswith("/status") and b'"phase":"done"' in call.body
        return ServerResponse(503, b"{}") if ends else None

    async with simulated_cluster() as place:
        await place.deploy(cache={"size": "1Gi"}, deletion={"drainSeconds": 0, "keep": ["Volumes"]})
        await place.serving()
        (claim,) = place.world.objects(CLAIMS)
        allow = place.world.intercept(refuse_the_end)
        await place.delete()
        await place.until(lambda: LABEL_KEPT in place.world.objects(CLAIMS)[0]["metadata"]["labels"])
        place.managers[-1].stop()
        await asyncio.sleep(30.0)
        allow()
        place.operate()
        await place.gone()
        objects = place.records()[0]["status"]["receipt"]["objects"]
        assert [each["uid"] for each in objects if each["state"] == "kept"] == [claim["metadata"]["uid"]]


@virtual
async def test_a_part_that_is_proven_gone_is_no_leftover_for_a_cache_that_lags():
    def deaf(call: Call) -> ServerResponse | None:
        blind = call.user.name == "operator" and call.path.endswith("/ingresses") and call.flag("watch")
        return ServerResponse(503, b"{}") if blind else None

    async with simulated_cluster(operate=False) as place:
        place.world.intercept(deaf)
        place.operate()
        await place.deploy(route={"kind": "Ingress", "host": "chat.example.com"}, deletion={"drainSeconds": 0})
        await place.serving()
        await place.delete()
        await place.gone()
        await asyncio.sleep(60.0)
        assert [record["spec"]["reason"] for record in place.records()] == ["Deleted"]


@virtual
async def test_a_pod_that_appears_meanwhile_is_written_into_the_ledger_before_anything_is_done_to_it():
    async with simulated_cluster() as place:
        await place.deploy(route={"kind": "Ingress", "host": "chat.example.com"}, deletion={"drainSeconds": 60})
        await place.serving()
        await place.delete()
        await place.until(place.records)
        await asyncio.sleep(5.0)
        (pod,) = place.world.objects(PODS)
        key, uid = ObjectKey("default", pod["metadata"]["name"]), pod["metadata"]["uid"]
        await place.user.delete(PODS, key, uid=uid, propagation=Propagation.BACKGROUND)
        await place.until(lambda: {uid} != {each["metadata"]["uid"] for each in place.world.objects(PODS)} != set())
        await asyncio.sleep(2.0)
        written = {entry["uid"] for entry in place.records()[0]["status"]["ledger"]["entries"]}
        assert {each["metadata"]["uid"] for each in place.world.objects(PODS)} <= written
        await place.gone()
        assert place.parts() == []


@virtual
async def test_the_saved_ledger_is_complete_before_the_next_thing_is_done():
    """The saved one may be shorter than the one in memory: a proof found more, or a person edited it."""
    async with simulated_cluster() as place:
        await place.deploy(route={"kind": "Ingress", "host": "chat.example.com"}, deletion={"drainSeconds": 60})
        await place.serving()
        await place.delete()
        await place.until(place.records)
        await asyncio.sleep(5.0)
        (record,) = place.records()
        entries = record["status"]["ledger"]["entries"]
        shorter = merge_patch({"status": {"ledger": {"entries": entries[:-1]}}})
        key = ObjectKey(record["metadata"]["namespace"], record["metadata"]["name"])
        await place.user.patch(TEARDOWNS, key, shorter, subresource="status")
        await asyncio.sleep(5.0)
        assert place.records()[0]["status"]["ledger"]["entries"] == entries
        await place.gone()
