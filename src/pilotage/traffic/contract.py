"""The values that routers, proxies and the controllers that move traffic exchange. No I/O here."""

import enum
from collections.abc import Collection, Mapping
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


class Header(NamedTuple):
    """A header that a request has, in small letters, with exactly this value."""

    name: str
    value: str


class Branch(NamedTuple):
    """Requests with certain headers, and how they are shared out. The main branch of a route has no headers."""

    headers: tuple[Header, ...]
    backends: tuple[Backend, ...]


class Copies(NamedTuple):
    """A Service that gets copies of requests, whose answers nobody sees. Never at 0 percent: some take it for all."""

    service: str
    port: int
    percent: int = WHOLE
    concurrent_max: int | None = None
    """Number of copies in flight beyond which none are sent; None: no limit."""

    @property
    def key(self) -> tuple[str, int]:
        """Identity of the Service, without its share."""
        return self.service, self.port


class Stickiness(NamedTuple):
    """Assignment of requests by a key of theirs. A request without any of the keys is assigned at random."""

    keys: tuple[tuple[str, str], ...]
    """Places of the key, the first that a request has counts: ("header", NAME) or ("body", FIELD)."""
    salt: str = ""
    """Text that makes this assignment independent of any other."""


class Mix(NamedTuple):
    """The destinations of the requests of a route.

    A mix that is wanted names a service once in each branch, and the weights of each branch add up to `WHOLE`.
    """

    backends: tuple[Backend, ...] = ()
    """Main branch: requests that no other branch matches."""
    branches: tuple[Branch, ...] = ()
    """Branches of requests with certain headers; the first that matches counts."""
    copies: tuple[Copies, ...] = ()
    sticky: Stickiness | None = None

    @property
    def services(self) -> frozenset[str]:
        """All Services that it names, those at weight 0 and those that get copies included."""
        branches = (self.backends, *(each.backends for each in self.branches))
        copied = {each.service for each in self.copies}
        return frozenset(copied.union(each.service for backends in branches for each in backends))

    def __str__(self) -> str:
        words = [_shares(self.backends)]
        for each in self.branches:
            match = " and ".join(f"{name}: {value}" for name, value in each.headers)
            words.append(f"with {match} {_shares(each.backends)}")
        words += [f"copies of {each.percent} % to {each.service}" for each in self.copies]
        return "; ".join(words)


def _shares(backends: tuple[Backend, ...]) -> str:
    return ", ".join(f"{each.service} {each.weight}" for each in backends)


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
    in_flight: Mapping[str, int] = {}
    """Requests in flight by service, of the counted ones. Of one that is not in it the number is unknown."""
    text: str = ""
    """Message for people: which proxies have the route, which lack it, or why it is refused."""
    conflict: str = ""
    """Message about host names or models of the route that lead to another endpoint; empty: none."""
    effective: Mapping[str, float] | None = None
    """Percentage of the requests of the main branch that each service really gets; None: unknown."""

    def in_flight_to(self, services: Collection[str]) -> int | None:
        """Requests in flight to all of these services; None if the number is unknown for any of them."""
        counts = [self.in_flight.get(each) for each in services]
        return None if None in counts else sum(each for each in counts if each is not None)


class ExpectedRoute(NamedTuple):
    """Configuration that every proxy should have loaded for a host and a path.

    With an empty mix: no route to any of the `counted` services; without these too: no route at all.
    """

    namespace: str
    host: str
    """Host of the route; empty: all hosts."""
    path: str
    mix: Mix = Mix()
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
