"""``pilotage leaks``: from a dump, from a real cluster, and against a receipt."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from controlplane import Access, Cluster
from pilotage.catalogue.phase import Phase
from pilotage.cli.commands import leaks as command
from pilotage.kube import Client, Resource, load_config
from pilotage.teardown.diagnosis.leaks import model as looking
from pilotage.teardown.engine.receipt import Receipt, save
from pilotage.teardown.planning.ledger import Disposition, Entry, Ledger, Policy
from pilotage.teardown.snapshot.dump import load_dump
from pilotage.teardown.snapshot.world import EVERY_CLUSTER_HAS, KindReading, World
from tests.cli.running import run
from tests.contract.server import harbor
from tests.support import kinds
from tests.teardown.why.staging import controllers_paused

DUMP = """
apiVersion: v1
kind: List
items:
- apiVersion: networking.k8s.io/v1
  kind: Ingress
  metadata: {name: web, namespace: shop, uid: i1, creationTimestamp: "2026-11-01T10:00:00Z"}
  spec: {defaultBackend: {service: {name: web}}}
- apiVersion: v1
  kind: Service
  metadata: {name: %s, namespace: shop, uid: s1, creationTimestamp: "2026-11-01T10:00:00Z"}
"""

SERVED_ELSEWHERE = """
apiVersion: v1
kind: List
items:
%s
- apiVersion: v1
  kind: Service
  metadata: {name: web, namespace: shop, uid: s1, creationTimestamp: "2026-11-01T10:00:00Z"}
- apiVersion: apiregistration.k8s.io/v1
  kind: APIService
  metadata: {name: v1.a.io, uid: a1, creationTimestamp: "2026-11-01T10:00:00Z"}
  spec: {group: a.io, version: v1, service: {name: api, namespace: elsewhere}}
"""
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
OWNED = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: shop
  uid: u1
  creationTimestamp: "2026-11-01T10:00:00Z"
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: b, uid: u2}]
"""


def dump(folder: Path, service: str) -> Path:
    path = folder / "dump.yaml"
    path.write_text(DUMP % service)
    return path


def receipt(folder: Path, uid: str, namespace: str = "shop", server: str = "") -> Path:
    entry = Entry(
        resource=Resource("", "v1", "services", "Service"),
        namespace=namespace,
        name="web",
        uid=uid,
        phase=Phase.REMOVE,
        disposition=Disposition.DELETE,
        reason="named",
    )
    started = "2026-11-15T10:00:00Z"
    ledger = Ledger(targets=("service/web",), started=started, policy=Policy(), entries=(entry,))
    path = folder / "receipt.json"
    save(Receipt(("service/web",), server, "", started, ledger, result="complete"), path)
    return path


def test_a_leak_in_a_dump_ends_with_1_and_says_how_to_be_rid_of_it(tmp_path: Path):
    ran = run("leaks", "--dump", dump(tmp_path, "other"))
    assert (ran.code, ran.err) == (1, "")
    assert "high  ingress/web -n shop  routes to service/web -n shop, which does not exist" in ran.out
    assert "remove: pilotage delete ingress/web -n shop" in ran.out
    assert ran.out.splitlines()[-1].startswith("1 leak, and the dump has nothing of ")


def test_a_dump_does_not_prove_that_there_are_no_leaks(tmp_path: Path):
    """Of a kind that nobody asked for it has nothing, either."""
    ran = run("leaks", "--dump", dump(tmp_path, "web"))
    assert (ran.code, ran.err) == (3, "")
    assert ran.out == (
        "No leaks found, but the dump has nothing of 19 kinds (APIService.apiregistration.k8s.io, CronJob.batch, "
        "CustomResourceDefinition.apiextensions.k8s.io and 16 more): that there is none is not known; "
        "-o json says which.\n"
    )
    told = json.loads(run("leaks", "--dump", dump(tmp_path, "web"), "-o", "json").out)
    assert told["unread"]["Pod"] == "it is not in the dump"


