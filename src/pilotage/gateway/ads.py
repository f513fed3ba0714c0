"""The aggregated discovery service: sends changes to one Envoy, and records what it acknowledged.

Delta ADS, over one stream: of each type Envoy gets the resources that differ from what it has, and no others. What is
referred to goes before what refers to it, so listeners and routes wait until clusters and their addresses are
acknowledged; addresses do not wait for clusters, which are ready only when they have them. An Envoy that comes back
with the current versions (its control plane died, it did not) gets nothing.

Of what Envoy refuses, it is sent what it had before. `offer` says so, with Envoy's own text.
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

from pilotage.gateway.snapshot import CDS, EDS, LDS, ORDER, SRDS, Changes, XdsResources
from pilotage.gateway.subscription import DeltaResponse, Subscription

_log = structlog.get_logger(__name__)

SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
METHOD = "DeltaAggregatedResources"
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


class _Stream:
    """One connection of an Envoy."""

    def __init__(self, context: Any, types: dict[str, XdsResources]) -> None:  # noqa: ANN401 - grpc has no types
        self.context = context
        self.types = {each: Subscription(types[each].by_name, by_name=each == EDS) for each in ORDER}
        self.responses = 0
        self.sending = asyncio.Lock()


class Ads:
    """Serves the resources that were offered. `on_connection` is called when an Envoy comes or goes."""

    def __init__(self) -> None:
        self.types = {each: XdsResources() for each in ORDER}
        """Resources that Envoy has, or is to get."""
        self.on_connection: Callable[[], None] = lambda: None
        self.sent = dict.fromkeys(ORDER, 0)
        """Number of responses, by type."""
        self._stream: _Stream | None = None
        self._verdict: asyncio.Future[OfferResult] | None = None

    @property
    def connected(self) -> bool:
        """Whether an Envoy is connected."""
        return self._stream is not None

    @property
    def offered(self) -> bool:
        """Whether anything was offered yet."""
        return bool(self.types[LDS].by_name)

    @contextlib.asynccontextmanager
    async def serving(self, socket: Path, owner: int | None = None) -> AsyncIterator[None]:
        """Listen on a unix socket that only we, or the user `owner`, can open."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket)  # noqa: PTH108 - that of one that was killed
        lengths = ("grpc.max_send_message_length", "grpc.max_receive_message_length")
        options = [("grpc.so_reuseport", 0), *((each, MESSAGE_BYTES_MAX) for each in lengths)]
        server = aio.server(options=options)
        method = grpc.stream_stream_rpc_method_handler(
            self._talk,
            request_deserializer=discovery_pb2.DeltaDiscoveryRequest.FromString,
            response_serializer=discovery_pb2.DeltaDiscoveryResponse.SerializeToString,
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

    async def offer(self, changes: Changes) -> OfferResult:
        """Have Envoy take them: returns when all of it is acknowledged or something is refused. One at a time.

        Where a part is refused, Envoy has what it had before when this returns. Without an Envoy it waits for one.
        """
        assert self._verdict is None
        before = {
            type_url: {name: self.types[type_url].by_name.get(name) for name in each}
            for type_url, each in changes.items()
        }
        verdict = await self._settle(changes)
        if not verdict.taken and verdict.type_url != LDS:  # a listener is tried again, as it is
            await self._settle(before)
        return verdict

    async def _talk(self, requests: AsyncIterator[Any], context: Any) -> None:  # noqa: ANN401 - grpc has no types
        """Serve one Envoy, until it disconnects."""
        stream = self._stream = _Stream(context, self.types)
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

    async def _settle(self, changes: Changes) -> OfferResult:
        for type_url, each in changes.items():
            for name, resource in each.items():
                self.types[type_url].set(name, resource)
        self._verdict = asyncio.get_running_loop().create_future()
        try:
            if self._stream is not None:
                for type_url, state in self._stream.types.items():
                    state.touch(changes.get(type_url, ()))
                await self._flush(self._stream)
            return await self._verdict
        finally:
            self._verdict = None

    def _take(self, stream: _Stream, request: Any) -> None:  # noqa: ANN401 - as above
        """Record an ACK or NACK of Envoy."""
        state = stream.types.get(request.type_url)
        if state is None:
            return
        text = state.take(request)
        if text is not None:
            _log.error("Envoy refuses its configuration", type=request.type_url, why=text[-TEXT_MAX:])
            self._decide(OfferResult(text, request.type_url))

    async def _flush(self, stream: _Stream) -> None:
        """Send what can be sent now; decide, when nothing is left to be sent or answered."""
        async with stream.sending:
            if not self.offered:
                return
            for type_url in ORDER:
                if type_url in (LDS, SRDS) and not (stream.types[CDS].done and stream.types[EDS].done):
                    return
                response = stream.types[type_url].next()
                if response is not None:
                    await self._send(stream, type_url, response)
            if all(each.done for each in stream.types.values()):
                self._decide(OfferResult())

    async def _send(self, stream: _Stream, type_url: str, response: DeltaResponse) -> None:
        stream.responses += 1
        self.sent[type_url] += 1
        stream.types[type_url].nonce = str(stream.responses)
        if type_url == CDS:  # a cluster that is replaced, or comes back, has no addresses
            stream.types[EDS].again(response.changed)
            stream.types[EDS].end(response.removed)
        elif type_url == LDS:  # so has a listener no routes, and Envoy does not ask for them a second time
            stream.types[SRDS].again(self.types[SRDS].by_name)
        made = discovery_pb2.DeltaDiscoveryResponse(
            system_version_info=self.types[type_url].version,
            type_url=type_url,
            nonce=str(stream.responses),
            removed_resources=response.removed,
            resources=[
                discovery_pb2.Resource(name=name, version=each.version, resource=each.packed)
                for name, each in response.changed.items()
            ],
        )
        with contextlib.suppress(grpc.RpcError, aio.AioRpcError, aio.UsageError):  # it went meanwhile
            await stream.context.write(made)

    def _decide(self, verdict: OfferResult) -> None:
        if self._verdict is not None and not self._verdict.done():
            self._verdict.set_result(verdict)
