"""Placement KServe beside KServe's real manager, and beside a stand-in for faults that the real one does not have."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane import Cluster
from field.kserve import KServe
from pilotage.kube import Client, Object
from pilotage.teardown.planning.ledger import HOLD
from tests.controllers.accepting import accepting_routers, route, routes
from tests.controllers.operating import DELETES, ROUTES, Place, install, operator
from tests.teardown.staged import force_away
from tests.teardown.standins import KSERVE_FINALIZER, stubborn_kserve_controller

SERVICES = "/apis/serving.kserve.io/v1beta1/namespaces/{}/inferenceservices"
PLACED = {"placement": {"kind": "KServe"}, "resources": {"requests": {"cpu": "1m"}}, "deletion": {"drainSeconds": 0}}
SCALED = {"autoscaling": {"min": 2, "max": 3}}
GOING = ("horizontalpodautoscalers", "deployments", "services")
"""Kinds that KServe creates, in the order in which they have to go."""


@pytest.fixture
def place(own_cluster: Cluster, kserve_kinds: None) -> Iterator[Place]:
    install(own_cluster)
    with own_cluster.namespace("ks") as namespace:  # a short name: KServe makes the label of a host name of it
        place = Place(own_cluster, namespace)
        yield place
        for each in inference_services(place):  # of a test that failed: else its namespace would stay
            force_away(own_cluster, f"{SERVICES.format(namespace)}/{each['metadata']['name']}")


def inference_services(place: Place) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = place.cluster.request("GET", SERVICES.format(place.namespace))["items"]
    return found


def everything(place: Place) -> list[str]:
    """All parts of an endpoint, of any owner."""
    return [*(f"inferenceservices/{each['metadata']['name']}" for each in inference_services(place)), *place.parts()]


def writes(place: Place, mark: int, endpoint: str = "chat") -> list[str]:
    """Holds, deletes and releases, by any client, of all objects that KServe and we create for an endpoint.

    Pods and the like are not.
    """
    found = []
    kinds = ("inferenceservices", *ROUTES, *GOING)
    for record in place.cluster.audit(since=mark, namespace=place.namespace):
        if record.resource not in kinds or record.subresource or record.code >= 300:
            continue
        if record.name != endpoint and not record.name.startswith(f"{endpoint}-"):
            continue
        if record.verb == "delete":
            found.append(f"delete {record.resource}/{record.name}")
        elif record.verb == "patch" and record.user_agent.startswith(DELETES):
            finalizers = record.body.get("metadata", {}).get("finalizers")
            if finalizers is not None:
                found.append(f"{'hold' if HOLD in finalizers else 'release'} {record.resource}/{record.name}")
    return found


def in_order(revision: str, *, scaled: bool = True) -> list[str]:
    """Order of the deletion of an InferenceService: held and marked first, its parts one by one, and then released."""
    parts = GOING if scaled else GOING[1:]
    owner = f"inferenceservices/{revision}"
    return [
        f"hold {owner}",
        f"delete {owner}",
        *(f"delete {each}/{revision}-predictor" for each in parts),
        f"release {owner}",
    ]


def receipts(place: Place) -> list[str]:
    return [record["status"]["receipt"]["result"] for record in place.records()]


def blocker(status: dict[str, Any]) -> bool:
    """Whether a status names who holds it up, and with what."""
    text = status.get("waitingFor") or ""
    return "inferenceservice/chat-1" in text and KSERVE_FINALIZER in text and "KServe controller" in text


ON_KSERVE = {"a": "Ingress", "b": "HTTPRoute", "c": "HTTPProxy", "d": "None"}
ON_DEPLOYMENTS = {"p": "Ingress", "q": "HTTPRoute", "r": "HTTPProxy", "s": "None"}


def test_the_life_of_an_endpoint_of_each_placement_behind_each_kind_of_route(place: Place, kserve: KServe, tmp_path):
    """Side by side: most of the time is the bounded wait for a route that cannot be verified."""
    all_ = ON_KSERVE | ON_DEPLOYMENTS
    mark = place.cluster.audit_mark()
    with accepting_routers(place.cluster, place.namespace), operator(place.cluster, tmp_path) as process:
        for name, kind in all_.items():
            spec = PLACED if name in ON_KSERVE else PLACED | {"placement": {"kind": "Deployment"}}
            place.deploy(name, route=route(kind, name), **spec, **(SCALED if name in "ap" else {}))
        place.until(place.all_serve)
        check_serving(place)
        for name in all_:
            place.change(name, runtime={"args": ["--ctx-size", "2048"]})
        place.until(lambda: place.all_serve(2) and not any("-1" in part for part in everything(place)))
        for name in all_:
            assert writes(place, mark, name) == going(name, 1)
        place.until(lambda: receipts(place) == ["complete"] * 8)
        mark = place.cluster.audit_mark()
        place.cluster.kubectl("delete", "se", "--all", "-n", place.namespace, "--wait=false", "--cascade=foreground")
        place.until(lambda: not place.endpoints())
        assert everything(place) == []
        assert routes(place.cluster, place.namespace) == []
        for name, plural in zip(all_, (*ROUTES, None) * 2, strict=True):
            found, wanted = writes(place, mark, name), going(name, 2)
            if plural is not None:
                first = wanted[2 if name in ON_KSERVE else 0]  # of the serving revision; its owner is marked before
                assert found.index(f"delete {plural}/{name}") < found.index(first)
            assert [each for each in found if each != f"delete {plural}/{name}"] == wanted
        assert receipts(place) == ["complete"] * 16
        gone = [each for record in place.records() for each in record["status"]["receipt"]["objects"]]
        unverified = {each["name"] for each in gone if each.get("unverified")}
        assert unverified == set("bcqr"), "nobody had taken up the Ingresses"
        assert process.end() == 0


def check_serving(place: Place) -> None:
    for name, endpoint in place.endpoints().items():
        status = endpoint["status"]
        assert status["placement"] == ("KServe" if name in ON_KSERVE else "Deployment")
        assert status["replicas"] == ({"ready": 2, "desired": 2} if name in "ap" else {"ready": 1, "desired": 1})
        reasons = {each["type"]: each["reason"] for each in status["conditions"]}
        assert reasons.get("RouteProgrammed") == ("AcceptedUnverified" if name not in "ds" else None)
    made = {part for part in everything(place) if not part.startswith(("pods/", "replicasets/", "endpointslices/"))}
    assert {part for part in made if "/a" in part} == {
        "inferenceservices/a-1",
        "ingresses/a",
        *(f"{each}/a-1-predictor" for each in GOING),
    }
    assert {part for part in made if "/p" in part} == {"ingresses/p", *(f"{each}/p-1" for each in GOING)}
    assert routes(place.cluster, place.namespace) == ["httproute/b", "httproute/q", "httpproxy/c", "httpproxy/r"]
    listed = place.cluster.kubectl("get", "se", "-n", place.namespace)
    assert listed.split()[:7] == ["NAME", "MODEL", "PLACEMENT", "READY", "PHASE", "DELETING", "URL"]


def going(name: str, revision: int) -> list[str]:
    """Order of the deletion of a revision of an endpoint."""
    if name in ON_KSERVE:
        return in_order(f"{name}-{revision}", scaled=name == "a")
    return [f"delete {each}/{name}-{revision}" for each in (GOING if name == "p" else GOING[1:])]


def test_a_manager_that_is_dead_is_named_and_waited_for(place: Place, kserve: KServe, tmp_path):
    mark = place.cluster.audit_mark()
    with operator(place.cluster, tmp_path):
        place.deploy("chat", **PLACED)
        place.until(lambda: place.serves("chat"))
        assert place.status("chat")["url"] == f"http://chat-1-predictor.{place.namespace}.svc/v1"
        kserve.kill()
        place.delete("chat")
        place.until(lambda: blocker(place.status("chat")) and any(blocker(each["status"]) for each in place.records()))
        place.until(
            lambda: [each["metadata"]["finalizers"] for each in inference_services(place)] == [[KSERVE_FINALIZER]]
        )
        [left] = inference_services(place)
        assert everything(place) == ["inferenceservices/chat-1"]
        assert KSERVE_FINALIZER in place.status("chat")["teardown"]["waits"][0]["text"]
        stays(lambda: inference_services(place) == [left])
        kserve.start()
        place.until(lambda: place.get("chat") is None)
    assert everything(place) == []
    assert writes(place, mark) == in_order("chat-1", scaled=False)
    assert receipts(place) == ["complete"]


def stays(condition, seconds: float = 1.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition()
        time.sleep(0.05)


def test_another_placement_takes_the_former_one_down_in_order(place: Place, kserve: KServe, tmp_path):
    mark = place.cluster.audit_mark()
    with operator(place.cluster, tmp_path):
        place.deploy("chat", **PLACED | {"placement": {"kind": "Deployment"}}, **SCALED)
        place.until(lambda: place.serves("chat"))
        place.change("chat", placement={"kind": "KServe"})
        place.until(lambda: place.serves("chat", 2) and not any("chat-1" in part for part in everything(place)))
        assert place.status("chat")["placement"] == "KServe"
        assert writes(place, mark) == [f"delete {each}/chat-1" for each in GOING]
        mark = place.cluster.audit_mark()
        place.change("chat", placement={"kind": "Deployment"})
        place.until(lambda: place.serves("chat", 3) and not any("chat-2" in part for part in everything(place)))
        assert writes(place, mark) == in_order("chat-2")
        place.delete("chat")
        place.until(lambda: place.get("chat") is None)
    assert everything(place) == []
    assert receipts(place) == ["complete"] * 3


def test_parts_that_come_back_and_a_finalizer_that_stays(place: Place, tmp_path):
    """A controller that recreates its parts although their owner is Terminating, and keeps its finalizer."""
    let_go = threading.Event()

    async def may_let_go(client: Client, obj: Object) -> bool:
        return let_go.is_set()

    with operator(place.cluster, tmp_path):
        place.deploy("chat", **PLACED)
        place.until(lambda: inference_services(place))
        make_parts(place)
        place.until(lambda: place.serves("chat"))
        mark = place.cluster.audit_mark()
        with stubborn_kserve_controller(place.cluster, place.namespace, may_let_go, times=2):
            place.delete("chat")
            place.until(lambda: blocker(place.status("chat")))
            # Not only between two of them: each part was brought back twice, and so deleted three times.
            thrice = sorted([*in_order("chat-1", scaled=False)[2:4] * 3, "release inferenceservices/chat-1"])
            place.until(lambda: sorted(writes(place, mark)[2:]) == thrice)
            place.until(lambda: everything(place) == ["inferenceservices/chat-1"])
            [left] = inference_services(place)
            assert left["metadata"]["finalizers"] == [KSERVE_FINALIZER]
            let_go.set()
            place.until(lambda: place.get("chat") is None)
    assert everything(place) == []
    found = writes(place, mark)
    # A part may be back, and deleted again, before the next one has its turn.
    assert [*dict.fromkeys(found)][:4] == in_order("chat-1", scaled=False)[:4]
    assert sorted(found[2:]) == thrice
    [record] = place.records()
    gone = [each["name"] for each in record["status"]["receipt"]["objects"] if each["kind"] == "Deployment"]
    assert gone == ["chat-1-predictor"] * 3


def make_parts(place: Place) -> None:
    """Create the objects of the one InferenceService and write its status, as KServe would."""
    [service] = inference_services(place)
    meta = service["metadata"]
    owner = {"apiVersion": service["apiVersion"], "kind": service["kind"], "name": meta["name"], "uid": meta["uid"]}
    head = {
        "name": f"{meta['name']}-predictor",
        "labels": meta["labels"],
        "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
    }
    app = {"app": head["name"]}
    pod = {"containers": [{"name": "kserve-container", "image": "example.com/server:1"}]}
    deployment = {
        "selector": {"matchLabels": app},
        "template": {"metadata": {"labels": app | meta["labels"]}, "spec": pod},
    }
    ports = [{"port": 80, "targetPort": 8080}]
    requests = place.cluster.request
    requests("POST", f"/apis/apps/v1/namespaces/{place.namespace}/deployments", {"metadata": head, "spec": deployment})
    spec = {"selector": app, "ports": ports}
    requests("POST", f"/api/v1/namespaces/{place.namespace}/services", {"metadata": head, "spec": spec})
    path = f"{SERVICES.format(place.namespace)}/{meta['name']}"
    service = requests("PUT", path, service | {"metadata": meta | {"finalizers": [KSERVE_FINALIZER]}})
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    requests("PUT", f"{path}/status", service | {"status": {"conditions": conditions}})
