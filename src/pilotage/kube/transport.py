"""Transport of requests: a small protocol, which a simulator can replace. `http` is the real one."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

REQUEST_SECONDS_MAX = 30.0


class Request(NamedTuple):
    """One HTTP request. `target` is path and query, already encoded. `timeout` bounds the answer; a stream has none.

    `allowed` is called when all waiting is over, just before the request is sent; it raises to keep it from being sent.
    `if_none_match` is the ETag of an answer that is known already: 304 then says that it still holds.
    """

    method: str
    target: str
    body: bytes | None = None
    content_type: str = ""
    accept: str = "application/json"
    timeout: float | None = None
    user_agent: str = ""
    allowed: Callable[[], None] | None = None
    if_none_match: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.target.partition('?')[0]}"


class TransportError(Exception):
    """No answer. `sent` says whether the request may have reached the server."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Response(Protocol):
    """An answer whose body is read whole, or in chunks as it comes. Every response must be closed."""

    @property
    def status(self) -> int:
        """The status code."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by their names in lower case."""

    async def read(self) -> bytes:
        """The whole body."""

    async def chunks(self) -> list[bytes]:
        """The bytes of the body that have arrived, as soon as there are some; empty once the server has ended it."""

    def close(self) -> None:
        """Done with it. A body that was not read to its end costs the connection."""


class Transport(Protocol):
    """Sends requests."""

    async def send(self, request: Request) -> Response:
        """The answer's status and headers, or TransportError."""

    async def close(self) -> None:
        """Close all connections."""
