import http.client
import json
import socket
import ssl
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from controlplane import Access, ApiError, Cluster, KubectlError, StartError, layout
from controlplane.access import wait_for
from controlplane.cluster import LIFELESS
from tests.controlplane.leftovers import processes_of

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: example.test/web}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80}]
"""

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: once, image: example.test/once}]
"""


def items(cluster: Access, namespace: str, plural: str, api: str = "/api/v1") -> list[Any]:
    listed: list[Any] = cluster.request("GET", f"{api}/namespaces/{namespace}/{plural}")["items"]
    return listed


# Components.


def test_a_deployment_becomes_ready_pods_behind_a_service_and_goes_again(
    cluster: Access, namespace_for_pods: str
) -> None:
    namespace = namespace_for_pods

    def slices() -> list[Any]:
        return items(cluster, namespace, "endpointslices", "/apis/discovery.k8s.io/v1")

    def ready_addresses() -> list[str]:
        endpoints = [endpoint for each in slices() for endpoint in each["endpoints"] or ()]
        return [address for each in endpoints if each["conditions"]["ready"] for address in each["addresses"]]

    cluster.kubectl("apply", "--namespace", namespace, "--filename=-", input=WEB)
    wait_for("two ready endpoints", lambda: len(ready_addresses()) == 2)
    pods = items(cluster, namespace, "pods")
    assert sorted(ready_addresses()) == sorted(pod["status"]["podIP"] for pod in pods)
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}

    cluster.kubectl("delete", "--namespace", namespace, "--filename=-", "--wait=false", input=WEB)
    wait_for("end of the pods", lambda: not items(cluster, namespace, "pods"))
    wait_for("end of the slices", lambda: not slices())


def test_a_job_completes(cluster: Access, namespace: str) -> None:
    cluster.kubectl("apply", "--namespace", namespace, "--filename=-", input=JOB)
    cluster.kubectl("wait", "--namespace", namespace, "--for=condition=Complete", "job/once", "--timeout=30s")


def test_each_namespace_is_new_and_is_deleted_at_the_end_if_something_lives_there(own_cluster: Cluster) -> None:
    def make(namespace: str, plural: str, spec: Any) -> None:
        body = {"metadata": {"name": "one"}, **spec}
        own_cluster.request("POST", f"/api/v1/namespaces/{namespace}/{plural}", body)

    def is_going(namespace: str) -> bool:
        found = own_cluster.find(f"/api/v1/namespaces/{namespace}")
        return found is None or found["status"]["phase"] == "Terminating"

    with own_cluster.namespace("mine") as first, own_cluster.namespace("mine") as second:
        assert first != second
        assert items(own_cluster, first, "serviceaccounts")
        make(first, "services", {"spec": {"ports": [{"port": 80}]}})
        make(second, "configmaps", {"data": {"a": "b"}})
        assert own_cluster.contents(first) >= {"serviceaccounts", "services/specs"}
        assert own_cluster.contents(second) <= LIFELESS
    assert is_going(first)
    assert not is_going(second), "to delete it would take dozens of requests, and nothing in it is in anybody's way"


def test_what_kubectl_and_the_server_refuse_is_said(cluster: Access, namespace: str) -> None:
    with pytest.raises(KubectlError, match='configmaps "absent" not found'):
        cluster.kubectl("get", "configmap", "absent", "--namespace", namespace)
    with pytest.raises(ApiError, match="absent") as caught:
        cluster.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/absent")
    assert caught.value.reason == "NotFound"


# Authentication.


def test_nobody_else_can_read_the_keys(own_cluster: Cluster) -> None:
    assert stat.S_IMODE(own_cluster.kubeconfig.stat().st_mode) == 0o600
    assert stat.S_IMODE(own_cluster.folder.stat().st_mode) == 0o700
    keys = list(own_cluster.folder.rglob("*.key"))
    assert keys
    assert {stat.S_IMODE(path.stat().st_mode) for path in keys} == {0o600}


