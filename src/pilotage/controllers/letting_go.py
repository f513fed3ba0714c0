"""How a GatewayRoute goes: the gateway lets go of it first, and says so in its status, which is lost with the object.

So before it is deleted, all its weights become 0. When Envoy has acknowledged that, and what is under way has ended or
had its time, the route is deleted, and nothing has to be waited for any more. A route that no gateway has ever taken up
is in no Envoy. One that somebody else deletes is proven by nobody: then time decides, as with other routes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pilotage.api.names import GATEWAY_ROUTES
from pilotage.kube import Absent, Foreign, merge_patch
from pilotage.runtime.clock import monotonic
from pilotage.traffic.contract import Programming
from pilotage.traffic.drain import DrainLimits, cut_short, undrained
from pilotage.traffic.routers.pilotage_gateway import ROUTER

if TYPE_CHECKING:
    from collections.abc import Collection

    from pilotage.controllers.caches import Caches
    from pilotage.kube import Client, Object
    from pilotage.teardown.planning.ledger import Entry

REJECTED_SECONDS = 5.0
PENDING_SECONDS = 2.0


class Held(NamedTuple):
    """Why a route is not deleted yet."""

    text: str
    again: float
    """After how many seconds to look, though nothing may have happened."""
    draining: bool
    """Nobody new is sent any more; what is under way ends."""


class LettingGo:
    """Of the GatewayRoutes of one teardown. It remembers since when each was let go; who forgets that waits longer."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self._since: dict[str, float] = {}
        self.proven: set[str] = set()
        """The uids of those of which Envoy has let go, and nothing was under way any more, or had its time."""
        self.notes: list[str] = []

    async def held(self, entry: Entry, services: Collection[str], drain_seconds: float) -> Held | None:
        """Why a route must not be deleted yet; None: it may. An ApiError if it cannot be read or changed.

        `services`: those that go with it, whose requests are waited for.
        """
        route = await self._detached(entry)
        if route is None or route.get("status", "observedGeneration") is None:
            return None
        status = ROUTER.status(route.to_dict(), services)
        if status.programming is not Programming.PROGRAMMED:
            self._since.pop(entry.uid, None)
            if status.programming is Programming.REJECTED:
                return Held(f"the gateway refuses to let go of it: {status.text}", REJECTED_SECONDS, draining=False)
            return Held(status.text, PENDING_SECONDS, draining=False)
        since = monotonic() - self._since.setdefault(entry.uid, monotonic())
        wait = undrained(status.in_flight, since, DrainLimits(drain_seconds))
        if wait is not None:
            return Held(wait.countdown, min(wait.seconds, PENDING_SECONDS), draining=True)
        if note := cut_short(status.in_flight):
            self.notes.append(note)
        self.proven.add(entry.uid)
        return None

    async def _detached(self, entry: Entry) -> Object | None:
        """The route with all weights 0; None if it is gone, or going: then it is not ours to change."""
        try:
            found = self._caches.get(GATEWAY_ROUTES, entry.key) or await self._client.get(GATEWAY_ROUTES, entry.key)
            if found.meta.uid != entry.uid or found.meta.terminating:
                return None
            shares = ROUTER.backends(found.to_dict())
            if found.get("status", "observedGeneration") is None or not any(each.weight for each in shares):
                return found
            backends = [{"service": each.service, "port": each.port, "weight": 0} for each in shares]
            patch = merge_patch({"metadata": {"uid": entry.uid}, "spec": {"backends": backends}})
            return await self._client.patch(GATEWAY_ROUTES, entry.key, patch)
        except (Absent, Foreign):
            return None
