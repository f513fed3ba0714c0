"""HTTPProxy, Contour's own kind.

Its weights are shares. All of them 0 means the same share for each, and a single service gets everything whatever its
weight: neither is written here. `Valid` with the current generation says that Contour has computed it, not that an
Envoy has it.
"""

# ruff: noqa: ARG002 - a router gets all there is, and uses what it needs

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube import Resource
from pilotage.traffic.contract import Backend, Programming, RouteStatus
from pilotage.traffic.routers.base import Router, at, checked, entries, is_current, metadata, whole_number

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pilotage.api.endpoint import Route
    from pilotage.kube import Json

IDLE = "1h"
"""A model may think for minutes between two pieces of an answer; a stream that is silent for an hour has lost its
client, and would hold up every drain."""


class HttpProxyRouter(Router):
    """See the module."""

    kind = "HTTPProxy"
    resource = Resource("projectcontour.io", "v1", "httpproxies", "HTTPProxy")
    weighted = True

    def problems(self, route: Route) -> list[str]:
        """See `Router`."""
        found = []
        if not route.host:
            found.append("route.host is missing, and an HTTPProxy needs one: set it to the name that clients use.")
        if route.gateway:
            found.append("route.gateway is set, and an HTTPProxy has none: remove it, or choose route.kind HTTPRoute.")
        return found

    def body(
        self,
        namespace: str,
        name: str,
        labels: Mapping[str, str],
        route: Route,
        backends: Sequence[Backend],
        models: Sequence[str] = (),
    ) -> Json:
        """See `Router`."""
        virtual_host: Json = {"fqdn": route.host}
        if route.tls:
            virtual_host["tls"] = {"secretName": route.tls.name}
        services = [{"name": each.service, "port": each.port, "weight": each.weight} for each in checked(backends)]
        rule = {
            "conditions": [{"prefix": route.path}],
            "services": services,
            "timeoutPolicy": {"response": "infinity", "idle": IDLE},
        }
        spec: Json = {"virtualhost": virtual_host, "routes": [rule]}
        if route.class_name:
            spec["ingressClassName"] = route.class_name
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": metadata(namespace, name, labels),
            "spec": spec,
        }

    def backends(self, obj: Json) -> list[Backend]:
        """See `Router`; those that only get a copy of the requests are none."""
        return [
            Backend(each["name"], whole_number(each.get("port"), 0), whole_number(each.get("weight"), 0))
            for rule in entries(obj, "spec", "routes")
            for each in entries(rule, "services")
            if isinstance(each.get("name"), str) and not each.get("mirror")
        ]

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:
        """See `Router`."""
        valid = [each for each in entries(obj, "status", "conditions") if each.get("type") == "Valid"]
        current = [each for each in valid if is_current(each, obj)]
        if not current:
            return RouteStatus(Programming.PENDING, text="Contour has not taken it up yet")
        if current[0].get("status") == "True":
            return RouteStatus(Programming.ACCEPTED, text=str(current[0].get("message") or "Valid HTTPProxy"))
        return RouteStatus(Programming.REJECTED, text=_reason(obj, current[0]))


def _reason(obj: Json, condition: Json) -> str:
    """Contour's own words, with each error in them once."""
    errors = [str(each.get("message") or each.get("reason")) for each in entries(condition, "errors")]
    words = [str(at(obj, "status", "description") or condition.get("message") or condition.get("reason"))]
    return "; ".join([*words, *(each for each in errors if each not in words[0])])


ROUTER = HttpProxyRouter()
