"""``pilotage logs``: whose logs they are. (harbor runs no containers: what the pods print is made up here.)"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilotage.kinds.names import LABEL_ENDPOINT_UID, LABEL_REVISION
from pilotage.kube import PODS, Client, Invalid, ObjectKey, Unavailable
from pilotage.kube.transport import TransportError
from tests.cli.serving import Chat, revision, serving
from tests.support import kinds
from tests.support.transports import MemoryResponse, ScriptedTransport


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the kubelet was asked for; each pod has printed its name."""
    found: list[dict[str, Any]] = []

    async def log_lines(self: Client, key: ObjectKey, **options: Any) -> AsyncIterator[bytes]:
        found.append(options)
        if key.name.endswith("waiting"):
            raise Invalid("container main is waiting to start: PodInitializing")
        yield f"I am {key.name}".encode()

    monkeypatch.setattr(Client, "log_lines", log_lines)
    return found


def pods(chat: Chat, uid: str, **names: int) -> None:
    for name, number in names.items():
        labels = {LABEL_ENDPOINT_UID: uid, LABEL_REVISION: str(number)}
        chat.create(PODS, kinds.pod(name, labels=labels))


def test_of_the_revision_that_serves(chat: Chat, asked: list[dict[str, Any]]):
    made = chat.make("a", serving("a", 2, revision(1, "Previous")))
    pods(chat, made.meta.uid, old=1, new=2)
    pods(chat, "another", other=2)
    ran = chat.run("logs", "a", "--tail", "5", "--previous")
    assert (ran.code, ran.out) == (0, "I am new\n")
    assert asked == [{"container": "main", "tail_lines": 5, "previous": True, "follow": False}]
    assert chat.run("logs", "a", "--revision", "1").out == "I am old\n"


def test_of_the_newest_where_none_serves(chat: Chat, asked: list[dict[str, Any]]):
    made = chat.make("a", {"phase": "Deploying", "history": [revision(1, "Starting")]})
    pods(chat, made.meta.uid, first=1)
    assert chat.run("logs", "a", "-f", "-c", "fetch").out == "I am first\n"
    assert asked == [{"container": "fetch", "tail_lines": None, "previous": False, "follow": True}]


def test_several_pods_are_told_apart_and_one_without_a_log_hides_no_other(chat: Chat, asked: list[dict[str, Any]]):
    made = chat.make("a", serving("a"))
    pods(chat, made.meta.uid, x=1, y=1, waiting=1)
    ran = chat.run("logs", "a")
    assert ran.code == 0
    assert sorted(ran.out.splitlines()) == ["[x] I am x", "[y] I am y"]
    assert "PodInitializing" in ran.err


def test_nothing_to_print_is_said(chat: Chat, asked: list[dict[str, Any]]):
    made = chat.make("a")
    ran = chat.run("logs", "a")
    assert (ran.code, ran.out) == (2, "")
    assert "has no revision yet" in ran.err
    chat.write("a", serving("a"))
    assert chat.run("logs", "a").code == 1
    pods(chat, made.meta.uid, waiting=1)
    assert chat.run("logs", "a").code == 1


async def test_a_log_comes_line_by_line_however_it_is_cut():
    transport = ScriptedTransport(MemoryResponse([b"one\ntw", b"o\n", b"three"]))
    lines = [line async for line in Client(transport).log_lines(ObjectKey("n", "p"), follow=True)]
    assert lines == [b"one", b"two", b"three"]


async def test_a_log_that_breaks_off_is_not_taken_for_its_end():
    broken = MemoryResponse([b"one\n"], then=TransportError("reset", sent=True))
    lines = Client(ScriptedTransport(broken)).log_lines(ObjectKey("n", "p"))
    assert await anext(lines) == b"one"
    with pytest.raises(Unavailable, match="reset"):
        await anext(lines)
