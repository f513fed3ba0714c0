"""A TCP proxy in front of the API server, for every way in which a connection can go wrong."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from typing import Self
from urllib.parse import urlsplit

from pilotage.kube import ClusterConfig


class Proxy:
    """Forwards bytes on loopback until told to refuse, cut, stall, or cut in the middle of what comes next."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._pumps: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._bytes_left: int | None = None
        self._refusing = False
        self.connections = 0
        self.port = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def before(cls, config: ClusterConfig) -> AsyncIterator[tuple[Self, ClusterConfig]]:
        """A proxy in front of a cluster, and the configuration that goes through it."""
        port = urlsplit(config.server).port
        assert port is not None
        proxy = cls(port)
        server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy, dataclasses.replace(config, server=f"https://127.0.0.1:{proxy.port}")
        finally:
            server.close()
            proxy.cut()
            await asyncio.gather(*proxy._pumps, return_exceptions=True)
            await server.wait_closed()

    def cut(self) -> None:
        """Break every connection now."""
        for pump in self._pumps:
            pump.cancel()

    def cut_after(self, downstream_bytes: int) -> None:
        """Break the connection that brings so many more bytes from the server."""
        self._bytes_left = downstream_bytes

    def refuse(self) -> None:
        """Break every connection, and close every new one at once."""
        self._refusing = True
        self.cut()

    def accept(self) -> None:
        """Let new connections through again."""
        self._refusing = False

    def stall(self) -> None:
        """Keep all connections open, and let nothing through: neither way."""
        self._flowing.clear()

    def flow(self) -> None:
        """Let everything through that was held back."""
        self._flowing.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pumps.add(task)
        self.connections += 1
        try:
            if not self._refusing:
                await self._forward(reader, writer)
        except (asyncio.CancelledError, OSError):
            pass  # cut
        finally:
            self._pumps.discard(task)
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, upstream = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, upstream, downstream=False))
                both.create_task(self._pump(answers, writer, downstream=True))
        except* (OSError, _Cut):
            pass
        finally:
            upstream.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, downstream: bool) -> None:
        while data := await source.read(65536):
            await self._flowing.wait()
            if downstream and self._bytes_left is not None:
                data = data[: self._bytes_left]
                self._bytes_left -= len(data)
            sink.write(data)
            await sink.drain()
            if downstream and self._bytes_left == 0:
                self._bytes_left = None
                raise _Cut
        raise _Cut


class _Cut(Exception):
    """The connection ends here."""
