"""``pilotage logs``: whose logs they are. (harbor runs no containers: what the pods print is made up here.)"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilotage.api.names import ENDPOINTS, LABEL_ENDPOINT_UID, LABEL_REVISION, PROCESSES
from pilotage.cli.commands import logs
from pilotage.kube import PODS, Client, Invalid, Object, ObjectKey, Unavailable, merge_patch
from pilotage.kube.transport import TransportError
from tests.api.objects import process
from tests.cli.serving import Chat, revision, serving
from tests.support import kinds
from tests.support.transports import MemoryResponse, ScriptedTransport
from tests.support.waiting import eventually


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Requests for logs that the kubelet got; each pod has printed its name."""
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


def test_followed_logs_go_on_with_the_next_revision_and_say_why_they_end(
    chat: Chat, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
):
    made = chat.make("a", serving("a"))
    pods(chat, made.meta.uid, old=1, new=2)
    listed = Client.list

    async def redeployed(self: Client, *args: Any, **options: Any) -> Any:
        """The endpoint is redeployed while the first logs are followed."""
        if "=1" in options.get("labels", "")[-2:]:
            status = merge_patch({"status": serving("a", 2, revision(1, "Previous"))})
            await self.patch(ENDPOINTS, chat.key("a"), status, subresource="status")
        return await listed(self, *args, **options)

    monkeypatch.setattr(Client, "list", redeployed)
    ran = chat.run("logs", "a", "-f")
    assert (ran.code, ran.out) == (0, "I am old\nI am new\n")
    first, last = ran.err.splitlines()
    assert first == "The logs of a-1 have ended: a-2 serves now."
    assert last.startswith("The logs of a-2 have ended: it was stopped or restarted.")


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


def on_host(chat: Chat, uid: str, name: str, folder: Path | None, text: str = "") -> Path:
    """A process on a Host that says where its log is; the file is there if there is a text for it."""
    labels = {LABEL_ENDPOINT_UID: uid, LABEL_REVISION: "1"}
    made = chat.create(PROCESSES, process(name, {"host": "gpu-1"}, labels=labels))
    if folder is None:
        return Path()
    file = folder / f"{name}_{made.meta.uid[:8]}.log"
    patch = merge_patch({"status": {"logFile": str(file)}})
    chat.ask(lambda client: client.patch(PROCESSES, made.key, patch, subresource="status"))
    if text:
        file.write_text(text)
    return file


def test_of_a_process_on_this_host(chat: Chat, tmp_path: Path):
    made = chat.make("a", serving("a"))
    file = on_host(chat, made.meta.uid, "a-1-0", tmp_path, "one\ntwo\nthree")
    ran = chat.run("logs", "a")
    assert (ran.code, ran.out) == (0, "one\ntwo\nthree\n")
    assert ran.err == f"hostprocess/a-1-0 on host/gpu-1: {file}\n"
    assert chat.run("logs", "a", "--tail", "2").out == "two\nthree\n"
    assert chat.run("logs", "a", "--tail", "0").code == 1
    ran = chat.run("logs", "a", "--previous")
    assert (ran.code, ran.out) == (2, "")
    assert "all starts of a server are in one log" in ran.err


def test_of_processes_on_several_hosts_it_is_said_where_they_lie(chat: Chat, tmp_path: Path):
    made = chat.make("a", serving("a"))
    on_host(chat, made.meta.uid, "a-1-0", tmp_path, "one\n")
    far = on_host(chat, made.meta.uid, "a-1-1", tmp_path / "far")
    on_host(chat, made.meta.uid, "a-1-2", None)
    ran = chat.run("logs", "a")
    assert (ran.code, ran.out) == (0, "[a-1-0] one\n")
    assert f"hostprocess/a-1-1 on host/gpu-1: {far}\nThat file is not on this machine: read it on gpu-1.\n" in ran.err
    assert "hostprocess/a-1-2 has not started yet on host/gpu-1.\n" in ran.err


def test_a_file_that_is_not_named_after_the_process_is_not_its_log(chat: Chat, tmp_path: Path):
    made = chat.make("a", serving("a"))
    on_host(chat, made.meta.uid, "a-1-0", None)
    (tmp_path / "private").write_text("secret")
    patch = merge_patch({"status": {"logFile": str(tmp_path / "private")}})
    chat.ask(lambda client: client.patch(PROCESSES, chat.key("a-1-0"), patch, subresource="status"))
    ran = chat.run("logs", "a")
    assert (ran.code, ran.out) == (1, "")


async def test_a_log_on_a_host_is_followed_through_its_rotation_until_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.01)
    file = tmp_path / "a-1-0_0123abcd.log"
    file.write_text("a long first line\nhal")
    status = {"logFile": str(file)}
    body = process("a-1-0", {"host": "gpu-1"}, uid="0123abcd-4567") | {"status": status}
    printed = ""

    async def until(text: str) -> None:
        async def is_so() -> bool:
            nonlocal printed
            printed += capsys.readouterr().out
            return printed == text

        await eventually(is_so)

    following = asyncio.create_task(logs.print_host_logs([Object.from_dict(body)], tail=None, follow=True))
    await until("a long first line\n")
    with file.open("a") as log:
        log.write("f\n")
    await until("a long first line\nhalf\n")
    file.write_text("anew\n")
    await until("a long first line\nhalf\nanew\n")
    file.unlink()
    assert await asyncio.wait_for(following, 10)


async def test_a_log_comes_line_by_line_however_it_is_cut():
    transport = ScriptedTransport(MemoryResponse([b"one\ntw", b"o\n", b"three"]))
    lines = [line async for line in Client(transport).log_lines(ObjectKey("n", "p"), follow=True)]
    assert lines == [b"one", b"two", b"three"]
    assert [request.target for request in transport.requests] == ["/api/v1/namespaces/n/pods/p/log?follow=true"]


async def test_a_log_that_breaks_off_is_not_taken_for_its_end():
    broken = MemoryResponse([b"one\n"], then=TransportError("reset", sent=True))
    lines = Client(ScriptedTransport(broken)).log_lines(ObjectKey("n", "p"))
    assert await anext(lines) == b"one"
    with pytest.raises(Unavailable, match="reset"):
        await anext(lines)
