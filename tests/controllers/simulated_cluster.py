"""A simulated cluster with the operator's controllers in it: harbor, small models of a cluster, virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from pilotage.api.names import ENDPOINTS, LABEL_ENDPOINT_UID, TEARDOWNS
from pilotage.controllers.caches import MADE_BY_US, MADE_BY_US_WHERE_SERVED, MADE_FROM_OURS
from pilotage.controllers.wiring import NoProxyObserver, Options, add_endpoints
from pilotage.kube import Client, ObjectKey, Propagation, Resource, merge_patch
from pilotage.operator.crds import crds
from pilotage.runtime.manager import Manager
from pilotage.traffic.contract import ProxyObserver
from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_sim import models
from pilotage_sim.world import SimulatedWorld

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
ALL = (*MADE_BY_US, *MADE_BY_US_WHERE_SERVED, *MADE_FROM_OURS)
KEY = ObjectKey("default", "chat")
TTL_SECONDS = 900
SEAL_KEY = b"of the tests"


class SimulatedCluster:
    """Simulated cluster with the operator's controllers. `user` is a client with all rights."""

    def __init__(self, world: SimulatedWorld, observer: ProxyObserver) -> None:
        self.world = world
        self.user = world.client("user")
        self.observer = observer
        self.managers: list[Manager] = []

    async def install(self, *more: dict[str, Any]) -> None:
        for crd in (*crds(), *more):
            await self.user.create(CRDS, crd)
        for name in ("pilotage-system", "pilotage-hosts"):
            await self.user.create(NAMESPACES, {"metadata": {"name": name}})

    def operate(self, client: Client | None = None, *, key: bytes = SEAL_KEY) -> Manager:
        """Start an operator; `key` is what it seals with."""
        manager = Manager(client or self.world.client("operator"), name="operator", seed=1)
        add_endpoints(
            manager,
            Options(
                self.observer,
                server="sim",
                fetch_image="pilotage:test",
                ttl_seconds=TTL_SECONDS,
                gateway_url="http://127.0.0.1:8080",
                key=key,
            ),
        )
        self.managers.append(manager)
        self.world.live(manager.run(), "operator")
        return manager

    async def deploy(self, key: ObjectKey = KEY, **spec: Any) -> dict[str, Any]:
        body = {
            "metadata": {"namespace": key.namespace, "name": key.name},
            "spec": {"model": {"source": "hf://org/repo/model.gguf"}, **spec},
        }
        return (await self.user.create(ENDPOINTS, body)).to_dict()

    async def change(self, key: ObjectKey = KEY, **spec: Any) -> None:
        await self.user.patch(ENDPOINTS, key, merge_patch({"spec": spec}))

    async def delete(self, key: ObjectKey = KEY, propagation: Propagation = Propagation.BACKGROUND) -> None:
        found = await self.user.get(ENDPOINTS, key)
        await self.user.delete(ENDPOINTS, key, uid=found.meta.uid, propagation=propagation)

    async def delete_behind_the_operators_back(self, key: ObjectKey = KEY) -> None:
        """Remove the finalizer by hand while the operator is down, as impatient people do."""
        self.managers[-1].stop()
        await asyncio.sleep(30.0)
        await self.user.patch(ENDPOINTS, key, merge_patch({"metadata": {"finalizers": None}}))
        await self.delete(key)
        assert self.endpoint(key) is None
        self.operate()

    def refuse_pods(self, prefix: str) -> Callable[[], None]:
        """Let no pods be made whose name begins like this; returns what ends it."""
        why = f'pods "{prefix}" is forbidden: exceeded quota: gpus'

        def refuse(call: Call) -> ServerResponse | None:
            made = call.method == "POST" and call.path.endswith("/pods") and f'"{prefix}-'.encode() in call.body
            body = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": why, "code": 403}
            return ServerResponse(403, msgspec.json.encode(body)) if made else None

        return self.world.intercept(refuse)

    def endpoint(self, key: ObjectKey = KEY) -> dict[str, Any] | None:
        return self.world.find(ENDPOINTS, key)

    def status(self, key: ObjectKey = KEY) -> dict[str, Any]:
        found: dict[str, Any] = (self.endpoint(key) or {}).get("status", {})
        return found

    def condition(self, type_: str, key: ObjectKey = KEY) -> dict[str, Any]:
        return next((each for each in self.status(key).get("conditions", []) if each["type"] == type_), {})

    async def until(self, condition: Callable[[], object], limit: float = 600.0) -> None:
        await self.world.until(condition, limit)

    async def serving(self, revision: str = "chat-1", key: ObjectKey = KEY) -> None:
        await self.until(
            lambda: self.status(key).get("phase") == "Serving" and self.status(key)["revision"] == revision
        )

    async def gone(self, key: ObjectKey = KEY) -> None:
        await self.until(lambda: self.endpoint(key) is None)

    def parts(self, uid: str = "") -> list[str]:
        """Everything that is labelled as a part, of one endpoint or of all."""
        return sorted(
            f"{resource.kind}/{obj['metadata']['name']}"
            for resource in ALL
            for obj in self.world.objects(resource)
            if (label := obj["metadata"].get("labels", {}).get(LABEL_ENDPOINT_UID)) and uid in ("", label)
        )

    def records(self) -> list[dict[str, Any]]:
        return self.world.objects(TEARDOWNS)

    def writes(self, who: str = "operator") -> list[str]:
        return [
            f"{write.verb} {write.resource} {write.key}"
            for write in self.world.trace.writes
            if write.who == who and write.applied
        ]


@contextlib.asynccontextmanager
async def simulated_cluster(
    *,
    observer: ProxyObserver | None = None,
    operate: bool = True,
    crd: tuple[dict[str, Any], ...] = (),
    kind: type[SimulatedCluster] = SimulatedCluster,
) -> AsyncIterator[SimulatedCluster]:
    """A simulated cluster with an operator in it."""
    async with SimulatedWorld(1) as world:
        made = kind(world, observer or NoProxyObserver())
        await made.install(*crd)
        world.live(models.run_all(world.client("cluster"), seed=2, leave_out=frozenset({"job"})), "models")
        if operate:
            made.operate()
        yield made
