"""Objects of our kinds, and the kinds themselves on a server, for tests."""

import asyncio
from functools import partial
from typing import Any

from pilotage.kube import AlreadyExists, Client, Json, KindNotServed, Resource
from pilotage.operator.crds import crds
from tests.support.kinds import CRDS
from tests.support.waiting import eventually

Spec = dict[str, Any]


def endpoint(name: str = "assistant", spec: Spec | None = None, **metadata: Any) -> Json:
    """An endpoint of the model `qwen`; `spec` has what else it says."""
    return {"metadata": {"name": name, **metadata}, "spec": {"model": {"name": "qwen"}, **(spec or {})}}


def model(name: str = "qwen", spec: Spec | None = None, **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}, "spec": {"source": "file:///models/a.gguf", **(spec or {})}}


def teardown(name: str = "gone", spec: Spec | None = None, **metadata: Any) -> Json:
    target = {"apiVersion": "pilotage.dev/v1alpha1", "kind": "ServingEndpoint", "namespace": "chat", "uid": "u"}
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"target": {**target, "name": "assistant"}, "reason": "Deleted", **(spec or {})},
    }


def process(name: str = "assistant-7-0", spec: Spec | None = None, **metadata: Any) -> Json:
    served = {"name": "qwen", "source": "file:///models/a.gguf"}
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"endpoint": "assistant", "service": "assistant-7", "model": served, **(spec or {})},
    }


def gateway_route(name: str = "assistant", spec: Spec | None = None, **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}, "spec": {"endpoint": name, **(spec or {})}}


def resource_of(crd: Json) -> Resource:
    """Resource that a CustomResourceDefinition serves."""
    spec = crd["spec"]
    return Resource(spec["group"], spec["versions"][0]["name"], spec["names"]["plural"], spec["names"]["kind"])


async def install(client: Client, definitions: list[Json] | None = None) -> None:
    """Make our kinds known to a server, unless they are, and wait until they are served. They stay."""
    wanted = crds() if definitions is None else definitions
    for crd in wanted:
        try:
            await client.create(CRDS, crd)
        except AlreadyExists:
            continue
    await asyncio.gather(*(eventually(partial(is_served, client, resource_of(crd))) for crd in wanted))


async def is_served(client: Client, resource: Resource) -> bool:
    """Whether objects of it can be listed."""
    try:
        await client.list(resource)
    except KindNotServed:
        return False
    return True
