"""A small web server on loopback that serves files with ranges and ETags, and fails when told to.

It is as impolite as servers are: it ignores If-Range, forgets headers, does not say how long an answer is, or lies.
"""

import asyncio
import contextlib
import ipaddress
import re
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pilotage.models import Access

LOOPBACK = ipaddress.ip_network("127.0.0.0/8")


class Asked(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    query: str = ""


@dataclass
class Says:
    """Answer the next request with this, instead of the file."""

    status: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Cuts(NamedTuple):
    """Break off the next answer after this many bytes of the file."""

    after: int
    reset: bool = False


class Silent(NamedTuple):
    """Never answer."""


class HangsUp(NamedTuple):
    """Close the connection without an answer."""


class Stalls(NamedTuple):
    """Send this many bytes of the file, and then nothing more."""

    after: int


class Unsized(NamedTuple):
    """Do not say how large the file is: it ends where the connection does, after so many bytes."""

    after: int | None = None


class Chunked(NamedTuple):
    """Send it in chunks, and break off after so many bytes."""

    after: int | None = None


class Claims(NamedTuple):
    """Say that the file has so many bytes."""

    length: int


Plan: TypeAlias = Says | Cuts | Silent | HangsUp | Stalls | Unsized | Chunked | Claims | None


@dataclass
class Web:
    """Web server on loopback. Files by path; `plans` are for the next requests, one each."""

    files: dict[str, bytes] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)
    answers: dict[str, Says] = field(default_factory=dict)
    """By path, where there are no plans."""
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    ranges: bool = True
    heeds_if_range: bool = True
    forgets_in_parts: tuple[str, ...] = ()
    """Headers that its partial answers lack."""
    scheme: str = "http"
    changed: str = ""
    date: str = ""
    serving: set[asyncio.Task[None]] = field(default_factory=set)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def host(self) -> str:
        """Host as a Secret names it."""
        return f"127.0.0.1:{self.port}"

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    async def until_asked(self, times: int) -> None:
        """Wait for this many requests."""
        while len(self.asked) < times:
            self.news.clear()
            await self.news.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            begin = await reader.readexactly(1)
            if begin == b"\x16":  # TLS, which is not spoken here
                writer.write(_head("400 Bad Request", {}))
                raise ConnectionError
            head = (begin + await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            path, _, query = first.split(" ")[1].partition("?")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            self.asked.append(Asked(path, headers, query))
            self.news.set()
            plan = self.plans.pop(0) if self.plans else self.answers.get(path)
            if isinstance(plan, Silent):
                await reader.read()
            elif isinstance(plan, HangsUp):
                pass
            elif isinstance(plan, Says):
                writer.write(_head(plan.status, {"Content-Length": str(len(plan.body)), **plan.headers}) + plan.body)
            elif path not in self.files:
                writer.write(_head("404 Not Found", {"Content-Length": "0"}))
            elif isinstance(plan, Unsized):
                writer.write(_head("200 OK", self.about(path), "HTTP/1.0") + self.files[path][: plan.after])
            elif isinstance(plan, Chunked):
                body = self.files[path][: plan.after]
                writer.write(_head("200 OK", self.about(path) | {"Transfer-Encoding": "chunked"}))
                writer.write(b"%x\r\n%s\r\n" % (len(body), body) + (b"0\r\n\r\n" if plan.after is None else b""))
            elif isinstance(plan, Claims):
                said = self.about(path) | {"Content-Length": str(plan.length)}
                writer.write(_head("200 OK", said) + self.files[path])
            elif isinstance(plan, Stalls):
                self.send(writer, path, headers, Cuts(plan.after))
                await reader.read()
            else:
                self.send(writer, path, headers, plan)
            await writer.drain()
        with contextlib.suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    def about(self, path: str) -> dict[str, str]:
        """The headers by which a client tells two contents apart."""
        said = {"Date": self.date} if self.date else {}
        said |= {"ETag": self.etags[path]} if self.etags.get(path) else {}
        return said | ({"Last-Modified": self.changed} if self.changed else {})

    def send(self, writer: asyncio.StreamWriter, path: str, headers: dict[str, str], cut: Cuts | None) -> None:
        content, said = self.files[path], self.about(path)
        validator = said.get("ETag") or said.get("Last-Modified", "")
        found = re.fullmatch(r"bytes=(\d+)-", headers.get("range", "")) if self.ranges else None
        heeded = not self.heeds_if_range or headers.get("if-range", validator) == validator
        start = int(found[1]) if found and heeded else 0
        if start and start >= len(content):
            writer.write(_head("416 Range Not Satisfiable", {"Content-Length": "0"}))
            return
        status = "206 Partial Content" if start else "200 OK"
        if start:
            said = {name: value for name, value in said.items() if name not in self.forgets_in_parts}
            said["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        writer.write(_head(status, {"Content-Length": str(len(content) - start), **said}))
        writer.write(content[start:] if cut is None else content[start : start + cut.after])
        if cut is not None and cut.reset:
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _head(status: str, headers: dict[str, str], version: str = "HTTP/1.1") -> bytes:
    lines = [f"{version} {status}", "Connection: close", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


@contextlib.asynccontextmanager
async def web(context: ssl.SSLContext | None = None, **files: bytes) -> AsyncIterator[Web]:
    """A server with these files, ``/name``, each with an ETag."""
    served = {f"/{name}": content for name, content in files.items()}
    site = Web(served, {path: f'"{len(content)}-1"' for path, content in served.items()})
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=context)
    site.port = server.sockets[0].getsockname()[1]
    site.scheme = "https" if context else "http"
    try:
        yield site
    finally:
        server.close()
        await server.wait_closed()
        if site.serving:
            await asyncio.wait(site.serving)


def open_access(*roots: Path) -> Access:
    """Loopback and plain http may be used."""
    return Access(roots=roots, networks=(LOOPBACK,), plain_http=True, host="gpu-3", hub="http://127.0.0.1:1")
