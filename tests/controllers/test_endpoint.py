"""The life of a ServingEndpoint, as a user with kubectl sees it, in a simulated cluster."""

import asyncio
import json
from typing import Any

import pytest

from pilotage.api.names import ENDPOINTS, MODELS
from pilotage.kube import PODS, ObjectKey, Propagation, json_patch, merge_patch
from pilotage.operator.crds import crds
from pilotage.serving.resources import AUTOSCALERS, CLAIMS, DEPLOYMENTS, SERVICES
from pilotage.traffic.routers.httpproxy import HTTP_PROXIES
from pilotage.traffic.routers.ingress import INGRESSES
from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import CRDS, KEY, NAMESPACES, TTL_SECONDS, simulated_cluster

INGRESS = {"kind": "Ingress", "host": "chat.example.com"}
CPU = {"requests": {"cpu": "1"}}
REDEPLOYED = {"args": ["--ctx-size", "4096"]}


def order(writes: list[str], *wanted: str) -> list[int]:
    """Position of each of the expected writes; fails for one that is missing."""
    places = []
    for each in wanted:
        assert each in writes, "\n".join(writes)
        places.append(writes.index(each))
    return places


@virtual
async def test_it_is_deployed_and_says_so():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS, replicas=2)
        await place.serving()
        status = place.status()
        assert status["url"] == "http://chat.example.com/v1"
        assert status["replicas"] == {"ready": 2, "desired": 2}
        assert status["ready"] == "2/2", "as kubectl and pilotage list show it"
        assert place.condition("Available")["status"] == "True"
        assert place.condition("RouteProgrammed")["reason"] == "AcceptedUnverified"
        assert {(each["kind"], each["name"]) for each in status["ledger"]} == {
            ("Deployment", "chat-1"),
            ("Service", "chat-1"),
            ("Ingress", "chat"),
        }
        assert all(each["uid"] for each in status["ledger"])


@virtual
async def test_every_part_is_written_down_before_it_is_made():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        writes = place.writes()
        first = writes.index("patch servingendpoints.pilotage.dev default/chat")  # the finalizer
        noted = writes.index("patch servingendpoints.pilotage.dev/status default/chat")
        made = [writes.index(each) for each in writes if each.startswith("create") and "events" not in each]
        assert first < noted < min(made)


@virtual
@pytest.mark.parametrize(
    ("change", "plural", "part"),
    [
        ({"autoscaling": {"min": 1, "max": 3}}, "horizontalpodautoscalers", ("HorizontalPodAutoscaler", "chat-1")),
        ({"route": INGRESS}, "ingresses", ("Ingress", "chat")),
    ],
    ids=["autoscaler", "route"],
)
async def test_a_part_that_comes_later_is_written_down_before_it_is_made(change, plural, part):
    async with simulated_cluster() as place:
        await place.deploy(resources=CPU)
        await place.serving()
        ledgers = []

        def note(call: Call) -> ServerResponse | None:
            if call.method == "POST" and call.path.endswith(f"/{plural}"):
                ledgers.append({(each["kind"], each["name"]) for each in place.status()["ledger"]})
            return None

        place.world.intercept(note)
        await place.change(**change)
        await place.until(lambda: ledgers)
        assert part in ledgers[0]


@virtual
async def test_a_part_carries_the_uid_of_its_endpoint_and_no_owner():
    async with simulated_cluster() as place:
        uid = (await place.deploy(route=INGRESS))["metadata"]["uid"]
        await place.serving()
        for resource, name in ((DEPLOYMENTS, "chat-1"), (SERVICES, "chat-1"), (INGRESSES, "chat")):
            found = place.world.find(resource, ObjectKey("default", name))
            assert found["metadata"]["labels"]["pilotage.dev/endpoint-uid"] == uid
            assert "ownerReferences" not in found["metadata"]


@virtual
async def test_a_steady_endpoint_costs_no_writes():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        await asyncio.sleep(60.0)
        before = len(place.writes())
        await asyncio.sleep(3 * 3600.0)
        assert place.writes()[before:] == []


@virtual
async def test_a_redeploy_moves_traffic_and_takes_the_old_revision_down():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        before = len(place.writes())
        await place.change(runtime=REDEPLOYED)
        await place.serving("chat-2")
        await place.until(lambda: not any("chat-1" in part for part in place.parts()))
        writes = place.writes()[before:]
        made, moved, stopped, removed = order(
            writes,
            "create deployments.apps default/chat-2",
            "patch ingresses.networking.k8s.io default/chat",
            "delete deployments.apps default/chat-1",
            "delete services default/chat-1",
        )
        assert made < moved < stopped < removed
        assert [past["state"] for past in place.status()["history"]] == ["Previous", "Current"]


