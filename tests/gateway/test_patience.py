"""Answers when time or room runs out: of a gateway that has little of both."""

import asyncio
import json
import socket

import pytest
import pytest_asyncio

from pilotage.gateway import resources
from tests.gateway.gateway_host import code, holds, running_gateway
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def impatient(tmp_path_factory):
    """Silence of three seconds is too long, of a client that should send more one; and so are two for a body. A Service
    takes one request, and lets one wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resources, "SILENCE_SECONDS_MAX", 3)
        patch.setattr(resources, "HELD_SILENCE_SECONDS_MAX", 1)
        patch.setattr(resources, "UPLOAD_SECONDS_MAX", 2)
        patch.setattr(resources, "IDLE_SECONDS_MAX", 1)
        patch.setattr(resources, "PLENTY", 1)
        patch.setattr(resources, "CONNECT_SECONDS_MAX", 20)  # long enough for a busy machine to go before it is over
        async with running_gateway(tmp_path_factory.mktemp("impatient") / "gw") as gateway:
            yield gateway


class Upload:
    """A request to a model whose body comes slowly."""

    def __init__(self, gateway):
        self._gateway = gateway
        self.answered = asyncio.Event()

    async def stalled(self):
        """It begins, and no more comes."""
        return await self._answer(lambda _: self.answered.wait())

    async def trickling(self):
        """It never ends, and something comes all the time."""

        async def more(writer):
            while not self.answered.is_set():
                writer.write(b" ")
                await asyncio.sleep(0.05)

        return await self._answer(more)

    async def _answer(self, send):
        reader, writer = await asyncio.open_connection("127.0.0.1", self._gateway.settings.port)
        head = b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"
        writer.write(head)
        sending = asyncio.create_task(send(writer))
        answer = await asyncio.wait_for(reader.readuntil(b"}}"), 20)
        self.answered.set()
        await sending
        writer.close()
        status, body = int(answer.split()[1]), answer[answer.index(b"{") :]
        return code((status, json.loads(body)))


async def test_silence_and_slow_bodies_end_in_words(impatient):
    """Silence before the route of a request is known, and after; and a body that never ends is ended, too."""
    ns = await impatient.namespace()
    server = await impatient.server(ns, "a-1")
    other = await impatient.server(ns, "a-2")
    await impatient.route(ns, "aye", {"a-1": 100})
    await impatient.route(ns, "bye", {"a-2": 100}, models=["bye"])
    held = asyncio.create_task(impatient.post(f"/endpoints/{ns}/aye/", {"hold": True}))
    thinking = asyncio.create_task(impatient.ask("bye", hold=True))
    stalled, trickling = await asyncio.gather(Upload(impatient).stalled(), Upload(impatient).trickling())
    assert stalled == (504, "idle_timeout")
    assert trickling == (408, "upload_timeout")  # by now, two seconds are over
    other.release.set()
    assert await thinking == (200, {"server": "a-2"})  # a server may think for longer than a client may stall
    assert code(await held) == (504, "idle_timeout")
    server.release.set()


async def test_more_than_a_service_takes_is_said(impatient):
    ns = await impatient.namespace()
    server = await impatient.server(ns, "b-1")
    await impatient.route(ns, "bee", {"b-1": 100})
    path = f"/endpoints/{ns}/bee/"
    held = asyncio.create_task(impatient.post(path, {"hold": True}))
    await holds(lambda: bool(server.requests))
    waits = asyncio.create_task(impatient.get(path))
    name = f"cluster.{ns}_b-1_80.upstream_rq_pending_active"

    async def waiting():
        return (await impatient.stat(f"^{name}$"))[name] == "1"

    await eventually(waiting)
    status, body = await impatient.get(path)
    assert code((status, body)) == (503, "overloaded")
    assert "bee" in body["error"]["message"]
    server.release.set()
    assert await asyncio.gather(held, waits) == [(200, {"server": "b-1"})] * 2


async def test_a_connection_that_nobody_needs_any_more_is_closed_by_us(impatient):
    """Its client went before it was made. A server would close it later, just when another request is sent into it."""
    ns = await impatient.namespace()
    loop = asyncio.get_running_loop()
    with socket.socket() as listener, socket.socket() as one, socket.socket() as two:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for each in (listener, one, two):
            each.setblocking(False)
        for each in (one, two):
            each.connect_ex(listener.getsockname())  # from here on others have to wait
        await impatient.slice(ns, "c-1", listener.getsockname()[1])
        await impatient.route(ns, "cee", {"c-1": 100})
        asked = asyncio.create_task(impatient.get(f"/endpoints/{ns}/cee/"))
        name = f"cluster.{ns}_c-1_80.upstream_rq_pending_active"

        async def waiting(number):
            return (await impatient.stat(f"^{name}$"))[name] == number

        await eventually(lambda: waiting("1"))
        asked.cancel()
        await eventually(lambda: waiting("0"))
        strangers = {one.getsockname(), two.getsockname()}
        async with asyncio.timeout(20):
            while True:
                connection, peer = await loop.sock_accept(listener)
                with connection:
                    if peer not in strangers:
                        assert await loop.sock_recv(connection, 1) == b""
                        return
