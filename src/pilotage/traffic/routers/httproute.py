"""HTTPRoute of the Gateway API.

Its weights are shares, 1 where none is given. All of them 0 means an error for every request: that is not written
here. A route has a status for each Gateway; `Accepted` and `ResolvedRefs` with the current generation say that the
controller has computed it, and nothing says that a proxy has it.
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

NEEDED = ("Accepted", "ResolvedRefs")
TROUBLE = {"Accepted": "False", "ResolvedRefs": "False", "PartiallyInvalid": "True", "ValidBackendRefs": "False"}
"""Conditions, and the status that means trouble. The last is Contour's own."""


class HttpRouteRouter(Router):
    """See the module."""

    kind = "HTTPRoute"
    resource = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
    weighted = True

    def problems(self, route: Route) -> list[str]:
        """See `Router`."""
        found = []
        if not route.gateway:
            found.append("route.gateway is missing, and an HTTPRoute needs one: name the Gateway that it attaches to.")
        if route.tls:
            found.append("route.tls is set, and an HTTPRoute has none: the Gateway's listener holds the certificate.")
        if route.class_name:
            found.append("route.className is set, and an HTTPRoute has none: its Gateway says who serves it.")
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
        if route.gateway is None:
            raise ValueError(f"{namespace}/{name}: an HTTPRoute without a Gateway")
        references = [{"name": each.service, "port": each.port, "weight": each.weight} for each in checked(backends)]
        rule = {
            "matches": [{"path": {"type": "PathPrefix", "value": route.path}}],
            "backendRefs": references,
            "timeouts": {"request": "0s", "backendRequest": "0s"},  # none: an answer takes as long as it takes
        }
        spec: Json = {"parentRefs": [route.gateway.written()], "rules": [rule]}
        if route.host:
            spec["hostnames"] = [route.host]
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": metadata(namespace, name, labels),
            "spec": spec,
        }

    def plain(self, body: Json) -> Json:
        """Without time-outs, which the Gateway API has since 1.2: the Gateway's own then end long answers."""
        rules = [{name: value for name, value in each.items() if name != "timeouts"} for each in body["spec"]["rules"]]
        return body | {"spec": body["spec"] | {"rules": rules}}

    def backends(self, obj: Json) -> list[Backend]:
        """See `Router`; what is no Service of the same namespace is left out, and goes with the next write."""
        home = at(obj, "metadata", "namespace")
        return [
            Backend(each["name"], whole_number(each.get("port"), 0), whole_number(each.get("weight"), 1))
            for rule in entries(obj, "spec", "rules")
            for each in entries(rule, "backendRefs")
            if isinstance(each.get("name"), str)
            and each.get("kind", "Service") == "Service"
            and each.get("namespace", home) == home
        ]

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:
        """See `Router`. Every controller that speaks about it has to agree."""
        parents = entries(obj, "status", "parents")
        if not parents:
            return RouteStatus(Programming.PENDING, text="no controller has taken it up yet; is there such a Gateway?")
        waiting: list[str] = []
        for parent in parents:
            who = str(parent.get("controllerName"))
            current = {each.get("type"): each for each in entries(parent, "conditions") if is_current(each, obj)}
            said = {kind: each.get("status") for kind, each in current.items()}
            wrong = [_reason(current[kind]) for kind, bad in TROUBLE.items() if said.get(kind) == bad]
            if wrong:
                return RouteStatus(Programming.REJECTED, text=f"{who}: {'; '.join(wrong)}")
            if any(said.get(kind) != "True" for kind in NEEDED):
                waiting.append(who)
        if waiting:
            return RouteStatus(Programming.PENDING, text=f"{', '.join(waiting)} has not taken it up yet")
        return RouteStatus(
            Programming.ACCEPTED, text=f"accepted by {', '.join(str(each.get('controllerName')) for each in parents)}"
        )


def _reason(condition: Json) -> str:
    return f"{condition.get('reason')}: {condition.get('message')}"


ROUTER = HttpRouteRouter()
