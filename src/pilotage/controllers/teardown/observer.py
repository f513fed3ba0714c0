"""Observer of a Teardown: the operator's caches, the proxies, and the pods that no cache has shown yet.

A watch can lag behind: a pod that it has not told of would be missed, and what the pod needs would go before it. So
once nothing that runs is known to be left, pods are listed afresh, before anything goes that they may need.
"""

import asyncio
import datetime as dt
import re
from collections.abc import Collection

from pilotage.api.names import GATEWAY_ROUTES, LABEL_ENDPOINT_UID, LABEL_REVISION
from pilotage.api.teardown import TeardownSpec
from pilotage.catalogue.phase import Phase
from pilotage.controllers.caches import Caches, Seen
from pilotage.controllers.proof import is_proven
from pilotage.controllers.seals import Identity
from pilotage.controllers.teardown.gateway_route_drain import GatewayRouteDrain
from pilotage.kube import PODS
from pilotage.serving.resources import REPLICA_SETS
from pilotage.teardown.engine.decision import Act, Decision
from pilotage.teardown.engine.observers import Observer, Reader
from pilotage.teardown.planning.ledger import Entry, Ledger
from pilotage.traffic.contract import ExpectedRoute, Programming, ProxyObserver, RouteStatus
from pilotage.traffic.drain import DrainLimits, cut_short, undrained


