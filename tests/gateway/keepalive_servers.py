"""Stand-ins for model servers that keep connections: with the keep-alive settings of uvicorn and of hyper.

vLLM and SGLang run on uvicorn, which closes a connection that had no request for 5 s (`timeout_keep_alive`); TGI runs
on hyper, which closes none that is idle. Both announce the end of a connection (`Connection: close`) in answers that
are given after SIGTERM, and close idle ones at once then.

What a client sends while a server closes is lost. On loopback that moment is too short to be met, so here it lasts:
from the end of its time on, a connection takes bytes and answers nothing, and is closed `WINDOW_SECONDS` later.
"""

import asyncio
import contextlib
from typing import Self

UVICORN_SECONDS = 5.0
HYPER_SECONDS = None
WINDOW_SECONDS = 0.2
_END = b"\r\n\r\n"


class _Connection(asyncio.Protocol):
    def __init__(self, server: "KeepingServer") -> None:
        self._server = server
        self._data = b""
        self._timer: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport | None = None
        self.deaf = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._server.connections.add(self)
        self._server.accepted += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self.deaf:
            self._server.lost += 1
            return
        if self._timer is not None:
            self._timer.cancel()
        self._data += data
        head, end, rest = self._data.partition(_END)
        if not end:
            return
        length = next(
            (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0
        )
        if len(rest) >= length:
            self._data = rest[length:]
            self._answer(streamed=b"stream" in rest)

    def _answer(self, *, streamed: bool) -> None:
        assert self.transport is not None
        leaving = b"Connection: close\r\n" if self._server.leaving else b""
        if streamed:
            body = b"Transfer-Encoding: chunked\r\n" + leaving + b"\r\n1\r\nx\r\n1\r\ny\r\n0\r\n\r\n"
        else:
            body = b"Content-Length: 2\r\n" + leaving + b"\r\nok"
        self.transport.write(b"HTTP/1.1 200 OK\r\n" + body)
        self._server.answered += 1
        if leaving:
            self.transport.close()
        elif self._server.seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(self._server.seconds, self.close)

    def close(self) -> None:
        """Close as across a network: what is under way is lost."""
        assert self.transport is not None
        self.deaf = True
        asyncio.get_running_loop().call_later(WINDOW_SECONDS, self.transport.close)


class KeepingServer:
    """`seconds`: idle time after which it closes a connection; None: never."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.connections: set[_Connection] = set()
        self.accepted = self.answered = self.lost = 0
        self.leaving = False
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> Self:
        self.leaving = False
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port, backlog=500)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        """End as after SIGTERM: no new connections, and idle ones are closed."""
        assert self._server is not None
        self.leaving = True
        self._server.close()
        for each in [*self.connections]:
            each.close()
        while self.connections:  # noqa: ASYNC110 - connections know nothing of it
            await asyncio.sleep(0.01)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._server.wait_closed(), 1)
