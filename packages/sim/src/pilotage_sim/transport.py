"""A transport that calls harbor within one process: requests become calls, and no byte goes over a socket."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote

from pilotage.kube.transport import TransportError
from pilotage_harbor.apimachinery.calls import Call, ServerResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pilotage.kube.transport import Request, Response
    from pilotage_harbor.api import Harbor
    from pilotage_harbor.apimachinery.calls import Stream
    from pilotage_harbor.apimachinery.users import UserInfo


class Whole:
    """An answer that is there as a whole."""

    __slots__ = ("_body", "headers", "status")

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()} if headers else {}
        self._body = body

    async def read(self) -> bytes:
        """The whole body."""
        return self._body

    async def chunks(self) -> list[bytes]:
        """The body in one chunk; empty from then on."""
        body, self._body = self._body, b""
        return [body] if body else []

    def close(self) -> None:
        """Do nothing: there is no connection."""


class _Streamed:
    """A watch; what comes of it takes as long on its way as any answer."""

    __slots__ = ("_latency", "_stream", "headers", "status")

    def __init__(self, stream: Stream, latency: Callable[[], float] | None) -> None:
        self.status = stream.status
        self.headers = {name.lower(): value for name, value in stream.headers.items()}
        self._stream = stream
        self._latency = latency

    async def read(self) -> bytes:
        """The whole body."""
        read: list[bytes] = []
        while chunks := await self.chunks():
            read += chunks
        return b"".join(read)

    async def chunks(self) -> list[bytes]:
        """The next chunks of the stream, after the latency; empty at its end."""
        chunks = await self._stream.chunks()
        if self._latency is not None:
            await asyncio.sleep(self._latency())
        return chunks

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


class DirectTransport:
    """A `pilotage.kube` transport to a harbor in this process, as one user.

    `latency` gives the seconds that one way takes, drawn anew for each: with it, requests that are under way at the
    same time overtake each other, as they do on a network.
    """

    def __init__(self, harbor: Harbor, user: UserInfo, *, latency: Callable[[], float] | None = None) -> None:
        self._harbor = harbor
        self._user = user
        self._latency = latency

    async def send(self, request: Request) -> Response:
        """Hand the request to harbor, within its time-out, as `Transport.send` says."""
        if request.allowed is not None:
            request.allowed()
        if request.timeout is None:
            return await self._send(request)
        try:
            async with asyncio.timeout(request.timeout):
                return await self._send(request)
        except TimeoutError:
            raise TransportError(f"no answer within {request.timeout:g} s", sent=True) from None

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    async def _send(self, request: Request) -> Response:
        if self._latency is not None:
            await asyncio.sleep(self._latency())
        answer = await self._harbor.handle(as_call(request, self._user))
        if self._latency is not None:
            await asyncio.sleep(self._latency())
        if isinstance(answer, ServerResponse):
            return Whole(answer.status, answer.body, answer.headers)
        return _Streamed(answer, self._latency)


def as_call(request: Request, user: UserInfo) -> Call:
    """The call that a request means to harbor."""
    path, query = _parsed(request.target)
    headers = {"accept": request.accept, "user-agent": request.user_agent}
    if request.content_type:
        headers["content-type"] = request.content_type
    return Call(request.method, path, query, headers, request.body or b"", user)


@lru_cache(maxsize=512)
def _parsed(target: str) -> tuple[str, Mapping[str, list[str]]]:
    path, _, query = target.partition("?")
    return unquote(path), parse_qs(query, keep_blank_values=True)
