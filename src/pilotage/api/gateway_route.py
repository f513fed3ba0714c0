"""`GatewayRoute`: requests that reach Pilotage's own gateway and the endpoint that they are for, and Envoy's answer."""

from typing import Annotated, Literal

from msgspec import Meta

from pilotage.api.base import Conditions, Schema, Stored, map_list, matches, one_of
from pilotage.api.endpoint import HostName, Path, Port
from pilotage.kube.wire import ObjectMeta

Weight = Annotated[int, Meta(ge=0, le=100)]
ModelName = Annotated[str, Meta(min_length=1, max_length=1024)]


class RouteBackend(Schema, frozen=True):
    """Service in the same namespace, and its share of the requests."""

    service: Annotated[str, Meta(min_length=1)]
    """Name of the Service."""
    port: Port = 80
    """Port of the Service."""
    weight: Weight = 100
    """Percentage of the requests. With 0, the gateway keeps the Service warm."""


class GatewayRouteSpec(Schema, frozen=True):
    """Requests that the route matches: by `models`, by the path /endpoints/NAMESPACE/NAME, and by `host`."""

    endpoint: Annotated[str, matches("^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
    """Name of the endpoint: NAME in the path /endpoints/NAMESPACE/NAME."""
    models: Annotated[list[ModelName], Meta(max_length=16)] = []
    """Values of `model` in the body of requests to /v1/… that the route matches."""
    host: HostName | None = None
    """Host name of the requests, such as assistant.example.com. An IP address is not allowed."""
    path: Path = "/"
    """Path prefix of requests for `host`."""
    backends: Annotated[list[RouteBackend], Meta(max_length=16)] = []
    """Services that get the requests; weights add up to 100. If empty, or all are 0, 503."""
    leaving: bool = False
    """Whether the route is being taken down: without a weight, requests get 404, as they will without the route."""


class BackendState(Schema, frozen=True):
    """Requests in flight to one Service."""

    service: str
    """Name of the Service."""
    in_flight: Annotated[int, Meta(ge=0)] = 0
    """Number of requests in flight, including pending ones."""


class ClaimState(Schema, frozen=True, kw_only=True):
    """Name that the route holds or waits for. The holder keeps it, also when the gateway restarts."""

    kind: Literal["model", "host", "path"]
    """Kind of the name."""
    name: str
    """Name that is claimed."""
    path: str = ""
    """Path prefix below a host."""
    turn: Annotated[int, Meta(ge=1)]
    """Position in the queue for the name: the lowest is next."""
    held: bool = False
    """Whether requests for the name go to this route."""


class GatewayRouteStatus(Schema, frozen=True):
    """Observed state of the route, written by the gateway."""

    observed_generation: int | None = None
    """Generation that the status is about."""
    state: Annotated[str, one_of("Programmed", "Pending", "Rejected")] | None = None
    """Programmed: Envoy has acknowledged the version that carries this generation. Rejected: Envoy has refused it."""
    version: str | None = None
    """Version of Envoy's configuration that carries the route."""
    message: str | None = None
    """Reason for a rejection, in Envoy's words."""
    counts: Annotated[list[BackendState], Meta(extra_json_schema=map_list("service"))] = []
    """Requests in flight to Services with weight 0, and to Services that have just left the route."""
    claims: list[ClaimState] = []
    """Names that the route holds or waits for."""
    conditions: Conditions = []


class GatewayRoute(Schema, frozen=True):
    """Route from Pilotage's own gateway to an endpoint."""

    spec: GatewayRouteSpec
    metadata: ObjectMeta = ObjectMeta()
    status: GatewayRouteStatus = GatewayRouteStatus()


class StoredGatewayRoute(Stored, frozen=True):
    """A GatewayRoute as a client reads it."""

    status: GatewayRouteStatus = GatewayRouteStatus()
