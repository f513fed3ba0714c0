"""The ways in which the delete of an endpoint fails or seems to: what is said of each, and that nothing is forced."""

import asyncio

from pilotage.api.names import ENDPOINTS
from pilotage.kube import PODS, ObjectKey, Propagation, Resource, json_patch, merge_patch
from pilotage.serving.resources import AUTOSCALERS, DEPLOYMENTS, SERVICES
from pilotage.traffic.routers.ingress import INGRESSES
from pilotage_sim import adversaries
from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import KEY, NAMESPACES, SimulatedCluster, simulated_cluster

FIRST = ObjectKey("default", "chat-1")
INGRESS = {"kind": "Ingress", "host": "chat.example.com"}
REDEPLOYED = {"args": ["--ctx-size", "4096"]}
HOLD = "example.com/hold"
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
BACKEND = {"service": {"name": "chat-1", "port": {"number": 80}}}
THEIRS = (
    (
        AUTOSCALERS,
        "team-hpa",
        {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat-1"}},
    ),
    (INGRESSES, "team-ingress", {"defaultBackend": BACKEND}),
    (INGRESSES, "other-ingress", {"defaultBackend": {"service": BACKEND["service"] | {"name": "chat"}}}),
)
"""Objects of another owner, without a label of ours; the last is unrelated."""


async def hold(place: SimulatedCluster, resource, key: ObjectKey) -> None:
    """Add a finalizer of another owner."""
    patch = json_patch([{"op": "add", "path": "/metadata/finalizers", "value": [HOLD]}])
    await place.user.patch(resource, key, patch)


async def let_go(place: SimulatedCluster, resource, key: ObjectKey) -> None:
    await place.user.patch(resource, key, merge_patch({"metadata": {"finalizers": None}}))


def conflicts(place: SimulatedCluster) -> list[str]:
    return [str(write) for write in place.world.trace.writes if write.who == "operator" and write.code == 409]


def waits(place: SimulatedCluster) -> str:
    """Waits in the status."""
    return place.status().get("waitingFor") or ""


def pod(place: SimulatedCluster) -> ObjectKey:
    name = next(part for part in place.parts() if part.startswith("Pod/")).removeprefix("Pod/")
    return ObjectKey("default", name)


@virtual
async def test_a_redeploy_never_meets_what_is_still_being_deleted():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        for number in (2, 3):
            await place.change(runtime={"args": ["--ctx-size", str(number)]})
            await place.serving(f"chat-{number}")
        assert conflicts(place) == []


@virtual
async def test_a_deployment_with_a_finalizer_is_waited_for_and_named_and_the_redeploy_serves():
    async with simulated_cluster() as place:
        await place.deploy()
        await place.serving()
        await hold(place, DEPLOYMENTS, FIRST)
        await place.change(runtime=REDEPLOYED)
        await place.serving("chat-2")
        await place.until(
            lambda: any(HOLD in (each.get("status", {}).get("waitingFor") or "") for each in place.records())
        )
        assert HOLD in place.world.find(DEPLOYMENTS, FIRST)["metadata"]["finalizers"]
        assert "Service/chat-1" in place.parts(), "what comes after it waits for it"
        assert conflicts(place) == []
        await let_go(place, DEPLOYMENTS, FIRST)
        await place.until(lambda: not any("chat-1" in part for part in place.parts()))


@virtual
async def test_what_somebody_else_has_labelled_as_a_part_stays_and_is_named():
    async with simulated_cluster() as place:
        await place.deploy(resources={"requests": {"cpu": "1"}}, autoscaling={"min": 1, "max": 2})
        await place.serving()
        body = place.world.find(AUTOSCALERS, FIRST)
        strange = {"namespace": "default", "name": "some-other-name", "labels": body["metadata"]["labels"]}
        await place.user.create(AUTOSCALERS, {"metadata": strange, "spec": body["spec"]})
        await place.delete()
        await place.gone()
        assert place.parts() == ["HorizontalPodAutoscaler/some-other-name"]
        (remark,) = place.records()[0]["status"]["receipt"]["notes"]
        assert "horizontalpodautoscaler/some-other-name stay" in remark
        said = [each["note"] for each in place.world.objects(EVENTS) if each["reason"] == "StillReferenced"]
        assert any("some-other-name" in note for note in said), said


@virtual
async def test_what_is_not_ours_is_found_by_what_it_refers_to_and_named():
    async with simulated_cluster() as place:
        await place.deploy()
        await place.serving()
        for resource, name, spec in THEIRS:
            await place.user.create(resource, {"metadata": {"namespace": "default", "name": name}, "spec": spec})
        await place.delete()
        await place.gone()
        receipt = place.records()[0]["status"]["receipt"]
        assert receipt["result"] == "complete"
        assert [text.partition(" deployment")[0].partition(" service/chat")[0] for text in receipt["references"]] == [
            "horizontalpodautoscaler/team-hpa -n default scales",
            "ingress/team-ingress -n default routes to",
        ]
        for resource, name, _ in THEIRS:
            assert place.world.find(resource, ObjectKey("default", name)), "it is not ours to delete"
        said = [each["note"] for each in place.world.objects(EVENTS) if each["reason"] == "StillReferenced"]
        assert len(said) == 1
        assert "ingress/team-ingress" in said[0]


@virtual
async def test_a_pod_that_hangs_in_terminating_is_named_and_nothing_that_it_needs_goes():
    async with simulated_cluster() as place:
        await place.deploy()
        await place.serving()
        stuck = pod(place)
        await hold(place, PODS, stuck)
        await place.delete()
        await place.until(lambda: stuck.name in waits(place))
        assert HOLD in waits(place)
        assert "Service/chat-1" in place.parts()
        assert place.status()["teardown"]["phase"] == "stop"
        await let_go(place, PODS, stuck)
        await place.gone()
        assert place.parts() == []


@virtual
async def test_a_part_that_is_gone_already_is_no_error():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        place.managers[0].stop()
        await asyncio.sleep(30.0)
        uid = place.world.find(DEPLOYMENTS, FIRST)["metadata"]["uid"]
        await place.user.delete(DEPLOYMENTS, FIRST, uid=uid, propagation=Propagation.BACKGROUND)
        await place.delete()
        place.operate()
        await place.gone()
        assert place.records()[-1]["status"]["receipt"]["result"] == "complete"


@virtual
async def test_a_foreign_object_is_refused_and_said():
    async with simulated_cluster() as place:
        theirs = {"metadata": {"namespace": "default", "name": "chat-1"}, "spec": {"ports": [{"port": 80}]}}
        uid = (await place.user.create(SERVICES, theirs)).meta.uid
        await place.deploy()
        await place.until(lambda: place.condition("Degraded").get("reason") == "NameTaken")
        assert "service/chat-1 -n default" in place.condition("Degraded")["message"]
        await place.delete()
        await place.gone()
        found = place.world.find(SERVICES, FIRST)
        assert found["metadata"]["uid"] == uid
        assert "labels" not in found["metadata"]


@virtual
async def test_a_finalizer_of_somebody_else_is_named_with_its_owner_and_never_stripped():
    async with simulated_cluster() as place:
        await place.deploy()
        await place.serving()
        await hold(place, SERVICES, FIRST)
        await place.delete()
        await place.until(lambda: HOLD in waits(place))
        await asyncio.sleep(1800.0)
        assert HOLD in place.world.find(SERVICES, FIRST)["metadata"]["finalizers"]
        assert place.condition("Degraded")["reason"] == "DeletionBlocked"
        await let_go(place, SERVICES, FIRST)
        await place.gone()


@virtual
async def test_a_part_that_terminates_is_made_anew_when_it_has_gone():
    async with simulated_cluster() as place:
        await place.deploy()
        await place.serving()
        await hold(place, SERVICES, FIRST)
        uid = place.world.find(SERVICES, FIRST)["metadata"]["uid"]
        await place.user.delete(SERVICES, FIRST, uid=uid, propagation=Propagation.BACKGROUND)
        await place.until(lambda: "service/chat-1 is being deleted" in waits(place))
        await let_go(place, SERVICES, FIRST)
        await place.until(lambda: (found := place.world.find(SERVICES, FIRST)) and found["metadata"]["uid"] != uid)
        await place.until(lambda: not waits(place))


@virtual
async def test_the_grace_of_pods_is_shown_while_they_end():
    async with simulated_cluster() as place:
        await place.deploy(deletion={"drainSeconds": 120})
        await place.serving()
        stuck = pod(place)
        await hold(place, PODS, stuck)
        await place.delete()
        await place.until(lambda: stuck.name in waits(place))
        wait = place.status()["teardown"]["waits"][0]
        assert wait["object"] == f"pod/{stuck.name} -n default"
        assert wait["since"]
        await let_go(place, PODS, stuck)
        await place.gone()


@virtual
async def test_a_namespace_that_is_being_deleted_takes_nothing_new():
    async with simulated_cluster() as place:
        await place.user.create(NAMESPACES, {"metadata": {"name": "shop", "finalizers": []}})
        key = ObjectKey("shop", "chat")
        await place.deploy(key)
        await place.serving("chat-1", key)
        held = {
            "metadata": {"namespace": "shop", "name": "held", "finalizers": [HOLD]},
            "spec": {"ports": [{"port": 80}]},
        }
        await place.user.create(SERVICES, held)
        uid = place.world.find(NAMESPACES, ObjectKey("", "shop"))["metadata"]["uid"]
        await place.user.delete(NAMESPACES, ObjectKey("", "shop"), uid=uid, propagation=Propagation.BACKGROUND)
        await place.gone(key)
        assert place.parts() == []
        assert [each["metadata"]["namespace"] for each in place.records()] == ["pilotage-system"]


@virtual
async def test_a_missing_permission_is_said_and_the_rest_goes_on():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS, deletion={"drainSeconds": 0, "timeouts": {"remove": 5}})
        await place.serving()
        _, end = adversaries.denying_webhook(place.world, operations=["DELETE"], plurals=["services"], why="not you")
        await place.delete()
        await place.until(lambda: "not you" in waits(place))
        assert "Deployment/chat-1" not in place.parts()
        end()
        await place.gone()
        assert place.parts() == []


@virtual
async def test_the_receipt_says_which_read_proved_that_it_is_gone():
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        uids = {each["uid"] for each in place.status()["ledger"]}
        await place.delete()
        await place.gone()
        objects = {each["uid"]: each for each in place.records()[0]["status"]["receipt"]["objects"]}
        assert uids <= set(objects)
        assert all(each["state"] == "gone" and each["proof"]["request"] for each in objects.values())


@virtual
async def test_an_endpoint_that_is_deleted_in_the_middle_of_a_redeploy_leaves_nothing():
    """Deleted in the middle of a redeploy: both revisions go, and the order is kept for both."""
    async with simulated_cluster() as place:
        await place.deploy(route=INGRESS)
        await place.serving()
        await place.change(runtime=REDEPLOYED)
        await place.until(lambda: "Deployment/chat-2" in place.parts())
        found = await place.user.get(ENDPOINTS, KEY)
        await place.user.delete(ENDPOINTS, KEY, uid=found.meta.uid, propagation=Propagation.FOREGROUND)
        await place.gone()
        assert place.parts() == []
