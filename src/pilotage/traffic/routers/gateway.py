"""GatewayRoute: the route of the gateway that Pilotage runs itself.

The gateway writes into its status what Envoy has acknowledged, and how many requests are under way to Services without
a share. So it is the one route that is proven by its own status. It counts after Envoy has the weight 0, and from then
on a count only falls: one that is read late is too high, and never too low.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.api.names import CONFLICTED, GATEWAY_ROUTES
from pilotage.runtime import find_condition
from pilotage.traffic.contract import Backend, Programming, RouteStatus
from pilotage.traffic.routers.base import Router, at, checked, entries, metadata, whole_number

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pilotage.api.endpoint import Route
    from pilotage.kube import Json


class GatewayRouter(Router):
    """See the module."""

    kind = "PilotageGateway"
    resource = GATEWAY_ROUTES
    weighted = True
    proves = True

    def problems(self, route: Route) -> list[str]:
        """See `Router`."""
        ignored = [("gateway", route.gateway), ("tls", route.tls), ("className", route.class_name)]
        return [
            f"route.{name} is set, and a route of kind PilotageGateway has none: remove it."
            for name, value in ignored
            if value
        ]

    def body(
        self,
        namespace: str,
        name: str,
        labels: Mapping[str, str],
        route: Route,
        backends: Sequence[Backend],
        models: Sequence[str] = (),
    ) -> Json:
        """See `Router`. The endpoint's name is always one of the models."""
        spec: Json = {
            "endpoint": name,
            "models": list(dict.fromkeys((name, *models))),
            "path": route.path,
            "backends": [
                {"service": each.service, "port": each.port, "weight": each.weight} for each in checked(backends)
            ],
        }
        if route.host:
            spec["host"] = route.host
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": metadata(namespace, name, labels),
            "spec": spec,
        }

    def backends(self, obj: Json) -> list[Backend]:
        """See `Router`."""
        return [
            Backend(each["service"], whole_number(each.get("port"), 80), whole_number(each.get("weight"), 100))
            for each in entries(obj, "spec", "backends")
            if isinstance(each.get("service"), str)
        ]

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:
        """See `Router`."""
        said = at(obj, "status", "state")
        observed = at(obj, "status", "observedGeneration")
        message = at(obj, "status", "message")
        if observed is None or said is None:
            return RouteStatus(Programming.PENDING, text="no gateway has taken it up yet; does `pilotage gateway` run?")
        if observed != at(obj, "metadata", "generation"):
            return RouteStatus(
                Programming.PENDING, text="the gateway has not taken up its last change yet; does it run?"
            )
        if said == "Rejected":
            return RouteStatus(Programming.REJECTED, text=str(message or "Envoy does not say why"))
        if said != "Programmed":
            return RouteStatus(Programming.PENDING, text=str(message or "Envoy has not acknowledged it yet"))
        version = at(obj, "status", "version")
        text = f"acknowledged by Envoy{f' as version {version}' if version else ''}"
        return RouteStatus(Programming.PROGRAMMED, self._in_flight(obj, counted), text, _conflict(obj))

    def _in_flight(self, obj: Json, counted: Collection[str]) -> int | None:
        """Requests under way to these; None where one is at weight 0 and was not counted.

        What has left the route and has no count has nothing under way.
        """
        counts = {
            each.get("service"): whole_number(each.get("inFlight"), 0) for each in entries(obj, "status", "counts")
        }
        named = {each.service for each in self.backends(obj)}
        if any(each in named and each not in counts for each in counted):
            return None
        return sum(counts.get(each, 0) for each in counted)


def _conflict(obj: Json) -> str:
    condition = find_condition(entries(obj, "status", "conditions"), CONFLICTED)
    return str(condition.get("message", "")) if condition is not None and condition.get("status") == "True" else ""


ROUTER = GatewayRouter()
