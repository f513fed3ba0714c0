"""What is not ours and points at something that goes: somebody's own autoscaler of our Deployment, or route to it.

It is found by what it refers to, whatever its name. It is not ours to delete: it stays, and the record names it, so
that nobody has to find out later why it points at nothing. Many teardowns in a namespace share one look at it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from pilotage.api.names import LABEL_ENDPOINT_UID
from pilotage.controllers.caches import Seen
from pilotage.kube import ApiError, KindNotServed
from pilotage.runtime.clock import monotonic
from pilotage.serving.resources import AUTOSCALERS, SCALED_OBJECTS, SERVICES
from pilotage.traffic.routers import ROUTE_RESOURCES

if TYPE_CHECKING:
    from pilotage.controllers.caches import Caches
    from pilotage.kube import Client, Resource

POINTING = (SERVICES, AUTOSCALERS, SCALED_OBJECTS, *ROUTE_RESOURCES)
"""The kinds that route to what we make, scale it or select it, and that the operator may read."""
FRESH_SECONDS = 5.0
"""For so long a look counts for other teardowns, too."""


class Look(NamedTuple):
    """What there is in a namespace besides our parts."""

    found: list[Seen]
    problems: list[str]
    """What could not be read, for the receipt."""


class Strangers:
    """See the module."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self._looks: dict[str, tuple[float, asyncio.Task[Look]]] = {}

    async def beside(self, namespace: str) -> Look:
        """All objects that might point at a part in this namespace, and are none. Raises no ApiError."""
        now = monotonic()
        self._looks = {place: look for place, look in self._looks.items() if now - look[0] < FRESH_SECONDS}
        if namespace not in self._looks:
            self._looks[namespace] = now, asyncio.create_task(self._look(namespace))
        return await asyncio.shield(self._looks[namespace][1])

    async def _look(self, namespace: str) -> Look:
        look = Look([], [])
        served = [each for each in POINTING if self._caches.serves(each)]
        await asyncio.gather(*(self._list(resource, namespace, look) for resource in served))
        return look

    async def _list(self, resource: Resource, namespace: str, look: Look) -> None:
        try:
            page = await self._client.list(resource, namespace, labels=f"!{LABEL_ENDPOINT_UID}")
        except KindNotServed:
            return
        except ApiError as error:
            look.problems.append(f"{resource.plural} were not searched for what points here: {error.message}")
        else:
            look.found.extend(Seen(resource, obj, True) for obj in page.items)
