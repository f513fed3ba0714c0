"""HTTPProxy, Contour's own kind.

Its weights are shares. All of them 0 means the same share for each, and a single service gets everything whatever its
weight: neither is written here. `Valid` with the current generation says that Contour has accepted it, not that an
Envoy has it.
"""

from collections.abc import Collection

from pilotage.kube import Json, Resource
from pilotage.teardown.snapshot.fields import dig, entries, number
from pilotage.traffic.contract import Backend, Programming, RouteStatus
from pilotage.traffic.routers.base import Router, RouteRequest, is_current, references

HTTP_PROXIES = Resource("projectcontour.io", "v1", "httpproxies", "HTTPProxy")

IDLE = "1h"
"""A model may pause for minutes within an answer. A stream that is silent for an hour has lost its client, and would
hold up every drain."""


class HttpProxyRouter(Router):
    """Router of HTTPProxies."""

    kind = "HTTPProxy"
    resource = HTTP_PROXIES
    weighted = True
    fields = ("host", "className", "tls")
    needs = ("host",)

    def manifest(self, request: RouteRequest) -> Json:
        """The HTTPProxy."""
        route = request.route
        virtual_host: Json = {"fqdn": route.host}
        if route.tls:
            virtual_host["tls"] = {"secretName": route.tls.name}
        rule = {
            "conditions": [{"prefix": route.path}],
            "services": references(request.backends),
            "timeoutPolicy": {"response": "infinity", "idle": IDLE},
        }
        spec: Json = {"virtualhost": virtual_host, "routes": [rule]}
        if route.class_name:
            spec["ingressClassName"] = route.class_name
        return self.written(request, spec)

    def backends(self, obj: Json) -> list[Backend]:
        """The services of all routes. Mirrors, which get a copy of the requests, are none."""
        return [
            Backend(each["name"], number(each, "port"), number(each, "weight"))
            for rule in entries(obj, "spec", "routes")
            for each in entries(rule, "services")
            if isinstance(each.get("name"), str) and not each.get("mirror")
        ]

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:  # noqa: ARG002 - it counts nothing
        """Status from the condition `Valid`."""
        valid = [each for each in entries(obj, "status", "conditions") if each.get("type") == "Valid"]
        current = [each for each in valid if is_current(each, obj)]
        if not current:
            return RouteStatus(Programming.PENDING, text="Contour has not accepted it yet")
        if current[0].get("status") == "True":
            return RouteStatus(Programming.ACCEPTED, text=str(current[0].get("message") or "Valid HTTPProxy"))
        return RouteStatus(Programming.REJECTED, text=_reason(obj, current[0]))


def _reason(obj: Json, condition: Json) -> str:
    """The message of Contour, with each error once."""
    errors = [str(each.get("message") or each.get("reason")) for each in entries(condition, "errors")]
    words = [str(dig(obj, "status", "description") or condition.get("message") or condition.get("reason"))]
    return "; ".join([*words, *(each for each in errors if each not in words[0])])


ROUTER = HttpProxyRouter()
