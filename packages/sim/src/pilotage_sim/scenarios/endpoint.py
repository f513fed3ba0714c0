"""An endpoint's whole life, with the operator as the process that things go wrong for: deployed, redeployed, deleted.

Whatever goes wrong, each revision comes to serve, the route never leads to something that is on its way out, what is
superseded goes, and in the end nothing is left but the records, each with a receipt.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ClassVar

import msgspec

from pilotage.api.names import ENDPOINTS, LABEL_ENDPOINT_UID, TEARDOWNS
from pilotage.controllers.caches import MADE_BY_US, MADE_FROM_OURS
from pilotage.controllers.wiring import NoProxyObserver, Options, add_endpoints
from pilotage.kube import ObjectKey, Propagation, Resource, merge_patch
from pilotage.operator.crds import crds
from pilotage.runtime.manager import Manager
from pilotage.serving.resources import DEPLOYMENTS, SERVICES
from pilotage.traffic.routers.ingress import INGRESSES
from pilotage_sim import models
from pilotage_sim.scenario import Scenario
from pilotage_sim.scenarios.teardown_oracles import History, nothing_early

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.kube import Client, Json
    from pilotage_harbor.storage.store import Event
    from pilotage_sim.process import Main
    from pilotage_sim.world import SimulatedWorld

SUBJECT = "subject"
KEY = ObjectKey("default", "chat")
DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_our_kinds = functools.cache(crds)

STEP_SECONDS_MAX = 2000.0
"""A refusal that only a person can lift is looked at again after five minutes, and several may come in a row."""
SETTLED_SECONDS = 60.0


class EndpointLife(Scenario):
    """The life of an endpoint behind an Ingress, of which nobody can tell what proxies have."""

    lies = False  # an Absent is what a teardown takes for a proof, so it has to be true
    route: ClassVar[Json] = {"kind": "Ingress", "host": "chat.example.com"}
    drain_seconds: ClassVar[int] = 2

    def __init__(self, world: SimulatedWorld) -> None:
        super().__init__(world)
        self.early: list[str] = []
        self._routed: set[str] = set()
        """The Services that get requests."""

    def processes(self) -> Mapping[str, Main]:
        """The operator."""
        return {SUBJECT: self.operate}

    async def operate(self, client: Client) -> None:
        """The program under test."""
        manager = Manager(client, name="operator", seed=1)
        add_endpoints(
            manager,
            Options(
                NoProxyObserver(), server="sim", fetch_image="pilotage", gateway_url="http://gateway", key=b"simulated"
            ),
        )
        await manager.run()

    async def prepare(self) -> None:
        """A cluster with our kinds."""
        self.history = History(self.world)
        self.world.core.store.listen_to_all(self._watch_the_route)
        self.others = self.world.client("others")
        for crd in _our_kinds():
            await self.others.create(DEFINITIONS, crd)
        await self.others.create(NAMESPACES, {"metadata": {"name": "pilotage-system"}})
        cluster = models.run_all(self.world.client("models"), seed=1, leave_out=frozenset({"hpa", "job", "namespaces"}))
        self.world.live(cluster, "models")
        await self.world.settle(1.0)

    async def play(self) -> None:
        """A person deploys, redeploys and deletes."""
        spec: Json = {
            "model": {"source": "pvc://weights/model.gguf"},
            "route": self.route,
            "deletion": {"drainSeconds": self.drain_seconds},
        }
        metadata = {"namespace": KEY.namespace, "name": KEY.name}
        await self.others.create(ENDPOINTS, {"metadata": metadata, "spec": spec})
        await self.world.until(lambda: self._serves("chat-1"), STEP_SECONDS_MAX)
        await self.others.patch(ENDPOINTS, KEY, merge_patch({"spec": {"runtime": {"args": ["--verbose"]}}}))
        await self.world.until(lambda: self._serves("chat-2") and not self._parts("chat-1"), STEP_SECONDS_MAX)
        found = await self.others.get(ENDPOINTS, KEY)
        await self.others.delete(ENDPOINTS, KEY, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
        await self.world.until(lambda: self.world.find(ENDPOINTS, KEY) is None, STEP_SECONDS_MAX)
        await self.after_faults(0.0)
        await self.world.settle(SETTLED_SECONDS)

    def _serves(self, revision: str) -> bool:
        found = self.world.find(ENDPOINTS, KEY) or {}
        status = found.get("status", {})
        return bool(status.get("phase") == "Serving" and status.get("revision") == revision)

    def _parts(self, prefix: str = "") -> list[str]:
        return [
            f"{resource.kind.lower()}/{obj['metadata']['name']}"
            for resource in (*MADE_BY_US, *MADE_FROM_OURS)
            for obj in self.world.objects(resource)
            if LABEL_ENDPOINT_UID in obj["metadata"].get("labels", {}) and obj["metadata"]["name"].startswith(prefix)
        ]

    def _watch_the_route(self, event: Event) -> None:
        """The backends of the route must exist, and must not be terminating."""
        entry = event.entry
        if (routed := self._destinations(event)) is not None:
            self._routed = routed
        elif event.storage in (f"{DEPLOYMENTS.plural}.{DEPLOYMENTS.group}", SERVICES.plural):
            leaving = event.type == "DELETED" or b'"deletionTimestamp"' in entry.raw
            if leaving and entry.name in self._routed:
                self.early.append(f"{event.storage} {entry.name} went while the route led to it")

    def _destinations(self, event: Event) -> set[str] | None:
        """The Services that the route sends requests to from now on; None: it is not about the route."""
        if event.storage != f"{INGRESSES.plural}.{INGRESSES.group}":
            return None
        rules = msgspec.json.decode(event.entry.raw)["spec"]["rules"] if event.type != "DELETED" else []
        return {rules[0]["http"]["paths"][0]["backend"]["service"]["name"]} if rules else set()

    def problems(self) -> list[str]:
        """All oracles."""
        found = [f"{part} is left" for part in self._parts()] + self.early
        records = self.world.objects(TEARDOWNS)
        reasons = [record["spec"]["reason"] for record in records]
        for record in records:
            result = record.get("status", {}).get("receipt", {}).get("result")
            if result != "complete":
                found.append(f"teardown/{record['metadata']['name']} has no complete receipt, but {result}")
        found += [
            f"there is no record of what was {reason}" for reason in ("Superseded", "Deleted") if reason not in reasons
        ]
        for name in ("chat-1", "chat-2"):
            bundle = {made.uid for made in self.history.made.values() if made.name == name}
            if name == "chat-2":
                bundle |= {made.uid for made in self.history.made.values() if made.name == "chat"}
            bundle |= {below for uid in bundle for below in self.history.below(uid)}
            found += nothing_early(self.world.trace, self.history, SUBJECT, sorted(bundle))
        return found
