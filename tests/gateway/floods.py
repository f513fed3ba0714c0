"""Clients that send nearly as much as the gateway holds of a body, and then wait: each takes memory, and no request of
them ever ends."""

import asyncio
import contextlib
from typing import Self

from pilotage.gateway.resources import BODY_BYTES_MAX

BODY = b'{"model":"m","pad":"' + b"x" * (BODY_BYTES_MAX - 2000)
LENGTH = len(BODY) + 10
CHUNK = 64 * 1024
PATH = "/v1/chat/completions"

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _GO_AWAY, _WINDOW = 0, 1, 3, 4, 7, 8
_ACK, _END_HEADERS = 1, 4
_STREAMS_MAX, _WINDOW_SIZE = 3, 4
_FRAME = 16 * 1024


async def plain(port: int) -> asyncio.StreamWriter:
    """One request of HTTP/1.1 of which all but the end is sent, or as much of it as is taken."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {LENGTH}\r\n\r\n"
    with contextlib.suppress(OSError):
        writer.write(head.encode())
        for start in range(0, len(BODY), CHUNK):
            writer.write(BODY[start : start + CHUNK])
            await writer.drain()
    return writer


class Multiplexed:
    """One connection of HTTP/2 with as many such requests as it may have. As little of the protocol as that takes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.streams_max = 0
        self.closed = asyncio.Event()
        self._reader, self.writer = reader, writer
        self._windows: dict[int, int] = {0: 65535}
        self._initial = 65535
        self._news = asyncio.Condition()
        self._settled = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, port: int) -> Self:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_PREFACE + _frame(_SETTINGS, 0, 0, b""))
        made = cls(reader, writer)
        await made._settled.wait()
        return made

    async def fill(self, streams: int) -> None:
        """Begin this many requests and send as much of each as is taken."""
        await asyncio.gather(*(self._request(1 + 2 * number) for number in range(streams)))

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self.writer.close()

    async def _request(self, stream: int) -> None:
        fields = {":method": "POST", ":scheme": "http", ":path": PATH, ":authority": "x"}
        fields |= {"content-type": "application/json", "content-length": str(LENGTH)}
        block = b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields.items())
        self._windows[stream] = self._initial
        self.writer.write(_frame(_HEADERS, _END_HEADERS, stream, block))
        left = memoryview(BODY)
        while left and not self.closed.is_set():
            async with self._news:
                await self._news.wait_for(lambda: self.closed.is_set() or self._room(stream) > 0)
            if stream not in self._windows or self.closed.is_set():
                return
            size = min(len(left), self._room(stream), _FRAME)
            for each in (0, stream):
                self._windows[each] -= size
            self.writer.write(_frame(_DATA, 0, stream, bytes(left[:size])))
            left = left[size:]
            try:
                await self.writer.drain()
            except OSError:
                return

    def _room(self, stream: int) -> int:
        """Bytes that may be sent; a stream that was reset has room for ever, so that none waits for it."""
        return min(self._windows[0], self._windows[stream]) if stream in self._windows else 1

    async def _read(self) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await self._reader.readexactly(9)
                payload = await self._reader.readexactly(int.from_bytes(head[:3]))
                kind, flags, stream = head[3], head[4], int.from_bytes(head[5:])
                if kind == _GO_AWAY:
                    break
                async with self._news:
                    self._take(kind, flags, stream, payload)
                    self._news.notify_all()
        self.closed.set()
        async with self._news:
            self._news.notify_all()

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _WINDOW and stream in self._windows:
            self._windows[stream] += int.from_bytes(payload)
        elif kind == _RESET:
            self._windows.pop(stream, None)
        elif kind == _SETTINGS and not flags & _ACK:
            said = {
                int.from_bytes(payload[at : at + 2]): int.from_bytes(payload[at + 2 : at + 6])
                for at in range(0, len(payload), 6)
            }
            self.streams_max = said.get(_STREAMS_MAX, self.streams_max)
            self._initial = said.get(_WINDOW_SIZE, self._initial)
            self.writer.write(_frame(_SETTINGS, _ACK, 0, b""))
            self._settled.set()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def _text(value: str) -> bytes:
    return bytes([len(value)]) + value.encode()
