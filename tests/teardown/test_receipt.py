"""The receipt says what became of each object, and can be read back."""

from __future__ import annotations

import msgspec
import pytest

from pilotage.catalogue.phase import Phase
from pilotage.teardown.engine.decision import Cause, Decision, Wait
from pilotage.teardown.engine.progress import Outcome
from pilotage.teardown.engine.prove import Proof, Read
from pilotage.teardown.engine.receipt import (
    BYTES_MAX,
    ObjectRecord,
    ReadRecord,
    ReceiptError,
    begin,
    conclude,
    load,
    save,
)
from pilotage.teardown.planning.ledger import Disposition, Ledger, extend, merge
from tests.teardown.building import GONE, NOW, UNTIL, entry, ledger, seconds, uid

INGRESS = entry("Ingress", unverified="no proxy was asked")
POD = entry("Pod")
CLAIM = entry("PersistentVolumeClaim", disposition=Disposition.KEEP, reason="kept as asked")
LEDGER = ledger(INGRESS, POD, CLAIM)
READ = Read("GET /x", NOW, "7")


def outcome(proof: Proof | None, *, gone: tuple[str, ...] = (), waits: tuple[Wait, ...] = ()) -> Outcome:
    decision = Decision(Phase.STOP if waits else Phase.PROVE, (), waits)
    times = dict.fromkeys(gone, NOW)
    return Outcome(LEDGER, decision, proof, times, dict.fromkeys(gone, NOW - seconds(1)), ("a note",))


def record(of, state: str, **more) -> ObjectRecord:
    resource = of.resource
    fixed = (resource.api_version, resource.kind, of.namespace, of.name, of.uid, of.reason, str(of.phase), state)
    return ObjectRecord(*fixed, **({"unverified": of.unverified} | more))


def test_a_complete_one_has_the_read_that_proves_each():
    proof = Proof({INGRESS.uid: READ, POD.uid: READ}, [], {}, {CLAIM.uid: True}, {}, [])
    receipt = conclude(outcome(proof, gone=(INGRESS.uid, POD.uid)), "https://x", NOW)
    shown = ReadRecord("GET /x", "2026-01-01T12:00:00.000000Z", "7")
    times = {"asked": "2026-01-01T11:59:59.000000Z", "gone": "2026-01-01T12:00:00.000000Z"}
    assert receipt.result == "complete"
    assert receipt.objects == (
        record(INGRESS, "gone", proof=shown, **times),
        record(POD, "gone", proof=shown, **times),
        record(CLAIM, "kept"),
    )
    assert (receipt.count("gone"), receipt.count("kept"), receipt.notes) == (2, 1, ("a note",))


def test_without_a_proof_nothing_is_called_gone():
    wait = Wait(POD, Cause.FINALIZER, "who keeps it", "finalizer test.dev/x", NOW, UNTIL)
    receipt = conclude(outcome(None, gone=(INGRESS.uid,), waits=(wait,)), "https://x", NOW)
    assert receipt.result == "incomplete"
    assert [each.state for each in receipt.objects] == ["seen gone, not proven", "left", "kept"]
    assert receipt.objects[1].waits == "finalizer: finalizer test.dev/x"


def test_what_was_to_stay_and_does_not_is_said():
    proof = Proof({INGRESS.uid: READ, POD.uid: READ}, [], {}, {CLAIM.uid: False}, {}, [])
    assert conclude(outcome(proof), "", NOW).objects[2].state == "to be kept, but not there"


def test_a_name_that_was_taken_again_is_reported():
    proof = Proof({INGRESS.uid: READ, POD.uid: READ}, [], {}, {}, {INGRESS.uid: "other"}, [])
    assert conclude(outcome(proof), "", NOW).notes == (
        "a note",
        "ingress/web -n shop is gone; another object has its name now (uid other), and was not touched",
    )