@virtual
@pytest.mark.parametrize("route", [INGRESS, {"kind": "None"}], ids=["Ingress", "None"])
async def test_which_revision_serves_is_written_down_before_the_other_one_goes(route):
    """An operator that is killed in between would otherwise keep the old one, and both would run for ever."""
    async with simulated_cluster() as place:
        await place.deploy(route=route)
        await place.serving()
        said = []

        def note(call: Call) -> ServerResponse | None:
            if call.method == "POST" and call.path.endswith("/teardowns"):
                said.append(place.status()["revision"])
            return None

        place.world.intercept(note)
        await place.change(runtime=REDEPLOYED)
        await place.until(lambda: not any("chat-1" in part for part in place.parts()))
        assert said == ["chat-2"]


@virtual
async def test_a_redeploy_that_the_server_rejects_leaves_the_old_one_serving():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        await place.change(tolerations=[{"key": "gpu", "operator": "Sometimes"}])
        await place.until(lambda: place.condition("Degraded").get("status") == "True")
        assert place.condition("Degraded")["reason"] == "Rejected"
        said = place.condition("Degraded")["message"]
        assert said.startswith('Deployment.apps "chat-2" is invalid: spec.template.spec.tolerations[0].operator: ')
        assert said.endswith("(the API server rejects deployment/chat-2).")
        assert place.status()["revision"] == "chat-1"
        assert place.condition("Available")["status"] == "True"
        assert not any("chat-2" in part for part in place.parts())
        await place.change(tolerations=[{"key": "gpu", "operator": "Exists"}])
        await place.serving("chat-2")


@virtual
async def test_a_redeploy_whose_pods_never_come_up_leaves_the_old_one_serving():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        admit = place.refuse_pods("chat-2")
        await place.change(runtime=REDEPLOYED)
        await place.until(lambda: place.status()["phase"] == "Redeploying")
        await asyncio.sleep(300.0)
        assert place.status()["revision"] == "chat-1"
        route = place.world.find(INGRESSES, KEY)
        assert route["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] == "chat-1"
        admit()
        await place.serving("chat-2")


@virtual
async def test_with_recreate_the_old_revision_is_proven_gone_before_the_new_one_comes():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS, strategy={"type": "Recreate"})
        await place.serving()
        before = len(place.writes())
        await place.change(runtime=REDEPLOYED)
        await place.serving("chat-2")
        writes = place.writes()[before:]
        route, stopped, removed, made = order(
            writes,
            "delete ingresses.networking.k8s.io default/chat",
            "delete deployments.apps default/chat-1",
            "delete services default/chat-1",
            "create deployments.apps default/chat-2",
        )
        assert route < stopped < removed < made


@virtual
async def test_a_spec_that_goes_back_to_what_serves_makes_nothing_new():
    """Where one GPU is all there is, a third set of pods would wait for it for ever."""
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        admit = place.refuse_pods("chat-2")
        await place.change(runtime=REDEPLOYED)
        await place.until(lambda: "Deployment/chat-2" in place.parts())
        before = len(place.writes())
        await place.change(runtime={"args": None})
        await place.until(lambda: not any("chat-2" in part for part in place.parts()))
        await place.serving("chat-1")
        admit()
        made = [write for write in place.writes()[before:] if write.startswith("create") and "teardowns" not in write]
        assert [write for write in made if "events" not in write] == []
        assert not [write for write in place.writes()[before:] if "ingresses" in write], "the route was right"
        history = place.status()["history"]
        assert [(past["number"], past["state"]) for past in history] == [(1, "Current"), (2, "Abandoned")]
        assert history[1]["message"] == "The spec returned to revision 1."
        assert [record["spec"]["reason"] for record in place.records()] == ["Superseded"]


@virtual
async def test_one_that_never_served_goes_when_another_one_is_asked_for():
    async with simulated_cluster() as place:
        admit = place.refuse_pods("chat-1")
        await place.deploy(route=INGRESS)
        await place.until(lambda: "Deployment/chat-1" in place.parts())
        admit_second = place.refuse_pods("chat-2")
        await place.change(runtime=REDEPLOYED)
        await place.until(lambda: not any("chat-1" in part for part in place.parts()))
        assert "Deployment/chat-2" in place.parts()
        admit()
        admit_second()
        await place.serving("chat-2")


