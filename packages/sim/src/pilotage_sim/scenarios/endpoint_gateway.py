"""The life of an endpoint behind the gateway of Pilotage: its route is deleted when it is detached and drained.

The gateway here acknowledges each version of a route a moment later, and each Service that gets no requests any more
has one under way, which ends after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec

from pilotage.api.names import GATEWAY_ROUTES
from pilotage.kube import Absent, Foreign, ObjectKey, merge_patch
from pilotage_sim.scenarios.endpoint import EndpointLife
from pilotage_sim.scenarios.traffic_oracles import shares

if TYPE_CHECKING:
    from pilotage.kube import Json
    from pilotage_harbor.storage.store import Event

ACKNOWLEDGE_SECONDS = 4.0
REQUEST_SECONDS = 8.0
"""Duration of the last request to a Service: it is under way when the answer to a slow call comes."""


class EndpointBehindGateway(EndpointLife):
    """Deployed, redeployed and deleted behind the gateway."""

    route = {"kind": "PilotageGateway"}  # noqa: RUF012 - a ClassVar of its base
    drain_seconds = 600

    async def prepare(self) -> None:
        """Prepare the endpoint, and start a gateway beside it."""
        self._idle_since: dict[str, float] = {}
        await super().prepare()
        self.world.live(self._serve(), "gateway")

    async def _serve(self) -> None:
        client = self.world.client("gateway")
        while True:
            await asyncio.sleep(ACKNOWLEDGE_SECONDS)
            for route in self.world.objects(GATEWAY_ROUTES):
                status = self._acknowledged(route)
                if any(route.get("status", {}).get(name) != value for name, value in status.items()):
                    key = ObjectKey(route["metadata"]["namespace"], route["metadata"]["name"])
                    patch = merge_patch({"metadata": {"uid": route["metadata"]["uid"]}, "status": status})
                    with contextlib.suppress(Absent, Foreign):
                        await client.patch(GATEWAY_ROUTES, key, patch, subresource="status")

    def _acknowledged(self, route: Json) -> Json:
        generation, uid = route["metadata"]["generation"], route["metadata"]["uid"]
        named = shares(route["spec"])
        for service, share in named.items():
            if share:
                self._idle_since.pop(f"{uid} {service}", None)
        counts = [
            {"service": service, "inFlight": self._in_flight(uid, service)}
            for service, share in named.items()
            if not share
        ]
        return {
            "observedGeneration": generation,
            "state": "Programmed",
            "version": str(generation),
            "counts": sorted(counts, key=lambda each: str(each["service"])),
        }

    def _in_flight(self, uid: str, service: str) -> int:
        now = asyncio.get_running_loop().time()
        since = self._idle_since.setdefault(f"{uid} {service}", now)
        return int(now - since < REQUEST_SECONDS)

    def _destinations(self, event: Event) -> set[str] | None:
        """The Services with a weight. A route that goes has to be one that sends nothing, and has nothing under way."""
        if event.storage != f"{GATEWAY_ROUTES.plural}.{GATEWAY_ROUTES.group}":
            return None
        route: Json = msgspec.json.decode(event.entry.raw)
        routed = {service for service, share in shares(route["spec"]).items() if share}
        if event.type != "DELETED":
            return routed
        status = route.get("status", {})
        if routed:
            self.early.append(f"the route went while {', '.join(sorted(routed))} got requests")
        elif status.get("observedGeneration") != route["metadata"]["generation"]:
            self.early.append("the route went before the gateway had acknowledged that it gets no requests")
        elif any(each["inFlight"] for each in status.get("counts", ())):
            self.early.append("the route went while requests were under way")
        return set()
