"""Who gets a name that two GatewayRoutes want: the one that was there first. Pure.

A model, a host with a path, and the NAME in ``/endpoints/NAME`` each lead to one route. The path with the namespace in
it, ``/endpoints/NAMESPACE/NAME``, is only contested by routes of one namespace that say the same endpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage.gateway.inputs import Route


class Claim(NamedTuple):
    """What leads to one route."""

    route: Route
    models: tuple[str, ...]
    prefixes: tuple[str, ...]
    """Below which paths; the longest first."""
    host: str
    """Empty: none, or another has it."""
    conflicts: tuple[str, ...]
    """What it wanted and did not get, in words."""


def claims(routes: Iterable[Route]) -> list[Claim]:
    """One for each route, the oldest first."""
    taken: dict[tuple[str, str], Route] = {}

    def take(kind: str, name: str, route: Route) -> str:
        """Why not; empty where it is its own now."""
        first = taken.setdefault((kind, name), route)
        return "" if first is route else f"{kind} {name} leads to GatewayRoute {first.key}, which was there first"

    made: list[Claim] = []
    for route in sorted(routes, key=lambda each: each.age):
        models = {each: take("model", each, route) for each in route.models}
        long, short = f"/endpoints/{route.key.namespace}/{route.endpoint}", f"/endpoints/{route.endpoint}"
        paths = {each: take("path", each, route) for each in (long, short)}
        if paths[short] and not paths[long]:
            paths[short] += f" (this one is at {long})"
        host = take("host", f"{route.host}{route.path}", route) if route.host else ""
        made.append(
            Claim(
                route,
                tuple(each for each, why in models.items() if not why),
                tuple(each for each, why in paths.items() if not why),
                "" if host else route.host,
                tuple(filter(None, [*models.values(), *paths.values(), host])),
            )
        )
    return made
