"""Connections as a client sees them, with a stand-in for the core behind them."""

import asyncio
import json
import socket
import time
from email.utils import parsedate_to_datetime

import pytest

from pilotage_harbor.access.attributes import refusal
from pilotage_harbor.apimachinery.calls import ServerResponse
from pilotage_harbor.server.host import ClientLimits
from tests.harbor.server.support import ADMIN, TOKEN, Core, Line, request, serving, until

BEARER = {"Authorization": f"Bearer {TOKEN}"}


async def test_a_request_becomes_a_call_and_its_answer_comes_back():
    core = Core()
    core.answers["/api/v1/pods"] = ServerResponse(201, b'{"a":1}', {"X-It": "yes"})
    async with serving(core) as (_, connect):
        client = await connect()
        client.send(request("/api/v1/pods?x=1", "POST", b"{}", Accept="application/json", **BEARER))
        status, headers, body = await client.answer()
    assert (status, body, headers["x-it"], headers["content-type"]) == (201, b'{"a":1}\n', "yes", "application/json")
    assert "connection" not in headers
    assert abs(parsedate_to_datetime(headers["date"]).timestamp() - time.time()) < 60
    call = core.calls[0]
    assert call[:3] == ("POST", "/api/v1/pods", {"x": ["1"]})
    assert (call.body, call.user, call.headers["accept"]) == (b"{}", ADMIN, "application/json")


async def test_requests_are_understood_wherever_they_are_cut():
    core = Core()
    chunked = (
        b"PUT /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nT: 1\r\n\r\n"
    )
    wire = request("/a") + request("/b", "POST", b"body") + chunked + request("/d")
    async with serving(core) as (_, connect):
        client = await connect()
        for index in range(len(wire)):
            client.send(wire[index : index + 1])
            await client.writer.drain()
            await asyncio.sleep(0)
        answers = [await client.answer() for _ in range(4)]
    assert [status for status, _, _ in answers] == [200] * 4
    assert [(call.path, call.body) for call in core.calls] == [
        ("/a", b""),
        ("/b", b"body"),
        ("/c", b"abc"),
        ("/d", b""),
    ]


async def test_pipelined_requests_are_answered_in_order_though_the_first_takes_longer():
    core = Core()
    core.answers["/slow"] = asyncio.get_running_loop().create_future()
    core.answers["/quick"] = ServerResponse(200, b'"quick"')
    async with serving(core) as (_, connect):
        client = await connect()
        client.send(request("/slow") + request("/quick"))
        other = await connect()
        other.send(request("/quick"))
        assert (await other.answer())[2] == b'"quick"\n'
        assert [call.path for call in core.calls] == ["/slow", "/quick"]  # that of the other client
        core.answers["/slow"].set_result(ServerResponse(200, b'"slow"'))
        assert [(await client.answer())[2] for _ in range(2)] == [b'"slow"\n', b'"quick"\n']


async def test_a_request_is_finished_though_its_client_has_gone():
    core = Core()
    answer = core.answers["/slow"] = asyncio.get_running_loop().create_future()
    async with serving(core) as (server, connect):
        client = await connect()
        client.send(request("/slow"))
        other = await connect()
        other.send(request("/"))
        await other.answer()
        client.writer.transport.abort()
        await until(lambda: len(server.connections) == 1)
        assert not answer.cancelled()
        answer.set_result(ServerResponse(200, b"{}"))
        other.send(request("/"))
        assert (await other.answer())[0] == 200


async def test_a_handler_that_fails_is_a_500_and_the_connection_stays(caplog):
    core = Core()
    core.answers["/bad"] = ValueError("oops")
    async with serving(core) as (_, connect):
        client = await connect()
        client.send(request("/bad") + request("/"))
        status, _, body = await client.answer()
        assert (status, json.loads(body)["reason"]) == (500, "InternalError")
        assert (await client.answer())[0] == 200
    assert "oops" in caplog.text