def test_a_user_is_who_the_certificate_says_and_may_do_what_rbac_allows(own_cluster: Cluster, namespace: str) -> None:
    alice = f"--kubeconfig={own_cluster.user('alice', ['readers'])}"
    who = json.loads(own_cluster.kubectl(alice, "auth", "whoami", "--output=json"))["status"]["userInfo"]
    assert (who["username"], who["groups"]) == ("alice", ["readers", "system:authenticated"])

    with pytest.raises(KubectlError, match="Forbidden"):
        own_cluster.kubectl(alice, "get", "pods", "--namespace", namespace)
    own_cluster.kubectl(
        "create", "rolebinding", "readers", "--clusterrole=view", "--group=readers", "--namespace", namespace
    )
    wait_for("permission", lambda: _may_list(own_cluster, alice, namespace))


def _may_list(cluster: Cluster, user: str, namespace: str) -> bool:
    try:
        cluster.kubectl(user, "get", "pods", "--namespace", namespace)
    except KubectlError:
        return False
    return True


@pytest.mark.parametrize("user", ["tok-a", "tok-b"])
def test_a_token_is_accepted(own_cluster: Cluster, user: str) -> None:
    token = f"--token={own_cluster.tokens[user]}"
    nobody = f"--kubeconfig={kubeconfig_without_user(own_cluster)}"
    assert own_cluster.kubectl(nobody, token, "auth", "whoami", "--output=jsonpath={.status.userInfo.username}") == user