@virtual
async def test_replicas_change_in_place_while_it_serves():
    async with simulated_cluster() as place:
        await place.deploy()
        await place.serving()
        said = set()

        def note(call: Call) -> ServerResponse | None:
            if call.method == "PATCH" and call.path.endswith("/servingendpoints/chat/status"):
                status = json.loads(call.body)["status"]
                conditions = {each["type"]: each["status"] for each in status["conditions"]}
                said.add((status["phase"], conditions["Available"], conditions["Degraded"], conditions["Progressing"]))
            return None

        place.world.intercept(note)
        await place.change(replicas=3)
        await place.until(lambda: place.status()["replicas"] == {"ready": 3, "desired": 3})
        assert place.status()["revision"] == "chat-1"
        assert said == {("Serving", "True", "False", "True"), ("Serving", "True", "False", "False")}


@virtual
async def test_an_autoscaler_that_is_no_longer_wanted_goes():
    async with simulated_cluster() as place:
        await place.deploy(resources=CPU, autoscaling={"min": 1, "max": 3})
        await place.serving()
        assert place.world.find(AUTOSCALERS, ObjectKey("default", "chat-1")) is not None
        await place.change(autoscaling=None)
        await place.until(lambda: place.world.find(AUTOSCALERS, ObjectKey("default", "chat-1")) is None)
        assert place.status()["revision"] == "chat-1"


@virtual
async def test_a_route_of_another_kind_comes_before_the_former_one_goes():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        await place.change(route={"kind": "None", "host": None})
        await place.until(lambda: place.world.find(INGRESSES, KEY) is None)
        assert "Ingress/chat" not in place.parts()
        assert place.status()["phase"] == "Serving"


@virtual
async def test_what_somebody_changes_is_corrected_and_what_is_not_ours_is_left():
    async with simulated_cluster() as place:
        await place.deploy()
        await place.serving()
        key = ObjectKey("default", "chat-1")
        theirs = {"metadata": {"annotations": {"team": "blue"}}, "spec": {"selector": {"app": "other"}}}
        await place.user.patch(SERVICES, key, merge_patch(theirs))
        await place.until(lambda: "pilotage.dev/revision" in place.world.find(SERVICES, key)["spec"]["selector"])
        assert place.world.find(SERVICES, key)["metadata"]["annotations"]["team"] == "blue"


@virtual
async def test_a_part_that_somebody_deletes_comes_back():
    async with simulated_cluster() as place:
        await place.deploy()
        await place.serving()
        key = ObjectKey("default", "chat-1")
        old = place.world.find(SERVICES, key)["metadata"]["uid"]
        await place.user.delete(SERVICES, key, uid=old, propagation=Propagation.BACKGROUND)
        await place.until(lambda: (found := place.world.find(SERVICES, key)) and found["metadata"]["uid"] != old)


@virtual
async def test_delete_goes_in_order_and_leaves_a_receipt():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS, resources=CPU, autoscaling={"min": 1, "max": 3}, deletion={"drainSeconds": 5})
        await place.serving()
        before = len(place.writes())
        await place.delete()
        await place.gone()
        assert place.parts() == []
        writes = place.writes()[before:]
        places = order(
            writes,
            "create teardowns.pilotage.dev default/" + place.records()[0]["metadata"]["name"],
            "delete ingresses.networking.k8s.io default/chat",
            "delete horizontalpodautoscalers.autoscaling default/chat-1",
            "delete deployments.apps default/chat-1",
            "delete services default/chat-1",
        )
        assert places == sorted(places)
        record = place.records()[0]
        assert record["status"]["phase"] == "done"
        assert record["status"]["receipt"]["result"] == "complete"
        gone = {(each["kind"], each["name"]) for each in record["status"]["receipt"]["objects"]}
        assert {("Ingress", "chat"), ("Deployment", "chat-1"), ("Service", "chat-1")} <= gone


