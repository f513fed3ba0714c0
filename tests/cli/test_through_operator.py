"""``pilotage delete`` of an endpoint: left to the operator where one runs, and shown as if it were done here."""

import datetime as dt
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import ENDPOINT_FINALIZER, ENDPOINTS, LABEL_ENDPOINT, LABEL_ENDPOINT_UID, TEARDOWNS
from pilotage.api.teardown import StoredTeardown
from pilotage.catalogue.phase import Phase
from pilotage.cli.output.progress import Lines
from pilotage.cli.output.teardown import TeardownProgress
from pilotage.kube import (
    LEASES,
    Client,
    Json,
    Object,
    ObjectKey,
    Propagation,
    Resource,
    load_config,
    merge_patch,
    without_finalizer,
)
from pilotage.kube.wire import format_time
from pilotage.runtime.clock import utc_now
from pilotage.serving.resources import CLAIMS
from pilotage.teardown.engine.receipt import ObjectRecord, begin, load
from pilotage.teardown.planning.ledger import Ledger
from pilotage.teardown.session import operator_lease as operators
from pilotage.teardown.session.operator_lease import judge
from pilotage.teardown.session.operator_teardown import EndpointTeardown
from pilotage.teardown.session.teardown_record import RecordedTeardown, planned
from pilotage.traffic.routers.ingress import INGRESSES
from tests.cli.serving import SINCE, Chat, part, press_ctrl_c, serving, with_ctrl_c
from tests.support import kinds
from tests.support.waiting import until

