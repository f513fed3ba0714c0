"""Other namespaces than that of the targets, as ``plan`` and ``delete`` see them, on a real API server."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import Access, Cluster
from tests.cli.running import Ran, run
from tests.teardown.staged import Placed, Staged, definition, install, theirs, wait_until
from tests.teardown.standins import KSERVE_FINALIZER

Json = dict[str, Any]

OPERATOR = "kserve-controller-manager"
RBAC = "rbac.authorization.k8s.io"
ROUTE_KIND = "HTTPRoute.gateway.networking.k8s.io"


@pytest.fixture
def edge(cluster: Access) -> Iterator[str]:
    """Another namespace."""
    with cluster.namespace("edge", for_pods=False) as name:
        yield name


@pytest.fixture
def staged(cluster: Access, namespace: str) -> Iterator[Staged]:
    """Objects that the test creates, in both namespaces."""
    with Staged(cluster, namespace) as made:
        yield made


def service(staged: Staged, namespace: str) -> Placed:
    body = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}
    return staged.create(f"/api/v1/namespaces/{namespace}/services", body)


def route(staged: Staged, namespace: str, backend: str, name: str = "r") -> Placed:
    """An HTTPRoute to the Service ``web`` of another namespace, or of its own."""
    install(staged.cluster, theirs("gateway-api", "httproutes.gateway.networking.k8s.io"))
    api = "gateway.networking.k8s.io/v1"
    body = {
        "apiVersion": api,
        "kind": "HTTPRoute",
        "metadata": {"name": name},
        "spec": {"rules": [{"backendRefs": [{"name": "web", "namespace": backend, "port": 80}]}]},
    }
    return staged.create(f"/apis/{api}/namespaces/{namespace}/httproutes", body)


def operator(staged: Staged, namespace: str, name: str = OPERATOR) -> Placed:
    """Deployment that looks like one that runs a controller of KServe; it has no pods."""
    labels = {"control-plane": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": "none"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    body = {"metadata": {"name": name, "labels": labels}, "spec": spec}
    return staged.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", body)


def inference_service(staged: Staged, namespace: str) -> Placed:
    """A custom resource whose operator has to remove its finalizer."""
    install(staged.cluster, theirs("kserve", "inferenceservices.serving.kserve.io"))
    api = "serving.kserve.io/v1beta1"
    body = {
        "apiVersion": api,
        "kind": "InferenceService",
        "metadata": {"name": "llm", "finalizers": [KSERVE_FINALIZER]},
        "spec": {"predictor": {"containers": [{"name": "kserve-container", "image": "none"}]}},
    }
    return staged.create(f"/apis/{api}/namespaces/{namespace}/inferenceservices", body)


def hazards(ran: Ran) -> dict[str, Json]:
    return {each["code"]: each for each in json.loads(ran.out)["hazards"]}


def test_a_route_in_another_namespace_is_named_before_and_after(
    cluster: Access, staged: Staged, namespace: str, edge: str, tmp_path: Path
):
    service(staged, namespace)
    far = route(staged, edge, namespace)
    planned = run("plan", "svc/web", "-n", namespace, "-o", "json", kubeconfig=cluster.kubeconfig)
    assert planned.code == 0, planned
    hazard = hazards(planned)["route-loses-backend"]
    assert (hazard["kind"], hazard["namespace"], hazard["name"]) == ("HTTPRoute", edge, "r")
    assert f"it goes from namespace {edge} to {namespace}" in hazard["evidence"]
    receipt = tmp_path / "r.json"
    ran = run("delete", "svc/web", "-n", namespace, "--yes", "--receipt", receipt, kubeconfig=cluster.kubeconfig)
    assert ran.code == 0, ran
    told = json.loads(receipt.read_text())
    assert told["references"] == [f"httproute/r -n {edge} routes to service/web -n {namespace}"]
    assert told["notes"] == []
    assert [str(each) for each in staged.left()] == [str(far)]


def test_adopting_takes_a_route_along_and_leaves_one_in_another_namespace(
    cluster: Access, staged: Staged, namespace: str, edge: str, tmp_path: Path
):
    service(staged, namespace)
    route(staged, namespace, namespace)
    far = route(staged, edge, namespace)  # of the same name: its kind is followed here, and read everywhere
    receipt = tmp_path / "r.json"
    words = ("delete", "svc/web", "-n", namespace, "--adopt", "--yes", "--receipt", receipt)
    ran = run(*words, kubeconfig=cluster.kubeconfig)
    assert ran.code == 0, ran
    told = json.loads(receipt.read_text())
    gone = {(each["kind"], each["namespace"]) for each in told["objects"] if each["state"] == "gone"}
    assert gone >= {("Service", namespace), ("HTTPRoute", namespace)}
    assert {each["namespace"] for each in told["objects"]} == {namespace}
    assert told["references"] == [f"httproute/r -n {edge} routes to service/web -n {namespace}"]
    assert [each.uid for each in staged.left()] == [far.uid]


def test_a_binding_in_another_namespace_is_named(cluster: Access, staged: Staged, namespace: str, edge: str):
    staged.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "robot"}})
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": namespace}
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
    body = {"metadata": {"name": "robots"}, "roleRef": role, "subjects": [subject]}
    staged.create(f"/apis/{RBAC}/v1/namespaces/{edge}/rolebindings", body)
    ran = run("plan", "sa/robot", "-n", namespace, kubeconfig=cluster.kubeconfig)
    assert ran.code == 0, ran
    assert f"rolebinding/robots -n {edge} stays" in ran.out


@pytest.mark.parametrize(
    "words",
    [
        lambda namespace: (f"deploy/{OPERATOR}", "-n", namespace),
        lambda namespace: ("-n", namespace, "--all"),
        lambda namespace: ("-n", namespace, "-l", f"control-plane={OPERATOR}"),
        lambda namespace: (f"namespace/{namespace}",),
    ],
    ids=["by name", "all", "by label", "with its namespace"],
)
def test_an_operator_is_not_taken_from_objects_in_other_namespaces(
    cluster: Access, staged: Staged, namespace: str, edge: str, words: Callable[[str], tuple[str, ...]]
):
    operator(staged, namespace)
    inference_service(staged, edge)
    ran = run("plan", *words(namespace), "-o", "json", kubeconfig=cluster.kubeconfig)
    hazard = hazards(ran)["keeper-goes-first"]
    assert ran.code == 1, ran
    assert hazard["blocks"]
    assert (hazard["kind"], hazard["namespace"], hazard["name"]) == ("Deployment", namespace, OPERATOR)
    assert f"inferenceservice/llm -n {edge} stays" in hazard["text"]


def test_an_operator_that_no_table_knows_is_found_by_what_it_was_installed_with(
    cluster: Access, staged: Staged, namespace: str, edge: str
):
    group, labels = "fleet.staging.example.com", {"app.kubernetes.io/part-of": "fleet"}
    boats = definition(group, "Boat", "boats")
    boats["metadata"]["labels"] = labels
    install(cluster, [boats])
    body = {"apiVersion": f"{group}/v1", "kind": "Boat", "metadata": {"name": "b", "finalizers": [f"{group}/moored"]}}
    staged.create(f"/apis/{group}/v1/namespaces/{edge}/boats", body)
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    manager = {"metadata": {"name": "manager", "labels": labels}, "spec": spec}
    staged.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", manager)
    ran = run("plan", "deploy/manager", "-n", namespace, "-o", "json", kubeconfig=cluster.kubeconfig)
    assert ran.code == 1, ran
    assert f"boat/b -n {edge} stays" in hazards(ran)["keeper-goes-first"]["text"]


def test_another_deployment_is_not_taken_for_the_operator_of_others(
    cluster: Access, staged: Staged, namespace: str, edge: str
):
    """A Deployment that only resembles it: the right one is in the other namespace, and stays."""
    operator(staged, edge)
    inference_service(staged, edge)
    spec = staged.objects[0].body["spec"]
    web = {"metadata": {"name": "kserve-controller"}, "spec": spec}
    staged.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", web)
    ran = run("plan", "deploy/kserve-controller", "-n", namespace, "-o", "json", kubeconfig=cluster.kubeconfig)
    assert "keeper-goes-first" not in hazards(ran)
    assert ran.code == 0, ran


def test_the_keeper_of_an_object_of_kubernetes_is_found_in_another_namespace(
    cluster: Access, staged: Staged, namespace: str, edge: str
):
    keeper = operator(staged, edge, "kserve-localmodel-controller-manager")
    body = {"metadata": {"name": "a", "finalizers": ["localmodel.kserve.io/finalizer"]}}
    staged.create(f"/api/v1/namespaces/{namespace}/configmaps", body)
    ran = run("plan", "cm/a", "-n", namespace, "-o", "json", kubeconfig=cluster.kubeconfig)
    hazard = hazards(ran)["keeper-dead"]
    assert f"deployment/{keeper.name} -n {edge}" in hazard["text"]
    assert ran.code == 1, ran


def test_who_may_read_one_namespace_gets_a_plan_and_is_told_what_it_lacks(
    own_cluster: Cluster, staged: Staged, namespace: str, edge: str, tmp_path: Path
):
    service(staged, namespace)
    route(staged, namespace, namespace)
    route(staged, edge, namespace)
    user = f"tenant-{namespace[-8:]}"
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    collection = f"/apis/{RBAC}/v1/namespaces/{namespace}"
    staged.create(f"{collection}/roles", {"metadata": {"name": "tenant"}, "rules": rules})
    role = {"apiGroup": RBAC, "kind": "Role", "name": "tenant"}
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": user}]
    body = {"metadata": {"name": "tenant"}, "roleRef": role, "subjects": subjects}
    staged.create(f"{collection}/rolebindings", body)
    tenant = own_cluster.user(user)

    def planned() -> Ran:
        return run("plan", "svc/web", "-n", namespace, "-o", "json", kubeconfig=tenant)

    with contextlib.suppress(TimeoutError):
        wait_until(lambda: planned().code == 0, "the role to be heeded")
    ran = planned()
    assert ran.code == 0, ran
    assert hazards(ran)["route-loses-backend"]["namespace"] == namespace
    told = json.loads(ran.out)
    assert told["unread"] == []
    [remark] = told["remarks"]
    assert ROUTE_KIND in remark or " more could be read" in remark
    assert f"could be read in {namespace} only" in remark
    receipt = tmp_path / "r.json"
    deleted = run("delete", "svc/web", "-n", namespace, "--yes", "--receipt", receipt, kubeconfig=tenant)
    assert deleted.code == 0, deleted
    told = json.loads(receipt.read_text())
    assert told["references"] == [f"httproute/r -n {namespace} routes to service/web -n {namespace}"]
    assert remark in told["notes"]


def test_other_namespaces_cost_no_more_lists(own_cluster: Cluster, staged: Staged, namespace: str, edge: str):
    """A kind that matters everywhere is listed for the cluster instead of the namespace; all others here only."""
    service(staged, namespace)
    route(staged, edge, namespace)
    inference_service(staged, edge)
    mark = own_cluster.audit_mark()
    assert run("plan", "svc/web", "-n", namespace, kubeconfig=own_cluster.kubeconfig).code == 0
    lists = own_cluster.audit(since=mark, verb="list", user_agent="pilotage/")
    groups = [(record.uri.partition("?")[0].split("/")[1:3], record.resource) for record in lists]
    assert [each for each in groups if groups.count(each) > 1] == []
    places = {record.resource: record.namespace for record in lists}
    assert {places[each] for each in ("httproutes", "rolebindings")} == {""}
    assert {places[each] for each in ("inferenceservices", "deployments", "secrets", "pods")} == {namespace}


def test_what_has_no_namespace_is_found_by_its_labels_if_its_kind_is_named(
    cluster: Access, staged: Staged, namespace: str
):
    labels = {"made-for": namespace[-8:]}
    body = {"metadata": {"name": namespace, "labels": labels}, "rules": []}
    staged.create(f"/apis/{RBAC}/v1/clusterroles", body)
    staged.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "a", "labels": labels}})
    selector = ("-l", f"made-for={namespace[-8:]}", "-n", namespace, "-o", "json")
    ran = run("plan", "clusterroles,cm", *selector, kubeconfig=cluster.kubeconfig)
    assert {each["kind"] for each in json.loads(ran.out)["objects"]} == {"ClusterRole", "ConfigMap"}
    ran = run("plan", *selector, kubeconfig=cluster.kubeconfig)
    assert {each["kind"] for each in json.loads(ran.out)["objects"]} == {"ConfigMap"}
