"""Foreign references: objects that are not ours and point at a part that goes, such as a user's own autoscaler of it.

They are found by what they refer to, whatever their name. They are not ours to delete: they stay, and the record names
them, so that nobody has to find out later why they point at nothing. Many teardowns in a namespace share one search.
"""

import asyncio
from typing import NamedTuple

import structlog

from pilotage.api.names import LABEL_ENDPOINT_UID
from pilotage.controllers.caches import Caches, Seen
from pilotage.kube import ApiError, Client, KindNotServed, Resource
from pilotage.runtime.clock import monotonic
from pilotage.serving.resources import AUTOSCALERS, BUDGETS, SCALED_OBJECTS, SERVICES
from pilotage.traffic.routers import ROUTE_RESOURCES

_log = structlog.get_logger(__name__)

POINTING = (SERVICES, BUDGETS, AUTOSCALERS, SCALED_OBJECTS, *ROUTE_RESOURCES)
"""The kinds that route to what we make, scale, select or protect it, and that the operator may read."""
FRESH_SECONDS = 5.0
"""Time for which a search counts for other teardowns, too."""


class PossibleReferrers(NamedTuple):
    """Objects of a namespace that are no parts and may point at one."""

    objects: list[Seen]
    problems: list[str]
    """Kinds that could not be read, for the receipt."""


class ForeignReferences:
    """Searches namespaces, each at most every few seconds."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self._searches: dict[str, tuple[float, asyncio.Task[PossibleReferrers]]] = {}

    async def beside(self, namespace: str) -> PossibleReferrers:
        """All objects that might point at a part in this namespace, and are none. Raises no ApiError."""
        now = monotonic()
        self._searches = {place: each for place, each in self._searches.items() if now - each[0] < FRESH_SECONDS}
        if namespace not in self._searches:
            self._searches[namespace] = now, asyncio.create_task(self._search(namespace))
        return await asyncio.shield(self._searches[namespace][1])

    async def _search(self, namespace: str) -> PossibleReferrers:
        found = PossibleReferrers([], [])
        served = [each for each in POINTING if each is BUDGETS or self._caches.serves(each)]
        await asyncio.gather(*(self._list(resource, namespace, found) for resource in served))
        return found

    async def _list(self, resource: Resource, namespace: str, found: PossibleReferrers) -> None:
        try:
            page = await self._client.list(resource, namespace, labels=f"!{LABEL_ENDPOINT_UID}")
        except KindNotServed:
            return
        except ApiError as error:
            _log.warning("not searched for references to parts", kind=resource.kind, error=str(error))
            found.problems.append(f"{resource.plural} were not searched for what points here: {error.message}")
        else:
            found.objects.extend(Seen(resource, obj, True) for obj in page.items)