PARTS = [
    part("Deployment", "a-1", 1, "u-deployment"),
    part("Service", "a-1", 1, "u-service", group="v1"),
    part("Ingress", "a", None, "u-ingress", group="networking.k8s.io/v1"),
    part("PersistentVolumeClaim", "a-cache", None, "u-claim", group="v1"),
]
NOW = dt.datetime(2026, 1, 1, 0, 1, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Receipts go into the working directory: not into that of the tests."""
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    monkeypatch.setattr(operators, "SECOND_LOOK_SECONDS", 0.0)


@pytest.fixture
def chat(chat: Chat):
    """There is one operator in a cluster: its Lease is deleted with the test."""
    yield chat
    chat.ask(lambda client: client.delete_collection(LEASES, chat.namespace, propagation=Propagation.BACKGROUND))


def deployed(chat: Chat, name: str = "a", **more: Any) -> Object:
    """An endpoint that an operator has made parts for."""
    chat.make(name, metadata={"finalizers": [ENDPOINT_FINALIZER]}, **more)
    return chat.write(name, serving(name, ledger=PARTS))


async def record(client: Client, endpoint: Object, status: Json, reason: str = "Deleted") -> Object:
    """Teardown record of a deletion, as an operator writes it."""
    target = {"apiVersion": endpoint.api_version, "kind": endpoint.kind, "uid": endpoint.meta.uid}
    target |= {"namespace": endpoint.meta.namespace, "name": endpoint.meta.name}
    parts = [{name: value for name, value in each.items() if name != "revision"} for each in PARTS]
    body = {
        "metadata": {
            "name": f"{endpoint.meta.name}-{endpoint.meta.uid[:8]}",
            "labels": {LABEL_ENDPOINT: endpoint.meta.name, LABEL_ENDPOINT_UID: endpoint.meta.uid},
        },
        "spec": {"target": target, "reason": reason, "parts": parts},
    }
    made = await client.create(TEARDOWNS, body, namespace=endpoint.meta.namespace)
    return await client.patch(TEARDOWNS, made.key, merge_patch({"status": status}), subresource="status")


def ledger_of(endpoint: Object) -> Ledger:
    """Ledger of an operator for an endpoint: its parts."""
    found = planned(StoredEndpoint.of(endpoint), NOW)
    return msgspec.structs.replace(found, entries=found.entries[:-1])


def finished(endpoint: Object) -> Json:
    ledger = ledger_of(endpoint)
    objects = tuple(
        ObjectRecord(
            each.resource.api_version,
            each.resource.kind,
            each.namespace,
            each.name,
            each.uid,
            each.reason,
            str(each.phase),
            "kept" if each in ledger.kept else "gone",
        )
        for each in ledger.entries
    )
    receipt = msgspec.structs.replace(begin(ledger, "https://x", ""), result="complete", objects=objects)
    return {"phase": "done", "left": 0, "gone": len(ledger.going), "receipt": msgspec.to_builtins(receipt)}


def operator(chat: Chat, name: str = "a", *, done: bool = True) -> Callable[[Client], Awaitable[None]]:
    """One that takes an endpoint down as soon as it is asked to go; not `done`: it waits for a pod for ever."""

    async def run(client: Client) -> None:
        going = await until(client, ENDPOINTS, chat.key(name), lambda obj: obj is not None and obj.meta.terminating)
        assert going is not None
        if not done:
            wait = {
                "object": f"deployment/a-1 -n {chat.namespace}",
                "cause": "finalizer",
                "text": "finalizer acme.example.com/x",
                "since": format_time(utc_now()),
                "until": format_time(utc_now() + dt.timedelta(seconds=600)),
            }
            ledger = msgspec.to_builtins(ledger_of(going))
            await record(client, going, {"phase": "stop", "left": 3, "waits": [wait], "ledger": ledger})
            return
        await record(client, going, finished(going))
        patch = without_finalizer(going, ENDPOINT_FINALIZER)
        assert patch is not None
        await client.patch(ENDPOINTS, going.key, patch)

    return run


def test_the_plan_comes_from_what_was_made_for_it(chat: Chat):
    made = deployed(chat, deletion={"keep": ["Volumes"]})
    create_parts(chat, made)
    chat.hold_lease()
    ran = chat.run("delete", "se/a", "--dry-run")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Plan: 4 objects in 4 steps; keeps persistentvolumeclaim/a-cache.")
    rows = [line.split()[0] for line in ran.out.splitlines() if line.startswith("  ")]
    assert rows[:4] == ["ingress/a", "deployment/a-1", "service/a-1", "servingendpoint/a"]
    assert chat.run("plan", "se/a").out == ran.out
    found = chat.find("a")
    assert found is not None
    assert not found.meta.terminating


def test_what_an_operator_would_delete_cannot_be_kept_from_here(chat: Chat):
    create_parts(chat, deployed(chat))
    ran = chat.run("delete", "--all", "--keep", "volumes", "--dry-run")
    assert ran.code == 2
    assert "persistentvolumeclaim/a-cache" in ran.err
    assert "spec.deletion" in ran.err


def create_parts(chat: Chat, endpoint: Object) -> None:
    """The objects of `PARTS`, labelled as parts of an endpoint."""
    port = {"port": 80}
    backend = {"service": {"name": "a-1", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    bodies = {
        kinds.DEPLOYMENTS: kinds.deployment("a-1"),
        kinds.SERVICES: {"metadata": {"name": "a-1"}, "spec": {"ports": [port]}},
        INGRESSES: {"metadata": {"name": "a"}, "spec": {"rules": [{"http": {"paths": paths}}]}},
        CLAIMS: {"metadata": {"name": "a-cache"}, "spec": claim},
    }
    for resource, body in bodies.items():
        body["metadata"]["labels"] = {LABEL_ENDPOINT_UID: endpoint.meta.uid}
        chat.create(resource, body)


def test_it_asks_follows_and_writes_the_receipt(chat: Chat):
    made = deployed(chat, deletion={"keep": ["ModelCache"]})
    chat.hold_lease()
    with chat.meanwhile(operator(chat)):
        ran = chat.run("delete", "servingendpoint", "a", "--yes", "--timeout", "20")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines] == ["Plan:", "detach", "stop", "remove", "prove", "note", "Receipt:"]
    assert "3 gone by uid" in ran.out
    path = Path(lines[-1].split()[1])
    assert path.name.startswith("a-2")
    receipt = load(path)
    assert (receipt.result, receipt.count("gone"), receipt.count("kept")) == ("complete", 3, 1)
    assert made.meta.uid in receipt.notes[-1]
    assert chat.find("a") is None


@pytest.mark.parametrize("form", ["text", "name"])
def test_what_is_planned_and_not_in_the_receipt_is_told(chat: Chat, form: str):
    """An operator does not read Endpoints: the numbers of the plan and of the receipt differ by them."""
    made = chat.make("a", metadata={"finalizers": [ENDPOINT_FINALIZER]})
    labels = {LABEL_ENDPOINT_UID: made.meta.uid}
    service = chat.create(
        kinds.SERVICES, {"metadata": {"name": "a-1", "labels": labels}, "spec": {"ports": [{"port": 80}]}}
    )
    chat.create(Resource("", "v1", "endpoints", "Endpoints"), {"metadata": {"name": "a-1"}})
    chat.write("a", serving("a", ledger=[part("Service", "a-1", 1, service.meta.uid, group="v1")]))
    chat.hold_lease()
    with chat.meanwhile(operator(chat)):
        ran = chat.run("delete", "se/a", "--yes", "--timeout", "20", "-o", form)
    assert ran.code == 0, ran.err
    told = ran.out if form == "text" else ran.err
    assert "Plan: 3 objects in" in told
    assert "prove    1 gone by uid" in told
    place = f"-n {chat.namespace}"
    assert f"note     endpoints/a-1 {place} goes with service/a-1 {place}, and is not in the receipt\n" in told
    assert f"note     servingendpoint/a {place} (uid {made.meta.uid}) is gone as well" in told
    if form == "name":
        assert ran.out == "service/a-1\nservingendpoint.pilotage.dev/a\n"


def test_for_scripts_the_end_is_an_event(chat: Chat, tmp_path: Path):
    deployed(chat)
    chat.hold_lease()
    with chat.meanwhile(operator(chat)):
        ran = chat.run("delete", "se/a", "--yes", "-o", "json", "--receipt", tmp_path / "r.json", "--timeout", "20")
    first, *_, last = map(json.loads, ran.out.splitlines())
    assert (ran.code, first["event"], last["event"], last["result"]) == (0, "plan", "end", "complete")
    assert load(tmp_path / "r.json").result == "complete"


def test_the_time_is_over_and_what_is_waited_for_is_told(chat: Chat):
    deployed(chat)
    chat.hold_lease()
    with chat.meanwhile(operator(chat, done=False)):
        ran = chat.run("delete", "se/a", "--yes", "--timeout", "1")
    assert ran.code == 1
    assert "detach   ingress/a gone" in ran.out
    assert "Not finished: 3 of 4 are not known to be gone." in ran.err
    assert f"deployment/a-1 -n {chat.namespace}  finalizer acme.example.com/x" in ran.err
    assert "The operator continues." in ran.err
    assert not list(Path().glob("*.json"))


def test_one_that_somebody_else_holds_is_not_gone_with_its_parts(chat: Chat):
    chat.make("a", metadata={"finalizers": [ENDPOINT_FINALIZER, "acme.example.com/x"]})
    chat.write("a", serving("a", ledger=PARTS))
    chat.hold_lease()
    with chat.meanwhile(operator(chat)):
        ran = chat.run("delete", "se/a", "--yes", "--timeout", "1")
    assert ran.code == 1
    assert "it is itself still there" in ran.err
    assert "pilotage why servingendpoint/a" in ran.err
    assert not list(Path().glob("*.json"))


def test_ctrl_c_leaves_it_to_the_operator(chat: Chat):
    deployed(chat)
    chat.hold_lease()

    async def strike(client: Client) -> None:
        await until(client, ENDPOINTS, chat.key("a"), lambda obj: obj is not None and obj.meta.terminating)
        await press_ctrl_c()

    with with_ctrl_c(), chat.meanwhile(strike):
        ran = chat.run("delete", "se/a", "--yes", "--timeout", "20")
    assert ran.code == 130
    assert f"Follow it with: pilotage delete servingendpoint/a -n {chat.namespace}" in ran.err


def test_one_that_nothing_was_made_for_is_just_gone(chat: Chat):
    chat.make("a")
    chat.hold_lease()
    ran = chat.run("delete", "se/a", "--yes", "--timeout", "5")
    assert (ran.code, ran.err) == (0, "")
    assert "Nothing had been made for it." in ran.out
    assert chat.find("a") is None


def test_one_that_is_not_there_needs_no_deleting(chat: Chat):
    chat.hold_lease()
    ran = chat.run("delete", "se/a", "--yes")
    assert (ran.code, ran.out) == (0, f"servingendpoint/a -n {chat.namespace} is not there: nothing to do\n")


def vanished(chat: Chat, status: Json) -> Object:
    """An endpoint that went before its parts did, and the record of them."""
    meta = {"name": "a", "namespace": chat.namespace, "uid": "u-a"}
    body = {"apiVersion": ENDPOINTS.api_version, "kind": ENDPOINTS.kind, "metadata": meta, "spec": {}}
    left = Object.from_dict(body | {"status": {"ledger": PARTS}})
    chat.ask(lambda client: record(client, left, status, "Vanished"))
    return left


def test_one_that_went_before_its_parts_is_followed_to_their_end(chat: Chat, monkeypatch: pytest.MonkeyPatch):
    left = vanished(chat, {"phase": "stop", "left": 4})
    chat.hold_lease()
    ran = chat.run("delete", "se/a", "--yes", "--timeout", "1")
    assert ran.code == 1
    assert f"servingendpoint/a -n {chat.namespace} is gone, but what was made for it is not: teardown/a-u-a" in ran.err
    assert "Not finished: 4 of 4 are not known to be gone." in ran.err

    ask = EndpointTeardown.ask

    async def finish(followed: EndpointTeardown, deadline: dt.datetime) -> None:
        await ask(followed, deadline)
        patch = merge_patch({"status": finished(left)})
        await followed._client.patch(TEARDOWNS, chat.key("a-u-a"), patch, subresource="status")

    monkeypatch.setattr(EndpointTeardown, "ask", finish)
    ran = chat.run("delete", "se/a", "--yes", "--timeout", "20")
    assert ran.code == 0, ran.err
    assert "Plan: 4 objects" in ran.out
    assert "4 gone by uid" in ran.out
    ran = chat.run("delete", "se/a", "--yes")
    assert (ran.code, ran.out) == (0, f"servingendpoint/a -n {chat.namespace} is not there: nothing to do\n")


def test_what_one_left_that_is_gone_is_taken_from_here_where_no_operator_runs(chat: Chat):
    vanished(chat, {"phase": "stop", "left": 4})
    ours = kinds.deployment("a-1")
    ours["metadata"]["labels"] = {LABEL_ENDPOINT_UID: "u-a"}
    chat.create(kinds.DEPLOYMENTS, ours)
    ran = chat.run("delete", "se/a", "--dry-run", "--adopt")
    assert "No operator runs" in ran.err
    assert "what was made for it is not: teardown/a-u-a" in ran.err
    assert "deployment/a-1" in ran.out


@pytest.mark.parametrize("flags", [["--keep", "volumes"], ["--drain", "5"]])
def test_what_the_endpoint_itself_says_cannot_be_said_here(chat: Chat, flags: list[str]):
    deployed(chat)
    chat.hold_lease()
    ran = chat.run("delete", "se/a", "--yes", "--timeout", "1", *flags)
    assert ran.code == 2
    assert "spec.deletion" in ran.err
    found = chat.find("a")
    assert found is not None
    assert not found.meta.terminating


# Without an operator


def test_where_none_runs_it_is_done_from_here_and_said(chat: Chat):
    deployed(chat)
    chat.hold_lease(ago=600)
    ran = chat.run("delete", "se/a", "--dry-run")
    assert "No operator runs: its Lease (pilotage-operator" in ran.err
    assert "with --adopt" in ran.err
    assert "deployment/a-1" not in ran.out


def test_adopt_takes_the_parts_that_are_its_own(chat: Chat):
    made = deployed(chat, deletion={"drainSeconds": 0})
    ours = kinds.deployment("a-1")
    ours["metadata"]["labels"] = {LABEL_ENDPOINT_UID: made.meta.uid}
    service = {"metadata": {"name": "a-1"}, "spec": {"ports": [{"port": 80}]}}
    chat.create(kinds.DEPLOYMENTS, ours)
    chat.create(kinds.SERVICES, service)  # of the same name, and of another owner
    ran = chat.run("delete", "se/a", "--dry-run", "--adopt")
    assert "deployment/a-1" in ran.out
    assert "service/a-1" not in ran.out
    assert f"--finalizer {ENDPOINT_FINALIZER}" in ran.err


def test_adopt_leaves_out_what_the_cluster_does_not_serve_and_says_so(chat: Chat):
    deployed(chat)
    chat.write("a", {"ledger": [part("HTTPProxy", "a", group="projectcontour.io/v1")]})
    ran = chat.run("delete", "se/a", "--dry-run", "--adopt")
    assert ran.code != 3, ran.err
    assert "httpproxy/a" in ran.err
    assert "its kind is not served" in ran.err


def lease(**spec: object) -> Object:
    renewed = {"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": SINCE}
    return Object.from_dict({"metadata": {"name": "pilotage-operator", "namespace": "p"}, "spec": renewed | spec})


@pytest.mark.parametrize(
    ("leases", "seconds", "alive", "words"),
    [
        ([], 0, False, "there is no Lease"),
        ([lease()], 20, True, "fresh"),
        ([lease()], 600, False, "expired 9m ago"),
        ([lease(holderIdentity="")], 1, False, "no process holds"),
        ([lease(holderIdentity=""), lease()], 20, True, "fresh"),
    ],
)
def test_an_operator_is_known_by_its_lease(leases: list[Object], seconds: float, alive: bool, words: str):
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)
    found = judge(leases, now)
    assert found.alive is alive
    assert words in found.text


def test_one_whose_clock_is_wrong_is_known_by_its_renewals(chat: Chat, monkeypatch: pytest.MonkeyPatch):
    chat.hold_lease(ago=600)

    async def renew(_: float) -> None:
        key = ObjectKey(chat.namespace, operators.LEASE)
        patch = merge_patch({"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})
        async with Client.connect(load_config(kubeconfig=str(chat.kubeconfig))) as other:
            await other.patch(LEASES, key, patch)

    monkeypatch.setattr("pilotage.teardown.session.operator_lease.asyncio.sleep", renew)
    assert chat.ask(operators.find_operator).alive


# Content of a record


def recorded(chat_ledger: Ledger, **status: object) -> tuple[RecordedTeardown, Phase]:
    body = {"metadata": {"name": "t"}, "spec": {}, "status": {"ledger": msgspec.to_builtins(chat_ledger)} | status}
    found = RecordedTeardown(chat_ledger)
    decision = found.update(StoredTeardown.of(Object.from_dict(body)), NOW)
    return found, decision.phase


def endpoint() -> Object:
    meta = {"name": "a", "namespace": "chat", "uid": "u"}
    return Object.from_dict({"metadata": meta, "spec": {}, "status": {"ledger": PARTS}})


def test_what_a_record_does_not_say_is_gone_counts_as_there():
    ledger = ledger_of(endpoint())
    wait = {"object": "ingress/a -n chat", "cause": "router", "text": "x", "since": SINCE, "until": SINCE}
    for status, gone in [
        ({"phase": "cordon"}, set()),
        ({"phase": "stop"}, {"u-ingress"}),
        ({"phase": "stop", "waits": [wait]}, set()),
        ({"phase": "remove"}, {"u-ingress", "u-deployment"}),
        ({"phase": "done"}, {"u-ingress", "u-deployment", "u-service", "u-claim"}),
        ({"phase": "something new"}, set()),
    ]:
        found, _ = recorded(ledger, **status)
        assert {each.uid for each in ledger.going if found.last_seen(each).state == "gone"} == gone


def test_lines_say_for_what_the_operator_waits(capsys: pytest.CaptureFixture[str]):
    import sys

    ledger = ledger_of(endpoint())
    found = RecordedTeardown(ledger)
    lines = TeardownProgress(found, Lines(sys.stdout))
    wait = {"object": "pod/other -n chat", "cause": "never heard of", "text": "why", "since": SINCE, "until": SINCE}
    body = {"metadata": {"name": "t"}, "status": {"phase": "stop", "waits": [wait]}}
    seen = StoredTeardown.of(Object.from_dict(body))
    lines.decision(found.update(seen, NOW), NOW)
    later = NOW + dt.timedelta(seconds=6)
    lines.decision(found.update(seen, later), later)
    out = capsys.readouterr().out
    assert "detach   ingress/a gone" in out
    assert "waiting  pod/other -n chat  why" in out
