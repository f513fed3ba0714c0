"""The listening side: takes connections, gives each its protocol, watches the clock for all of them, and ends well."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from pilotage_harbor.server.connection import ServerConnection
from pilotage_harbor.server.host import ClientLimits, Connected
from pilotage_harbor.server.listener import Listener
from pilotage_harbor.server.slots import CONNECTIONS_MAX, Slots

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine

    from pilotage_harbor.apimachinery.calls import Call, ServerResponse, Stream
    from pilotage_harbor.apimachinery.users import UserInfo
    from pilotage_harbor.server.authentication import Authentication
    from pilotage_harbor.server.http1 import RequestHead

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CHECKS_PER_LIMIT = 4
_READ_AT_ONCE_BYTES = 128 * 1024


class Server:
    """Serves `handle` over HTTP/1.1, with TLS if there is a context for it.

    A handler is begun outside of a task and becomes one when it first waits. Until then it cannot use what needs a
    task (`asyncio.timeout`, `TaskGroup`); one that does must wait once before, if only by `asyncio.sleep(0)`.
    """

    def __init__(
        self,
        handle: Callable[[Call], Coroutine[Any, Any, ServerResponse | Stream]],
        authentication: Authentication,
        *,
        tls: ssl.SSLContext | None = None,
        limits: ClientLimits | None = None,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self.handle = handle
        self.limits = limits or ClientLimits()
        self.slots = Slots(connections_max)
        self.bodies_bytes = 0
        self.stopping = False
        self.connections: set[Connected] = set()
        self.incoming = memoryview(bytearray(_READ_AT_ONCE_BYTES))
        self.authenticate: Callable[[RequestHead, UserInfo | None], UserInfo] = authentication.user
        self.check: Callable[[RequestHead, UserInfo | None], None] = authentication.check
        self.peer: Callable[[asyncio.BaseTransport], UserInfo | None] = authentication.peer
        self._tls = tls
        self.port = 0
        """Port that the server listens on, once it does."""
        self._accepting: Listener | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._date = (0, b"")
        self._gone: asyncio.Future[None] | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the answer is the port, which is any free one for 0. OSError if it is taken."""
        loop = asyncio.get_running_loop()
        self._accepting = Listener(lambda: ServerConnection(self, loop), self.slots, self._tls)
        self.port = self._accepting.listen(host, port)
        self._watch_clock()
        return self.port

    async def stop(self, grace: float = 10.0) -> None:
        """Take no more requests, end watches, let requests finish for `grace` seconds, and break off what is left."""
        self.stopping = True
        if self._accepting is not None:
            self._accepting.close()
        if self._clock is not None:
            self._clock.cancel()
        for connection in list(self.connections):
            connection.shut_down()
        try:
            async with asyncio.timeout(grace):
                await self._all_gone()
        except TimeoutError:
            for connection in list(self.connections):
                connection.abort()
            await self._all_gone()

    def lost(self, connection: Connected) -> None:
        """Forget a connection that has ended."""
        self.connections.discard(connection)
        self.slots.free(connection)
        if self._gone is not None and not self.connections and not self._gone.done():
            self._gone.set_result(None)

    async def _all_gone(self) -> None:
        if self.connections:
            self._gone = asyncio.get_running_loop().create_future()
            await self._gone

    def date(self) -> bytes:
        """The header `Date`, made anew once a second."""
        now = int(time.time())
        if self._date[0] != now:
            day = time.gmtime(now)
            words = f"{_DAYS[day.tm_wday]}, {day.tm_mday:02} {_MONTHS[day.tm_mon - 1]} {day.tm_year} "
            self._date = (now, f"Date: {words}{day.tm_hour:02}:{day.tm_min:02}:{day.tm_sec:02} GMT\r\n".encode())
        return self._date[1]

    def _watch_clock(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self.connections):
            connection.check_time(now)
        limits = self.limits
        shortest = min(limits.head, limits.body, limits.idle, limits.stall)
        self._clock = loop.call_later(shortest / _CHECKS_PER_LIMIT, self._watch_clock)
