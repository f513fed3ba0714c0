"""Invariants of an endpoint's traffic, in every state of a story: whatever a proxy may send requests to can answer.

A proxy has the version of the route that the gateway acknowledged last, or any later one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pilotage.api.names import GATEWAY_ROUTES
from pilotage.serving.resources import DEPLOYMENTS, SERVICES, SLICES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage.kube import Json
    from pilotage_harbor.storage.store import Event
    from pilotage_sim.world import SimulatedWorld

_ROUTES = f"{GATEWAY_ROUTES.plural}.{GATEWAY_ROUTES.group}"
_DEPLOYMENTS = f"{DEPLOYMENTS.plural}.{DEPLOYMENTS.group}"
_SLICES = f"{SLICES.plural}.{SLICES.group}"
_SERVICE_NAME = "kubernetes.io/service-name"


def shares(spec: Json) -> dict[str, int]:
    """The percentage of requests or copies, in the branch where it has most, of each Service that a route names."""
    found: dict[str, int] = {}
    for each in (*_backends(spec), *spec.get("copies", ()), *spec.get("revisions", ())):
        share = each.get("weight", each.get("percent", 0))
        found[each["service"]] = max(found.get(each["service"], 0), share)
    return found


def _backends(spec: Json) -> Iterable[Json]:
    return (each for part in (spec, *spec.get("branches", ())) for each in part["backends"])


class WatchedTraffic:
    """The route of an endpoint and what is behind it, checked after each write. `problems` has the sentences."""

    def __init__(self, world: SimulatedWorld, replicas: int) -> None:
        self.problems: list[str] = []
        self.programmed: dict[str, int] = {}
        """Shares as the gateway has acknowledged them last."""
        self._replicas = replicas
        """Number of replicas that all requests need."""
        self._versions: dict[int, dict[str, int]] = {}
        """Shares of each version of the route that a proxy may have, by generation."""
        self._services: set[str] = set()
        self._addresses: dict[str, str] = {}
        """The Services of slices with an address that is ready, by the names of the slices."""
        self._sizes: dict[str, int] = {}
        world.core.store.listen_to_all(self._happened)

    def share(self, service: str) -> int:
        """The most that a proxy may send to a Service."""
        return max((each.get(service, 0) for each in self._versions.values()), default=0)

    @property
    def named(self) -> set[str]:
        """The Services that a proxy may send something to."""
        return {service for each in self._versions.values() for service in each}

    def _happened(self, event: Event) -> None:
        there = event.type != "DELETED"
        name = event.entry.name
        if event.storage == _ROUTES:
            self._route(msgspec.json.decode(event.entry.raw), there=there)
        elif event.storage == _DEPLOYMENTS:
            self._sizes[name] = msgspec.json.decode(event.entry.raw)["spec"]["replicas"] if there else 0
        elif event.storage == SERVICES.plural:
            (self._services.add if there else self._services.discard)(name)
        elif event.storage == _SLICES:
            self._slice(msgspec.json.decode(event.entry.raw), there=there)
        else:
            return
        self._check()

    def _route(self, route: Json, *, there: bool) -> None:
        spec, generation = route["spec"], route["metadata"]["generation"]
        if not there:
            self._versions = {}
            return
        self._versions[generation] = shares(spec)
        observed = route.get("status", {}).get("observedGeneration", 0)
        self._versions = {each: mix for each, mix in self._versions.items() if each >= observed}
        self.programmed = self._versions.get(observed, self.programmed)
        for part in (spec, *spec.get("branches", ())):
            total = sum(each["weight"] for each in part["backends"])
            if total != 100 and not (total == 0 and self._is_detached(spec)):
                self._tell(f"the weights are {part['backends']}")

    @staticmethod
    def _is_detached(spec: Json) -> bool:
        """Whether nothing gets requests: the endpoint is on its way out."""
        return not any(shares(spec).values())

    def _slice(self, found: Json, *, there: bool) -> None:
        ready = any(each.get("conditions", {}).get("ready") for each in found.get("endpoints") or ())
        name = found["metadata"]["name"]
        if there and ready:
            self._addresses[name] = found["metadata"]["labels"][_SERVICE_NAME]
        else:
            self._addresses.pop(name, None)

    def _check(self) -> None:
        for service in self.named:
            if service not in self._services:
                self._tell(f"a proxy may send requests to {service}, which does not exist")
            elif service not in self._addresses.values():
                self._tell(f"a proxy may send requests to {service}, which has no address")
            if self._sizes.get(service, 0) * 100 < self.share(service) * self._replicas:
                self._tell(f"{service} has {self._sizes.get(service, 0)} replicas for {self.share(service)} percent")

    def _tell(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)