class CacheObserver(Observer):
    """Observes with caches that all teardowns share; what they do not show is read."""

    def __init__(
        self,
        reader: Reader,
        caches: Caches,
        proxies: ProxyObserver,
        whose: Identity,
        *,
        pods: str,
        leaving: bool = False,
    ) -> None:
        """`pods`: the label selector of all that runs for the target; empty: nothing. `leaving`: all of it goes."""
        super().__init__(reader)
        self._client = reader.client
        self._caches = caches
        self._proxies = proxies
        self._whose = whose
        self._pods = pods
        self._pods_listed = not pods
        """Whether a list of pods has shown none that is unknown."""
        self.uncached: list[Seen] = []
        """Pods, and what makes them, that have to be in the ledger before it goes on."""
        self._gateway_routes = GatewayRouteDrain(reader.client, caches, reader.state, leaving=leaving)
        self._route_status: RouteStatus | None = None
        self._detached_at: dt.datetime | None = None
        self._drained = False
        self.awaits_proxies = False
        """Whether it waits for what only the proxies will show."""
        self.is_blind = False
        """Whether something is there that no cache shows, so that nothing tells when it goes."""

    async def look(self) -> None:
        """Compare all entries with the caches, and read those that no cache shows.

        They may be too new for it, or gone; or they have lost the label that the cache selects by, and are there.
        """
        state = self.state
        self.uncached = []
        unread = []
        for entry in state.ledger.entries:
            state.withhold(entry, None)  # the gateway may have let go of it meanwhile
            if state.is_over(entry):
                continue
            found = self._caches.get(entry.resource, entry.key)
            if found is not None and found.meta.uid == entry.uid:
                state.see(found)
            else:
                unread.append(entry)
        await asyncio.gather(*map(self.reader.read, unread))
        self.is_blind = any(not state.is_over(entry) for entry in unread)

    # Before acting

    async def admit(self, decision: Decision) -> bool:
        """Refuse while there are pods that no cache has shown; and admit GatewayRoutes only when they are drained."""
        if not self._pods_listed and self._leaves_what_runs(decision):
            self.uncached = await self._uncached_pods()
            self._pods_listed = not self.uncached
            if self.uncached:
                return False
        services = self._services()
        for act, entry in decision.actions:
            if act is Act.DELETE and entry.resource == GATEWAY_ROUTES:
                self.state.withhold(entry, await self._gateway_routes.withheld(entry, services))
        return True

    def _leaves_what_runs(self, decision: Decision) -> bool:
        """Whether nothing that runs is known to be left, and what it may have needed is about to go, or has gone."""
        going = self.state.ledger.going
        if any(entry.phase is Phase.STOP and not self.state.is_over(entry) for entry in going):
            return False
        if decision.finished:
            return any(entry.phase >= Phase.STOP for entry in going)
        return any(action.entry.phase > Phase.STOP for action in decision.actions)

    async def _uncached_pods(self) -> list[Seen]:
        """Pods, and ReplicaSets that make them, that are not in the ledger. An ApiError if they cannot be read.

        They are proven parts, or owned by what goes already.
        """
        known, whose = self.state.entries, self._whose
        kinds = (REPLICA_SETS, PODS)
        pages = await asyncio.gather(
            *(self._client.list(each, whose.namespace, labels=self._pods, metadata_only=True) for each in kinds)
        )
        return [
            Seen(resource, obj, False)
            for resource, page in zip(kinds, pages, strict=True)
            for obj in page.items
            if obj.meta.uid not in known
            and (
                any(owner.uid in known for owner in obj.meta.owner_references)
                or await is_proven(self._client, self._caches, whose, resource, obj)
            )
        ]

    # Routes that are gone, and the proxies

    async def settle(self) -> None:
        """Ask the proxies about routes that are gone, as long as something waits for that."""
        state, routes = self.state, self._routes
        for uid in self._gateway_routes.drained:
            if state.is_over(state.entries[uid]):
                state.settle(state.entries[uid], True)
        self.awaits_proxies = False
        if not routes or not all(map(state.is_over, routes)):
            return
        waiting = any(not state.is_over(entry) for entry in state.ledger.going if entry.phase > Phase.DETACH)
        settled, text = await self._settled() if waiting else (True, "")
        self.awaits_proxies = settled is False
        for entry in routes:
            state.settle(entry, settled, text)

    async def _settled(self) -> tuple[bool | None, str]:
        """Whether proxies have let go of what goes, and nothing is under way to it. None: nobody can tell."""
        if self._drained:
            return True, ""
        status = await self._ask_proxies()
        if status is None:
            return None, ""
        if status.programming is not Programming.PROGRAMMED:
            self._detached_at = None
            return False, status.text
        now = self.state.clock.now()
        self._detached_at = self._detached_at or now
        detached = (now - self._detached_at).total_seconds()
        in_flight = status.in_flight_to(self._services())
        wait = undrained(in_flight, detached, DrainLimits(self.state.ledger.policy.drain_seconds))
        if wait is not None:
            return False, wait.countdown
        self._drained = True
        self.state.note([cut_short(in_flight)])
        return True, ""

    async def verified(self) -> Collection[str]:
        """The routes that proxies were seen without."""
        routes = self._routes
        if routes and not self._is_unrouted:
            await self._ask_proxies()
        return {*self._gateway_routes.drained, *(entry.uid for entry in routes if self._is_unrouted)}

    @property
    def _is_unrouted(self) -> bool:
        return self._route_status is not None and self._route_status.programming is Programming.PROGRAMMED

    async def _ask_proxies(self) -> RouteStatus | None:
        if services := self._services():
            nothing = ExpectedRoute(self._routes[0].namespace, "", "", counted=frozenset(services))
            self._route_status = await self._proxies.observe(nothing)
        return self._route_status

    @property
    def _routes(self) -> list[Entry]:
        """Those that only a look at proxies can prove."""
        going = self.state.ledger.going
        return [entry for entry in going if entry.phase is Phase.DETACH and entry.resource != GATEWAY_ROUTES]

    def _services(self) -> set[str]:
        return {entry.name for entry in self.state.ledger.going if entry.resource.kind == "Service"}


_OF_REVISION = re.compile("[0-9]+(-step[0-9]+)?")
"""Label of the pods of a revision, or of a Job that judges it."""


def pods_of(spec: TeardownSpec, ledger: Ledger) -> str:
    """The label selector of all pods that go: those of the endpoint, or of some of its revisions; empty: none."""
    selector = f"{LABEL_ENDPOINT_UID}={spec.target.uid}"
    if spec.all_parts:
        return selector
    tails = (entry.name.removeprefix(f"{spec.target.name}-") for entry in ledger.going)
    revisions = sorted({tail for tail in tails if _OF_REVISION.fullmatch(tail)})
    return f"{selector},{LABEL_REVISION} in ({','.join(revisions)})" if revisions else ""
