"""Entries of objects that exist: for tests of the parts that speak to an API server, which is harbor here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilotage.catalogue.phase import Phase
from pilotage.kube import Client, Object, Propagation, Resource
from pilotage.teardown.planning.ledger import Disposition, Entry
from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_sim.world import SimulatedWorld

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


async def config_map(client: Client, name: str = "one", **metadata: Any) -> Object:
    return await client.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": name, **metadata}})


def entry_of(obj: Object, resource: Resource = CONFIG_MAPS, **more: Any) -> Entry:
    defaults: dict[str, Any] = {
        "resource": resource,
        "namespace": obj.meta.namespace,
        "name": obj.meta.name,
        "uid": obj.meta.uid,
        "phase": Phase.REMOVE,
        "disposition": Disposition.DELETE,
        "reason": "named",
    }
    return Entry(**(defaults | more))


async def unmake(client: Client, obj: Object, resource: Resource = CONFIG_MAPS) -> None:
    await client.delete(resource, obj.key, uid=obj.meta.uid, propagation=Propagation.BACKGROUND)


def reference(owner: Object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": owner.meta.name, "uid": owner.meta.uid}


def unserve(world: SimulatedWorld, group: str) -> Callable[[], None]:
    """Let a group be unknown to the server, as while its API server is away; returns what ends it."""

    def answer(call: Call) -> ServerResponse | None:
        return ServerResponse(404, b"404 page not found\n") if call.path.startswith(f"/apis/{group}/") else None

    return world.intercept(answer)
