"""Clients of one host that keep asking and count every failure."""

import asyncio
import time
from collections import Counter
from typing import Any

from field.ground.backends import NAME_HEADER

ERRORS_MAX = 5
ANSWER_SECONDS_MAX = 10.0


class Load:
    """Short requests one after the other, and streams beside them."""

    def __init__(self, host: str, port: int, *, clients: int, pause: float, streams: int, seconds: float) -> None:
        """Each client pauses between two requests; each stream lasts some `seconds`, and another follows."""
        self._host, self._port = host, port
        self._pause, self._seconds = pause, seconds
        self._stopping = False
        self._answers: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()
        self._failed = self._cut = 0
        self._errors: list[str] = []
        self._failures: Counter[str] = Counter()
        self._mark = float("inf")
        self._after: Counter[str] = Counter()
        self._tasks = [asyncio.ensure_future(self._ask()) for _ in range(clients)]
        self._tasks += [asyncio.ensure_future(self._stream(number / max(streams, 1))) for number in range(streams)]

    def mark(self) -> None:
        """Count requests that begin from here on in a separate total, too."""
        self._mark = time.monotonic()
        self._after.clear()

    async def stop(self) -> dict[str, Any]:
        """Let everything under way end, and say what there was."""
        self._stopping = True
        await asyncio.gather(*self._tasks)
        return self.report()

    def report(self) -> dict[str, Any]:
        """So far."""
        return {
            "answers": dict(self._answers),
            "streams": dict(self._streams),
            "after": dict(self._after),
            "failed": self._failed,
            "cut": self._cut,
            "errors": self._errors,
            "failures": dict(self._failures),
        }

    def _count(self, start: float, backend: str, counter: Counter[str]) -> None:
        counter[backend] += 1
        if start >= self._mark:
            self._after[backend] += 1

    def _fail(self, what: str, words: str = "") -> None:
        """`words`: what Envoy says about it. It says nothing where it has no route, or no cluster for one."""
        self._failed += 1
        self._failures[f"{what} {words}".strip()] += 1
        if len(self._errors) < ERRORS_MAX:
            self._errors.append(what)

    async def _ask(self) -> None:
        connection: _Connection | None = None
        while not self._stopping:
            start = time.monotonic()
            try:
                async with asyncio.timeout(ANSWER_SECONDS_MAX):
                    connection = connection or await _Connection.open(self._port)
                    status, backend = await connection.ask(self._host, "/")
                    words = await connection.rest()
                if status == 200:
                    self._count(start, backend, self._answers)
                else:
                    self._fail(f"{status}", words)
                if connection.last:
                    connection.close()
                    connection = None
            except (OSError, EOFError, TimeoutError) as error:
                self._fail(repr(error))
                if connection:
                    connection.close()
                    connection = None
            await asyncio.sleep(self._pause)
        if connection:
            connection.close()

    async def _stream(self, phase: float) -> None:
        pieces = 10
        await asyncio.sleep(phase * self._seconds)
        while not self._stopping:
            start = time.monotonic()
            connection: _Connection | None = None
            try:
                connection = await _Connection.open(self._port)
                target = f"/?pieces={pieces}&pause={self._seconds / pieces}"
                status, backend = await connection.ask(self._host, target)
                if status == 200:
                    self._count(start, backend, self._streams)
                    try:
                        await connection.rest()
                    except (OSError, EOFError):
                        self._cut += 1
                else:
                    self._fail(f"stream: {status}", await connection.rest())
                    await asyncio.sleep(self._pause)
            except (OSError, EOFError) as error:
                self._fail(f"stream: {error!r}")
                await asyncio.sleep(self._pause)
            finally:
                if connection:
                    connection.close()


class _Connection:
    """Connection to Envoy; one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._length: int | None = 0
        self.last = False
        """Whether Envoy wants no other request on it."""

    @classmethod
    async def open(cls, port: int) -> "_Connection":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def close(self) -> None:
        self._writer.transport.abort()

    async def ask(self, host: str, target: str) -> tuple[int, str]:
        """The status, and who answers."""
        self._writer.write(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self._length = None if "transfer-encoding" in headers else int(headers.get("content-length", "0"))
        self.last = headers.get("connection") == "close"
        return int(first.split()[1]), headers.get(NAME_HEADER.lower(), "")

    async def rest(self) -> str:
        """The body to its end, nothing of a stream; EOFError where it is cut."""
        if self._length is not None:
            return (await self._reader.readexactly(self._length)).decode()
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            await self._reader.readexactly(size + 2)
        await self._reader.readexactly(2)
        return ""