async def test_head_answers_have_no_body():
    core = Core()
    core.answers["/x"] = ServerResponse(200, b"12345")
    async with serving(core) as (_, connect):
        client = await connect()
        client.send(request("/x", "HEAD") + request("/x"))
        assert b"Content-Length: 6" in await client.head()
        assert (await client.head()).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    ("wire", "stays"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", False),
    ],
)
async def test_the_connection_stays_if_both_want_it(wire, stays):
    async with serving(Core()) as (_, connect):
        client = await connect()
        client.send(wire)
        assert (await client.answer())[0] == 200
        if stays:
            client.send(request("/"))
            assert (await client.answer())[0] == 200
        else:
            assert await client.rest() == b""


@pytest.mark.parametrize(
    ("wire", "answer"),
    [
        (b"nonsense\r\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\n\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400 Bad Request: missing required Host header"),
        (b"\x16\x03\x01\x02\x00", b"400 Bad Request"),
        (request("/", "POST", Content_Length="x"), b"400 Bad Request"),
        (request("/", "POST", Transfer_Encoding="chunked") + b"zz\r\n", b"400 Bad Request"),
        (request("/", X="y" * 70_000), b"431 Request Header Fields Too Large"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000, b"431 Request Header Fields Too Large"),
        (b"GET / HTTP/3.0\r\n", b"505 HTTP Version Not Supported: unsupported protocol version"),
    ],
)
async def test_what_is_no_request_is_answered_as_go_does_and_ends_the_connection(wire, answer):
    core = Core()
    async with serving(core) as (_, connect):
        client = await connect()
        client.send(wire)
        head, body = (await client.rest()).split(b"\r\n\r\n")
    assert body == answer
    assert b"Connection: close" in head
    assert core.calls == []


TOO_LARGE = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "Request entity too large: limit is 3145728",
    "reason": "RequestEntityTooLarge",
    "code": 413,
}


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_that_is_too_large_is_refused_and_the_client_hears_it(chunked):
    core = Core()
    body = b"x" * (3 * 1024 * 1024 + 1)
    framing = {"Transfer_Encoding": "chunked"} if chunked else {"Content_Length": len(body)}
    async with serving(core) as (_, connect):
        client = await connect()
        client.send(request("/", "POST", **framing))
        client.send(b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n" if chunked else body)
        status, headers, answer = await client.answer()
    assert (status, json.loads(answer), headers["connection"]) == (413, TOO_LARGE, "close")
    assert core.calls == []


class Nothing:
    """Allows nothing."""

    def check(self, user, wanted):
        raise refusal(user, wanted)


async def test_who_may_not_ask_is_not_told_how_large_a_body_may_be():
    async with serving(Core(), authorizer=Nothing()) as (_, connect):
        client = await connect()
        client.send(request("/api/v1/pods", "POST", Content_Length=4_000_000) + b"x" * 4_000_000)
        status, _, body = await client.answer()
    assert (status, json.loads(body)["details"]) == (403, {"kind": "pods"})


async def test_a_body_of_just_the_limit_is_taken():
    core = Core()
    body = b"x" * (3 * 1024 * 1024)
    async with serving(core) as (_, connect):
        client = await connect()
        client.send(request("/", "POST", body))
        assert (await client.answer())[0] == 200
    assert core.calls[0].body == body


async def test_a_client_that_waits_for_a_word_gets_it():
    core = Core()
    async with serving(core) as (_, connect):
        client = await connect()
        client.send(request("/", "POST", Content_Length=3, Expect="100-continue"))
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"abc")
        assert (await client.answer())[0] == 200
    assert core.calls[0].body == b"abc"


async def test_a_wrong_token_is_a_401_and_none_is_nobody():
    core = Core()
    async with serving(core) as (_, connect):
        client = await connect()
        client.send(
            request("/", Authorization="Bearer wrong") + request("/") + request("/", Authorization="Basic eDp5")
        )
        status, headers, body = await client.answer()
        assert (await client.answer())[0] == (await client.answer())[0] == 200
    expected = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
    assert (status, headers["content-type"], json.loads(body)) == (401, "application/json", expected)
    assert [call.user.name for call in core.calls] == ["system:anonymous"] * 2
    assert core.calls[0].user.groups == ("system:unauthenticated",)


