"""``pilotage why``: exit codes, the dump, ``--fix`` with its questions, and colours."""

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import pytest

from controlplane import Access, Cluster
from pilotage.kube import PODS, Absent, Client, Object, ObjectKey
from pilotage.teardown.diagnosis.why.families import owners
from pilotage.teardown.engine import decide
from tests.cli.running import ask, run, run_on_terminal
from tests.support import kinds
from tests.support.waiting import until
from tests.teardown.why.staging import controllers_paused

FINALIZER = "acme.example.com/cleanup"
DUMP = f"""
apiVersion: v1
kind: ConfigMap
metadata:
  name: stuck
  namespace: shop
  uid: u1
  creationTimestamp: "2026-11-01T10:00:00Z"
  deletionTimestamp: "2026-11-01T11:00:00Z"
  finalizers: [{FINALIZER}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: fine, namespace: shop, uid: u2, creationTimestamp: "2026-11-01T10:00:00Z"}}
"""
NAMESPACE = """
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, uid: u3, deletionTimestamp: "2026-11-01T11:00:00Z"}
spec: {finalizers: [kubernetes]}
status: {phase: Terminating}
"""

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
  namespace: shop
  uid: u1
  creationTimestamp: "2026-11-01T10:00:00Z"
  deletionTimestamp: "2026-11-01T11:00:00Z"
  finalizers: [kubernetes.io/pvc-protection]
