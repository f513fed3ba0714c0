"""Load from raw sockets: requests are encoded before the clock starts, and of an answer only the end is parsed."""

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from bench.harbor.servers import Server

CONNECTIONS = 8
NAMESPACE = "default"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


class Load:
    """Everything against one server. Each measure is a rate per second."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._runner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.__exit__(kind, error, trace)

    def creates(self, number: int) -> float:
        """ConfigMaps of 1 KB."""
        requests = [self._request("POST", PATH, _config_map(f"made-{each:06}")) for each in range(number)]
        return number / self._runner.run(self._timed(requests, b"201"))

    def gets(self, number: int) -> float:
        """One of them each."""
        requests = [self._request("GET", f"{PATH}/made-{each % 5000:06}") for each in range(number)]
        return number / self._runner.run(self._timed(requests, b"200"))

    def lists(self, number: int) -> float:
        """All of them."""
        requests = [self._request("GET", PATH)] * number
        return number / self._runner.run(self._timed(requests, b"200", connections=1))

    def gets_beside_lists(self, number: int) -> float:
        """Requests per second of gets of one object each, while another client lists all of them again and again."""
        requests = [self._request("GET", f"{PATH}/made-{each % 5000:06}") for each in range(number)]
        return number / self._runner.run(self._beside(requests, self._request("GET", PATH)))

    def fan_out(self, watchers: int, changes: int) -> float:
        """Every change of one object to every watcher."""
        return watchers * changes / self._runner.run(self._fan_out(watchers, changes))

    def _request(self, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self._server.host}:{self._server.port}",
            f"Authorization: Bearer {self._server.token}",
            "Accept: application/json",
            "User-Agent: bench",
        ]
        if body:
            lines += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        server = self._server
        return await asyncio.open_connection(server.host, server.port, ssl=server.tls, limit=2**24)

    async def _timed(self, requests: list[bytes], expected: bytes, connections: int = CONNECTIONS) -> float:
        streams = [await self._connect() for _ in range(connections)]
        left = iter(requests)
        started = time.perf_counter()
        await asyncio.gather(*(_ask(reader, writer, left, expected) for reader, writer in streams))
        seconds = time.perf_counter() - started
        for _, writer in streams:
            writer.close()
        return seconds

    async def _beside(self, requests: list[bytes], other: bytes) -> float:
        (reader, writer), disturbing = await self._connect(), await self._connect()
        disturbance = asyncio.create_task(_ask(*disturbing, itertools.repeat(other), b"200"))
        await asyncio.sleep(0.1)  # it has begun
        started = time.perf_counter()
        await _ask(reader, writer, iter(requests), b"200")
        seconds = time.perf_counter() - started
        disturbance.cancel()
        for each in (writer, disturbing[1]):
            each.close()
        return seconds

    async def _fan_out(self, watchers: int, changes: int) -> float:
        reader, writer = await self._connect()
        path = f"{PATH}/watched"
        label = {"bench": "watched"}
        body = json.dumps({"metadata": {"name": "watched", "labels": label}}).encode()
        await _ask(reader, writer, iter([self._request("POST", PATH, body)]), b"")
        watch = self._request("GET", f"{PATH}?watch=1&labelSelector=bench%3Dwatched")
        streams = [await self._connect() for _ in range(watchers)]
        counts = [asyncio.create_task(_count(stream[0], changes + 1)) for stream in streams]
        for _, stream_writer in streams:
            stream_writer.write(watch)
        await asyncio.sleep(1)  # they are all there, and have the object itself
        patches = [
            self._request("PATCH", path, _change(number), "application/merge-patch+json") for number in range(changes)
        ]
        started = time.perf_counter()
        await asyncio.gather(_ask(reader, writer, iter(patches), b"200"), *counts)
        seconds = time.perf_counter() - started
        await _ask(reader, writer, iter([self._request("DELETE", path)]), b"200")
        for _, each in [(reader, writer), *streams]:
            each.close()
        return seconds


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, requests: Iterator[bytes], expected: bytes
) -> None:
    for request in requests:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if expected not in head[:15]:
            raise RuntimeError(f"{head!r}")
        lower = head.lower()
        if b"transfer-encoding: chunked" in lower:
            while size := int(await reader.readline(), 16):
                await reader.readexactly(size + 2)
            await reader.readline()
        else:
            start = lower.index(b"content-length: ") + 16
            await reader.readexactly(int(lower[start : lower.index(b"\r\n", start)]))


async def _count(reader: asyncio.StreamReader, events: int) -> None:
    """Read until `count` events have come: each ends with a newline, and JSON has no other."""
    seen = 0
    await reader.readuntil(b"\r\n\r\n")
    while seen < events:
        data = await reader.read(2**18)
        if not data:
            raise RuntimeError("a watch has ended")
        seen += data.count(b"}\n")


def _config_map(name: str) -> bytes:
    data = {f"key-{number}": "v" * 80 for number in range(10)}
    return json.dumps({"metadata": {"name": name, "labels": {"app": name}}, "data": data}).encode()


def _change(number: int) -> bytes:
    return json.dumps({"data": {"number": str(number), "text": "x" * 900}}).encode()
