"""One connection to an HTTP/1.1 server, as an asyncio protocol: a request out, its answer in, one after the other."""

import asyncio
from collections.abc import Callable

from pilotage.kube.http1 import AnswerParser, BadAnswer, Head
from pilotage.kube.transport import TransportError

BUFFER_BYTES_MAX = 256 * 1024
"""Bytes of an answer that are buffered for its reader before the peer is told to wait."""


class Connection(asyncio.Protocol):
    """Used by one request at a time. It is `usable` while it is open and no answer is under way."""

    def __init__(self, on_lost: Callable[["Connection"], None]) -> None:
        self.closed = asyncio.get_running_loop().create_future()
        self.idle_since = 0.0
        self.lost = False
        """Whether it was the peer, or the network, that ended it."""
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._parser: AnswerParser | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._paused = False
        self._problem: str | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    # What its user does

    @property
    def usable(self) -> bool:
        """Whether another request can be sent."""
        transport = self._transport
        return self._parser is None and self._problem is None and transport is not None and not transport.is_closing()

    async def send(self, request: bytes, timeout: float | None) -> Head:
        """Send a request and wait for the head of its answer. `timeout` is for the answer's end as well."""
        assert self._transport is not None
        self._parser = AnswerParser()
        if timeout is not None:
            self._timer = asyncio.get_running_loop().call_later(timeout, self.abort, "time is up")
        self._transport.write(request)
        while self._parser.head is None:
            await self._more()
        return self._parser.head

    async def read(self) -> bytes:
        """The rest of the answer's body."""
        assert self._parser is not None
        taken = self._taken()
        while not self._parser.complete:
            await self._more()
            taken += self._taken()  # at once, or a long answer would stop at the bound of the buffer
        return b"".join(taken)

    async def chunks(self) -> list[bytes]:
        """The bytes of the body that have arrived, as soon as there are some; empty at its end."""
        assert self._parser is not None
        while not self._pieces and not self._parser.complete:
            await self._more()
        return self._taken()

    def finish(self) -> bool:
        """The request is done with: True if the connection can be used again, else it is closed now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        parser, self._parser = self._parser, None
        self._taken()
        if (
            parser is not None
            and parser.complete
            and parser.head is not None
            and parser.head.keep_alive
            and self.usable
        ):
            return True
        self.abort("closed")
        return False

    def abort(self, why: str) -> None:
        """Break it off without a farewell: a peer that says nothing would keep us waiting for its own."""
        if self._problem is None:
            self._problem = why
        if self._transport is not None:
            self._transport.abort()
        self._wake()

    # What asyncio tells it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (`asyncio.Protocol`)."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and wake the reader (`asyncio.Protocol`)."""
        if self._parser is None:
            return self.abort("the server sent bytes without a request")
        try:
            pieces = self._parser.feed(data)
        except BadAnswer as error:
            return self.abort(f"not an answer: {error}")
        if pieces:
            self._pieces += pieces
            self._size += len(data)
            if self._size > BUFFER_BYTES_MAX and not self._paused and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()
        return self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer, and wake the reader (`asyncio.Protocol`)."""
        if self._problem is None:
            self.lost = True
            self._problem = str(exc) if exc else "the connection was closed"
            if self._parser is not None and exc is None:  # a connection that breaks ends no answer
                try:
                    self._parser.end()
                except BadAnswer as error:
                    self._problem = str(error)
        self._on_lost(self)
        if not self.closed.done():
            self.closed.set_result(None)
        self._wake()

    def _taken(self) -> list[bytes]:
        pieces, self._pieces, self._size = self._pieces, [], 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return pieces

    async def _more(self) -> None:
        """Wait until something has happened; TransportError if nothing can any more."""
        if self._problem is not None:
            raise TransportError(self._problem, sent=True)
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
