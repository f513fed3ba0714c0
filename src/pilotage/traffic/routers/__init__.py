"""Routers: one file for each kind of route, found here by that kind.

Every module of this package that has a `ROUTER` is registered; `base` says what that is. A router is pure: it turns a
mix into an object, and an object into a mix and a status. It neither moves weights nor reads proxies.
"""

import pkgutil
from importlib import import_module

from pilotage.api.endpoint import EndpointSpec
from pilotage.traffic.routers.base import Capability, Router, RouteRequest, UrlRequest

_MODULES = [import_module(f"{__name__}.{each.name}") for each in pkgutil.iter_modules(__path__)]

ROUTERS: dict[str, Router] = {each.ROUTER.kind: each.ROUTER for each in _MODULES if hasattr(each, "ROUTER")}
"""Routers by kind, which is that of `spec.route.kind`."""

ROUTE_RESOURCES = tuple({each.resource: None for each in ROUTERS.values() if each.resource is not None})
"""The kinds of objects that routers write."""


def route_problems(spec: EndpointSpec) -> list[str]:
    """Why the route of an endpoint cannot work, in sentences for people; empty if it can."""
    router = ROUTERS.get(spec.route.kind)
    if router is None:
        return [f"This operator has no route.kind {spec.route.kind}: upgrade it, or choose another kind."]
    if spec.placement.kind != "Host" or router.reaches_hosts:
        return []
    others = " or ".join(each.kind for each in ROUTERS.values() if each.reaches_hosts)
    return [f"A route of kind {spec.route.kind} leads to pods; on a Host, use {others}."]


__all__ = ["ROUTERS", "ROUTE_RESOURCES", "Capability", "RouteRequest", "Router", "UrlRequest", "route_problems"]
