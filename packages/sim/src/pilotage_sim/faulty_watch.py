"""A watch whose events are delayed, dropped, repeated or coalesced.

On an intact connection an API server loses nothing and repeats nothing, and neither does this one. An event that is
lost, repeated or merged with the next one means a connection that broke, and is found again, or seen again, by the one
that follows.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from pilotage.kube.transport import TransportError
from pilotage.kube.wire import decode_event
from pilotage_sim.plan import FaultKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.kube.transport import Request, Response
    from pilotage_sim.fault_injection import FaultInjection

DELAY_SECONDS = 5.0
"""Delay of an event, and the time for which a kind is unreachable whose events are coalesced."""

_numbers = itertools.count()


class FaultyWatch:
    """The answer to one watch request of a process with faults."""

    def __init__(self, inner: Response, injection: FaultInjection, path: str, request: Request) -> None:
        self.number = next(_numbers)
        self._inner = inner
        self._injection = injection
        self._path = path
        options = parse_qs(request.target.partition("?")[2])
        self._version = options.get("resourceVersion", [""])[0]
        self._lines: deque[bytes] = deque()
        self._is_last = False
        self._broken = asyncio.get_running_loop().create_future()
        injection.watches.add(self)

    @property
    def status(self) -> int:
        """The status code."""
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by their names in lower case."""
        return self._inner.headers

    async def read(self) -> bytes:
        """The whole body."""
        return await self._inner.read()

    def close(self) -> None:
        """Close the watch; no fault breaks it any more."""
        self._injection.watches.discard(self)
        self._inner.close()

    def break_off(self) -> None:
        """Nothing comes any more."""
        self.close()
        if not self._broken.done():
            self._broken.set_result(None)

    async def chunks(self) -> list[bytes]:
        """The next event, one at a time, with the faults that are due at it."""
        if self._is_last:
            self.break_off()
        if not self._lines and not self._broken.done():
            self._lines.extend(await self._receive())
            if not self._lines:
                return []
        if not self._broken.done() and await self._passes(self._lines[0]):
            return [self._lines.popleft()]
        raise TransportError("connection reset by peer", sent=True)

    async def _receive(self) -> list[bytes]:
        """The next event, or the break of the connection if it comes first."""
        coming = asyncio.ensure_future(self._inner.chunks())
        try:
            await asyncio.wait({coming, self._broken}, return_when=asyncio.FIRST_COMPLETED)
            return [b""] if self._broken.done() else coming.result()
        finally:
            coming.cancel()

    async def _passes(self, line: bytes) -> bool:
        """Whether an event gets through; first, what is planned for it happens."""
        injection = self._injection
        type_, obj = decode_event(line)
        if type_ in ("BOOKMARK", "ERROR"):
            return True
        injection.counts.events += 1
        number = injection.counts.events
        if injection.due(FaultKind.CUT_WATCHES, number):
            injection.cut()
        elif injection.due(FaultKind.DROP_EVENT, number):
            injection.expired.add(self._path)
            self.break_off()
        elif injection.due(FaultKind.COALESCE_EVENT, number):
            injection.expired.add(self._path)
            injection.unreachable[self._path] = asyncio.get_running_loop().time() + DELAY_SECONDS
            self.break_off()
        elif injection.due(FaultKind.DELAY_EVENT, number):
            await asyncio.sleep(DELAY_SECONDS)
        elif injection.due(FaultKind.DUPLICATE_EVENT, number):
            injection.replayed[self._path] = self._version
            self._is_last = True
            return True
        self._version = obj.meta.resource_version
        return not self._broken.done()
