"""Ports for servers. A port is not used again at once: the system may refuse it for a minute."""

import collections
import errno
from collections.abc import Collection

from pilotage.processes.ports import free_port

TRIES = 64
REMEMBERED = 256


class Ports:
    """Allocates ports of one address."""

    def __init__(self, host: str, reserved: Collection[int] = ()) -> None:
        """`reserved`: never allocated, though one may be free while its service is restarted."""
        self._host = host
        self._reserved = frozenset(reserved)
        self._last: collections.deque[int] = collections.deque(maxlen=REMEMBERED)

    def take(self) -> int:
        """A free one, and none of the last few. OSError if there is none."""
        for _ in range(TRIES):
            port = free_port(self._host)
            if port not in self._last and port not in self._reserved:
                self._last.append(port)
                return port
        raise OSError(errno.EADDRINUSE, "there is no free port")

    def is_free(self, port: int) -> bool:
        """Whether a server could listen there now."""
        try:
            free_port(self._host, port)
        except OSError:
            return False
        return True