"""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.yaml"
    path.write_text(DUMP)
    return path


def test_what_is_stuck_ends_with_1_and_what_is_not_with_0(dump: Path):
    stuck = run("why", "cm/stuck", "--dump", dump)
    assert (stuck.code, stuck.err) == (1, "")
    assert f"waits for finalizer {FINALIZER}" in stuck.out
    assert "← root cause" in stuck.out
    fine = run("why", "cm/fine", "--dump", dump)
    assert (fine.code, fine.out) == (0, "configmap/fine -n shop  is not being deleted\n")


def test_what_a_dump_does_not_show_may_be_the_cause(tmp_path: Path):
    """Pods that mount a claim keep it, and the dump has none: that is no reason to call it fine."""
    path = tmp_path / "claim.yaml"
    path.write_text(CLAIM)
    taken = dt.datetime(2026, 11, 1, 11, 2, tzinfo=dt.UTC).timestamp()
    os.utime(path, (taken, taken))
    ran = run("why", "pvc/data", "--dump", path)
    assert ran.code == 3
    assert ran.out.startswith("persistentvolumeclaim/data -n shop  terminating for 2m\n")
    assert "Could not be read: pods: it is not in the dump" in ran.out


def test_the_controller_is_looked_for_and_not_the_object(tmp_path: Path):
    path = tmp_path / "dump.yaml"
    path.write_text(f"{DUMP}---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, namespace: b}}}}\n")
    ran = run("why", "cm/stuck", "-n", "shop", "--dump", path)
    assert f"1. Check whether the controller of {FINALIZER} runs:  kubectl get deployments," in ran.out


def test_several_objects_are_explained_one_after_the_other(dump: Path):
    ran = run("why", "cm", "fine", "stuck", "--dump", dump)
    assert ran.code == 1
    assert ran.out.index("configmap/fine") < ran.out.index("configmap/stuck")


def test_a_namespace_in_a_dump_waits_for_what_is_in_it(dump: Path):
    dump.write_text(DUMP.partition("---")[0] + NAMESPACE)
    ran = run("why", "namespace/shop", "--dump", dump)
    assert (ran.code, ran.err) == (1, "")
    first, second, third, *_ = ran.out.splitlines()
    assert first.startswith("namespace/shop  terminating for ")
    assert second == "└─ waits for configmap/stuck -n shop, which is in it"
    assert third == f"   └─ waits for finalizer {FINALIZER}"
    assert f"pilotage why configmap/stuck -n shop --fix=strip-finalizer --finalizer {FINALIZER}" in ran.out


def test_the_same_as_json(dump: Path):
    told = json.loads(run("why", "cm/stuck", "--dump", dump, "-o", "json").out)
    assert (told["verdict"], told["exitCode"]) == ("stuck", 1)
    assert told["subject"]["name"] == "stuck"
    assert told["remedies"][-1]["code"] == "strip-finalizer"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fix=strip-finalizer", "--finalizer", FINALIZER), "A dump cannot be changed"),
        (("--finalizer", FINALIZER), "--fix=strip-finalizer"),
    ],
)
def test_bad_usage_ends_with_2(dump: Path, words: tuple[str, ...], said: str):
    ran = run("why", "cm/stuck", "--dump", dump, *words)
    assert ran.code == 2
    assert said in ran.err


def test_colours_are_for_terminals_and_only_if_wanted(dump: Path):
    assert "\x1b[" not in run("why", "cm/stuck", "--dump", dump).out
    assert "\x1b[" in run_on_terminal("why", "cm/stuck", "--dump", dump).out
    assert "\x1b[" not in run_on_terminal("why", "cm/stuck", "--dump", dump, NO_COLOR="1").out


def is_gone(kubeconfig: Path, resource: Any, namespace: str, name: str) -> bool:
    try:
        ask(kubeconfig, lambda client: client.get(resource, ObjectKey(namespace, name)))
    except Absent:
        return True
    return False


def is_going(obj: Object | None) -> bool:
    return obj is not None and obj.meta.terminating


def test_a_namespace_that_does_not_go_is_explained_by_what_is_in_it(server: Path):
    async def doom(client: Client) -> None:
        made = await client.create(kinds.NAMESPACES, {"metadata": {"name": "held"}})
        await client.create(kinds.CONFIG_MAPS, kinds.config_map("fine"), namespace="held")
        stuck = kinds.config_map("stuck", finalizers=[FINALIZER])
        held = await client.create(kinds.CONFIG_MAPS, stuck, namespace="held")
        await kinds.delete(client, kinds.NAMESPACES, made)
        await until(client, kinds.CONFIG_MAPS, held.key, is_going)
        await until(client, kinds.CONFIG_MAPS, ObjectKey("held", "fine"), lambda obj: obj is None)

    ask(server, doom)
    ran = run("why", "namespace/held", kubeconfig=server)
    assert (ran.code, ran.err) == (1, "")
    first, second, third, root, *_ = ran.out.splitlines()
    assert first.startswith("namespace/held  terminating for ")
    assert second == "└─ waits for configmap/stuck -n held, which is in it"
    assert third == f"   └─ waits for finalizer {FINALIZER}"
    assert root.endswith("← root cause")
    fix = f"pilotage why configmap/stuck -n held --fix=strip-finalizer --finalizer {FINALIZER}"
    assert fix in ran.out
    mended = run(*fix.split()[1:], "--yes", kubeconfig=server)
    assert mended.code == 0, mended
    ask(server, lambda client: until(client, kinds.NAMESPACES, ObjectKey("", "held"), lambda obj: obj is None))


def test_a_pod_whose_node_is_gone_is_forced_out_if_a_person_says_so(server: Path):
    body = kinds.pod("worker")
    body["spec"] |= {"nodeName": "gone", "terminationGracePeriodSeconds": 3600}

    async def delete(client: Client) -> Object:
        made = await client.create(PODS, body, namespace="default")
        await kinds.delete(client, PODS, made)
        return made

    made = ask(server, delete)
    words = ("why", "pod/worker", "-n", "default")
    found = run(*words, kubeconfig=server)
    assert found.code == 1
    assert "waits for the kubelet of node gone to confirm that it has ended" in found.out
    assert "pilotage why pod/worker -n default --fix=force-delete-pod" in found.out
    assert not is_gone(server, PODS, "default", "worker")
    ran = run(*words, "--fix=force-delete-pod", "--yes", kubeconfig=server)
    assert (ran.code, ran.out) == (0, "pod/worker -n default is gone.\n")
    assert f"pod/worker -n default (uid {made.meta.uid})" in ran.err
    assert "LEAKS: it removes the record, not the process" in ran.err
    assert is_gone(server, PODS, "default", "worker")


def stage(cluster: Access, namespace: str) -> str:
    """A ConfigMap that waits for a finalizer; returns its path."""
    body = {"metadata": {"name": "stuck", "finalizers": [FINALIZER]}}
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    cluster.request("POST", path, body)
    cluster.request("DELETE", f"{path}/stuck")
    return f"{path}/stuck"


def test_on_a_real_cluster_a_finalizer_goes_only_by_its_name_and_after_a_yes(cluster: Access, namespace: str):
    path = stage(cluster, namespace)
    words = ("why", "cm/stuck", "-n", namespace)
    config = cluster.kubeconfig
    found = run(*words, kubeconfig=config)
    assert found.code == 1
    assert f"--fix=strip-finalizer --finalizer {FINALIZER}" in found.out

    nameless = run(*words, "--fix=strip-finalizer", "--yes", kubeconfig=config)
    assert nameless.code == 2
    assert FINALIZER in nameless.err

    fix = (*words, "--fix=strip-finalizer", "--finalizer", FINALIZER)
    unasked = run(*fix, kubeconfig=config)
    assert unasked.code == 2
    assert "add --yes" in unasked.err

    no = run_on_terminal(*fix, "--kubeconfig", config, typed="n\n")
    assert no.code == 1
    assert "LEAKS" in no.out  # it is told before it is asked
    assert "Nothing was done." in no.out
    assert cluster.request("GET", path)["metadata"]["finalizers"] == [FINALIZER]

    yes = run(*fix, "--yes", "-o", "json", kubeconfig=config)
    assert yes.code == 0
    assert json.loads(yes.out)["outcome"] == "gone"
    assert cluster.find(path) is None


def delete_in_foreground(cluster: Cluster, maps: str, *, blocks: bool) -> None:
    """A ConfigMap and its child, which it waits for."""
    top = cluster.request("POST", maps, {"metadata": {"name": "top"}})["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "top", "uid": top, "blockOwnerDeletion": blocks}
    cluster.request("POST", maps, {"metadata": {"name": "child", "ownerReferences": [owner]}})
    cluster.request("DELETE", f"{maps}/top", {"propagationPolicy": "Foreground"})


@pytest.mark.parametrize(
    ("blocks", "fix", "gone", "left"),
    [(True, "replay-delete", "child", "top"), (False, "redrive-foreground", "top", "child")],
)
def test_a_foreground_deletion_that_does_not_go_on_is_driven_on(
    own_cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch, blocks: bool, fix: str, gone: str, left: str
):
    """The garbage collector is stopped: of its work the remedy does one step, and nothing else."""
    monkeypatch.setattr(owners, "COLLECTOR_SECONDS", 0)  # it has had its time
    config, maps = own_cluster.kubeconfig, f"/api/v1/namespaces/{namespace}/configmaps"
    with controllers_paused(own_cluster):
        delete_in_foreground(own_cluster, maps, blocks=blocks)
        words = ("why", "cm/top", "-n", namespace)
        found = run(*words, kubeconfig=config)
        assert found.code == 1
        assert f"pilotage why configmap/{gone} -n {namespace} --fix={fix}" in found.out
        ran = run(*words, f"--fix={fix}", "--yes", kubeconfig=config)
        assert (ran.code, ran.out) == (0, f"configmap/{gone} -n {namespace} is gone.\n")
        assert own_cluster.find(f"{maps}/{gone}") is None
        assert own_cluster.find(f"{maps}/{left}") is not None


def test_a_foreground_deletion_that_lost_its_way_ends_with_delete(
    own_cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The garbage collector is stopped, so that only our command can complete it."""
    monkeypatch.setattr(decide, "BUSY_PATIENCE", 0)  # nothing waits for it, either
    config, maps = own_cluster.kubeconfig, f"/api/v1/namespaces/{namespace}/configmaps"
    with controllers_paused(own_cluster):
        delete_in_foreground(own_cluster, maps, blocks=True)
        words = ("cm/top", "-n", namespace, "--yes", "--receipt", tmp_path / "r.json")
        ran = run("delete", *words, kubeconfig=config)
        assert ran.code == 0, ran
        assert [name for name in ("top", "child") if own_cluster.find(f"{maps}/{name}")] == []


