"""The ledger of an endpoint: an entry stays for as long as its part exists or may exist."""

from pilotage.controllers.endpoint.ledger import PartLedger, PartName
from pilotage.serving.resources import DEPLOYMENTS, SERVICES

SERVICE = PartName(SERVICES, "chat-1", 1)
DEPLOYMENT = PartName(DEPLOYMENTS, "chat-1", 1)
ROUTE = PartName(SERVICES, "chat")


def ledger(*made: tuple[PartName, str]) -> PartLedger:
    found = PartLedger([])
    found.add(part for part, _ in made)
    for part, uid in made:
        if uid:
            found.made(part, uid)
    return found


def left(of: PartLedger, *, gone=(), seen=(), revisions=()) -> list[str]:
    return [f"{entry['kind']}/{entry['name']}" for entry in of.present(gone, seen, revisions)]


def test_an_entry_says_what_finds_its_part_again():
    assert ledger((DEPLOYMENT, "u1"), (ROUTE, "")).entries() == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "resource": "deployments",
            "name": "chat-1",
            "uid": "u1",
            "revision": 1,
        },
        {"apiVersion": "v1", "kind": "Service", "resource": "services", "name": "chat", "uid": ""},
    ]


def test_a_part_is_entered_once_and_keeps_its_uid():
    found = ledger((SERVICE, "u1"))
    assert not found.add([SERVICE])
    assert found.add([SERVICE, DEPLOYMENT])
    assert [entry["uid"] for entry in found.entries()] == ["u1", ""]


def test_what_is_proven_gone_is_struck_off_and_nothing_else():
    found = ledger((SERVICE, "u1"), (DEPLOYMENT, "u2"))
    assert left(found, gone={"u1"}) == ["Deployment/chat-1"]
    assert left(found) == ["Service/chat-1", "Deployment/chat-1"]


def test_what_was_never_heard_of_stays_while_it_may_have_been_made():
    found = ledger((SERVICE, ""))
    assert left(found, revisions={1}) == ["Service/chat-1"]
    assert left(found, seen={("Service", "chat-1")}) == ["Service/chat-1"]
    assert left(found, revisions={2}, seen={("Service", "chat-2")}) == []


def test_a_part_of_all_revisions_always_may_have_been_made():
    assert left(ledger((ROUTE, "")), revisions={2}) == ["Service/chat"]
