"""Ingress: one backend, no weights, and no word about what became of it.

A switch is one write. What the router makes of it, and when, is said nowhere: only a bounded wait can follow, and it is
called unverified. Where it is Contour's and its Envoys can be read, those prove it as well; the switch stays direct.
"""

# ruff: noqa: ARG002 - a router gets all there is, and uses what it needs

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube import Resource
from pilotage.traffic.contract import Backend, Programming, RouteStatus
from pilotage.traffic.routers.base import Router, at, checked, entries, metadata, whole_number

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pilotage.api.endpoint import Route
    from pilotage.kube import Json


class IngressRouter(Router):
    """See the module."""

    kind = "Ingress"
    resource = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
    weighted = False

    def problems(self, route: Route) -> list[str]:
        """See `Router`."""
        found = []
        if route.gateway:
            found.append("route.gateway is set, and an Ingress has none: remove it, or choose route.kind HTTPRoute.")
        if route.tls and not route.host:
            found.append("route.tls is set without route.host: say which host the certificate is for.")
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
        """See `Router`. ValueError for more than one backend."""
        if len(checked(backends)) > 1:
            raise ValueError(f"an Ingress has no weights for {', '.join(map(str, backends))}")
        service = {"name": backends[0].service, "port": {"number": backends[0].port}}
        rule: Json = {"http": {"paths": [{"path": route.path, "pathType": "Prefix", "backend": {"service": service}}]}}
        spec: Json = {"rules": [rule]}
        if route.host:
            rule["host"] = route.host
        if route.class_name:
            spec["ingressClassName"] = route.class_name
        if route.tls:
            spec["tls"] = [{"hosts": [route.host], "secretName": route.tls.name}]
        # Proxies of the nginx family end an answer that pauses for a minute.
        annotations = {
            "nginx.ingress.kubernetes.io/proxy-read-timeout": "3600",
            "nginx.ingress.kubernetes.io/proxy-send-timeout": "3600",
        }
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": metadata(namespace, name, labels) | {"annotations": annotations},
            "spec": spec,
        }

    def backends(self, obj: Json) -> list[Backend]:
        """See `Router`: each one has everything of its path."""
        services = [
            at(path, "backend", "service")
            for rule in entries(obj, "spec", "rules")
            for path in entries(rule, "http", "paths")
        ]
        services.append(at(obj, "spec", "defaultBackend", "service"))
        return [
            Backend(each["name"], whole_number(at(each, "port", "number"), 0))
            for each in services
            if isinstance(each, dict) and isinstance(each.get("name"), str)
        ]

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:
        """See `Router`."""
        return RouteStatus(Programming.ACCEPTED, text="an Ingress does not say what its router made of it")


ROUTER = IngressRouter()
