"""``pilotage why``: exit codes, the dump, ``--fix`` with its questions, and colours."""

import json
from pathlib import Path

import pytest

from controlplane import Access
from tests.cli.running import run, run_on_terminal

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


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.yaml"
    path.write_text(DUMP)
    return path


def test_what_is_stuck_ends_with_1_and_what_is_not_with_0(dump: Path):
    stuck = run("why", "cm/stuck", "-f", dump)
    assert (stuck.code, stuck.err) == (1, "")
    assert f"waits for finalizer {FINALIZER}" in stuck.out
    assert "← root cause" in stuck.out
    fine = run("why", "cm/fine", "-f", dump)
    assert (fine.code, fine.out) == (0, "configmap/fine -n shop  is not being deleted\n")


def test_several_objects_are_explained_one_after_the_other(dump: Path):
    ran = run("why", "cm", "fine", "stuck", "-f", dump)
    assert ran.code == 1
    assert ran.out.index("configmap/fine") < ran.out.index("configmap/stuck")


def test_the_same_as_json(dump: Path):
    told = json.loads(run("why", "cm/stuck", "-f", dump, "-o", "json").out)
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
    ran = run("why", "cm/stuck", "-f", dump, *words)
    assert ran.code == 2
    assert said in ran.err


def test_colours_are_for_terminals_and_only_if_wanted(dump: Path):
    assert "\x1b[" not in run("why", "cm/stuck", "-f", dump).out
    assert "\x1b[" in run_on_terminal("why", "cm/stuck", "-f", dump).out
    assert "\x1b[" not in run_on_terminal("why", "cm/stuck", "-f", dump, NO_COLOR="1").out


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
