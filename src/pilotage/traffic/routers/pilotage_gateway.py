"""PilotageGateway: a GatewayRoute, for the gateway that Pilotage runs itself.

The gateway writes into its status what Envoy has acknowledged, and how many requests are in flight to Services at
weight 0. So it is the one route that is proven by its own status. It counts after Envoy has the weight 0, and from then
on a count only falls: one that is read late is too high, and never too low.
"""

from collections.abc import Collection
from urllib.parse import urlsplit

from pilotage.api.cel_rules import GATEWAY_HOST, GATEWAY_HOST_MESSAGE
from pilotage.api.names import CONFLICTED, GATEWAY_ROUTES
from pilotage.kube import Json
from pilotage.runtime.conditions import find_condition
from pilotage.teardown.snapshot.fields import dig, entries, number
from pilotage.traffic.contract import Backend, Mix, Programming, RouteStatus
from pilotage.traffic.routers.base import Capability, Router, RouteRequest, UrlRequest, checked, with_api_path


class PilotageGatewayRouter(Router):
    """Router of GatewayRoutes."""

    kind = "PilotageGateway"
    resource = GATEWAY_ROUTES
    can = frozenset({Capability.WEIGHTS})
    proves = True
    reaches_hosts = True
    fields = ("host",)
    rules = ((f"!has(self.host) || {GATEWAY_HOST}", GATEWAY_HOST_MESSAGE),)

    def manifest(self, request: RouteRequest) -> Json:
        """The GatewayRoute. The name of the endpoint is always one of the models."""
        spec: Json = {
            "endpoint": request.name,
            "models": list(dict.fromkeys((request.name, *request.models))),
            "path": request.route.path,
            "backends": [
                {"service": each.service, "port": each.port, "weight": each.weight}
                for each in checked(request.mix).backends
            ],
        }
        if request.route.host:
            spec["host"] = request.route.host
        return self.written(request, spec)

    def mix(self, obj: Json) -> Mix:
        """The backends of its spec."""
        return Mix(
            tuple(
                Backend(each["service"], number(each, "port", default=80), number(each, "weight", default=100))
                for each in entries(obj, "spec", "backends")
                if isinstance(each.get("service"), str)
            )
        )

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:
        """Status as the gateway has written it."""
        said = dig(obj, "status", "state")
        observed = dig(obj, "status", "observedGeneration")
        message = dig(obj, "status", "message")
        if observed is None or said is None:
            return RouteStatus(Programming.PENDING, text="`pilotage gateway` has not accepted the route yet")
        if observed != dig(obj, "metadata", "generation"):
            return RouteStatus(Programming.PENDING, text="`pilotage gateway` has not accepted the last change yet")
        if said == "Rejected":
            return RouteStatus(Programming.REJECTED, text=str(message or "Envoy does not say why"))
        if said != "Programmed":
            return RouteStatus(Programming.PENDING, text=str(message or "Envoy has not acknowledged it yet"))
        version = dig(obj, "status", "version")
        text = f"acknowledged by Envoy{f' as version {version}' if version else ''}"
        return RouteStatus(Programming.PROGRAMMED, self._in_flight(obj, counted), text, _conflict(obj))

    def url(self, request: UrlRequest) -> str | None:
        """URL of the host; without a host of its own, or with a conflict, of a path that no other endpoint can have."""
        if not request.gateway_url:
            return None
        gateway, host = urlsplit(request.gateway_url), request.route.host
        if not host or host.startswith("*") or request.conflict:
            return with_api_path(request.gateway_url.rstrip("/"), f"/endpoints/{request.namespace}/{request.name}")
        port = f":{gateway.port}" if gateway.port else ""
        return with_api_path(f"{gateway.scheme}://{host}{port}", request.route.path)

    def _in_flight(self, obj: Json, counted: Collection[str]) -> dict[str, int]:
        """Requests in flight to these, without those that the route names and that were not counted.

        A service that has left the route and has no count has no requests in flight.
        """
        counts = {each.get("service"): number(each, "inFlight") for each in entries(obj, "status", "counts")}
        named = self.mix(obj).services
        return {each: counts.get(each, 0) for each in counted if each in counts or each not in named}


def _conflict(obj: Json) -> str:
    condition = find_condition(entries(obj, "status", "conditions"), CONFLICTED)
    return str(condition.get("message", "")) if condition is not None and condition.get("status") == "True" else ""


ROUTER = PilotageGatewayRouter()
