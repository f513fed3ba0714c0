"""Detach and drain of a GatewayRoute before it is deleted: what the gateway says of it is lost with the object.

So before it is deleted, all its weights become 0, and its branches, copies and direct paths go. When Envoy has
acknowledged that, and what is under way has ended or had its time, the route is deleted, and nothing has to be waited
for any more. A route that no gateway has ever taken up is in no Envoy. One that somebody else deletes is proven by
nobody: then time decides, as with other routes.
"""

import datetime as dt
from collections.abc import Collection

from pilotage.api.names import GATEWAY_ROUTES
from pilotage.controllers.caches import Caches
from pilotage.kube import Absent, ApiError, Client, Foreign, Json, Object, merge_patch
from pilotage.teardown.engine.decision import Withheld
from pilotage.teardown.engine.run_state import RunState
from pilotage.teardown.planning.ledger import Entry
from pilotage.traffic.contract import Programming
from pilotage.traffic.drain import DrainLimits, cut_short, undrained
from pilotage.traffic.routers.pilotage_gateway import ROUTER

REFUSED_SECONDS = 5.0
"""Delay of a retry for a route that the gateway, or the API server, does not release."""
PENDING_SECONDS = 2.0
_OTHER_WAYS = ("branches", "copies", "revisions")
"""Lists of its spec that lead requests, or copies of them, to Services beside the weights."""


class GatewayRouteDrain:
    """Drain of the GatewayRoutes of one teardown. It remembers since when each is detached; a restart waits longer."""

    def __init__(self, client: Client, caches: Caches, state: RunState, *, leaving: bool) -> None:
        """`leaving`: the endpoint goes, and not just its route."""
        self._leaving = leaving
        self._client = client
        self._caches = caches
        self._state = state
        self._since: dict[str, dt.datetime] = {}
        self.drained: set[str] = set()
        """The uids of routes that Envoy has let go of, and whose requests have ended, or had their time."""

    async def withheld(self, entry: Entry, services: Collection[str]) -> Withheld | None:
        """Why a route must not be deleted yet; None: it may.

        `services`: those that go with it, whose requests are waited for.
        """
        try:
            route = await self._detached(entry)
        except ApiError as error:
            now = self._state.clock.now()
            return _withheld(f"it cannot be taken out of traffic: {error.message}", now, REFUSED_SECONDS)
        if route is None or route.get("status", "observedGeneration") is None:
            return None
        now = self._state.clock.now()
        status = ROUTER.status(route.to_dict(), services)
        if status.programming is not Programming.PROGRAMMED:
            self._since.pop(entry.uid, None)
            if status.programming is Programming.REJECTED:
                return _withheld(
                    f"the gateway rejects the change that takes it out of traffic: {status.text}", now, REFUSED_SECONDS
                )
            return _withheld(status.text, now, PENDING_SECONDS)
        detached = (now - self._since.setdefault(entry.uid, now)).total_seconds()
        in_flight = status.in_flight_to(services)
        wait = undrained(in_flight, detached, DrainLimits(self._state.ledger.policy.drain_seconds))
        if wait is not None:
            return _withheld(wait.countdown, now, min(wait.seconds, PENDING_SECONDS), draining=True)
        self._state.note([cut_short(in_flight)])
        self.drained.add(entry.uid)
        return None

    async def _detached(self, entry: Entry) -> Object | None:
        """The route with all weights 0; None if it is gone, or going: then it is not ours to change."""
        try:
            found = self._caches.get(GATEWAY_ROUTES, entry.key) or await self._client.get(GATEWAY_ROUTES, entry.key)
            if found.meta.uid != entry.uid or found.meta.terminating:
                return None
            shares = ROUTER.mix(found.to_dict()).backends
            others: Json = {name: [] for name in _OTHER_WAYS if found.get("spec", name)}
            if found.get("status", "observedGeneration") is None or not (others or any(each.weight for each in shares)):
                return found
            backends = [{"service": each.service, "port": each.port, "weight": 0} for each in shares]
            spec = {"backends": backends, "leaving": self._leaving, **others}
            patch = merge_patch({"metadata": {"uid": entry.uid}, "spec": spec})
            return await self._client.patch(GATEWAY_ROUTES, entry.key, patch)
        except (Absent, Foreign):
            return None


def _withheld(text: str, now: dt.datetime, seconds: float, *, draining: bool = False) -> Withheld:
    return Withheld("the gateway", text, now + dt.timedelta(seconds=seconds), draining)