def test_a_dump_of_all_that_leaks_are_looked_for_in_ends_with_0(tmp_path: Path):
    path = dump(tmp_path, "web")
    missing = json.loads(run("leaks", "--dump", path, "-o", "json").out)["unread"]
    for kind, _, group in (name.partition(".") for name in missing):
        version = f"{group}/v1" if group else "v1"
        (tmp_path / f"{kind}.yaml").write_text(f"{{apiVersion: {version}, kind: {kind}List, items: []}}")
    assert run("leaks", "--dump", tmp_path) == (0, "No leaks.\n", "")


def test_a_dump_tells_what_the_cluster_does(cluster: Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A webhook whose Service went with its whole namespace; and the namespaces are all in the dump."""
    monkeypatch.setattr(looking, "YOUNG_SECONDS", 0)
    monkeypatch.setattr(command, "SECOND_LOOK_SECONDS", 0.0)
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    rule = {"apiGroups": ["never.example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    webhook = {
        "name": "a.never.example.com",
        "clientConfig": {"service": {"namespace": "went-with-it", "name": "hook"}},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    cluster.request("POST", path, {"metadata": {"name": "went"}, "webhooks": [webhook]})
    try:
        live = run("leaks", "-A", kubeconfig=cluster.kubeconfig)
        kinds = "validatingwebhookconfigurations,namespaces,services,pods"
        (tmp_path / "full.json").write_text(cluster.kubectl("get", kinds, "-A", "-o", "json"))
    finally:
        cluster.request("DELETE", f"{path}/went")
    dumped = run("leaks", "--dump", tmp_path / "full.json")
    said = "high  validatingwebhookconfiguration/went  calls service/hook -n went-with-it, which does not exist"
    assert said in live.out
    assert (dumped.code, said in dumped.out) == (1, True), dumped


def namespaces(*names: str) -> str:
    return "\n".join(
        f"- {{apiVersion: v1, kind: Namespace, metadata: {{name: {name}, uid: {name}}}}}" for name in names
    )


def test_a_namespace_that_is_not_in_a_dump_of_some_is_not_called_gone(tmp_path: Path):
    """Without those that every cluster has, the namespaces of the dump are not all that there are."""
    (tmp_path / "some.yaml").write_text(SERVED_ELSEWHERE % namespaces("shop", "kube-system"))
    assert "apiservice" not in run("leaks", "--dump", tmp_path / "some.yaml").out
    (tmp_path / "some.yaml").write_text(SERVED_ELSEWHERE % namespaces(*EVERY_CLUSTER_HAS))
    assert "is served by service/api -n elsewhere, which does not exist" in run("leaks", "--dump", tmp_path).out


def test_only_one_namespace_if_one_is_named(tmp_path: Path):
    path = dump(tmp_path, "other")
    other = "- {apiVersion: v1, kind: Service, metadata: {name: s, namespace: bank, uid: s2}}"
    path.write_text(f"{path.read_text()}{other}\n")
    assert run("leaks", "-n", "shop", "--dump", path).code == 1
    assert run("leaks", "-n", "bank", "--dump", path).code == 3
    both = run("leaks", "-n", "shop", "-A", "--dump", path)
    assert both.code == 2
    assert "exclude each other" in both.err


def test_a_namespace_that_a_dump_has_nothing_of_is_a_mistake(tmp_path: Path):
    ran = run("leaks", "-n", "typo", "--dump", dump(tmp_path, "other"))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "Error: The dump has nothing in namespace typo. Leave out -n to read all of it.\n"


def test_the_same_as_json(tmp_path: Path):
    (leak,) = json.loads(run("leaks", "--dump", dump(tmp_path, "other"), "-o", "json").out)["leaks"]
    assert (leak["code"], leak["severity"], leak["uid"]) == ("route-to-nothing", "high", "i1")
    assert leak["remedy"]["command"] == "pilotage delete ingress/web -n shop"


def test_a_receipt_against_a_dump(tmp_path: Path):
    path = dump(tmp_path, "web")
    alive = run("leaks", "--receipt", receipt(tmp_path, "s1"), "--dump", path)
    assert alive.code == 1
    assert "is listed in the receipt" in alive.out
    assert run("leaks", "--receipt", receipt(tmp_path, "s0"), "--dump", path).code == 0  # a successor is no leak
    unread = run("leaks", "--receipt", receipt(tmp_path, "s0", "elsewhere"), "--dump", path)
    assert unread.code == 3
    said = "No leaks found, but 1 object could not be read (service/web -n elsewhere); -o json says why.\n"
    assert unread.out == said


def test_a_file_that_is_no_receipt(tmp_path: Path):
    path = tmp_path / "x.json"
    path.write_text("{}")
    ran = run("leaks", "--receipt", path)
    assert ran.code == 2
    assert "not a receipt" in ran.err


@pytest.mark.parametrize(
    ("kinds", "groups", "said"),
    [
        (["Pod"], [], "1 kind could not be read (Pod)"),
        (["Pod", "Job", "Node"], [], "3 kinds could not be read (Job, Node, Pod)"),
        (["Pod", "Job", "Node", "Secret", "Role"], [], "5 kinds could not be read (Job, Node, Pod and 2 more)"),
        ([], ["metrics.k8s.io/v1"], "1 API group could not be read (metrics.k8s.io/v1)"),
        (["Pod"], ["a.io/v1", "b.io/v1"], "1 kind and 2 API groups could not be read (Pod, a.io/v1, b.io/v1)"),
    ],
)
@pytest.mark.parametrize(("service", "code", "start"), [("web", 3, "No leaks found, but"), ("other", 1, "1 leak, and")])
def test_what_could_not_be_read_is_said_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: list[str], groups: list[str], said: str,
    service: str, code: int, start: str,
):  # fmt: skip
    def partly(files: tuple[Path, ...]) -> World:
        world = load_dump(files)
        for kind in kinds:
            resource = Resource("", "v1", f"{kind.lower()}s", kind)
            world.read_kind(KindReading(resource, problem=f"{kind} is forbidden: you may not", error_class=None))
        world.unreadable_groups.update(dict.fromkeys(groups, "no answer"))
        return world

    monkeypatch.setattr(command, "load_dump", partly)
    monkeypatch.setattr(command, "undumped", lambda _: {})
    ran = run("leaks", "--dump", dump(tmp_path, service))
    assert ran.code == code
    assert ran.out.splitlines()[-1] == f"{start} {said}; -o json says why."
    assert "forbidden" not in ran.out
    told = run("leaks", "--dump", dump(tmp_path, service), "-o", "json")
    assert told.code == code
    assert sorted(json.loads(told.out)["unread"]) == sorted([*kinds, *groups])


def test_somebody_without_rights_is_not_told_that_all_is_well(own_cluster: Cluster, namespace: str):
    ran = run("leaks", "-n", namespace, kubeconfig=own_cluster.user("without-rights"))
    assert ran.code == 3
    (line,) = ran.out.splitlines()
    assert re.fullmatch(r"No leaks found, but \d+ kinds could not be read \(.* and \d+ more\); -o json says why.", line)
    assert len(line) < 200


def test_a_namespace_that_is_not_there_is_a_mistake(cluster: Access):
    ran = run("leaks", "-n", "typo", kubeconfig=cluster.kubeconfig)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "Error: There is no namespace typo. `kubectl get namespaces` lists those there are.\n"


def test_a_real_namespace_is_looked_at_twice(cluster: Access, namespace: str, monkeypatch: pytest.MonkeyPatch):
    backend = {"service": {"name": "lost", "port": {"number": 80}}}
    body = {"metadata": {"name": "web"}, "spec": {"defaultBackend": backend}}
    cluster.request("POST", f"/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses", body)
    young = run("leaks", "-n", namespace, kubeconfig=cluster.kubeconfig)
    assert (young.code, young.out) == (0, "No leaks.\n")
    monkeypatch.setattr(looking, "YOUNG_SECONDS", 0)
    monkeypatch.setattr(command, "SECOND_LOOK_SECONDS", 0.0)
    old = run("leaks", "-n", namespace, kubeconfig=cluster.kubeconfig)
    assert old.code == 1
    assert "route" in old.out
    assert "looking again" in old.err


def test_all_namespaces_are_looked_at_if_all_are_meant(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(looking, "YOUNG_SECONDS", 0)
    monkeypatch.setattr(command, "SECOND_LOOK_SECONDS", 0.0)
    backend = {"service": {"name": "lost", "port": {"number": 80}}}
    ingress = {"metadata": {"name": "web"}, "spec": {"defaultBackend": backend}}

    async def fill(kubeconfig: Path) -> None:
        async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
            for name in ("shop", "bank"):
                await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
            await client.create(INGRESSES, ingress, namespace="bank")

    with harbor() as place:
        asyncio.run(fill(place.kubeconfig))
        assert run("leaks", "-n", "shop", kubeconfig=place.kubeconfig)[:2] == (0, "No leaks.\n")
        ran = run("leaks", "-A", kubeconfig=place.kubeconfig)
    assert ran.code == 1
    assert "high  ingress/web -n bank  routes to service/lost -n bank, which does not exist" in ran.out
    assert "remove: pilotage delete ingress/web -n bank" in ran.out


def test_an_owner_in_a_namespace_that_was_not_read_is_not_called_gone(tmp_path: Path):
    """The dump of one namespace cannot tell whether another has the owner. It counts as gone wherever it is."""
    path = tmp_path / "dump.yaml"
    path.write_text(OWNED)
    ran = run("leaks", "--dump", path)
    assert ran.code == 1
    assert "configmap/a -n shop  its owner configmap/b is not in its namespace, which counts as gone: " in ran.out
    (leak,) = json.loads(run("leaks", "--dump", path, "-o", "json").out)["leaks"]
    assert leak["evidence"] == ["its ownerReference names the uid u2, which no object in namespace shop has"]


def test_an_owner_in_another_namespace_is_named_as_far_as_one_looked(
    own_cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(looking, "YOUNG_SECONDS", 0)
    monkeypatch.setattr(command, "SECOND_LOOK_SECONDS", 0.0)
    with own_cluster.namespace("owner", for_pods=False) as other, controllers_paused(own_cluster):
        owner = own_cluster.request("POST", f"/api/v1/namespaces/{other}/configmaps", {"metadata": {"name": "b"}})
        uid = owner["metadata"]["uid"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": uid}
        body = {"metadata": {"name": "a", "ownerReferences": [reference]}}
        own_cluster.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)
        told = [
            next(each for each in json.loads(ran.out)["leaks"] if each["namespace"] == namespace)
            for where in (("-n", namespace), ("-A",))
            if (ran := run("leaks", *where, "-o", "json", kubeconfig=own_cluster.kubeconfig)).code == 1
        ]
    assert [leak["code"] for leak in told] == ["owner-gone", "owner-in-other-namespace"]
    assert told[0]["evidence"] == [
        f"its ownerReference names the uid {uid}, which no object in namespace {namespace} has"
    ]
    assert told[1]["evidence"] == [f"the object with the uid {uid} is in another namespace"]


def test_only_what_both_looks_show_is_a_leak(cluster: Access, namespace: str, monkeypatch: pytest.MonkeyPatch):
    """Between the two reads one object is cleaned up, and another one leaks."""
    backend = {"service": {"name": "lost", "port": {"number": 80}}}
    path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses"

    def make(name: str) -> None:
        cluster.request("POST", path, {"metadata": {"name": name}, "spec": {"defaultBackend": backend}})

    def meanwhile(_: str) -> None:
        cluster.request("DELETE", f"{path}/over")
        make("new")

    make("over")
    monkeypatch.setattr(looking, "YOUNG_SECONDS", 0)
    monkeypatch.setattr(command, "SECOND_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(command, "note", meanwhile)
    assert run("leaks", "-n", namespace, kubeconfig=cluster.kubeconfig)[:2] == (0, "No leaks.\n")


def test_a_receipt_against_a_real_cluster(cluster: Access, namespace: str, tmp_path: Path):
    path = f"/api/v1/namespaces/{namespace}/services"
    body = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    uid = cluster.request("POST", path, body)["metadata"]["uid"]
    config = cluster.kubeconfig
    alive = run("leaks", "--receipt", receipt(tmp_path, uid, namespace), kubeconfig=config)
    assert alive.code == 1
    assert f"service/web -n {namespace}" in alive.out
    cluster.request("DELETE", f"{path}/web")
    assert run("leaks", "--receipt", receipt(tmp_path, uid, namespace), kubeconfig=config).code == 0
    elsewhere = run("leaks", "--receipt", receipt(tmp_path, uid, namespace, "https://x:1"), kubeconfig=config)
    assert elsewhere.code == 3
    assert "--context" in elsewhere.err
