"""``pilotage wait``: gone is what a fresh read proves, by the uid of the start."""

import threading

import pytest

from controlplane import Access, Cluster
from pilotage.cli.commands import wait as command
from tests.cli.running import run

FINALIZER = "acme.example.com/cleanup"


def config_map(cluster: Access, namespace: str, name: str, *finalizers: str) -> str:
    """Make one; returns its path."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    cluster.request("POST", path, {"metadata": {"name": name, "finalizers": list(finalizers)}})
    return f"{path}/{name}"


def let_go(cluster: Access, path: str) -> None:
    body = cluster.request("GET", path)
    body["metadata"]["finalizers"] = []
    cluster.request("PUT", path, body)


def test_without_a_name_it_says_what_is_wanted():
    ran = run("wait")
    assert ran.code == 2
    assert "KIND/NAME" in ran.err


def test_what_is_not_there_is_gone(cluster: Access, namespace: str):
    ran = run("wait", "cm/never", "-n", namespace, kubeconfig=cluster.kubeconfig)
    assert (ran.code, ran.out) == (0, f"configmap/never -n {namespace} is not there\n")


def test_the_time_is_over_and_why_is_told(cluster: Access, namespace: str):
    path = config_map(cluster, namespace, "a", FINALIZER)
    cluster.request("DELETE", path)
    ran = run("wait", "cm/a", "-n", namespace, "--timeout", "0.2", kubeconfig=cluster.kubeconfig)
    let_go(cluster, path)
    assert ran.code == 1
    assert "After 0.2 s, 1 is still there" in ran.out
    assert f"waits for finalizer {FINALIZER}" in ran.out


def test_it_ends_when_they_are_gone_and_says_meanwhile_what_it_waits_for(
    cluster: Access, namespace: str, monkeypatch: pytest.MonkeyPatch
):
    """Two of a kind are watched together. They are released when the command has printed what it waits for."""
    paths = [config_map(cluster, namespace, name, FINALIZER) for name in ("a", "b")]
    uids = [cluster.request("GET", path)["metadata"]["uid"] for path in paths]
    for path in paths:
        cluster.request("DELETE", path)
    told: list[str] = []

    def progress(text: str) -> None:
        told.append(text)
        for path in paths:
            if cluster.find(path):
                threading.Thread(target=let_go, args=(cluster, path)).start()

    monkeypatch.setattr(command, "TELL_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(command, "note", progress)
    ran = run("wait", "cm", "a", "b", "-n", namespace, "--timeout", "50", kubeconfig=cluster.kubeconfig)
    assert ran.code == 0
    assert all(f"(uid {uid}, " in ran.out for uid in uids)
    assert "(and 1 more)" in told[0]
    assert f"waits for finalizer {FINALIZER}" in told[0]


def test_a_successor_of_the_name_is_another_object(cluster: Access, namespace: str, monkeypatch: pytest.MonkeyPatch):
    """It is made as soon as the one that is waited for has gone, before that is read."""
    path = config_map(cluster, namespace, "a")
    collection = path.rpartition("/")[0]

    def replace(_: str) -> None:
        cluster.request("DELETE", path)
        cluster.request("POST", collection, {"metadata": {"name": "a"}})

    monkeypatch.setattr(command, "TELL_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(command, "note", replace)
    ran = run("wait", "cm/a", "-n", namespace, "--timeout", "50", kubeconfig=cluster.kubeconfig)
    assert ran.code == 0
    assert "another one has its name by now" in ran.out


def test_what_may_not_be_read_is_not_gone(own_cluster: Cluster, namespace: str):
    config_map(own_cluster, namespace, "a")
    nobody = own_cluster.user(f"nobody-{namespace[-8:]}")
    ran = run("wait", "cm/a", "-n", namespace, "--timeout", "5", kubeconfig=nobody)
    assert ran.code == 3
    assert "cannot get resource" in ran.err
