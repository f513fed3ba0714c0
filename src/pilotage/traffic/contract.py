"""The values that routers, proxies and those who move traffic exchange. No I/O here."""

from __future__ import annotations

import enum
from typing import NamedTuple

WHOLE = 100
"""The weight of the one that gets everything. Weights of a route add up to it."""


class Backend(NamedTuple):
    """A Service that a route names, in the route's namespace, and its share of the requests: 0 to 100."""

    service: str
    port: int
    weight: int = WHOLE

    @property
    def key(self) -> tuple[str, int]:
        """Which one it is, whatever its weight."""
        return self.service, self.port

    def __str__(self) -> str:
        return f"{self.service}:{self.port} {self.weight}"


class Proof(enum.Enum):
    """What is known about a route as it stands now. The order is that of confidence."""

    PROGRAMMED = "programmed"
    """Every proxy itself was read, and has it loaded."""
    ACCEPTED = "accepted"
    """Its controller has computed it, or the kind of route cannot say. What proxies have is unverified."""
    PENDING = "pending"
    """Not yet, or not known: a proxy that cannot be read has nothing proven."""
    REJECTED = "rejected"
    """Its controller refuses it, and says why. Waiting does not help, a change of something does."""


class Passage(NamedTuple):
    """How far a route has come on its way into the proxies."""

    proof: Proof
    in_flight: int | None = None
    """Requests under way to the services that were asked for; None: nobody counts, or not all could be asked."""
    text: str = ""
    """For people: who has it, who lacks it, or why it is refused, in the router's own words."""
    conflict: str = ""
    """Names of it that lead elsewhere, in the router's own words."""


class Expectation(NamedTuple):
    """What proxies should have loaded for a host and a path.

    Without `backends`: nothing that leads to one of `counted`; with none of these either, no route at all.
    """

    namespace: str
    host: str
    """As in the route; empty for a route that takes all hosts."""
    path: str
    backends: tuple[Backend, ...] = ()
    counted: frozenset[str] = frozenset()
    """The services whose requests in flight are wanted."""
    reachable: frozenset[str] = frozenset()
    """The services of which a proxy must know an address that it would send to. One without any answers 503."""


def combined(said: Passage, seen: Passage | None) -> Passage:
    """What a router says about its route, and what the proxies show, where they can be asked (else None).

    The proxies decide, but for a route that its controller has not taken up as it stands now: what they show then may
    be an earlier version that looks the same.
    """
    if seen is None:
        return said
    if said.proof in (Proof.PENDING, Proof.REJECTED):
        return said._replace(in_flight=seen.in_flight)
    return seen
