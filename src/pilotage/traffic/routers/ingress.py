"""Ingress: one backend, no weights, and a status that says nothing about the route.

A switch is one write. When the proxies have it is unknown: only a bounded wait can follow, and it is called unverified.
Where Contour serves it and its Envoys can be read, these prove it as well; the switch stays direct.
"""

from collections.abc import Collection

from pilotage.kube import Json, Resource
from pilotage.teardown.snapshot.fields import dig, entries, number
from pilotage.traffic.contract import Backend, Mix, Programming, RouteStatus
from pilotage.traffic.routers.base import Router, RouteRequest, checked

INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")


class IngressRouter(Router):
    """Router of Ingresses."""

    kind = "Ingress"
    resource = INGRESSES
    built_in = True
    may_pair = True
    fields = ("host", "className", "tls")
    rules = (("!has(self.tls) || has(self.host)", "tls of an Ingress needs route.host: the name of the certificate"),)

    def manifest(self, request: RouteRequest) -> Json:
        """The Ingress. ValueError for anything but one backend."""
        route, backends = request.route, checked(request.mix).backends
        if problems := self.problems(request.mix):
            raise ValueError(problems[0])
        service = {"name": backends[0].service, "port": {"number": backends[0].port}}
        rule: Json = {"http": {"paths": [{"path": route.path, "pathType": "Prefix", "backend": {"service": service}}]}}
        spec: Json = {"rules": [rule]}
        if route.host:
            rule["host"] = route.host
        if route.class_name:
            spec["ingressClassName"] = route.class_name
        if route.tls:
            spec["tls"] = [{"hosts": [route.host], "secretName": route.tls.name}]
        made = self.written(request, spec)
        # Proxies of the nginx family end an answer that pauses for a minute.
        made["metadata"]["annotations"] = {
            "nginx.ingress.kubernetes.io/proxy-read-timeout": "3600",
            "nginx.ingress.kubernetes.io/proxy-send-timeout": "3600",
        }
        return made

    def mix(self, obj: Json) -> Mix:
        """The Services of all paths. Each one gets all requests of its path."""
        services = [
            dig(path, "backend", "service")
            for rule in entries(obj, "spec", "rules")
            for path in entries(rule, "http", "paths")
        ]
        services.append(dig(obj, "spec", "defaultBackend", "service"))
        return Mix(
            tuple(
                Backend(each["name"], number(each, "port", "number"))
                for each in services
                if isinstance(each, dict) and isinstance(each.get("name"), str)
            )
        )

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:  # noqa: ARG002 - it says nothing
        """Accepted, always: an Ingress does not tell."""
        return RouteStatus(Programming.ACCEPTED, text="an Ingress has no status that tells whether proxies have it")


ROUTER = IngressRouter()
