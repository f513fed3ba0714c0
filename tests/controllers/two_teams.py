"""Two teams on one simulated cluster: the victim's endpoint is in `default`, the attacker has `team-a`."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from pilotage.api.names import LABEL_ENDPOINT, LABEL_ENDPOINT_UID, LABEL_MANAGED_BY
from pilotage.kube import Json, ObjectKey
from pilotage.serving.resources import SERVICES
from tests.controllers.simulated_cluster import ALL, NAMESPACES, SimulatedCluster, simulated_cluster

HELD = "attacker.example/never"
WHILE = 120.0
"""Seconds after which the operator has done all that it is going to do."""
FIRST = ObjectKey("default", "chat-1")


def part_labels(uid: str, name: str = "ghost") -> dict[str, str]:
    return {LABEL_MANAGED_BY: "pilotage", LABEL_ENDPOINT: name, LABEL_ENDPOINT_UID: uid}


async def plant(
    place: SimulatedCluster, namespace: str, name: str, uid: str, *, endpoint: str = "ghost", **meta: Any
) -> None:
    """A Service with the labels of a part."""
    metadata = {"namespace": namespace, "name": name, "labels": part_labels(uid, endpoint), **meta}
    await place.user.create(SERVICES, {"metadata": metadata, "spec": {"ports": [{"port": 80}]}})


def uids(place: SimulatedCluster, namespace: str = "default") -> dict[str, str]:
    """All labelled objects of a namespace that are not on their way out."""
    return {
        f"{resource.kind}/{each['metadata']['name']}": each["metadata"]["uid"]
        for resource in ALL
        for each in place.world.objects(resource, namespace)
        if LABEL_ENDPOINT_UID in each["metadata"].get("labels", {}) and "deletionTimestamp" not in each["metadata"]
    }


def stalled(record: Json) -> Json:
    conditions = record.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] in ("Stalled", "Blocked")), {})


async def restart(place: SimulatedCluster, **options: Any) -> None:
    place.managers[-1].stop()
    await asyncio.sleep(30.0)
    place.operate(**options)
    await asyncio.sleep(WHILE)


@asynccontextmanager
async def two_teams(
    kind: Callable[[], AbstractAsyncContextManager[SimulatedCluster]] = simulated_cluster,
) -> AsyncIterator[SimulatedCluster]:
    """The victim's endpoint is in `default`; the attacker has `team-a`."""
    async with kind() as place:
        await place.user.create(NAMESPACES, {"metadata": {"name": "team-a"}})
        yield place
