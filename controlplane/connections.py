"""Requests from any thread over connections that are used again: a new one costs both sides more than most requests."""

import http.client
import json
import select
from collections import deque
from collections.abc import Callable

from controlplane.access import status_error


class Connections:
    """Connections to one server, as `connect` makes them, past any proxy that the environment names. Close it."""

    def __init__(self, connect: Callable[[], http.client.HTTPConnection]) -> None:
        self._connect = connect
        self._idle: deque[http.client.HTTPConnection] = deque()

    def exchange(self, method: str, path: str, body: object = None) -> bytes:
        """Send one request and return the answer. Raises `ApiError`."""
        content = None if body is None else json.dumps(body)
        connection = self._open_one() or self._connect()
        try:
            connection.request(method, path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        if response.status >= 400:
            raise status_error(answer, response.reason)
        return answer

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _open_one(self) -> http.client.HTTPConnection | None:
        """Connection that is idle and that the server has not closed."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.sock is not None and not _has_something(connection.sock.fileno()):
                return connection
            connection.close()


def _has_something(descriptor: int) -> bool:
    """Whether there is something to read: where nothing is expected, that is the end."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
