"""``pilotage tree``, from a dump and on a real cluster."""

import json
from pathlib import Path

import pytest

from controlplane import Access
from tests.cli.running import NO_SERVER, run

DUMP = """
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop, uid: d1}
  spec: {replicas: 1, template: {metadata: {labels: {app: web}}}}
  status: {replicas: 1, readyReplicas: 1}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata:
    name: web-1
    namespace: shop
    uid: r1
    ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d1, controller: true}]
- apiVersion: v1
  kind: Service
  metadata: {name: web, namespace: shop, uid: s1}
  spec: {selector: {app: web}}
"""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.yaml"
    path.write_text(DUMP)
    return path


def test_a_dump_is_shown_without_a_cluster(dump: Path):
    ran = run("tree", "deploy/web", "--dump", dump)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0].startswith("deployment/web -n shop  1 of 1 ready")
    assert "replicaset/web-1" in ran.out
    assert "service/web  (selects it" in ran.out


def test_the_same_as_json(dump: Path):
    root = json.loads(run("tree", "deploy/web", "--dump", dump, "-o", "json").out)["root"]
    assert (root["kind"], root["name"], root["uid"]) == ("Deployment", "web", "d1")
    assert root["nodes"][0]["kind"] == "ReplicaSet"


def test_a_dump_can_come_from_a_pipe():
    ran = run("tree", "service/web", "--dump", "-", stdin=DUMP)
    assert ran.code == 0
    assert "service/web -n shop" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("deploy/wep", "--dump", "DUMP"), "web"),
        (("gizmo/web", "--dump", "DUMP"), "no kind 'gizmo'"),
        (("--dump", "DUMP"), "KIND/NAME"),
        (("deploy/web", "--dump", "nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_what_means_nothing_is_told_in_a_sentence(dump: Path, words: tuple[str, ...], said: str):
    ran = run("tree", *(str(dump) if word == "DUMP" else word for word in words))
    assert ran.code == 2
    assert ran.out == ""
    assert said in ran.err


def test_a_server_that_does_not_answer_is_told_in_a_sentence(tmp_path: Path):
    path = tmp_path / "kubeconfig"
    path.write_text(NO_SERVER)
    ran = run("tree", "deploy/web", kubeconfig=path)
    assert ran.code == 3
    assert ran.err.startswith("Error: ")
    assert "Traceback" not in ran.err


def test_a_real_tree(cluster: Access, namespace: str):
    cluster.kubectl("create", "deployment", "web", "--image=none", "--replicas=0", "-n", namespace)
    cluster.kubectl("expose", "deployment", "web", "--port=80", "-n", namespace)
    ran = run("tree", "deploy/web", "-n", namespace, kubeconfig=cluster.kubeconfig)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"deployment/web -n {namespace}")
    assert "service/web  (selects it, spec.selector)" in ran.out


def test_what_refers_to_it_from_another_namespace_is_shown(cluster: Access, namespace: str):
    """Any namespace may have something that points here: all of them have to be read."""
    cluster.kubectl("create", "serviceaccount", "web", "-n", namespace)
    with cluster.namespace("elsewhere", for_pods=False) as other:
        who = ("--clusterrole=view", f"--serviceaccount={namespace}:web")
        cluster.kubectl("create", "rolebinding", "web", *who, "-n", other)
        ran = run("tree", "sa/web", "-n", namespace, kubeconfig=cluster.kubeconfig)
    assert (ran.code, ran.err) == (0, "")
    assert f"rolebinding/web -n {other}  (targets it, subjects[0])" in ran.out
