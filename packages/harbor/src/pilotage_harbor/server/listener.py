"""Taking connections: not more than there are slots for, and not in a loop when descriptors are short.

asyncio's own way of listening takes whatever comes, and where that fails for want of descriptors, it says so a
thousand times a second.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from pilotage_harbor.server.connection import ServerConnection
    from pilotage_harbor.server.slots import Slots

log = logging.getLogger("pilotage_harbor.server")

_BACKLOG = 1024
_ACCEPTED_AT_ONCE = 16
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_SECONDS = 1.0
_LOGGED_AGAIN_SECONDS = 60.0
_TLS_SECONDS = 10.0
_FAREWELL_SECONDS = 1.0
_KEEP_ALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 9}
"""Seconds of silence, seconds between questions, and how many of those may stay without an answer: as Go has it."""


class Listener:
    """Listens, and makes a connection of each client that there is a slot for."""

    def __init__(self, make: Callable[[], ServerConnection], slots: Slots, tls: ssl.SSLContext | None) -> None:
        self._make = make
        self._slots = slots
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._listening: socket.socket | None = None
        self._resumes: asyncio.TimerHandle | None = None
        self._unopened: dict[ServerConnection, socket.socket] = {}
        self._logged_at: float | None = None

    def listen(self, host: str, port: int) -> int:
        """Begin; the port, which is any free one for 0. OSError if it is taken."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._listening.setblocking(False)
        _keep_alive(self._listening)
        self._loop.add_reader(self._listening, self._accept)
        return int(self._listening.getsockname()[1])

    def close(self) -> None:
        """Listen no more."""
        if self._listening is None:
            return
        if self._resumes is not None:
            self._resumes.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()
        self._listening = None

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            if self._listening is None:
                return
            try:
                taken, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                self._slots.make_room()
                self._pause(error)
                return
            if not self._slots.make_room():
                taken.close()
                self._log("all %d connections are in use: new ones are closed at once", self._slots.most)
                return
            taken.setblocking(False)
            connection = self._make()
            self._slots.take(connection)
            self._unopened[connection] = taken
            connection.opening = self._loop.create_task(self._open(connection))
            connection.opening.add_done_callback(partial(self._drop, connection))

    def _pause(self, error: OSError) -> None:
        """Whoever wants to connect waits in the kernel's queue."""
        assert self._listening is not None
        self._loop.remove_reader(self._listening)
        self._resumes = self._loop.call_later(_PAUSE_SECONDS, self._resume)
        self._log("no connection can be taken now (%s): raise the limit of open files", error.strerror)

    def _resume(self) -> None:
        if self._listening is not None:
            self._loop.add_reader(self._listening, self._accept)

    def _drop(self, connection: ServerConnection, _ended: asyncio.Task[None]) -> None:
        """Its task has ended; if that was before it began, its socket is still ours."""
        taken = self._unopened.pop(connection, None)
        if taken is not None:
            taken.close()

    async def _open(self, connection: ServerConnection) -> None:
        """Complete the handshake of a connection; all else is up to the connection."""
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                self._unopened.pop(connection),
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else _TLS_SECONDS,
                ssl_shutdown_timeout=None if self._tls is None else _FAREWELL_SECONDS,
            )
        except OSError as error:  # no TLS, none that we know, or gone meanwhile
            log.debug("a connection was not made: %s", error)
            self._slots.free(connection)
        finally:
            connection.opening = None

    def _log(self, words: str, *arguments: object) -> None:
        """Log at most once a minute: a client can cause it all the time."""
        now = self._loop.time()
        if self._logged_at is None or now - self._logged_at > _LOGGED_AGAIN_SECONDS:
            self._logged_at = now
            log.warning(words, *arguments)


def _keep_alive(listening: socket.socket) -> None:
    """Have the kernel ask silent peers whether they are there; the sockets that are accepted inherit it."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if (option := getattr(socket, name, None)) is not None:  # not every system has all of them
            listening.setsockopt(socket.IPPROTO_TCP, option, value)
