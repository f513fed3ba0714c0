"""The values that routers, proxies and the controllers that move traffic exchange. No I/O here."""

import enum
from typing import NamedTuple, Protocol

WHOLE = 100
"""Weight of the backend that gets all requests. The weights of a route add up to it."""


class Backend(NamedTuple):
    """A Service in the namespace of its route, and its weight: 0 to 100."""

    service: str
    port: int
    weight: int = WHOLE

    @property
    def key(self) -> tuple[str, int]:
        """Identity of the backend, without its weight."""
        return self.service, self.port

    def __str__(self) -> str:
        return f"{self.service}:{self.port} {self.weight}"


class Programming(enum.Enum):
    """Progress of the current generation of a route, in the order of confidence."""

    PROGRAMMED = "programmed"
    """Every proxy was read and has the route loaded."""
    ACCEPTED = "accepted"
    """The controller has accepted it, or routes of this kind have no status. The proxies are unverified."""
    PENDING = "pending"
    """Pending or unknown: a proxy that cannot be read proves nothing."""
    REJECTED = "rejected"
    """The controller refuses it. Only a change of some object helps."""


class RouteStatus(NamedTuple):
    """State of a route in its controller and in the proxies."""

    programming: Programming
    in_flight: int | None = None
    """Requests in flight to the counted services; None: unknown, because no proxy or not every proxy could be read."""
    text: str = ""
    """Message for people: which proxies have the route, which lack it, or why it is refused."""
    conflict: str = ""
    """Message about host names or models of the route that lead to another endpoint; empty: none."""


class ExpectedRoute(NamedTuple):
    """Configuration that every proxy should have loaded for a host and a path.

    Without `backends`: no route to any of the `counted` services; without these too: no route at all.
    """

    namespace: str
    host: str
    """Host of the route; empty: all hosts."""
    path: str
    backends: tuple[Backend, ...] = ()
    counted: frozenset[str] = frozenset()
    """Services whose requests in flight are counted."""
    reachable: frozenset[str] = frozenset()
    """Services that must have a healthy address in the proxy, which answers 503 for one without."""


class ProxyObserver(Protocol):
    """Reads the proxies."""

    async def observe(self, expected: ExpectedRoute) -> RouteStatus | None:
        """Whether all proxies have the expected route, and the requests in flight. None: no proxy can be read."""


def combined(said: RouteStatus, seen: RouteStatus | None) -> RouteStatus:
    """Status of a route from its own status (`said`) and from the proxies (`seen`; None: no proxy can be read).

    The proxies decide, unless the controller has not accepted the current generation: they may then show an earlier
    version that looks the same.
    """
    if seen is None:
        return said
    if said.programming in (Programming.PENDING, Programming.REJECTED):
        return said._replace(in_flight=seen.in_flight)
    return seen