def test_two_that_own_each_other_go_together(
    own_cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The remedy that `why` gives for an ownership cycle works without the garbage collector."""
    monkeypatch.setattr(decide, "BUSY_PATIENCE", 0)  # nothing waits for it, either
    config, maps = own_cluster.kubeconfig, f"/api/v1/namespaces/{namespace}/configmaps"
    uids = {
        name: own_cluster.request("POST", maps, {"metadata": {"name": name}})["metadata"]["uid"] for name in ("a", "b")
    }
    with controllers_paused(own_cluster):
        for name, other in (("a", "b"), ("b", "a")):
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": other, "uid": uids[other]}
            body = own_cluster.request("GET", f"{maps}/{name}")
            body["metadata"]["ownerReferences"] = [owner | {"blockOwnerDeletion": True}]
            own_cluster.request("PUT", f"{maps}/{name}", body)
        for name in uids:
            own_cluster.request("DELETE", f"{maps}/{name}", {"propagationPolicy": "Foreground"})
        found = run("why", "cm/a", "-n", namespace, kubeconfig=config)
        assert found.code == 1
        assert f"waits for itself: configmap/a -n {namespace} → configmap/b -n {namespace} → " in found.out
        remedy = f"pilotage delete configmap/a configmap/b -n {namespace}"
        assert f"1. Delete them together:  {remedy} --kubeconfig {config}\n" in found.out
        ran = run(*remedy.split()[1:], "--yes", "--receipt", tmp_path / "r.json", kubeconfig=config)
        assert ran.code == 0, ran
        assert [name for name in uids if own_cluster.find(f"{maps}/{name}")] == []
