"""What routers can prove about a route that goes, and how long they are given where they can prove nothing.

A route that no router has taken up is programmed nowhere, so there is nothing to wait for. One that has been taken up
is in a proxy, and nothing in the API says when the proxy has let go of it: that takes a bounded wait, and the receipt
says that it was one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.catalogue import Phase, known
from pilotage.teardown.snapshot.fields import dig

if TYPE_CHECKING:
    from pilotage.catalogue import KnownKind
    from pilotage.kube import Json
    from pilotage.teardown.planning.policy import Policy
    from pilotage.teardown.snapshot.world import Item, World


def settle_seconds(world: World, item: Item, policy: Policy) -> tuple[float, str]:
    """How long to wait after a route is gone, and what then is unverified; zero and nothing for what is no route."""
    kind = known(item.group_kind)
    if kind.phase is not Phase.DETACH:
        return 0.0, ""
    body = world.body(item)
    if body is not None and not _taken_up(kind, body):
        return policy.drain_seconds, ""
    seconds = policy.detach_seconds + policy.drain_seconds
    return seconds, f"no proxy was asked whether it still has the route; {policy.detach_seconds:g} s were waited"


def _taken_up(kind: KnownKind, route: Json) -> bool:
    """Whether a router has written a status on it. Kinds whose routers write none count as taken up."""
    values = (dig(route, *path.split(".")) for path in kind.route_status)
    return not kind.route_status or any(value not in (None, "", [], {}) for value in values)
