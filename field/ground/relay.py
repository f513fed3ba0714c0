"""The way from Envoy to Contour, which can be held: what was written is then not programmed."""

import asyncio
import contextlib
import socket

SOCKETS = 64
"""Number of connections that Envoy may make. They are opened before the network is left, and stay in the old one."""


class Relay:
    """Listens in the network of this process, and connects in the one that it had when this was made."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._sockets = [socket.socket() for _ in range(SOCKETS)]
        self._open = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open.set()

    async def start(self) -> int:
        """Listen; returns the port."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        return port

    def hold(self) -> None:
        """Hold back everything that Contour sends to Envoy. Connections stay open."""
        self._open.clear()

    def release(self) -> None:
        """Pass on everything, also what was held."""
        self._open.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        outside = self._sockets.pop()
        outside.setblocking(False)
        to_contour: asyncio.StreamWriter | None = None
        try:
            await asyncio.get_running_loop().sock_connect(outside, ("127.0.0.1", self._port))
            from_contour, to_contour = await asyncio.open_connection(sock=outside)
            there = asyncio.ensure_future(self._pass_on(reader, to_contour, held=False))
            back = asyncio.ensure_future(self._pass_on(from_contour, writer, held=True))
            self._tasks |= {there, back}
            await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
            for each in (there, back):
                each.cancel()
                self._tasks.discard(each)
        except OSError:  # Contour is not there; Envoy tries again
            pass
        finally:
            for each_writer in (writer, to_contour):
                if each_writer is not None:
                    each_writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, held: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if held:
                    await self._open.wait()
                writer.write(data)
                await writer.drain()
