"""A TCP proxy between a client and the API server, which holds back or cuts connections on request.

It passes bytes on, so TLS goes through it untouched: certificates for 127.0.0.1 hold on its port, too.
"""

import asyncio
import base64
import contextlib
import ssl
from typing import Self
from urllib.parse import urlsplit

from msgspec.structs import replace

from pilotage.kube import ClusterConfig
from tests.support.raw_server import http


class TcpProxy:
    """``async with TcpProxy(config.server) as proxy: Client.connect(proxy.config(config))``"""

    def __init__(self, server: str, tls: ssl.SSLContext | None = None) -> None:
        """Proxy to a server. With `tls`, clients shake hands with the proxy first."""
        self._tls = tls
        self._target = urlsplit(server)
        self._requests, self._answers, self._something_held = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[object]] = set()
        self._refusing = False
        self._answer_bytes_left: int | None = None
        self.connections = 0
        """Number of connections made so far."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self._port = self._server.sockets[0].getsockname()[1]
        self.release()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.refuse()
        self.release()  # so that no test waits for ever
        await asyncio.gather(*self._tasks)

    def config(self, config: ClusterConfig) -> ClusterConfig:
        """The same cluster, through this proxy."""
        return replace(config, server=f"{self._target.scheme}://127.0.0.1:{self._port}")

    def hold_requests(self) -> None:
        """Hold back what clients send from here on."""
        self._requests.clear()

    def hold_answers(self) -> None:
        """Hold back what the server sends from here on."""
        self._answers.clear()

    def hold(self) -> None:
        """Hold back everything in both directions from here on; all connections stay open."""
        self.hold_requests()
        self.hold_answers()

    async def held(self) -> None:
        """Wait until there is something that is held back."""
        await self._something_held.wait()

    def release(self) -> None:
        """Pass on everything, also what was held back."""
        self._something_held.clear()
        self._requests.set()
        self._answers.set()

    def cut(self) -> None:
        """Break all connections, without a word. What was held back is lost; new ones are accepted."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def cut_after(self, answer_bytes: int) -> None:
        """Break the connection that brings this many more bytes from the server."""
        self._answer_bytes_left = answer_bytes

    def refuse(self) -> None:
        """Break all connections, and every new one at once."""
        self._refusing = True
        self.cut()

    def accept(self) -> None:
        """Let new connections through again."""
        self._refusing = False

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        both = [writer]
        try:
            if not self._refusing and await self._admit(reader, writer):
                upstream, to_upstream = await asyncio.open_connection(self._target.hostname, self._target.port)
                both.append(to_upstream)
                self._writers.add(to_upstream)
                async with asyncio.TaskGroup() as directions:
                    directions.create_task(self._pass_on(reader, to_upstream, self._requests))
                    directions.create_task(self._pass_on(upstream, writer, self._answers))
        except* (OSError, EOFError):
            pass  # one of the two is gone; close the other one
        finally:
            for each in both:
                self._writers.discard(each)
                each.transport.abort()
                with contextlib.suppress(OSError):
                    await each.wait_closed()

    async def _admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Delay or break a connection before bytes are passed on; returns whether they are."""
        return True

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event) -> None:
        while data := await reader.read(65536):
            if not gate.is_set():
                self._something_held.set()
                await gate.wait()
            if writer.is_closing():
                break
            if gate is self._answers and self._answer_bytes_left is not None:
                allowed, self._answer_bytes_left = self._answer_bytes_left, self._answer_bytes_left - len(data)
                data = data[:allowed]
            writer.write(data)
            await writer.drain()
            if gate is self._answers and self._answer_bytes_left is not None and self._answer_bytes_left <= 0:
                self._answer_bytes_left = None
                break
        raise ConnectionAbortedError  # the end of one direction ends both: no test uses half-closed connections


class HttpProxy(TcpProxy):
    """A proxy that is asked by CONNECT: for `proxy-url`. With a `login`, it wants to see that first."""

    def __init__(self, server: str, login: str = "", tls: ssl.SSLContext | None = None) -> None:
        super().__init__(server, tls)
        self._login = login
        self.asked: list[str] = []
        """The first line of each CONNECT."""

    @property
    def address(self) -> str:
        """Its host and port."""
        return f"127.0.0.1:{self._port}"

    async def _admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *headers = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        self.asked.append(first)
        wanted = f"Proxy-Authorization: Basic {base64.b64encode(self._login.encode()).decode()}"
        admitted = not self._login or wanted in headers
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" if admitted else http("407 Proxy Authentication Required"))
        await writer.drain()
        if not admitted:
            writer.write_eof()
            await reader.read()
        return admitted
