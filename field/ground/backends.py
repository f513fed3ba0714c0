"""Servers behind Services: each says its name, at once or as a stream that takes a while."""

import asyncio
from urllib.parse import parse_qsl, urlsplit

PORT = 9000
NAME_HEADER = "X-Backend"


class Backend:
    """One server on an address of its own. `stop` ends it as a kill would: requests under way are cut off."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self._address = address
        self._server: asyncio.Server | None = None
        self.open: set[asyncio.Transport] = set()

    async def start(self) -> None:
        """Listen."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Answering(self), self._address, PORT, reuse_address=True)

    def stop(self) -> None:
        """Be gone."""
        if self._server is not None:
            self._server.close()
        for each in [*self.open]:
            each.abort()


class _Answering(asyncio.Protocol):
    """One connection. HTTP/1.1 as far as Envoy speaks it to us: requests without bodies, one after the other."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._pending = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._backend.open.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        assert self._transport is not None
        self._backend.open.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._pending += data
        while (end := self._pending.find(b"\r\n\r\n")) >= 0:
            target = self._pending[:end].split(b" ", 2)[1].decode()
            self._pending = self._pending[end + 4 :]
            self._answer(target)

    def _answer(self, target: str) -> None:
        assert self._transport is not None
        url = urlsplit(target)
        query = dict(parse_qsl(url.query))
        name = self._backend.name
        head = f"HTTP/1.1 200 OK\r\n{NAME_HEADER}: {name}\r\n"
        if "pieces" in query:
            self._transport.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            self._stream(int(query["pieces"]), float(query["pause"]))
        else:
            self._transport.write(f"{head}Content-Length: {len(name)}\r\n\r\n{name}".encode())

    def _stream(self, left: int, pause: float) -> None:
        assert self._transport is not None
        if self._transport.is_closing():
            return
        if left == 0:
            self._transport.write(b"0\r\n\r\n")
            return
        self._transport.write(b"5\r\ntoken\r\n")
        asyncio.get_running_loop().call_later(pause, self._stream, left - 1, pause)
