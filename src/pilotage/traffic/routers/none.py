"""No route: clients use the Service by itself."""

from collections.abc import Collection

from pilotage.kube import Json
from pilotage.traffic.contract import Mix, Programming, RouteStatus
from pilotage.traffic.routers.base import Router, RouteRequest, UrlRequest

HTTP_PORT = 80


class NoRouter(Router):
    """Router of endpoints without a route."""

    kind = "None"
    resource = None
    reaches_hosts = True

    def manifest(self, request: RouteRequest) -> Json:
        """There is none: ValueError."""
        raise ValueError(f"{request.namespace}/{request.name} has no route")

    def mix(self, obj: Json) -> Mix:  # noqa: ARG002 - there is none
        """Empty."""
        return Mix()

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:  # noqa: ARG002 - there is none
        """Accepted: nothing is known about clients of a Service."""
        return RouteStatus(Programming.ACCEPTED, text="there is no route; clients use the Service")

    def url(self, request: UrlRequest) -> str:
        """The address of the Service in the cluster."""
        port = "" if request.port == HTTP_PORT else f":{request.port}"
        return f"http://{request.service}.{request.namespace}.svc{port}/v1"


ROUTER = NoRouter()
