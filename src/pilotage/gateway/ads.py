"""The aggregated discovery service: sends snapshots to one Envoy, and records what it acknowledged.

State of the world, over one stream. What is referred to goes before what refers to it, so LDS and RDS wait until CDS
and EDS are acknowledged; EDS does not wait for CDS, which Envoy acknowledges only when its clusters have their
addresses. A type is sent when its content differs from what this Envoy has: an Envoy that comes back with the current
version (its control plane died, it did not) gets nothing. Of assignments only those are sent that differ.

What Envoy refuses is not sent again. `offer` says so, with Envoy's own text; what it had before stays in force there.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import structlog
from envoy.service.discovery.v3 import discovery_pb2
from grpc import aio

from pilotage.gateway.snapshot import CDS, EDS, LDS, ORDER, RDS, Snapshot

_log = structlog.get_logger(__name__)

SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
METHOD = "StreamAggregatedResources"
TEXT_MAX = 300
MESSAGE_BYTES_MAX = 256 * 1024 * 1024
STOP_SECONDS_MAX = 0.2


class OfferResult(NamedTuple):
    """The result of an offer. `text` is Envoy's reason, empty where all of it was acknowledged."""

    text: str = ""
    type_url: str = ""

    @property
    def taken(self) -> bool:
        """Whether Envoy has acknowledged all of it."""
        return not self.text


class _Type:
    """One type of resources on one stream."""

    def __init__(self) -> None:
        self.asked = False
        self.names: frozenset[str] = frozenset()
        self.sent: dict[str, bytes] = {}
        self.nonce = ""
        """Nonce of a response that is not answered yet."""
        self.offered = ""
        self.acknowledged = ""
        self.brought = ""
        """The version that Envoy had when it came, until that was looked at."""
        self.refused = ""


class _Stream:
    """One connection of an Envoy."""

    def __init__(self, context: Any) -> None:  # noqa: ANN401 - grpc has no types
        self.context = context
        self.types = {each: _Type() for each in ORDER}
        self.responses = 0
        self.sending = asyncio.Lock()