@virtual
async def test_one_that_goes_does_not_say_that_it_serves():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS, replicas=2, deletion={"drainSeconds": 30})
        await place.serving()
        patch = json_patch([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/hold"]}])
        await place.user.patch(INGRESSES, KEY, patch)

        def says(type_: str) -> tuple[str, str]:
            found = place.condition(type_)
            return found["status"], found["reason"]

        def step() -> str:
            return str(place.status().get("teardown", {}).get("phase", ""))

        await place.delete()
        await place.until(lambda: step() == "detach")
        assert (says("Available"), says("RouteProgrammed")) == (("Unknown", "Deleting"), ("Unknown", "Detaching"))
        assert says("Progressing") == ("False", "Deleting")
        await place.user.patch(INGRESSES, KEY, merge_patch({"metadata": {"finalizers": None}}))
        await place.until(lambda: step() == "drain")
        assert (says("Available"), says("RouteProgrammed")) == (("False", "Deleting"), ("False", "Detached"))
        assert says("Draining") == ("True", "RequestsEnd")
        assert place.status()["replicas"] == {"ready": 2, "desired": 2}, "they still run"
        pod = next(part for part in place.parts() if part.startswith("Pod/")).removeprefix("Pod/")
        await place.user.patch(PODS, ObjectKey("default", pod), patch)
        await place.until(lambda: step() == "stop")
        assert says("Draining") == ("False", "Drained")
        assert place.status()["replicas"] == {"ready": 0, "desired": 0}
        await place.user.patch(PODS, ObjectKey("default", pod), merge_patch({"metadata": {"finalizers": None}}))
        await place.gone()


@virtual
@pytest.mark.parametrize("plural", ["pods", "replicasets"])
async def test_what_a_watch_has_not_told_of_is_waited_for_all_the_same(plural):
    """Nothing that a pod needs is deleted before it, though no cache knows of the pod, or of its owner."""

    def deaf(call: Call) -> ServerResponse | None:
        blind = call.user.name == "operator" and call.path.endswith(f"/{plural}") and call.flag("watch")
        return ServerResponse(503, b"{}") if blind else None

    async with simulated_cluster(operate=False) as place:
        place.world.intercept(deaf)
        place.operate()
        await place.deploy(deletion={"drainSeconds": 0})
        await place.serving()
        pod = next(part for part in place.parts() if part.startswith("Pod/")).removeprefix("Pod/")
        patch = json_patch([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/hold"]}])
        await place.user.patch(PODS, ObjectKey("default", pod), patch)
        await place.change(runtime=REDEPLOYED)
        await place.until(lambda: "Deployment/chat-1" not in place.parts())
        await asyncio.sleep(60.0)
        assert "Service/chat-1" in place.parts(), "its pod is still there"
        await place.delete()
        await place.until(lambda: "Deployment/chat-2" not in place.parts())
        await asyncio.sleep(60.0)
        assert place.endpoint() is not None
        await place.user.patch(PODS, ObjectKey("default", pod), merge_patch({"metadata": {"finalizers": None}}))
        await place.gone()
        assert place.parts() == []
        await place.until(lambda: all("receipt" in record["status"] for record in place.records()))
        gone = [each["name"] for record in place.records() for each in record["status"]["receipt"]["objects"]]
        assert pod in gone


@virtual
async def test_a_finished_record_goes_when_its_time_is_over():
    async with simulated_cluster() as place:
        await place.deploy()
        await place.serving()
        await place.delete()
        await place.gone()
        assert len(place.records()) == 1
        await asyncio.sleep(TTL_SECONDS - 60.0)
        assert len(place.records()) == 1
        await asyncio.sleep(120.0)
        assert place.records() == []


@virtual
@pytest.mark.parametrize("days", [2, -2])
async def test_a_clock_that_is_set_ends_no_record_and_shortens_no_drain(days):
    """The records of what was deleted are evidence; the seconds are given to requests that are under way."""
    async with simulated_cluster() as place:
        await place.deploy()
        await place.serving()
        await place.delete()
        await place.gone()
        await place.deploy(route=INGRESS, deletion={"drainSeconds": 100})
        await place.serving()
        await place.delete()
        await place.until(lambda: place.status().get("teardown", {}).get("phase", "") == "drain")
        set_clock(days)
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(60.0)
        assert len(place.records()) == 2
        assert "Deployment/chat-1" in place.parts(), "its requests have 40 s left"
        await place.gone()
        assert place.parts() == []
        assert asyncio.get_running_loop().time() - began < 300.0
        await asyncio.sleep(TTL_SECONDS + 60.0)
        assert place.records() == []


def set_clock(days: float) -> None:
    """Set the clock, as an administrator would, or a daemon that has found the time."""
    loop: Any = asyncio.get_running_loop()
    right = loop.wall_time
    loop.wall_time = lambda: right() + days * 86400


@virtual
async def test_an_operator_that_starts_late_finishes_what_was_deleted_without_it():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        place.managers[0].stop()
        await asyncio.sleep(30.0)
        await place.delete()
        await asyncio.sleep(600.0)
        assert place.endpoint() is not None
        place.operate()
        await place.gone()
        assert place.parts() == []


@virtual
async def test_a_namespace_in_deletion_takes_its_endpoints_along():
    async with simulated_cluster() as place:
        await place.user.create(NAMESPACES, {"metadata": {"name": "shop"}})
        key = ObjectKey("shop", "chat")
        await place.deploy(key, route=INGRESS)
        await place.serving("chat-1", key)
        uid = place.world.find(NAMESPACES, ObjectKey("", "shop"))["metadata"]["uid"]
        await place.user.delete(NAMESPACES, ObjectKey("", "shop"), uid=uid, propagation=Propagation.BACKGROUND)
        await place.until(lambda: place.world.find(NAMESPACES, ObjectKey("", "shop")) is None)
        record = place.records()[0]
        assert record["metadata"]["namespace"] == "pilotage-system"
        assert record["status"]["phase"] == "done"
        assert any("no order was kept" in note for note in record["status"]["receipt"]["notes"])


@virtual
async def test_who_deletes_our_kinds_is_told_what_is_missing_and_loses_nothing():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS, deletion={"drainSeconds": 0})
        await place.serving()
        made = place.parts()
        definitions = {each["metadata"]["name"]: each for each in crds()}
        for name in ("teardowns.pilotage.dev", "servingendpoints.pilotage.dev"):
            found = await place.user.get(CRDS, ObjectKey("", name))
            await place.user.delete(CRDS, found.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
        await place.until(lambda: "pilotage install --print" in place.status().get("waitingFor", ""))
        assert place.condition("Degraded")["reason"] == "DeletionBlocked"
        assert place.condition("Available")["status"] == "True", "nothing has been touched"
        assert place.parts() == made
        await place.user.create(CRDS, definitions["teardowns.pilotage.dev"])
        key = ObjectKey("", "servingendpoints.pilotage.dev")
        await place.until(lambda: place.world.find(CRDS, key) is None)
        assert place.parts() == []
        assert [record["status"]["receipt"]["result"] for record in place.records()] == ["complete"]


@virtual
@pytest.mark.parametrize("propagation", [Propagation.FOREGROUND, Propagation.ORPHAN])
async def test_whatever_propagation_is_asked_for_the_order_is_kept(propagation):
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        before = len(place.writes())
        await place.delete(propagation=propagation)
        await place.gone()
        assert place.parts() == []
        places = order(
            place.writes()[before:],
            "delete ingresses.networking.k8s.io default/chat",
            "delete deployments.apps default/chat-1",
            "delete services default/chat-1",
        )
        assert places == sorted(places)


@virtual
async def test_what_an_endpoint_left_whose_finalizer_was_stripped_is_swept():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        await place.delete_behind_the_operators_back()
        await place.until(lambda: place.parts() == [])
        await place.until(lambda: all(record["status"].get("phase") == "done" for record in place.records()))
        assert [record["spec"]["reason"] for record in place.records()] == ["Vanished"]


@virtual
async def test_a_new_endpoint_of_the_same_name_is_not_mixed_up_with_the_one_that_vanished():
    async with simulated_cluster() as place:
        old = await place.deploy(route=INGRESS)
        await place.serving()
        await place.delete_behind_the_operators_back()
        new = await place.deploy(route=INGRESS)
        await place.serving()
        assert place.parts(old["metadata"]["uid"]) == []
        assert "Deployment/chat-1" in place.parts(new["metadata"]["uid"])


@virtual
async def test_a_model_that_is_not_there_is_waited_for():
    async with simulated_cluster() as place:
        await place.deploy(model={"name": "qwen", "source": None})
        await place.until(lambda: place.condition("Degraded").get("reason") == "ModelMissing")
        body = {"metadata": {"namespace": "default", "name": "qwen"}, "spec": {"source": "pvc://weights/qwen.gguf"}}
        await place.user.create(MODELS, body)
        await place.until(lambda: place.status().get("waitingFor", "").startswith("model/qwen is being fetched"))
        key = ObjectKey("default", "qwen")
        missing = "the file /models/qwen.gguf does not exist on host gpu-3."
        since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        degraded = {"type": "Degraded", "status": "True", "reason": "FileNotFound", "message": missing, **since}
        failed = {"status": {"phase": "Failed", "conditions": [degraded]}}
        await place.user.patch(MODELS, key, merge_patch(failed), subresource="status")
        await place.until(lambda: place.status()["phase"] == "Failed")
        assert place.condition("Degraded")["message"] == f"{missing.rstrip('.')} (model/qwen)."
        await place.user.patch(MODELS, key, merge_patch({"status": {"phase": "Ready"}}), subresource="status")
        await place.serving()


@virtual
async def test_nothing_is_done_for_an_endpoint_that_was_deleted_before_it_was_seen():
    async with simulated_cluster(operate=False) as place:
        await place.deploy()
        patch = json_patch([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/hold"]}])
        await place.user.patch(ENDPOINTS, KEY, patch)
        await place.delete()
        place.operate()
        await asyncio.sleep(60.0)
        assert place.parts() == []
        assert place.writes() == []


@virtual
async def test_the_cache_stays_if_it_is_to_be_kept_and_the_receipt_lists_it():
    async with simulated_cluster() as place:
        await place.deploy(cache={"size": "1Gi"}, deletion={"keep": ["ModelCache"]})
        await place.serving()
        await place.delete()
        await place.gone()
        assert place.parts() == []
        kept = [each for each in place.records()[0]["status"]["receipt"]["objects"] if each["state"] == "kept"]
        assert [each["name"] for each in kept] == ["chat-cache"]
        claim = place.world.find(CLAIMS, ObjectKey("default", "chat-cache"))
        place.managers[0].stop()
        await asyncio.sleep(30.0)
        place.operate()  # one that finds it without an endpoint
        await asyncio.sleep(TTL_SECONDS)
        assert place.world.find(CLAIMS, ObjectKey("default", "chat-cache")) == claim
        await place.deploy(cache={"size": "1Gi"})
        await place.serving()
        assert "PersistentVolumeClaim/chat-cache" in place.parts()
        assert place.world.find(CLAIMS, ObjectKey("default", "chat-cache"))["metadata"]["uid"] == kept[0]["uid"]


@virtual
async def test_the_data_of_an_endpoint_that_vanished_is_not_deleted():
    async with simulated_cluster() as place:
        await place.deploy(cache={"size": "1Gi"})
        await place.serving()
        await place.delete_behind_the_operators_back()
        await place.until(lambda: place.parts() == [])
        assert place.world.find(CLAIMS, ObjectKey("default", "chat-cache")) is not None


@virtual
async def test_a_part_whose_label_names_another_endpoint_still_belongs_to_its_own():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        before = place.parts()
        wrong = {"metadata": {"labels": {"pilotage.dev/endpoint": "another"}}}
        await place.user.patch(SERVICES, ObjectKey("default", "chat-1"), merge_patch(wrong))
        await asyncio.sleep(60.0)
        assert place.parts() == before
        assert place.records() == []
        found = place.world.find(SERVICES, ObjectKey("default", "chat-1"))
        assert found["metadata"]["labels"]["pilotage.dev/endpoint"] == "chat"


HTTP_PROXY = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "httpproxies.projectcontour.io"},
    "spec": {
        "group": "projectcontour.io",
        "scope": "Namespaced",
        "names": {"plural": "httpproxies", "singular": "httpproxy", "kind": "HTTPProxy", "listKind": "HTTPProxyList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@virtual
async def test_an_endpoint_goes_though_its_router_was_uninstalled_before_it():
    async with simulated_cluster(crd=(HTTP_PROXY,)) as place:
        await place.deploy(route={"kind": "HTTPProxy", "host": "chat.example.com"})
        await place.until(lambda: place.world.find(HTTP_PROXIES, KEY) is not None)
        key = ObjectKey("", "httpproxies.projectcontour.io")
        uid = (await place.user.get(CRDS, key)).meta.uid
        await place.user.delete(CRDS, key, uid=uid, propagation=Propagation.BACKGROUND)
        await place.until(lambda: place.world.find(CRDS, key) is None)
        await place.delete()
        await place.gone()
        assert place.parts() == []
        proofs = {
            each["kind"]: each["proof"]["request"] for each in place.records()[-1]["status"]["receipt"]["objects"]
        }
        assert "httpproxies" in proofs.get("HTTPProxy", "httpproxies")


@virtual
async def test_a_route_that_the_cluster_cannot_have_is_said():
    async with simulated_cluster() as place:
        await place.deploy(route={"kind": "HTTPProxy", "host": "chat.example.com"})
        await place.until(lambda: place.condition("Degraded").get("reason") == "KindNotServed")
        assert "HTTPProxy.projectcontour.io" in place.condition("Degraded")["message"]
