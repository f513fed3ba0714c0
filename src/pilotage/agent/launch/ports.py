"""Ports for servers. One that was just used is not given again at once: the system may refuse it for a minute."""

from __future__ import annotations

import collections
import errno
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

TRIES = 64
REMEMBERED = 256


class Ports:
    """Gives ports of one address that were free a moment ago."""

    def __init__(self, host: str, reserved: Collection[int] = ()) -> None:
        """`reserved`: never given, though one may be free while the service that has it is started again."""
        self._host = host
        self._reserved = frozenset(reserved)
        self._last: collections.deque[int] = collections.deque(maxlen=REMEMBERED)

    def take(self) -> int:
        """A free one, and none of the last few. OSError if there is none."""
        for _ in range(TRIES):
            port = _bind(self._host, 0)
            if port not in self._last and port not in self._reserved:
                self._last.append(port)
                return port
        raise OSError(errno.EADDRINUSE, "there is no free port")

    def is_free(self, port: int) -> bool:
        """Whether a server could listen there now."""
        try:
            _bind(self._host, port)
        except OSError:
            return False
        return True


def _bind(host: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        probe.bind((host, port))
        found: int = probe.getsockname()[1]
        return found
