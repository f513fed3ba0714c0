"""HTTPRoute of the Gateway API.

Its weights are shares, 1 where none is given. All of them 0 means an error for every request: that is not written
here. A route has a status for each Gateway; `Accepted` and `ResolvedRefs` with the current generation say that the
controller has accepted it, and nothing says that a proxy has it.
"""

from collections.abc import Collection

from pilotage.kube import Json, Resource
from pilotage.teardown.snapshot.fields import dig, entries, number
from pilotage.traffic.contract import Backend, Programming, RouteStatus
from pilotage.traffic.routers.base import Router, RouteRequest, is_current, references

HTTP_ROUTES = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")

NEEDED = ("Accepted", "ResolvedRefs")
REFUSED = {"Accepted": "False", "ResolvedRefs": "False", "PartiallyInvalid": "True", "ValidBackendRefs": "False"}
"""Conditions, and the status that means a refusal. The last is Contour's own."""


class HttpRouteRouter(Router):
    """Router of HTTPRoutes."""

    kind = "HTTPRoute"
    resource = HTTP_ROUTES
    weighted = True
    fields = ("host", "gateway")
    needs = ("gateway",)

    def manifest(self, request: RouteRequest) -> Json:
        """The HTTPRoute."""
        route = request.route
        if route.gateway is None:
            raise ValueError(f"{request.namespace}/{request.name}: an HTTPRoute without a Gateway")
        rule = {
            "matches": [{"path": {"type": "PathPrefix", "value": route.path}}],
            "backendRefs": references(request.backends),
            "timeouts": {"request": "0s", "backendRequest": "0s"},  # none: an answer takes as long as it takes
        }
        spec: Json = {"parentRefs": [route.gateway.written()], "rules": [rule]}
        if route.host:
            spec["hostnames"] = [route.host]
        return self.written(request, spec)

    def plain(self, manifest: Json) -> Json:
        """The HTTPRoute. Without timeouts, new in Gateway API 1.2: those of the Gateway then end long answers."""
        rules = [
            {name: value for name, value in each.items() if name != "timeouts"} for each in manifest["spec"]["rules"]
        ]
        return manifest | {"spec": manifest["spec"] | {"rules": rules}}

    def backends(self, obj: Json) -> list[Backend]:
        """The Services of all rules. Any other reference is left out, and removed by the next write."""
        home = dig(obj, "metadata", "namespace")
        return [
            Backend(each["name"], number(each, "port"), number(each, "weight", default=1))
            for rule in entries(obj, "spec", "rules")
            for each in entries(rule, "backendRefs")
            if isinstance(each.get("name"), str)
            and each.get("kind", "Service") == "Service"
            and each.get("namespace", home) == home
        ]

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:  # noqa: ARG002 - it counts nothing
        """Status from the conditions of its parents. Every controller with a status in it has to accept it."""
        parents = entries(obj, "status", "parents")
        if not parents:
            return RouteStatus(Programming.PENDING, text="the controller of the Gateway has not accepted it yet")
        waiting: list[str] = []
        for parent in parents:
            who = str(parent.get("controllerName"))
            current = {each.get("type"): each for each in entries(parent, "conditions") if is_current(each, obj)}
            said = {kind: each.get("status") for kind, each in current.items()}
            wrong = [_reason(current[kind]) for kind, bad in REFUSED.items() if said.get(kind) == bad]
            if wrong:
                return RouteStatus(Programming.REJECTED, text=f"{who}: {'; '.join(wrong)}")
            if any(said.get(kind) != "True" for kind in NEEDED):
                waiting.append(who)
        if waiting:
            return RouteStatus(Programming.PENDING, text=f"{', '.join(waiting)} has not accepted it yet")
        return RouteStatus(
            Programming.ACCEPTED, text=f"accepted by {', '.join(str(each.get('controllerName')) for each in parents)}"
        )


def _reason(condition: Json) -> str:
    return f"{condition.get('reason')}: {condition.get('message')}"


ROUTER = HttpRouteRouter()
