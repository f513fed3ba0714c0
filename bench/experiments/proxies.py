"""The routes that an Envoy has loaded, by its own account."""

from collections.abc import Iterator, Mapping
from typing import Any

import aiohttp

from field.edge import Edge

DUMP = "http://envoy/config_dump?resource="


async def contour_has_route(edge: Edge, namespace: str, service: str) -> bool:
    """Whether an Envoy of Contour gives requests to a Service."""
    return leads_to(await _dump(edge, "dynamic_route_configs"), namespace, service)


async def gateway_has_route(edge: Edge, namespace: str, service: str) -> bool:
    """Whether the Envoy of `pilotage gateway` gives requests to a Service. Its routes are parts of its scopes."""
    return leads_to(await _dump(edge, "dynamic_scoped_route_configs"), namespace, service, "_")


async def _dump(edge: Edge, resource: str) -> object:
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(edge.admin))) as session,
        session.get(f"{DUMP}{resource}") as answer,
    ):
        return await answer.json(content_type=None)


def leads_to(dump: object, namespace: str, service: str, separator: str = "/") -> bool:
    """Whether a dump of Envoy's route configurations has a route that gives requests to a Service.

    Contour calls its cluster ``namespace/service/port/hash``, and cuts the parts where that is longer than 60. Our
    gateway calls it ``namespace_service_port``.
    """
    return any(name.startswith(separator.join((namespace, service, ""))) for name in _clusters(dump))


def _clusters(node: object) -> Iterator[str]:
    """Clusters that get requests by any route; those with weight 0 get none."""
    if isinstance(node, list):
        for each in node:
            yield from _clusters(each)
    elif isinstance(node, Mapping):
        if isinstance(node.get("cluster"), str):
            yield node["cluster"]
        weighted: Mapping[str, Any] = node.get("weighted_clusters", {})
        yield from (each["name"] for each in weighted.get("clusters", ()) if each.get("weight"))
        for each in node.values():
            yield from _clusters(each)