def kubeconfig_without_user(cluster: Cluster) -> Path:
    """One that leads to the cluster, but not into it."""
    config = json.loads(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {}
    path = cluster.folder / "nobody.kubeconfig"
    path.write_text(json.dumps(config))
    return path


# The audit log.


def test_a_request_is_in_the_audit_log_as_soon_as_it_is_answered(own_cluster: Cluster, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(20):
        mark = own_cluster.audit_mark()
        own_cluster.request("POST", path, {"metadata": {"name": f"map-{number}"}, "data": {"number": str(number)}})
        ours = {"user": "kubernetes-admin", "namespace": namespace, "resource": "configmaps", "verb": "create"}
        (record,) = own_cluster.audit(since=mark, **ours)
        assert (record.name, record.code) == (f"map-{number}", 201)
        assert record.body["data"] == {"number": str(number)}


def test_the_audit_log_tells_who_asked_what_in_which_order(own_cluster: Cluster, namespace: str) -> None:
    alice = f"--kubeconfig={own_cluster.user('alice')}"
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    mark = own_cluster.audit_mark()
    own_cluster.request("POST", path, {"metadata": {"name": "one"}})
    with pytest.raises(KubectlError, match="Forbidden"):
        own_cluster.kubectl(alice, "delete", "configmap", "one", "--namespace", namespace)
    own_cluster.request("DELETE", f"{path}/one")

    records = own_cluster.audit(since=mark, namespace=namespace, resource="configmaps")
    mine = [record for record in records if record.name == "one"]
    assert [(record.user, record.verb, record.code) for record in mine] == [
        ("kubernetes-admin", "create", 201),
        ("alice", "delete", 403),
        ("kubernetes-admin", "delete", 200),
    ]
    assert own_cluster.audit(since=mark, user="alice", verb="delete", user_agent="kubectl/") == [mine[1]]
    assert own_cluster.audit(since=own_cluster.audit_mark(), user="alice") == []


def test_a_watch_is_in_the_audit_log_once_from_its_beginning(own_cluster: Cluster, namespace: str) -> None:
    mark = own_cluster.audit_mark()
    url = f"/api/v1/namespaces/{namespace}/configmaps?watch=true&timeoutSeconds=1"
    with connect(own_cluster) as connection:
        connection.request("GET", url)
        response = connection.getresponse()
        (begun,) = own_cluster.audit(since=mark, namespace=namespace, verb="watch", user="kubernetes-admin")
        middle = own_cluster.audit_mark()
        response.read()
    assert own_cluster.audit(since=mark, namespace=namespace, verb="watch", user="kubernetes-admin") == [begun]
    assert own_cluster.audit(since=middle, namespace=namespace, verb="watch", user="kubernetes-admin") == []


# Breaking it.


def connect(cluster: Cluster, timeout: float = 30) -> closing[http.client.HTTPSConnection]:
    """A connection as administrator."""
    pair = cluster.folder / "users" / "kubernetes-admin"
    tls = ssl.create_default_context(cafile=cluster.ca_file)
    tls.load_cert_chain(pair.with_suffix(".crt"), pair.with_suffix(".key"))
    address = cluster.url.removeprefix("https://")
    return closing(http.client.HTTPSConnection(address, context=tls, timeout=timeout))


def test_a_stopped_control_plane_can_be_repaired_and_keeps_address_and_objects(
    own_cluster: Cluster, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = own_cluster.request("POST", path, {"metadata": {"name": "one"}})
    own_cluster.stop_apiserver()
    with pytest.raises(ConnectionRefusedError):
        own_cluster.request("GET", path)
    own_cluster.repair()
    assert own_cluster.request("GET", f"{path}/one")["metadata"]["uid"] == made["metadata"]["uid"]
    with own_cluster.namespace() as name:
        assert items(own_cluster, name, "serviceaccounts")


def test_a_paused_api_server_takes_connections_and_says_nothing(own_cluster: Cluster) -> None:
    own_cluster.pause_apiserver()
    with connect(own_cluster, timeout=0.3) as connection, pytest.raises(TimeoutError):
        connection.request("GET", "/readyz")
    own_cluster.resume_apiserver()
    assert own_cluster.request("GET", "/api/v1/namespaces/default")["metadata"]["name"] == "default"


def test_a_paused_control_plane_can_be_repaired(own_cluster: Cluster) -> None:
    own_cluster.pause_apiserver()
    own_cluster.repair()
    with own_cluster.namespace() as name:
        assert items(own_cluster, name, "serviceaccounts")


def test_old_resource_versions_are_answered_with_410_and_new_ones_work(own_cluster: Cluster, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name in ("zero", "one"):  # so that there are two pages
        own_cluster.request("POST", path, {"metadata": {"name": name}})
    page = own_cluster.request("GET", f"{path}?limit=1")
    old = page["metadata"]["resourceVersion"]
    own_cluster.expire_resource_versions()

    for query in (
        f"watch=true&resourceVersion={old}&timeoutSeconds=1",
        f"limit=1&resourceVersion={old}&resourceVersionMatch=Exact",
        f"limit=1&continue={page['metadata']['continue']}",
    ):
        with connect(own_cluster) as connection:
            connection.request("GET", f"{path}?{query}")
            answer = json.loads(connection.getresponse().read())
        status = answer.get("object", answer)  # a watch has it in an event
        assert (status["kind"], status["code"]) == ("Status", 410), query

    now = own_cluster.request("GET", path)["metadata"]["resourceVersion"]
    own_cluster.request("POST", path, {"metadata": {"name": "two"}})
    with connect(own_cluster) as connection:
        connection.request("GET", f"{path}?watch=true&resourceVersion={now}&timeoutSeconds=5")
        event = json.loads(connection.getresponse().readline())
    assert event["object"]["metadata"]["name"] == "two"


# Starting and ending.


def test_a_failed_start_says_why_keeps_the_logs_and_leaves_no_process(
    own_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    cluster = Cluster(components=(), flags={"kube-apiserver": ["--no-such-flag"]})
    with pytest.raises(StartError) as caught:
        cluster.start()
    log = cluster.folder / "logs" / "kube-apiserver.log"
    assert str(caught.value) == (
        f"kube-apiserver ended with exit code 1; its log is kept in {log} and ends:\n{log.read_text().rstrip()}"
    )
    assert "unknown flag: --no-such-flag" in log.read_text()
    assert list(cluster.folder.iterdir()) == [log.parent]
    assert processes_of(cluster.folder) == []


def test_a_port_that_is_taken_in_the_last_moment_is_replaced(
    own_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    choose = layout.free_ports
    with socket.create_server(("127.0.0.1", 0)) as rival:
        api, peer = choose(2)
        choices = iter([[api, rival.getsockname()[1], peer]])
        monkeypatch.setattr(layout, "free_ports", lambda count: next(choices, None) or choose(count))
        with Cluster(components=()) as cluster:
            assert cluster.request("GET", "/api/v1/namespaces/default")["metadata"]["name"] == "default"
            assert next(choices, None) is None
            assert list(tmp_path.iterdir()) == [cluster.folder]
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
