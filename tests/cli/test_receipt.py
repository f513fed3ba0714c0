"""``pilotage receipt verify``: of a receipt that ``pilotage delete`` wrote, on the cluster that it is about."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controlplane import Access
from pilotage.api.names import TEARDOWN_DONE, TEARDOWNS
from pilotage.kube import ObjectKey, merge_patch
from pilotage.teardown.engine.receipt import ObjectRecord, Receipt, begin, save
from tests.cli.running import NO_SERVER, run
from tests.cli.serving import Chat
from tests.support import kinds
from tests.teardown.building import entry, ledger

NOW = "2026-11-15T10:00:00Z"


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
    made = [(each, each.resource.api_version, each.resource.kind) for each in written.ledger.entries]
    objects = [
        {"apiVersion": version, "kind": kind, "found": "", "phase": "", "state": "gone"}
        | {"namespace": each.namespace, "name": each.name, "uid": each.uid}
        for each, version, kind in made
    ]
    save(written, path)
    changed(path, result="complete", objects=objects)
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
    told["ledger"]["entries"][0]["uid"] = told["objects"][0]["uid"] = alive
    changed(path, ledger=told["ledger"], objects=told["objects"])
    ran = run("receipt", "verify", path, "-o", "json", kubeconfig=cluster.kubeconfig)
    assert ran.code == 1
    found = json.loads(ran.out)
    assert (found["verdict"], [each["uid"] for each in found["back"]]) == ("does not hold", [alive])


def test_a_teardown_that_was_cut_off_and_another_cluster(cluster: Access, path: Path):
    ran = run("receipt", "verify", changed(path, result="running"), kubeconfig=cluster.kubeconfig)
    assert ran.code == 1
    assert f"Resume with: pilotage delete --resume {path}" in ran.out
    elsewhere = changed(path, result="complete", server="https://elsewhere:6443", cluster="")
    ran = run("receipt", "verify", elsewhere, kubeconfig=cluster.kubeconfig)
    assert ran.code == 3
    assert "Is this the right cluster?" in ran.out


def test_objects_that_were_edited_do_not_hold(cluster: Access, path: Path):
    told = json.loads(path.read_text())
    told["objects"][0]["name"] = "another"
    ran = run("receipt", "verify", changed(path, objects=told["objects"]), kubeconfig=cluster.kubeconfig)
    assert ran.code == 1
    assert ran.out.startswith("The receipt does NOT hold: 1 of 1 gone by uid")
    assert "It contradicts itself: its ledger has configmap/a" in ran.out


def test_a_receipt_is_shown(cluster: Access, namespace: str, path: Path):
    uid = json.loads(path.read_text())["ledger"]["entries"][0]["uid"]
    ran = run("receipt", "show", path)
    assert ran.code == 0
    first, *rest = ran.out.splitlines()
    assert first == f"configmap/a -n {namespace}: complete, 1 gone, 0 kept"
    (line,) = [line for line in rest if line.startswith(f"  configmap/a -n {namespace}  delete sent ")]
    assert line.endswith(f"(named; uid {uid})")
    assert any(line.startswith("    proven by GET ") for line in rest)
    assert rest[-1] == f"Verify it with: pilotage receipt verify {path}"
    assert json.loads(run("receipt", "show", path, "-o", "json").out)["result"] == "complete"


def test_without_a_place_a_receipt_goes_into_the_folder_of_receipts_and_is_found_there(
    cluster: Access, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    cluster.kubectl("create", "configmap", "kept-in-state", "-n", namespace)
    ran = run("delete", "cm/kept-in-state", "-n", namespace, "--yes", kubeconfig=cluster.kubeconfig)
    assert ran.code == 0
    (file,) = (tmp_path / "state" / "pilotage" / "receipts").iterdir()
    assert f"Receipt: {file} (1 gone, 0 kept)" in ran.out
    assert [each.name for each in tmp_path.iterdir()] == ["state"]
    assert file.stat().st_mode & 0o077 == file.parent.stat().st_mode & 0o077 == 0
    for word in (file.name, file.stem):
        assert run("receipt", "verify", word, kubeconfig=cluster.kubeconfig).code == 0
        assert run("delete", "--resume", word, "--yes", kubeconfig=cluster.kubeconfig).code == 0


RECORD: dict[str, Any] = {
    "apiVersion": "pilotage.dev/v1alpha1",
    "kind": "Teardown",
    "metadata": {"name": "chat-x1"},
    "spec": {
        "reason": "Deleted",
        "target": {"apiVersion": "pilotage.dev/v1alpha1", "kind": "ServingEndpoint", "name": "chat", "uid": "u1"},
        "parts": [],
    },
}


def test_the_receipt_in_a_teardown_is_shown_and_verified(chat: Chat):
    """By the address of the operator, which is another one than ours: the cluster is known by its identity."""
    system = chat.ask(lambda client: client.get(kinds.NAMESPACES, ObjectKey("", "kube-system")))
    gone = entry("ConfigMap", "a")
    written = Receipt(("servingendpoint/chat",), "https://10.0.0.1:443", system.meta.uid, NOW, ledger(gone))
    version, kind = gone.resource.api_version, gone.resource.kind
    told = ObjectRecord(version, kind, gone.namespace, gone.name, gone.uid, "made", "remove", "gone")
    finished = msgspec.structs.replace(written, result="complete", objects=(told,))
    spec = RECORD["spec"] | {"target": RECORD["spec"]["target"] | {"namespace": chat.namespace}}
    body = RECORD | {"spec": spec}
    chat.create(TEARDOWNS, body, {"phase": "stop", "waitingFor": "pod/x: 3 s of grace left"})
    early = chat.run("receipt", "show", "td/chat-x1")
    assert early.code == 2
    assert "has no receipt yet: it is in phase stop, and waits for pod/x: 3 s of grace left." in early.err
    patch = merge_patch({"status": {"phase": TEARDOWN_DONE, "receipt": msgspec.to_builtins(finished)}})
    chat.ask(lambda client: client.patch(TEARDOWNS, chat.key("chat-x1"), patch, subresource="status"))
    shown = chat.run("receipt", "show", "td/chat-x1")
    assert shown.out.startswith("servingendpoint/chat: complete, 1 gone, 0 kept\n")
    verified = chat.run("receipt", "verify", "teardown/chat-x1")
    assert (verified.code, verified.out) == (0, "The receipt holds: 1 of 1 gone by uid, 0 of 0 kept.\n")
    missing = chat.run("receipt", "verify", "td/nothing")
    assert (missing.code, missing.out) == (2, "")
    assert f"There is no teardown/nothing -n {chat.namespace}." in missing.err
