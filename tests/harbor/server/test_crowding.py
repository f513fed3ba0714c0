"""Clients that send nothing useful, or hold resources that they do not use, keep no others out."""

import json
import resource
import socket

import pytest

from pilotage_harbor.access.attributes import refusal
from pilotage_harbor.access.tokens import digest_of
from pilotage_harbor.apimachinery.users import ANONYMOUS, UserInfo
from pilotage_harbor.server.host import ClientLimits
from pilotage_harbor.server.http1 import BadRequest
from pilotage_harbor.server.requests import Requests
from tests.harbor.server.support import TOKEN, Core, Line, request, serving, tokens, until
from tests.harbor.server.test_run import ask, harbor, received

BEARER = {"Authorization": f"Bearer {TOKEN}"}
LARGE = 3 * 1024 * 1024


class NothingForNobody:
    """Anonymous users may do nothing."""

    def check(self, user, wanted):
        if user.name == ANONYMOUS:
            raise refusal(user, wanted)


# blank lines


def test_two_blank_lines_are_tolerated_and_a_third_is_no_request():
    requests = Requests(1000)
    requests.feed(b"\r\n" * 2 + request("/a"))
    assert requests.next()[0].path == "/a"
    requests.feed(b"\r\n")
    assert requests.next() is None
    assert requests.begun == "head"  # so it is measured as one that has begun, and does not count as idle again
    requests.feed(b"\r\n")
    assert requests.next() is None
    requests.feed(b"\r\n" * 50_000)
    with pytest.raises(BadRequest):
        requests.next()


async def test_a_flood_of_blank_lines_ends_its_connection():
    async with serving(Core()) as (_, connect):
        client = await connect()
        client.send(b"\r\n" * 50_000)
        assert (await client.rest()).startswith(b"HTTP/1.1 400 Bad Request\r\n")


# bodies


async def test_no_body_is_taken_from_who_may_not_send_it():
    async with serving(core := Core(), authorizer=NothingForNobody()) as (server, connect):
        waits = await connect()
        waits.send(request("/a", "POST", Content_Length=LARGE, Expect="100-continue"))
        assert (await waits.answer())[0] == 403
        sends = await connect()
        sends.send(request("/a", "POST", Content_Length=LARGE) + b"x" * 100_000)
        assert (await sends.answer())[0] == 403
        chunks = await connect()
        chunks.send(request("/a", "POST", Transfer_Encoding="chunked") + b"5\r\nhello\r\n")
        assert (await chunks.answer())[0] == 403
        assert server.bodies_bytes == 0
    assert core.calls == []


async def test_who_may_send_a_body_is_told_to_go_on():
    async with serving(core := Core(), authorizer=NothingForNobody()) as (_, connect):
        client = await connect()
        client.send(request("/a", "POST", Content_Length=5, Expect="100-continue", **BEARER))
        assert (await client.head()) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"hello")
        assert (await client.answer())[0] == 200
    assert core.calls[0].body == b"hello"


async def test_bodies_that_are_under_way_are_bounded_together():
    async with serving(Core(), limits=ClientLimits(bodies_bytes=1000)) as (server, connect):
        first, second = await connect(), await connect()
        first.send(request("/a", "POST", Content_Length=900, **BEARER) + b"x" * 800)
        await until(lambda: server.bodies_bytes == 800)
        second.send(request("/b", "POST", Content_Length=900, **BEARER) + b"x" * 800)
        status, headers, body = await second.answer()
        assert (status, headers["retry-after"], json.loads(body)["reason"]) == (429, "1", "TooManyRequests")
        first.send(b"x" * 100)
        assert (await first.answer())[0] == 200
        assert server.bodies_bytes == 0


async def test_a_body_that_breaks_off_is_not_counted_any_more():
    async with serving(Core()) as (server, connect):
        client = await connect()
        client.send(request("/a", "POST", Content_Length=900, **BEARER) + b"x" * 800)
        await until(lambda: server.bodies_bytes == 800)
        client.writer.transport.abort()
        await until(lambda: not server.connections)
        assert server.bodies_bytes == 0


# connections


async def test_idle_connections_of_nobody_make_room_the_oldest_first():
    async with serving(core := Core(), connections_max=8) as (server, connect):
        known = await connect()
        known.send(request("/", **BEARER))
        await known.answer()
        line = core.answers["/watch"] = Line()
        watching = await connect()
        watching.send(request("/watch", **BEARER))
        await watching.head()
        idle = [await connect() for _ in range(20)]
        await until(lambda: len(server.connections) == 6)  # half of the eight are reserved
        assert await idle[0].rest() == b""
        late = await connect()
        late.send(request("/", **BEARER))
        assert (await late.answer())[0] == 200
        known.send(request("/", **BEARER))
        assert (await known.answer())[0] == 200
        line.say(b"more")
        assert await watching.chunk() == b"more"


async def test_one_user_has_only_a_share_of_the_connections():
    async with serving(core := Core(), connections_max=16, known=_some_tokens()) as (_, connect):
        core.answers["/watch"] = Line()
        answered = []
        for _ in range(3):
            client = await connect()
            client.send(request("/watch", Authorization="Bearer greedy"))
            answered.append((await client.head()).split(b"\r\n")[0])
        assert answered == [b"HTTP/1.1 200 OK"] * 2 + [b"HTTP/1.1 429 Too Many Requests"]
        other = await connect()
        other.send(request("/", Authorization="Bearer modest"))
        assert (await other.answer())[0] == 200


async def test_when_all_is_taken_the_user_with_the_most_loses_an_idle_one():
    async with serving(Core(), connections_max=16, known=_some_tokens(*(f"u{at}" for at in range(15)))) as (_, connect):
        clients = []
        for user in ("greedy", "greedy", *(f"u{at}" for at in range(14))):
            clients.append(client := await connect())
            client.send(request("/", Authorization=f"Bearer {user}"))
            assert (await client.answer())[0] == 200
        late = await connect()
        late.send(request("/", Authorization="Bearer modest"))
        assert (await late.answer())[0] == 200
        assert await clients[0].rest() == b""
        for client in clients[1:]:
            client.send(request("/", **BEARER))
            assert (await client.answer())[0] == 200


def _some_tokens(*more):
    known = tokens()
    for name in ("greedy", "modest", *more):
        known.add(digest_of(name), UserInfo(name, groups=("system:authenticated",)))
    return known


def test_few_descriptors_and_many_connections_lock_nobody_out(tmp_path):
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    with harbor(tmp_path, "--memory", preexec_fn=few_files) as (process, url, kubeconfig):
        host, port = url.removeprefix("https://").split(":")
        idle = [socket.create_connection((host, int(port)), timeout=20) for _ in range(150)]
        with ask(kubeconfig, "/readyz") as asked:
            assert received(asked, b"ok").startswith(b"HTTP/1.1 200 OK")
        for each in idle:
            each.close()
        process.terminate()
        assert process.wait(20) == 0
        assert process.stderr.read().count("\n") <= 2
