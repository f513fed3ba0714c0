"""A TCP proxy between a client and the API server, which holds back or cuts connections when a test says so.

It passes bytes on, so TLS goes through it untouched: certificates for 127.0.0.1 hold on its port, too.
"""

import asyncio
from dataclasses import replace
from typing import Self
from urllib.parse import urlsplit

from pilotage.kube import ClusterConfig


class TcpProxy:
    """``async with TcpProxy(config.server) as proxy: Client.connect(proxy.config(config))``"""

    def __init__(self, server: str) -> None:
        self._target = urlsplit(server)
        self._requests, self._answers, self._something_held = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        """How many were made so far."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        self.release()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.refuse()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def config(self, config: ClusterConfig) -> ClusterConfig:
        """The same cluster, through this proxy."""
        return replace(config, server=f"{self._target.scheme}://127.0.0.1:{self._port}")

    def hold_requests(self) -> None:
        """From here on, what a client sends does not reach the server."""
        self._requests.clear()

    def hold_answers(self) -> None:
        """From here on, what the server sends does not reach the client."""
        self._answers.clear()

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

    def refuse(self) -> None:
        """Accept no connections any more."""
        self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._tasks.add(task := _this_task())
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        upstream, to_upstream = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._writers.add(to_upstream)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_on(reader, to_upstream, self._requests))
                both.create_task(self._pass_on(upstream, writer, self._answers))
        except* OSError:
            pass  # one of the two is gone; the other one goes now
        finally:
            for each in (writer, to_upstream):
                each.transport.abort()
                self._writers.discard(each)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event) -> None:
        while data := await reader.read(65536):
            if not gate.is_set():
                self._something_held.set()
                await gate.wait()
            if writer.is_closing():
                break
            writer.write(data)
            await writer.drain()
        raise ConnectionAbortedError  # the end of one direction ends both: nobody here uses half-closed connections


def _this_task() -> asyncio.Task[None]:
    task = asyncio.current_task()
    assert task is not None
    return task
