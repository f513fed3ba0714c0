"""Pool of the connections of one transport.

A new connection is a TLS handshake, which costs as much as a dozen small reads, on both sides. So a read waits a
moment for a connection that another one gives back. As long as they come back quickly few of them do all the work;
where answers take their time, new ones are made at once.
"""

import asyncio
from collections import deque

from pilotage.kube.connection import Connection
from pilotage.kube.transport import TransportError

IDLE_SECONDS_MAX = 60.0
"""Shorter than the API server's own, so that we rarely send into a connection that it is just closing."""
PATIENCE_SECONDS = 0.01
"""Wait for a connection that is given back; after that, another one is worth its handshake."""


class Pool:
    """Idle connections of one transport, and the requests that wait for one."""

    def __init__(self) -> None:
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[Connection]] = deque()
        self._given_back = 0.0
        self._answered = False
        self.coming = 0
        """Number of connections that are being made."""

    def take(self) -> Connection | None:
        """One that can be used again, if there is one."""
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS_MAX
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and connection.idle_since > oldest:
                return connection
            connection.abort("idle for too long")
        return None

    async def wait(self) -> Connection | None:
        """One that is given back soon; None if it is time for a new one."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[Connection] = loop.create_future()
        self._waiting.append(turn)
        patience = PATIENCE_SECONDS
        try:
            while patience > 0 or self._has_hardly_begun():
                await asyncio.wait((turn,), timeout=patience if patience > 0 else PATIENCE_SECONDS)
                if turn.done():
                    return turn.result()
                patience = self._given_back + PATIENCE_SECONDS - loop.time()
        except asyncio.CancelledError:
            if turn.done() and turn.exception() is None:
                self.give(turn.result())  # it was handed over in the same moment
            turn.cancel()
            raise
        turn.cancel()
        return None

    def _has_hardly_begun(self) -> bool:
        """Whether nobody has had an answer so far, and the first connections are still being made."""
        return self.coming > 0 and not self._answered

    def give(self, connection: Connection) -> None:
        """It is not used any more, and can be: by whoever waits longest, or later."""
        now = connection.idle_since = self._given_back = asyncio.get_running_loop().time()
        self._answered = True
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        self._idle.append(connection)
        while self._idle[0].idle_since < now - IDLE_SECONDS_MAX:  # what a burst has left behind
            self._idle.pop(0).abort("idle for too long")

    def drop(self, why: str) -> None:
        """Close all that are idle."""
        for connection in self._idle:
            connection.abort(why)
        self._idle.clear()

    def close(self) -> None:
        """Let nobody wait any more."""
        self._idle.clear()
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(TransportError("the client was closed", sent=False))
