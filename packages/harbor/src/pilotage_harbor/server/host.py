"""The side of a server that its connections see, and the limits that it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pilotage_harbor.apimachinery.calls import BODY_BYTES_MAX
from pilotage_harbor.server.slots import Occupant

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from pilotage_harbor.apimachinery.calls import Call, ServerResponse, Stream
    from pilotage_harbor.apimachinery.users import UserInfo
    from pilotage_harbor.server.http1 import RequestHead
    from pilotage_harbor.server.slots import Slots


class ClientLimits(NamedTuple):
    """Limits for a client: of time, in seconds, and of bytes that wait for it."""

    head: float = 32.0
    """Time from the first byte of a request to the end of its head."""
    body: float = 60.0
    idle: float = 90.0
    """Time between two requests."""
    stall: float = 30.0
    """Time without taking a byte of what waits for it."""
    waiting_bytes: int = 1024 * 1024
    """Bytes that may wait in memory before a watch is read no further."""
    body_bytes: int = BODY_BYTES_MAX
    bodies_bytes: int = 256 * 1024 * 1024
    """Bytes of all incomplete bodies together."""


class Connected(Occupant, Protocol):
    """The side of a connection that its server sees."""

    def check_time(self, now: float) -> None:
        """End it if its client takes longer than it may."""

    def shut_down(self) -> None:
        """Take no more requests, and end with the one that is under way."""


class ConnectionHost(Protocol):
    """The side of a server that its connections see."""

    limits: ClientLimits
    stopping: bool
    connections: set[Connected]
    incoming: memoryview
    slots: Slots
    bodies_bytes: int
    """Bytes that have come of bodies that are not complete."""

    @property
    def handle(self) -> Callable[[Call], Coroutine[Any, Any, ServerResponse | Stream]]:
        """Handler of requests. It never raises. It is begun outside of a task: see `Server`."""

    def authenticate(self, head: RequestHead, peer: UserInfo | None) -> UserInfo:
        """The user that asks; raises StatusError."""

    def check(self, head: RequestHead, peer: UserInfo | None) -> None:
        """Raise what is wrong with a request whatever its body is."""

    def peer(self, transport: asyncio.BaseTransport) -> UserInfo | None:
        """The user that the certificate of the client names."""

    def lost(self, connection: Connected) -> None:
        """Forget a connection that has ended."""

    def date(self) -> bytes:
        """The header that says what time it is."""