class Ads:
    """Serves the newest snapshot that was offered. `connected` is called when an Envoy comes or goes."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self.on_connection: Callable[[], None] = lambda: None
        self.sent = dict.fromkeys(ORDER, 0)
        """Number of responses, by type."""
        self._stream: _Stream | None = None
        self._verdict: asyncio.Future[OfferResult] | None = None

    @property
    def connected(self) -> bool:
        """Whether an Envoy is connected."""
        return self._stream is not None

    @contextlib.asynccontextmanager
    async def serving(self, socket: Path, owner: int | None = None) -> AsyncIterator[None]:
        """Listen on a unix socket that only we, or the user `owner`, can open."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket)  # noqa: PTH108 - that of one that was killed
        options = [("grpc.max_send_message_length", MESSAGE_BYTES_MAX), ("grpc.so_reuseport", 0)]
        server = aio.server(options=options)
        method = grpc.stream_stream_rpc_method_handler(
            self._talk,
            request_deserializer=discovery_pb2.DiscoveryRequest.FromString,
            response_serializer=discovery_pb2.DiscoveryResponse.SerializeToString,
        )
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: method}),))
        before = os.umask(0o077)
        try:
            server.add_insecure_port(f"unix:{socket}")
            await server.start()
        finally:
            os.umask(before)
        if owner is not None:
            os.chown(socket, owner, owner, follow_symlinks=False)  # the folder is the owner's
        try:
            yield
        finally:
            await server.stop(STOP_SECONDS_MAX)

    async def offer(self, snapshot: Snapshot) -> OfferResult:
        """Have Envoy take it: returns when all of it is acknowledged or something is refused. One at a time.

        Without an Envoy it waits for one.
        """
        assert self._verdict is None
        self.snapshot = snapshot
        self._verdict = asyncio.get_running_loop().create_future()
        try:
            if self._stream is not None:
                for each in self._stream.types.values():
                    each.refused = ""
                await self._flush(self._stream)
            return await self._verdict
        finally:
            self._verdict = None

    async def _talk(self, requests: AsyncIterator[Any], context: Any) -> None:  # noqa: ANN401 - grpc has no types
        """Serve one Envoy, until it disconnects."""
        stream = self._stream = _Stream(context)
        self.on_connection()
        _log.info("Envoy is connected")
        try:
            async for request in requests:
                self._take(stream, request)
                if self._stream is stream:
                    await self._flush(stream)
        except (grpc.RpcError, aio.AioRpcError, asyncio.CancelledError):
            pass  # it is gone
        finally:
            if self._stream is stream:
                self._stream = None
                self.on_connection()
                _log.warning("Envoy is not connected any more")

    def _take(self, stream: _Stream, request: Any) -> None:  # noqa: ANN401 - as above
        """Record an ACK or NACK of Envoy."""
        state = stream.types.get(request.type_url)
        if state is None:
            return
        names = frozenset(request.resource_names)
        if request.type_url == RDS and not names and not state.names:
            return
        if not state.asked:
            state.asked = True
            state.acknowledged = state.brought = request.version_info
        elif request.response_nonce == state.nonce:
            if request.HasField("error_detail"):
                state.refused = state.offered
                state.sent = {}
                text = request.error_detail.message
                _log.error("Envoy refuses its configuration", type=request.type_url, why=text[-TEXT_MAX:])
                self._decide(OfferResult(text or "Envoy gives no reason", request.type_url))
            elif state.nonce:
                state.acknowledged = request.version_info
            state.nonce = ""
        for gone in state.names - names:
            state.sent.pop(gone, None)  # asked for again later, it is wanted again
        if request.type_url == RDS and names != state.names:
            # With a listener that is refused its routes go: nobody asks for them until there is one again.
            state.asked, state.acknowledged, state.nonce = bool(names), request.version_info, ""
        state.names = names

    async def _flush(self, stream: _Stream) -> None:
        """Send what can be sent now; decide, when nothing is left to be sent or answered."""
        async with stream.sending:
            if self.snapshot is None:
                return
            for type_url in ORDER:
                if type_url in (LDS, RDS) and not (self._done(stream, CDS) and self._done(stream, EDS)):
                    return
                await self._send(stream, type_url, self.snapshot)
            if all(self._done(stream, each) for each in ORDER):
                self._decide(OfferResult())

    def _done(self, stream: _Stream, type_url: str) -> bool:
        """Whether Envoy has all that it should have of a type."""
        assert self.snapshot is not None
        state, resources = stream.types[type_url], self.snapshot.types[type_url]
        if type_url != EDS:
            return state.asked and not state.nonce and state.acknowledged == resources.version
        return not state.nonce and all(state.sent.get(name) == each.value for name, each in resources.packed.items())

    async def _send(self, stream: _Stream, type_url: str, snapshot: Snapshot) -> None:
        state, resources = stream.types[type_url], snapshot.types[type_url]
        if not state.asked or state.nonce or state.refused == resources.version:
            return
        if type_url == EDS:
            if not state.names >= resources.packed.keys():
                return  # it will ask for the rest, and then has all of a version or nothing
            if state.brought == resources.version:
                state.sent = {name: each.value for name, each in resources.packed.items()}
            state.brought = ""
            sent = {name: each for name, each in resources.packed.items() if state.sent.get(name) != each.value}
            if not sent:
                return
        elif state.acknowledged == resources.version:
            return
        else:
            sent = dict(resources.packed)
        stream.responses += 1
        self.sent[type_url] += 1
        state.nonce = str(stream.responses)
        state.offered = resources.version
        state.sent |= {name: each.value for name, each in sent.items()}
        response = discovery_pb2.DiscoveryResponse(
            version_info=resources.version, type_url=type_url, nonce=state.nonce, resources=sent.values()
        )
        with contextlib.suppress(grpc.RpcError, aio.AioRpcError, aio.UsageError):  # it went meanwhile
            await stream.context.write(response)

    def _decide(self, verdict: OfferResult) -> None:
        if self._verdict is not None and not self._verdict.done():
            self._verdict.set_result(verdict)
