"""No route: clients know the Service by themselves."""

# ruff: noqa: ARG002 - a router gets all there is, and uses what it needs

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.traffic.contract import Backend, Programming, RouteStatus
from pilotage.traffic.routers.base import Router

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pilotage.api.endpoint import Route
    from pilotage.kube import Json


class NoRouter(Router):
    """See the module."""

    kind = "None"
    resource = None
    weighted = False

    def problems(self, route: Route) -> list[str]:
        """See `Router`."""
        ignored = [name for name in ("host", "gateway", "tls") if getattr(route, name)]
        return [f"route.{name} is set, and route.kind is None: choose a kind, or remove it." for name in ignored]

    def body(
        self,
        namespace: str,
        name: str,
        labels: Mapping[str, str],
        route: Route,
        backends: Sequence[Backend],
        models: Sequence[str] = (),
    ) -> Json:
        """There is none: ValueError."""
        raise ValueError(f"{namespace}/{name} has no route")

    def backends(self, obj: Json) -> list[Backend]:
        """None."""
        return []

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:
        """Nothing is known about clients that use a Service."""
        return RouteStatus(Programming.ACCEPTED, text="there is no route; clients use the Service")


ROUTER = NoRouter()
