"""Memory that clients can make Envoy take, and the effect on others."""

import asyncio
import contextlib

import aiohttp
import psutil
import pytest

from pilotage.gateway import overload
from tests.gateway.floods import Multiplexed, plain
from tests.gateway.gateway_host import code, holds, running_gateway
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")
MEMORY_MIB = 96
ROOM_MIB = 160
"""Memory of Envoy without any request, plus what arrives before it has measured its own use."""


class Watch:
    """The most memory that a process has had."""

    def __init__(self, pid):
        self._process = psutil.Process(pid)
        self.mib = 0

    async def run(self):
        while True:
            self.mib = max(self.mib, self._process.memory_info().rss // 1024**2)
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def little_room(folder):
    """A gateway with little memory, a stream that has begun there, and how much memory it takes at most."""
    async with running_gateway(folder, memory_bytes=MEMORY_MIB * 1024**2) as gateway:
        ns = await gateway.namespace()
        server = await gateway.server(ns, "m-1")
        await gateway.route(ns, "m", {"m-1": 100}, models=["m"])
        streaming = asyncio.create_task(gateway.post(f"/endpoints/{ns}/m/v1/x", {"stream": 4, "pause": True}))
        await holds(lambda: bool(server.requests))
        watch = Watch(gateway.envoy.pid)
        watching = asyncio.create_task(watch.run())
        try:
            yield gateway, watch
            assert watch.mib < MEMORY_MIB + ROOM_MIB
            await eventually(lambda: served(gateway))
            assert await gateway.get(f"/endpoints/{ns}/m/v1/x") == (200, {"server": "m-1"})
            server.release.set()
            assert (await streaming)[1].count("data:") == 4  # requests under way are not cut off
            assert gateway.envoy.starts == 1
        finally:
            watching.cancel()


async def status(gateway):
    """Status of a request of another client: served, or refused in words; 0 while the memory fills up."""
    try:
        answer = await gateway.ask("m")
    except aiohttp.ClientError:
        return 0
    assert answer == (200, {"server": "m-1"}) or code(answer) == (503, "overloaded")
    return answer[0]


async def served(gateway):
    return await status(gateway) == 200


async def answered(gateway):
    return await status(gateway) in (200, 503)


async def test_bodies_that_never_end_take_no_more_memory_than_there_is(tmp_path):
    async with little_room(tmp_path / "gw") as (gateway, watch):
        before = watch.mib
        writers = await asyncio.gather(*(plain(gateway.settings.port) for _ in range(120)))  # 480 MiB
        assert watch.mib > before + MEMORY_MIB // 2  # they did get that far
        await eventually(lambda: answered(gateway))
        for each in writers:
            each.close()


async def test_requests_on_one_connection_of_http2_take_no_more_either(tmp_path):
    async with little_room(tmp_path / "gw") as (gateway, watch):
        before = watch.mib
        connection = await Multiplexed.connect(gateway.settings.port)
        assert connection.streams_max == 100
        await connection.fill(100)  # 400 MiB
        assert watch.mib > before + MEMORY_MIB // 2
        await connection.close()


async def test_without_memory_new_requests_are_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(overload, "REFUSE", 0.0)
    async with running_gateway(tmp_path / "gw") as gateway:

        async def refusing():
            return (await gateway.get("/v1/models"))[0] == 503

        await eventually(refusing)
        assert code(await gateway.ask("m")) == (503, "overloaded")
