"""proxy-url: the real API server, reached through a real CONNECT."""

import asyncio
import base64

import pytest
from msgspec.structs import replace

from pilotage.kube import Client, Unavailable


class ConnectProxy:
    """An HTTP proxy that knows CONNECT, and asks for a login if it has one."""

    def __init__(self, login: str | None = None) -> None:
        self._login = login
        self.asked: list[str] = []
        self.url = ""
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader, writer):
        self._serving.add(asyncio.current_task())
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # one of the two sides is gone
        finally:
            writer.transport.abort()

    async def _answer(self, reader, writer):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = lines[0].split()
        self.asked.append(f"{method} {target}")
        expected = f"Proxy-Authorization: Basic {base64.b64encode((self._login or '').encode()).decode()}"
        if self._login and expected not in lines:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            await reader.read()
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        host, _, port = target.rpartition(":")
        answers, upstream = await asyncio.open_connection(host, int(port))
        try:
            await asyncio.gather(pump(reader, upstream), pump(answers, writer))
        finally:
            upstream.transport.abort()


async def pump(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    raise ConnectionAbortedError


@pytest.mark.parametrize("login", [None, "me:s%cret"])
async def test_requests_go_through_the_proxy(config, login):
    async with ConnectProxy(login) as proxy:
        url = proxy.url if login is None else proxy.url.replace("://", "://me:s%25cret@")
        async with Client.connect(replace(config, proxy_url=url)) as client:
            for _ in range(3):
                assert b"gitVersion" in await client.get_path("/version")
        assert proxy.asked == [f"CONNECT {config.server.removeprefix('https://')}"]


async def test_a_proxy_that_refuses_is_named(config):
    async with ConnectProxy("someone:else") as proxy, Client.connect(replace(config, proxy_url=proxy.url)) as client:
        with pytest.raises(Unavailable, match=r"was not reached: the proxy 127\.0\.0\.1:\d+ refused: 407"):
            await client.get_path("/version")
