"""One connection of a client: requests in, answers out, one after the other.

A request whose handling never waits costs no task: its coroutine is run on the spot. Only one that waits becomes a
task, and so does a watch, which is fed to its client as fast as the client reads.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import Call, ServerResponse, Stream, refuse
from pilotage_harbor.server.coroutines import continued
from pilotage_harbor.server.http1 import (
    LAST_CHUNK,
    BadRequest,
    TooLarge,
    encode_chunks,
    encode_head,
    encode_refusal,
)
from pilotage_harbor.server.requests import Requests

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pilotage_harbor.apimachinery.users import UserInfo
    from pilotage_harbor.server.host import ConnectionHost
    from pilotage_harbor.server.http1 import RequestHead

log = logging.getLogger("pilotage_harbor.server")

_PIPELINED_BYTES_MAX = 256 * 1024
_WRITE_AT_ONCE_BYTES = 256 * 1024
_DISCARDED_BYTES_MAX = 64 * 1024 * 1024


class ServerConnection(asyncio.BufferedProtocol):
    """A connection. `busy` from the end of a request to the end of its answer."""

    __slots__ = (
        "_checked",
        "_counted",
        "_discarding",
        "_drained",
        "_gone",
        "_host",
        "_loop",
        "_paused",
        "_peer",
        "_reading_paused",
        "_requests",
        "_since",
        "_stalled",
        "_task",
        "_transport",
        "busy",
        "opening",
        "stream",
    )

    def __init__(self, host: ConnectionHost, loop: asyncio.AbstractEventLoop) -> None:
        self.busy = False
        self.opening: asyncio.Task[None] | None = None
        """Its handshake, while that is under way."""
        self.stream: Stream | None = None
        self._gone = False
        self._checked: RequestHead | None = None
        """The request whose body may come, since who sends it may do it."""
        self._counted = 0
        self._host = host
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._peer: UserInfo | None = None
        self._requests = Requests(host.limits.body_bytes)
        self._task: asyncio.Task[None] | None = None
        self._paused = False
        self._reading_paused = False
        self._drained: asyncio.Future[None] | None = None
        self._discarding = -1
        self._since = loop.time()
        self._stalled = (0.0, 0)

    # What asyncio tells it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection with the server; close it if the server is stopping or its user has too many."""
        assert isinstance(transport, asyncio.Transport)
        if self._gone:
            transport.abort()
            return
        self._transport = transport
        transport.set_write_buffer_limits(high=self._host.limits.waiting_bytes)
        self._peer = self._host.peer(transport)
        self._host.connections.add(self)
        if self._host.stopping or (self._peer is not None and not self._host.slots.identify(self, self._peer)):
            self._close()

    def get_buffer(self, sizehint: int) -> memoryview:
        """The buffer that all connections share: it is emptied as soon as it is filled."""
        return self._host.incoming

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes out of the shared buffer."""
        self.data_received(bytes(self._host.incoming[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        if self._transport is None or self._transport.is_closing():
            return
        requests = self._requests
        if self._discarding >= 0:
            self._discarding -= len(data)
            if self._discarding <= 0:
                self._close()
        elif self.busy or self._paused:
            requests.feed(data)
            if requests.waiting > _PIPELINED_BYTES_MAX and self.stream is not None and not self.stream.finite:
                self._transport.abort()  # who is not read from while he watches could go without our noticing
            elif requests.waiting > _PIPELINED_BYTES_MAX and not self._reading_paused:
                self._reading_paused = True
                self._transport.pause_reading()
        else:
            if not requests.begun:
                self._since = self._loop.time()
            requests.feed(data)
            self._serve()

    def pause_writing(self) -> None:
        """Stop sending: the client does not read."""
        self._paused = True
        self._stalled = (self._loop.time(), self._waiting())

    def resume_writing(self) -> None:
        """Continue sending."""
        self._paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        if not self.busy:
            self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection. A request that is under way is finished; a watch is not."""
        self._host.lost(self)
        self._transport = None
        self._requests.clear()
        self._count_body()
        if self.stream is not None and self._task is not None:
            self._task.cancel()
            self.stream.close()  # a task that has not begun will not do it
        elif self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    # What the server tells it

    def check_time(self, now: float) -> None:
        """Break off a client that takes too long."""
        if self._transport is None:
            return
        limits = self._host.limits
        if self._paused:
            since, waiting = self._stalled
            if (still := self._waiting()) < waiting:
                self._stalled = (now, still)
            elif now - since > limits.stall:
                self._transport.abort()
        elif not self.busy:
            begun = "body" if self._discarding >= 0 else self._requests.begun
            if now - self._since > (limits.body if begun == "body" else limits.head if begun else limits.idle):
                self._transport.abort()

    def shut_down(self) -> None:
        """Take no further request: end a watch as if it had come to its end, let a request finish, else close now."""
        if self.stream is not None and self._task is not None:
            if self.stream.finite:
                return
            self._loop.call_soon(self._task.cancel)  # one that has just been made begins first, and ends by itself
        elif not self.busy:
            self._close()

    @property
    def idle(self) -> bool:
        """Whether nobody waits for anything of it. Half a request is nothing, if it is not known who sends it."""
        return not self.busy and (self._checked is None or self._requests.head is not self._checked)

    def abort(self) -> None:
        """Break it off, whatever is under way."""
        self._gone = True
        if self.opening is not None:
            self.opening.cancel()
        if self._task is not None:
            self._task.cancel()
        if self.stream is not None:
            self.stream.close()
        if self._transport is not None:
            self._transport.abort()

    # How it is answered

    def _serve(self) -> None:
        """Answer what has come, as far as that can be done on the spot."""
        requests = self._requests
        try:
            while not self.busy and not self._paused and (request := requests.next()) is not None:
                self._begin(*request)
            if requests.head is not None:
                self._take_body(requests.head)
        except BadRequest as error:
            self._write(encode_refusal(error))
            self._close()
        except TooLarge as error:
            self._refuse_body(error.head, error.coming, errors.too_large(self._host.limits.body_bytes))

    def _take_body(self, head: RequestHead) -> None:
        """A body is under way: see to it that who sends it may do so before more of it comes, and that it fits in."""
        requests = self._requests
        coming = head.headers.length - requests.held if head.headers.length > 0 else None
        if head is not self._checked:
            try:
                self._host.check(head, self._peer)
            except errors.StatusError as error:
                self._refuse_body(head, coming, error)
                return
            self._checked = head
            if requests.expects:
                requests.expects = False
                self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._count_body()
        if self._host.bodies_bytes > self._host.limits.bodies_bytes:
            self._refuse_body(head, coming, errors.too_many_requests())

    def _count_body(self) -> None:
        held = self._requests.held
        self._host.bodies_bytes += held - self._counted
        self._counted = held

    def _refuse_body(self, head: RequestHead, coming: int | None, why: errors.StatusError) -> None:
        """Say no, and let the client finish its sentence, or it would not hear us."""
        try:
            self._host.check(head, self._peer)
            answer = refuse(why)
        except errors.StatusError as error:
            answer = refuse(error)
        self._requests.clear()
        self._count_body()
        self._since = self._loop.time()
        self._answer(answer, head, close=True)
        self._discarding = _DISCARDED_BYTES_MAX if coming is None else coming
        if head.headers.expects or not 0 < self._discarding <= _DISCARDED_BYTES_MAX:
            self._close()

    def _begin(self, head: RequestHead, body: bytes) -> None:
        if self._counted:
            self._count_body()
        try:
            user = self._host.authenticate(head, self._peer)
        except errors.StatusError as error:
            self._answer(refuse(error), head)
            self._finished(head)
            return
        if not self._host.slots.identify(self, user):
            self._answer(refuse(errors.too_many_requests()), head, close=True)
            self._close()
            return
        call = Call(head.method, head.path, head.query, head.headers.values, body, user)
        self.busy = True
        handling = self._host.handle(call)
        try:
            waits_for = handling.send(None)
        except StopIteration as done:
            self._give(done.value, head)
        except Exception as error:  # noqa: BLE001
            self._give(_our_fault(error), head)
        else:
            self._task = self._loop.create_task(self._wait(handling, waits_for, head))

    async def _wait(
        self, handling: Coroutine[Any, Any, ServerResponse | Stream], waits_for: object, head: RequestHead
    ) -> None:
        try:
            answer = await continued(handling, waits_for)
        except Exception as error:  # noqa: BLE001
            answer = _our_fault(error)
        self._task = None
        self._give(answer, head)
        self._go_on()

    def _give(self, answer: ServerResponse | Stream, head: RequestHead) -> None:
        if isinstance(answer, ServerResponse):
            self._answer(answer, head)
            self._finished(head)
        elif self._transport is None or head.method == "HEAD":
            answer.close()
            self._answer(ServerResponse(answer.status, b"", answer.headers), head)
            self._finished(head)
        else:
            self.stream = answer
            self._task = self._loop.create_task(self._feed(answer, head))

    def _answer(self, answer: ServerResponse, head: RequestHead, *, close: bool = False) -> None:
        status, body, headers = answer
        close = close or not head.keep_alive or self._host.stopping
        ending = b"\n" if body and "Content-Type" not in headers else b""  # an object: kube-apiserver ends its JSON so
        start = encode_head(status, headers, self._host.date(), len(body) + len(ending), close=close)
        if head.method == "HEAD" or not body:
            self._write(start)
        elif len(body) < _WRITE_AT_ONCE_BYTES:
            self._write(start + body + ending)
        else:
            self._write(start)
            self._write(body)
            self._write(ending)

    def _finished(self, head: RequestHead) -> None:
        self.busy = False
        self._since = self._loop.time()
        if not head.keep_alive or self._host.stopping:
            self._close()

    def _go_on(self) -> None:
        """An answer that took its time is out: see what has come meanwhile."""
        if self._reading_paused and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()
        if not self.busy:
            self._serve()

    async def _feed(self, stream: Stream, head: RequestHead) -> None:
        """Pass on what a stream has to say until its end; of a watch, that may also be ours."""
        chunked = head.newer
        close = not chunked or not head.keep_alive
        try:
            start = encode_head(stream.status, stream.headers, self._host.date(), None, close=close)
            self._write(start if chunked else start.replace(b"Transfer-Encoding: chunked\r\n", b""))
            while (stream.finite or not self._host.stopping) and (pieces := await stream.chunks()):
                await self._pass_on(pieces, chunked=chunked)
        except asyncio.CancelledError:
            if stream.finite or not self._host.stopping:
                raise
        except Exception as error:  # noqa: BLE001
            _our_fault(error)
            if self._transport is not None:
                self._transport.abort()  # without the last chunk the client knows that something is missing
            return
        finally:
            stream.close()
            self.stream = self._task = None
        if chunked:
            self._write(LAST_CHUNK)
        self._finished(head)
        if close:
            self._close()
        self._go_on()

    async def _pass_on(self, pieces: list[bytes], *, chunked: bool) -> None:
        at, size = 0, 0
        for end, piece in enumerate(pieces, 1):
            size += len(piece)
            if size > _WRITE_AT_ONCE_BYTES or end == len(pieces):
                part = pieces[at:end] if at or end < len(pieces) else pieces
                self._write(encode_chunks(part) if chunked else b"".join(part))
                at, size = end, 0
                if self._paused:
                    await self._drain()

    async def _drain(self) -> None:
        self._drained = self._loop.create_future()
        try:
            await self._drained
        finally:
            self._drained = None

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self._requests.clear()

    def _waiting(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0


def _our_fault(error: Exception) -> ServerResponse:
    log.error("a request was not answered", exc_info=error)
    return refuse(errors.internal(f"{type(error).__name__}: {error}"))