def test_one_that_is_running_is_written_before_anything_is_done_and_read_back(tmp_path):
    receipt = begin(LEDGER, "https://x")
    save(receipt, tmp_path / "receipt.json")
    assert load(tmp_path / "receipt.json") == receipt
    assert (receipt.result, receipt.ledger) == ("running", LEDGER)
    assert [path.name for path in tmp_path.iterdir()] == ["receipt.json"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a receipt of Pilotage"),
        (b"[]", "not a receipt of Pilotage"),
        (b"{}", "its format is None"),
        (b'{"format": "pilotage.dev/receipt-v1"}', "missing required field"),
        (b"\xff\xfe", "not a receipt of Pilotage"),
        (b'{"format": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"format": "' + b"x" * 1000 + b'"}', "its format is 'xxx[x]*$"),
        (b" " * (BYTES_MAX + 1), "larger than 64 MiB"),
    ],
)
def test_what_is_no_receipt_is_refused_with_words(tmp_path, content, words):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(ReceiptError, match=words):
        load(path)


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ReceiptError, match="cannot be written"):
        save(begin(LEDGER, ""), tmp_path / "no" / "receipt.json")
    with pytest.raises(ReceiptError, match="No such file"):
        load(tmp_path / "no.json")


def test_a_ledger_is_the_same_after_the_disk():
    assert msgspec.json.decode(msgspec.json.encode(LEDGER), type=Ledger) == LEDGER
    assert GONE.gone_at is not None


def test_phases_and_resources_are_saved_by_name():
    """Nothing is saved by number or position: a phase, or a field of a resource, can be added later."""
    text = msgspec.json.encode(begin(ledger(INGRESS), "https://x"))
    assert (
        b'"entries":[{"resource":{"group":"networking.k8s.io","version":"v1","plural":"ingresses","kind":"Ingress",'
        b'"namespaced":true},"namespace":"shop","name":"web","uid":"ingress-web","phase":"detach",'
        b'"disposition":"delete","reason":"named","unverified":"no proxy was asked"}]'
    ) in text


def test_phases_are_compared_by_their_order_and_saved_by_their_names():
    names = ["cordon", "detach", "drain", "quiesce", "stop", "remove", "release", "prove"]
    assert [str(phase) for phase in sorted(Phase, reverse=True)] == names[::-1]
    assert msgspec.json.decode(msgspec.json.encode([*Phase])) == names
    assert Phase.DRAIN < Phase.QUIESCE <= Phase.QUIESCE < Phase.STOP
    assert Phase.STOP > Phase.QUIESCE >= Phase.QUIESCE


def test_a_ledger_grows_and_what_comes_later_waits_for_what_was_found():
    found = entry("Pod", "new")
    grown = extend(LEDGER, [found], {POD.uid})
    assert grown.entries == (INGRESS, msgspec.structs.replace(POD, after=(found.uid,)), CLAIM, found)


def test_a_ledger_that_is_resumed_loses_nothing_and_takes_in_what_is_new():
    """Entries that the new plan no longer contains stay; known entries wait for the new ones, as planned."""
    service = entry("Service", after=(uid("Deployment"),))
    saved = ledger(entry("Deployment"), service, CLAIM)
    new = entry("Deployment", "new")
    planned = msgspec.structs.replace(
        ledger(new, entry("Service", after=(uid("Deployment"), new.uid)), CLAIM), started="2026-01-01T13:00:00Z"
    )
    waits = msgspec.structs.replace(service, after=(uid("Deployment"), new.uid))
    assert merge(saved, planned) == msgspec.structs.replace(
        saved, entries=(entry("Deployment"), waits, CLAIM, new), started="2026-01-01T13:00:00Z"
    )


def test_what_was_to_go_is_not_kept_because_a_later_plan_does_not_take_it():
    """Once the object that mounted it is gone, nothing in the cluster shows that it belongs to the teardown."""
    saved = ledger(entry("ConfigMap"))
    assert merge(saved, ledger(entry("ConfigMap", disposition=Disposition.KEEP))) == saved


def test_parts_of_an_owner_that_is_held_by_now_are_deleted_one_by_one():
    owner, part = entry("App"), entry("Service", disposition=Disposition.COLLECT, owner=uid("App"))
    held = msgspec.structs.replace(owner, hold=True)
    one_by_one = msgspec.structs.replace(part, disposition=Disposition.DELETE)
    assert merge(ledger(owner, part), ledger(held, one_by_one)).entries == (held, one_by_one)


def test_what_appeared_meanwhile_goes_one_by_one_where_its_siblings_do():
    """A new plan finds the owner being deleted by another client, and takes its parts for that one's."""
    saved = ledger(entry("App", hold=True), entry("Service", owner=uid("App")))
    new = entry("Ingress", disposition=Disposition.COLLECT, owner=uid("App"))
    planned = ledger(entry("App"), new)
    one_by_one = msgspec.structs.replace(new, disposition=Disposition.DELETE)
    assert merge(saved, planned).entries == (*saved.entries, one_by_one)
