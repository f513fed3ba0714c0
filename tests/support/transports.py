"""Transports without a network, and one that watches another."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pilotage.kube import Client
from pilotage.kube.transport import Request, Response, Transport, TransportError


class MemoryResponse:
    """An answer from a list of chunks. After them: the end, an error, or silence for ever."""

    def __init__(
        self,
        body: bytes | Iterable[bytes] = b"{}",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        then: TransportError | None = None,
        silent: bool = False,
    ) -> None:
        self._chunks = [body] if isinstance(body, bytes) else list(body)
        self._then = then
        self._silent = silent
        self.status = status
        self.headers = headers or {}
        self.closed = False

    async def read(self) -> bytes:
        read: list[bytes] = []
        while chunks := await self.chunks():
            read += chunks
        return b"".join(read)

    async def chunks(self) -> list[bytes]:
        if self._chunks:
            return [self._chunks.pop(0)]
        if self._silent:
            await asyncio.get_running_loop().create_future()
        if self._then:
            raise self._then
        return []

    def close(self) -> None:
        self.closed = True


def answer(body: Any, *, status: int = 200, **headers: str) -> MemoryResponse:
    """An answer of JSON; `retry_after="1"` is the header Retry-After."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return MemoryResponse(msgspec.json.encode(body), status=status, headers=named)


class ScriptedTransport:
    """Answers from a list, in order; an error in it is raised, and None is never answered."""

    def __init__(self, *answers: MemoryResponse | TransportError | None) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []
        self.closed = False

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        following = self._answers.pop(0)
        if following is None:
            await asyncio.get_running_loop().create_future()
        if not isinstance(following, MemoryResponse):
            assert following is not None
            raise following
        return following

    async def close(self) -> None:
        self.closed = True


class Observed:
    """Another transport, with what was sent over it. `busy()`: a request is under way."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._under_way = 0
        self.requests: list[Request] = []
        self.answers: list[Response] = []

    def busy(self) -> bool:
        return self._under_way > 0

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        self._under_way += 1
        try:
            response = await self._inner.send(request)
        finally:
            self._under_way -= 1
        self.answers.append(response)
        return response

    async def close(self) -> None:
        await self._inner.close()


def observed(client: Client) -> tuple[Client, Observed]:
    """A copy of the client, and the traffic of its transport."""
    seen: list[Observed] = []

    def wrap(transport: Transport) -> Observed:
        seen.append(Observed(transport))
        return seen[0]

    return client.through(wrap), seen[0]
