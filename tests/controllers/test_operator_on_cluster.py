"""The operator as a process on a real API server with kube-controller-manager and kwok."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from controlplane import Cluster
from controlplane.access import wait_for
from tests.controllers.operating import GROUP, LABEL, Operator, Place, install, operator, out_of_order

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/servingendpoints.pilotage.dev"
INGRESS = {"kind": "Ingress", "host": "chat.example.com"}
KILLS = int(os.environ.get("PILOTAGE_KILLS", "8"))
"""Number of times that the operator is killed. The whole figure is 100; it takes some minutes."""
AT_ONCE = int(os.environ.get("PILOTAGE_ENDPOINTS", "40"))
"""Number of endpoints that come and go at once. The whole figure is 200."""


@pytest.fixture
def place(own_cluster: Cluster, namespace_for_pods: str) -> Place:
    install(own_cluster)
    return Place(own_cluster, namespace_for_pods)


def test_many_endpoints_come_and_go_at_once(place, tmp_path):
    mark = place.cluster.audit_mark()
    names = [f"e{number}" for number in range(AT_ONCE)]
    with operator(place.cluster, tmp_path):
        for name in names:
            place.deploy(name, route=INGRESS | {"host": f"{name}.example.com"}, deletion={"drainSeconds": 0})
        place.until(
            lambda: (
                sum(each.get("status", {}).get("phase") == "Serving" for each in place.endpoints().values()) == AT_ONCE
            ),
            120.0,
        )
        place.cluster.kubectl("delete", "se", "--all", "-n", place.namespace, "--wait=false")
        place.until(lambda: not place.endpoints(), 120.0)
    assert place.parts() == []
    assert out_of_order(place.cluster, mark, place.namespace) == []
    assert len([record for record in place.records() if record["status"]["phase"] == "done"]) == AT_ONCE


def test_an_operator_that_is_killed_again_and_again_loses_and_leaks_nothing(place, tmp_path):
    mark = place.cluster.audit_mark()
    stop = threading.Event()
    with operator(place.cluster, tmp_path) as process:
        killer = threading.Thread(target=kill_at_random, args=(process, stop))
        killer.start()
        try:
            live_wildly(place, killer)
        finally:
            stop.set()
            killer.join()
        place.until(
            lambda: all(each.get("status", {}).get("phase") == "Serving" for each in place.endpoints().values()), 120.0
        )
        left = set(place.endpoints())
        assert left, "some are to stay"
        revisions = {name: place.status(name)["revision"] for name in left}
        place.until(
            lambda: (
                {part for part in place.parts() if part.startswith("deployments/")}
                == {f"deployments/{revision}" for revision in revisions.values()}
            ),
            120.0,
        )
        for name in left:
            place.delete(name)
        place.until(lambda: not place.endpoints(), 120.0)
    assert place.parts() == []
    assert out_of_order(place.cluster, mark, place.namespace) == []
    assert {record["status"].get("phase") for record in place.records()} == {"done"}
    assert process.starts > KILLS
    sys.stdout.write(f"killed {process.starts - 1} times\n")


def kill_at_random(process: Operator, stop: threading.Event) -> None:
    rng = random.Random(7)
    for _ in range(KILLS):
        if stop.wait(rng.uniform(0.6, 3.0)):
            return
        process.end(signal.SIGKILL)
        process.start()


def live_wildly(place: Place, killer: threading.Thread) -> None:
    """Deploy, redeploy and delete, as long as the operator is killed."""
    rng, number = random.Random(8), 0
    names: list[str] = []
    while killer.is_alive() or number < 6:
        choice = rng.random()
        if choice < 0.5 or len(names) < 3:
            number += 1
            name = f"w{number}"
            place.deploy(name, route=INGRESS | {"host": f"{name}.example.com"}, deletion={"drainSeconds": 0})
            names.append(name)
        elif choice < 0.75:
            place.change(rng.choice(names), runtime={"args": ["--seed", str(rng.randrange(1000))]})
        else:
            place.delete(names.pop(rng.randrange(len(names))))
        killer.join(rng.uniform(0.2, 0.8))


def test_however_it_is_deleted_the_order_is_kept_and_nothing_stays(place, tmp_path):
    """Deletion by name, with its namespace, with its finalizer stripped, with its kind; also without an operator."""
    mark = place.cluster.audit_mark()
    with operator(place.cluster, tmp_path) as process, place.cluster.namespace("going") as other:
        elsewhere = Place(place.cluster, other)
        for where, name in ((place, "orphan"), (place, "background"), (elsewhere, "chat")):
            where.deploy(name, route=INGRESS | {"host": f"{name}.example.com"}, deletion={"drainSeconds": 0})
        place.deploy("stripped")  # without a route: the time that requests may take would no longer be known
        place.until(lambda: place.all_serve() and elsewhere.all_serve())
        process.end(signal.SIGKILL)
        place.cluster.kubectl("delete", "namespace", other, "--wait=false")
        place.delete("orphan", "--cascade=orphan")
        place.delete("background")
        finalizers = json.dumps({"metadata": {"finalizers": None}})
        place.cluster.kubectl("patch", "se", "stripped", "-n", place.namespace, "--type=merge", "-p", finalizers)
        place.delete("stripped")
        assert set(place.endpoints()) == {"orphan", "background"}
        place.deploy("chat", route=INGRESS, deletion={"drainSeconds": 0})
        process.start()
        place.until(lambda: set(place.endpoints()) == {"chat"} and place.all_serve() and not elsewhere.endpoints())
        place.until(lambda: all("chat" in part for part in place.parts()))
        try:
            place.cluster.request("DELETE", DEFINITION)
            wait_for("end of the definition", lambda: place.cluster.find(DEFINITION) is None)
            assert place.parts() == []
        finally:
            install(place.cluster)
        wait_for("end of the namespace", lambda: place.cluster.find(f"/api/v1/namespaces/{other}") is None)
        place.until(lambda: {each["status"].get("phase") for each in place.records()} == {"done"})
    assert out_of_order(place.cluster, mark, place.namespace) == []
    records = [
        each for each in place.cluster.request("GET", f"{GROUP}/teardowns")["items"] if is_of(each, place, other)
    ]
    assert {each["status"]["receipt"]["result"] for each in records} == {"complete"}
    reasons = {(each["spec"]["target"]["name"], each["spec"]["reason"]) for each in records}
    assert reasons == {("orphan", "Deleted"), ("background", "Deleted"), ("stripped", "Vanished"), ("chat", "Deleted")}
    assert len(records) == 5


def is_of(record: dict[str, Any], place: Place, other: str) -> bool:
    return record["spec"]["target"]["namespace"] in (place.namespace, other)


def test_what_holds_a_part_is_named_still_counts_without_its_label_and_lets_nothing_serve_on(place, tmp_path):
    ingress = f"/apis/networking.k8s.io/v1/namespaces/{place.namespace}/ingresses/chat"
    with operator(place.cluster, tmp_path):
        place.deploy("chat", route=INGRESS, deletion={"drainSeconds": 0})
        place.until(lambda: place.serves("chat"))
        for part in ("ingress/chat", "deployment/chat-1"):
            patch_metadata(place, part, {"finalizers": ["example.com/hold"]})
        place.delete("chat")
        place.until(lambda: "ingress/chat" in place.status("chat").get("waitingFor", ""))
        patch_metadata(place, "ingress/chat", {"labels": {LABEL: None}})
        mark = place.cluster.audit_mark()
        place.until(lambda: place.cluster.audit(since=mark, verb="get", resource="ingresses", user_agent="teardown/"))
        assert place.cluster.find(ingress) is not None
        assert "deployments/chat-1" in place.parts(), "requests may still arrive"
        patch_metadata(place, "ingress/chat", {"finalizers": None})
        place.until(lambda: "finalizer example.com/hold" in place.status("chat").get("waitingFor", ""))
        place.until(lambda: not any(part.startswith("pods/") for part in place.parts()))
        assert {"deployments/chat-1", "services/chat-1"} <= {*place.parts()}, "the owner waits, and what comes after it"
        patch_metadata(place, "deployment/chat-1", {"finalizers": None})
        place.until(lambda: not place.endpoints())
    assert place.parts() == []


def patch_metadata(place: Place, part: str, metadata: dict[str, Any]) -> None:
    patch = json.dumps({"metadata": metadata})
    place.cluster.kubectl("patch", part, "-n", place.namespace, "--type=merge", "-p", patch)


WAYS = {
    "a namespace": lambda name, _: (f"namespace/{name}",),
    "all in a namespace": lambda name, _: ("-n", name, "--all"),
    "a file": lambda name, folder: ("-n", name, "-f", str(folder / "endpoint.json")),
    "an endpoint with a stranger": lambda name, _: ("-n", name, "servingendpoint/chat", "configmap/beside"),
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_is_deleted_from_a_command_line_an_endpoint_goes_by_its_operator(place, tmp_path, way):
    """Nothing of it is made anew, and no other program deletes a part of it."""
    place = beside(place, f"ways-{[*WAYS].index(way)}")
    with operator(place.cluster, tmp_path):
        place.deploy("chat", route=INGRESS, deletion={"drainSeconds": 1})
        place.until(lambda: place.serves("chat"))
        endpoint = {"apiVersion": "pilotage.dev/v1alpha1", "kind": "ServingEndpoint", "metadata": {"name": "chat"}}
        (tmp_path / "endpoint.json").write_text(json.dumps(endpoint))
        meant = WAYS[way](place.namespace, tmp_path)
        planned, deleted = pilotage(place, "plan", *meant), pilotage(place, "delete", "--dry-run", *meant)
        assert planned == deleted
        assert {"ingress/chat", "deployment/chat-1", "service/chat-1"} <= named_in(planned, place.namespace)
        mark = place.cluster.audit_mark()
        pilotage(place, "delete", "--yes", *meant, "--receipt", str(tmp_path / "receipt.json"))
    assert place.get("chat") is None
    assert place.parts() == []
    assert out_of_order(place.cluster, mark, place.namespace) == []
    kinds = ("ingresses", "deployments", "services")
    writes = [each for each in place.cluster.audit(since=mark, namespace=place.namespace) if each.resource in kinds]
    assert [each for each in writes if each.verb == "create"] == []
    assert {each.user_agent.partition("/")[0] for each in writes if each.verb == "delete"} == {"teardown"}


def beside(place: Place, name: str) -> Place:
    """Another namespace, with a ConfigMap that belongs to nobody."""
    cluster = place.cluster
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    cluster.wait_for_service_account(name)
    cluster.request("POST", f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "beside"}})
    return Place(cluster, name)


def pilotage(place: Place, *words: str) -> str:
    """Output of a command that succeeds."""
    command = [sys.executable, "-m", "pilotage", *words, "--kubeconfig", str(place.cluster.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def named_in(text: str, namespace: str) -> set[str]:
    """The objects that a plan names."""
    return {word for line in text.splitlines() for word in line.replace(f" -n {namespace}", "").split() if "/" in word}
