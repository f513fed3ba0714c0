"""Waiting for the gone, when the API does not answer as it should: an error is never taken for absence.

What a healthy server does is tested with the command, in `tests/cli/test_wait.py`.
"""

import msgspec
import pytest

from pilotage.kube import Client, Forbidden, Json, KindNotServed, Object
from pilotage.kube.transport import TransportError
from pilotage.teardown.engine import waiting
from pilotage.teardown.engine.waiting import ProvenGone, wait_gone
from pilotage.teardown.snapshot.world import Item
from tests.support.kinds import CONFIG_MAPS
from tests.support.transports import MemoryResponse, ScriptedTransport, answer

A = Item(CONFIG_MAPS, Object.from_dict({"metadata": {"name": "a", "namespace": "shop", "uid": "u1"}}), full=True)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PAUSE_SECONDS", (0.0, 0.0))
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.0)


def there(uid: str = "u1") -> MemoryResponse:
    return answer({"metadata": {"name": "a", "namespace": "shop", "uid": uid, "resourceVersion": "5"}})


def status(code: int, reason: str, name: str = "a") -> MemoryResponse:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
    return answer(body | {"message": reason, "details": {"name": name, "kind": "configmaps"}}, status=code)


def events(*told: tuple[str, Json]) -> MemoryResponse:
    """A watch that tells these, and ends."""
    return MemoryResponse([msgspec.json.encode({"type": type_, "object": body}) + b"\n" for type_, body in told])


ABSENT = (404, "NotFound")
DELETED = ("DELETED", {"metadata": {"name": "a", "namespace": "shop", "uid": "u1", "resourceVersion": "6"}})


async def waited(*answers: MemoryResponse | TransportError) -> tuple[list[ProvenGone], ScriptedTransport]:
    transport = ScriptedTransport(*answers)
    gone: list[ProvenGone] = []
    await wait_gone(Client(transport), [A], gone.append)
    return gone, transport


async def test_a_deletion_that_a_watch_tells_is_proven_by_a_read():
    gone, transport = await waited(there(), events(DELETED), status(*ABSENT))
    assert [(each.item, each.successor) for each in gone] == [(A, "")]
    assert [request.method for request in transport.requests] == ["GET"] * 3
    assert "watch=1" in transport.requests[1].target
    assert "watch=1" not in transport.requests[2].target


async def test_what_a_watch_told_and_a_read_denies_is_not_gone():
    gone, transport = await waited(there(), events(DELETED), there(), events(DELETED), status(*ABSENT))
    assert len(gone) == 1
    assert len(transport.requests) == 5


@pytest.mark.parametrize(
    "trouble",
    [
        status(503, "ServiceUnavailable"),
        status(500, "InternalError"),
        status(429, "TooManyRequests"),
        TransportError("connection refused", sent=False),
    ],
    ids=["unavailable", "internal", "throttled", "unreachable"],
)
async def test_an_error_that_passes_is_waited_out(trouble: MemoryResponse | TransportError):
    gone, _ = await waited(trouble, trouble, status(*ABSENT))
    assert len(gone) == 1


async def test_a_watch_that_breaks_expires_or_ends_is_begun_anew_from_a_fresh_read():
    broken = MemoryResponse([], then=TransportError("reset", sent=True))
    expired = events(("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}))
    gone, transport = await waited(there(), broken, there(), expired, there(), events(), status(*ABSENT))
    assert len(gone) == 1
    assert len(transport.requests) == 7


async def test_what_may_not_be_watched_is_read_again_and_again():
    gone, _ = await waited(there(), status(403, "Forbidden"), there(), status(403, "Forbidden"), status(*ABSENT))
    assert len(gone) == 1


async def test_what_may_not_be_read_or_is_not_served_is_not_gone():
    with pytest.raises(Forbidden):
        await waited(status(403, "Forbidden"))
    with pytest.raises(KindNotServed):
        await waited(status(404, "NotFound", name=""))


async def test_another_object_of_the_name_proves_that_it_is_gone():
    gone, _ = await waited(there("u2"))
    assert [each.successor for each in gone] == ["u2"]
