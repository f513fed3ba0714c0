"""A watch: the stream of changes from a version on.

One `Watch` is one connection. It ends when the server ends it (after its time-out: normal), raises `Expired` when the
version is too old (list again), and `Unavailable` when the connection breaks or goes quiet for longer than bookmarks
allow: a peer that holds the connection but says nothing, not even a bookmark, is as good as gone.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Self

import msgspec

from pilotage.kube.errors import Status, Unavailable, classify
from pilotage.kube.transport import Response, TransportError
from pilotage.kube.wire import Object, decode_event

if TYPE_CHECKING:
    from asyncio import Timeout
    from collections.abc import Awaitable, Callable

# The API server sends a bookmark about once a minute.
IDLE_SECONDS_MAX = 90.0


def _timeout(seconds: float) -> Timeout:
    from asyncio import timeout  # not at the top: see `pilotage.kube`

    return timeout(seconds)


class WatchEvent(msgspec.Struct, frozen=True):
    """ADDED, MODIFIED, DELETED or BOOKMARK, and the object (of a bookmark, only its resourceVersion means anything)."""

    type: str
    object: Object


class Watch:
    """``async with client.watch(…) as watch: async for event in watch: …``"""

    def __init__(self, open_: Callable[[], Awaitable[Response]], request: str, idle_seconds_max: float) -> None:
        self._open = open_
        self._request = request
        self._idle_seconds_max = idle_seconds_max
        self._response: Response | None = None
        self._lines: deque[bytes] = deque()
        self._rest = b""

    async def __aenter__(self) -> Self:
        try:
            async with _timeout(self._idle_seconds_max):
                self._response = await self._open()
        except TimeoutError:
            quiet = f"the API server did not answer for {self._idle_seconds_max:.0f} s"
            raise Unavailable(quiet, request=self._request) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._response is not None:
            self._response.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        while not self._lines:
            await self._receive()
        return self._decode(self._lines.popleft())

    def buffered(self) -> bool:
        """Whether another event can be had without waiting."""
        return bool(self._lines)

    async def _receive(self) -> None:
        assert self._response is not None, "a Watch is used inside `async with`"
        try:
            async with _timeout(self._idle_seconds_max):
                chunks = await self._response.chunks()
        except TimeoutError:
            quiet = f"nothing came for {self._idle_seconds_max:.0f} s, not even a bookmark"
            raise Unavailable(quiet, request=self._request) from None
        except TransportError as error:
            raise Unavailable(f"the watch broke off: {error}", request=self._request) from error
        if not chunks and self._rest:
            raise Unavailable("the watch broke off in the middle of an event", request=self._request)
        if not chunks:
            raise StopAsyncIteration
        for chunk in chunks:
            whole = self._rest + chunk if self._rest else chunk
            if 0 < whole.find(b"\n") == len(whole) - 1:  # kube-apiserver's chunks: an event each
                self._lines.append(whole)
                self._rest = b""
            else:
                *lines, self._rest = whole.split(b"\n")
                self._lines.extend(line for line in lines if line)

    def _decode(self, line: bytes) -> WatchEvent:
        try:
            type_, obj = decode_event(line)
            if type_ != "ERROR":
                return WatchEvent(type_, obj)
            status = obj.decode_as(Status)
        except ValueError as error:
            raise Unavailable(f"not a watch event: {error}", request=self._request) from error
        raise classify(status.code or 500, status, write=False, request=self._request)