async def test_a_stream_is_passed_on_piece_by_piece_and_the_connection_stays():
    core, line = Core(), Line()
    core.answers["/watch"] = line
    async with serving(core) as (_, connect):
        client = await connect()
        client.send(request("/watch"))
        head = await client.head()
        assert b"Transfer-Encoding: chunked" in head
        assert b"Content-Type: application/json" in head
        line.say(b"one", b"two")
        assert [await client.chunk(), await client.chunk()] == [b"one", b"two"]
        line.say(b"three")
        assert await client.chunk() == b"three"
        line.say()
        assert await client.chunk() == b""
        assert line.closed
        client.send(request("/"))
        assert (await client.answer())[0] == 200


async def test_a_stream_to_an_old_client_has_no_chunks_and_ends_with_the_connection():
    core, line = Core(), Line()
    core.answers["/watch"] = line
    async with serving(core) as (_, connect):
        client = await connect()
        client.send(b"GET /watch HTTP/1.0\r\n\r\n")
        line.say(b"one", b"two")
        line.say()
        head, body = (await client.rest()).split(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body == b"onetwo"


async def test_a_stream_is_closed_when_its_client_goes():
    core, line = Core(), Line()
    core.answers["/watch"] = line
    async with serving(core) as (server, connect):
        client = await connect()
        client.send(request("/watch"))
        await client.head()
        client.writer.transport.abort()
        await until(lambda: line.closed and not server.connections)


async def test_a_stream_that_has_not_begun_is_closed_when_its_client_goes():
    core, line = Core(), Line()
    core.answers["/watch"] = line
    async with serving(core) as (server, connect):

        async def handle(call):
            if call.path == "/leave":
                next(iter(server.connections)).abort()  # so does a write that finds that the client is gone
            return await core.handle(call)

        server.handle = handle
        client = await connect()
        client.send(request("/leave") + request("/watch"))
        await until(lambda: not server.connections)
        assert [call.path for call in core.calls] == ["/leave", "/watch"]
        assert line.closed


async def test_a_stream_that_has_not_begun_is_closed_when_it_is_broken_off():
    core, line = Core(), Line()
    core.answers["/watch"] = line
    async with serving(core) as (server, connect):
        await connect()
        await until(lambda: server.connections)
        connection = next(iter(server.connections))
        connection.data_received(request("/watch"))
        connection.abort()
        assert line.closed


async def test_a_stream_that_has_not_begun_ends_well_when_the_server_stops():
    core, line = Core(), Line()
    core.answers["/watch"] = line
    async with serving(core) as (server, connect):
        client = await connect()
        await until(lambda: server.connections)
        next(iter(server.connections)).data_received(request("/watch"))
        await server.stop()
        assert (await client.rest()).endswith(b"\r\n\r\n0\r\n\r\n")
        assert line.closed


async def test_who_watches_and_keeps_sending_is_cut_off():
    core, line = Core(), Line()
    core.answers["/watch"] = line
    async with serving(core) as (server, connect):
        client = await connect()
        client.send(request("/watch"))
        await client.head()
        client.send(request("/") * 10)
        client.send(request("/", "POST", b"x" * 1_000_000))
        async with asyncio.timeout(10):
            await until(lambda: line.closed and not server.connections)


async def test_silent_peers_are_asked_whether_they_are_there():
    async with serving(Core()) as (server, connect):
        await connect()
        await until(lambda: server.connections)
        sock = next(iter(server.connections))._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15


async def test_a_stream_that_fails_is_cut_off_without_its_last_chunk():
    core, line = Core(), Line()
    core.answers["/watch"] = line

    async def fail():
        raise ValueError("oops")

    line.chunks = fail
    async with serving(core) as (_, connect):
        client = await connect()
        client.send(request("/watch"))
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await client.reader.readexactly(100_000)
    assert line.closed


async def test_a_stream_waits_for_its_reader_and_nothing_is_lost():
    core, line = Core(), Line()
    core.answers["/watch"] = line
    piece = b"x" * 100_000
    async with serving(core, limits=ClientLimits(waiting_bytes=50_000)) as (server, connect):
        client = await connect(limit=1000)
        client.send(request("/watch"))
        for _ in range(200):
            line.say(piece)
        line.say()
        await until(lambda: any(each._paused for each in server.connections))
        assert line.left > 0
        await client.head()
        received = 0
        while chunk := await client.chunk():
            assert chunk == piece
            received += 1
    assert received == 200


async def test_a_client_that_does_not_read_is_cut_off():
    core, line = Core(), Line()
    core.answers["/watch"] = line
    core.answers["/list"] = ServerResponse(200, b"x" * 50_000_000)
    async with serving(core, limits=ClientLimits(waiting_bytes=10_000, stall=0.05)) as (server, _):
        port = server.port
        loop = asyncio.get_running_loop()
        for path in ("/watch", "/list"):
            sock = socket.socket()
            sock.setblocking(False)
            await loop.sock_connect(sock, ("127.0.0.1", port))
            await loop.sock_sendall(sock, request(path))
            await until(lambda path=path: core.calls and core.calls[-1].path == path)
            if path == "/watch":
                line.say(*[b"x" * 100_000] * 200)
            await until(lambda: not server.connections)  # the client is still there, and has not read a byte
            sock.close()
    assert line.closed


@pytest.mark.parametrize(
    ("wire", "limit"),
    [(b"", "idle"), (b"GET / HT", "head"), (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab", "body")],
)
async def test_a_client_that_says_nothing_more_is_cut_off(wire, limit):
    limits = ClientLimits(head=60, body=60, idle=60)._replace(**{limit: 0.05})
    async with serving(Core(), limits=limits) as (server, connect):
        client = await connect()
        client.send(wire)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await client.reader.readexactly(1)
        assert not server.connections


async def test_stopping_ends_watches_lets_requests_finish_and_closes_the_rest():
    core, line = Core(), Line()
    core.answers["/watch"] = line
    slow = core.answers["/slow"] = asyncio.get_running_loop().create_future()
    async with serving(core) as (server, connect):
        watcher, asker, idler = [await connect() for _ in range(3)]
        watcher.send(request("/watch"))
        await watcher.head()
        asker.send(request("/slow"))
        idler.send(request("/"))
        await idler.answer()
        await until(lambda: len(core.calls) == 3)
        stopping = asyncio.create_task(server.stop())
        assert await watcher.rest() == b"0\r\n\r\n"
        assert await idler.rest() == b""
        assert line.closed
        assert not stopping.done()
        slow.set_result(ServerResponse(200, b'"done"'))
        status, headers, body = await asker.answer()
        assert (status, headers["connection"], body) == (200, "close", b'"done"\n')
        await stopping
        with pytest.raises(OSError):
            await connect()


async def test_stopping_does_not_wait_longer_than_told():
    core = Core()
    slow = core.answers["/slow"] = asyncio.get_running_loop().create_future()
    async with serving(core) as (server, connect):
        client = await connect()
        client.send(request("/slow"))
        await until(lambda: core.calls)
        await server.stop(grace=0.01)
        assert slow.cancelled()
        assert not server.connections


async def test_a_list_comes_to_its_end_though_the_server_stops():
    core, line = Core(), Line()
    line.finite = True
    core.answers["/list"] = line
    async with serving(core) as (server, connect):
        client = await connect()
        client.send(request("/list"))
        line.say(b"one")
        await client.head()
        assert await client.chunk() == b"one"
        stopping = asyncio.create_task(server.stop(grace=10))
        await until(lambda: server.stopping)
        line.say(b"two")
        line.say()
        assert await client.rest() == b"3\r\ntwo\r\n0\r\n\r\n"
        await stopping
