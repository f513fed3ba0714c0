"""``pilotage receipt verify``: of a receipt that ``pilotage delete`` wrote, on the cluster that it is about."""

import json
from pathlib import Path

import pytest

from controlplane import Access
from pilotage.teardown.engine.receipt import begin, save
from tests.cli.running import NO_SERVER, run
from tests.teardown.building import entry, ledger


def test_a_file_that_is_no_receipt(tmp_path: Path):
    path = tmp_path / "x.json"
    for text in ("{}", "not json"):
        path.write_text(text)
        ran = run("receipt", "verify", path)
        assert ran.code == 2
        assert "not a receipt" in ran.err
    assert run("receipt", "verify", tmp_path / "nowhere.json").code == 2


def test_a_server_that_is_not_there_is_mentioned_once(tmp_path: Path):
    path, config = tmp_path / "r.json", tmp_path / "config"
    config.write_text(NO_SERVER)
    written = begin(
        ledger(entry("ConfigMap", "a"), entry("Service", "b"), entry("Service", "c")), "https://127.0.0.1:1"
    )
    save(written, path)
    changed(path, result="complete")
    ran = run("receipt", "verify", path, kubeconfig=config)
    assert ran.code == 3
    verdict, why = ran.out.splitlines()
    assert verdict == "Whether the receipt holds cannot be said: 0 of 3 gone by uid, 0 of 0 kept."
    assert why.startswith("3 objects could not be read: the API server was not reached: ")


@pytest.fixture
def path(cluster: Access, namespace: str, tmp_path: Path) -> Path:
    """The receipt of a teardown of one ConfigMap, which is gone."""
    cluster.kubectl("create", "configmap", "a", "-n", namespace)
    path = tmp_path / "receipt.json"
    ran = run("delete", "cm/a", "-n", namespace, "--yes", "--receipt", path, kubeconfig=cluster.kubeconfig)
    assert ran.code == 0, ran
    return path


def changed(path: Path, **fields: object) -> Path:
    told = json.loads(path.read_text())
    told.pop("digest", None)  # a deliberate forgery
    path.write_text(json.dumps(told | fields))
    return path


def test_it_holds_and_a_successor_is_mentioned(cluster: Access, namespace: str, path: Path):
    ran = run("receipt", "verify", path, kubeconfig=cluster.kubeconfig)
    assert (ran.code, ran.out) == (0, "The receipt holds: 1 of 1 gone by uid, 0 of 0 kept.\n")
    cluster.kubectl("create", "configmap", "a", "-n", namespace)
    ran = run("receipt", "verify", path, kubeconfig=cluster.kubeconfig)
    assert ran.code == 0
    assert f"Another object has the name by now:\n  configmap/a -n {namespace}" in ran.out


def test_it_does_not_hold_if_the_object_is_there(cluster: Access, namespace: str, path: Path):
    """A false claim: the receipt names the uid of an object that exists."""
    cluster.kubectl("create", "configmap", "a", "-n", namespace)
    alive = cluster.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/a")["metadata"]["uid"]
    told = json.loads(path.read_text())
    told["ledger"]["entries"][0]["uid"] = alive
    changed(path, ledger=told["ledger"])
    ran = run("receipt", "verify", path, "-o", "json", kubeconfig=cluster.kubeconfig)
    assert ran.code == 1
    found = json.loads(ran.out)
    assert (found["verdict"], [each["uid"] for each in found["back"]]) == ("does not hold", [alive])


def test_a_teardown_that_was_cut_off_and_another_cluster(cluster: Access, path: Path):
    ran = run("receipt", "verify", changed(path, result="running"), kubeconfig=cluster.kubeconfig)
    assert ran.code == 1
    assert f"Resume with: pilotage delete --resume {path}" in ran.out
    elsewhere = changed(path, result="complete", server="https://elsewhere:6443")
    ran = run("receipt", "verify", elsewhere, kubeconfig=cluster.kubeconfig)
    assert ran.code == 3
    assert "Is this the right cluster?" in ran.out
