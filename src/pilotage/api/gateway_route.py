"""`GatewayRoute`: requests that reach Pilotage's own gateway and the endpoint that they are for, and Envoy's answer."""

from typing import Annotated, Literal

from msgspec import Meta

from pilotage.api.base import Conditions, Schema, Seconds, Stored, map_list, matches, one_of
from pilotage.api.endpoint import HostName, Path, Port
from pilotage.api.measured import Measured
from pilotage.api.traffic import AssignmentKey, CopiedPercent, HeaderRule
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


class RouteBranch(Schema, frozen=True):
    """Requests with certain headers, and the Services that get them."""

    headers: Annotated[list[HeaderRule], Meta(min_length=1, max_length=8, extra_json_schema=map_list("name"))]
    """Headers that a request must have, all of them."""
    backends: Annotated[list[RouteBackend], Meta(min_length=1, max_length=16)]
    """Services that get these requests; weights add up to 100."""


class RouteCopies(Schema, frozen=True):
    """Service that gets copies of requests. Clients get no answer of it."""

    service: Annotated[str, Meta(min_length=1)]
    """Name of the Service."""
    port: Port = 80
    """Port of the Service."""
    percent: CopiedPercent = 100
    """Percentage of the requests that are copied."""
    max_concurrent: Annotated[int, Meta(ge=1, le=10000)] | None = None
    """Number of copies in flight, beyond which none are sent. If unset, no limit."""


class RouteAssignment(Schema, frozen=True):
    """Assignment of requests to backends by a key. A request without any of the keys is assigned at random."""

    keys: Annotated[list[AssignmentKey], Meta(min_length=1, max_length=4)]
    """Places of the key. The first that a request has counts."""
    salt: Annotated[str, matches("^[-._a-zA-Z0-9]*$", max_length=63)] = ""
    """Text that makes the assignment independent of others with the same keys."""


class RouteRevision(Schema, frozen=True):
    """Revision that has a path of its own, whatever the weights: /endpoints/NAMESPACE/NAME@NUMBER."""

    number: Annotated[int, Meta(ge=1, le=2147483647)]
    """Number of the revision."""
    service: Annotated[str, Meta(min_length=1)]
    """Name of the Service."""
    port: Port = 80
    """Port of the Service."""


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
    """Services that get the requests that no branch matches; weights add up to 100. If empty, or all are 0, 503."""
    branches: Annotated[list[RouteBranch], Meta(max_length=8)] = []
    """Services for requests with certain headers. The first branch that matches counts."""
    copies: Annotated[list[RouteCopies], Meta(max_length=4)] = []
    """Services that get copies of the requests."""
    assign: RouteAssignment | None = None
    """Assignment of requests by a key. If unset, each request is assigned at random."""
    revisions: Annotated[list[RouteRevision], Meta(max_length=32)] = []
    """Revisions that are reachable by a path of their own."""
    measure: bool = False
    """Whether the gateway measures the requests, and writes `status.measured`."""
    warmup_seconds: Seconds = 0
    """Seconds after a change of the shares whose requests are not among the measured numbers."""
    leaving: bool = False
    """Whether the route is being taken down: without a weight, requests get 404, as they will without the route."""


class BackendState(Schema, frozen=True):
    """Requests in flight to one Service."""

    service: str
    """Name of the Service."""
    in_flight: Annotated[int, Meta(ge=0)] = 0
    """Number of requests in flight, including pending ones."""


class EffectiveShare(Schema, frozen=True):
    """Share of the requests that a Service gets."""

    service: str
    """Name of the Service."""
    percent: Annotated[float, Meta(ge=0, le=100)]
    """Percentage of the requests that no branch matches. A Service without a ready server has 0."""


class SlotRun(Schema, frozen=True):
    """Neighbouring slots of one Service."""

    service: str
    """Name of the Service."""
    slots: Annotated[int, Meta(ge=1, le=100)]
    """Number of slots."""


class BranchSlots(Schema, frozen=True):
    """Slots of a branch, of which each gets a hundredth of the keys."""

    branch: Annotated[int, Meta(ge=0)]
    """Position of the branch, from 1 on; 0: requests that no branch matches."""
    runs: Annotated[list[SlotRun], Meta(max_length=100)] = []
    """Slots in their order."""


class CopiesState(Schema, frozen=True):
    """Numbers of the copies that one Service got since the gateway knows it."""

    service: str
    """Name of the Service."""
    sent: Annotated[int, Meta(ge=0)] = 0
    """Number of copies that were sent."""
    errors: Annotated[int, Meta(ge=0)] = 0
    """Copies that were answered with 500 or above, or not at all."""
    overflow: Annotated[int, Meta(ge=0)] = 0
    """Copies that were not sent, because of `maxConcurrent`."""


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
    """Requests and copies in flight to Services with weight 0, and to Services that have just left the route."""
    effective: Annotated[list[EffectiveShare], Meta(max_length=16, extra_json_schema=map_list("service"))] = []
    """Shares as Envoy has them. A Service without a ready server gives its share to the others."""
    slots: Annotated[list[BranchSlots], Meta(max_length=9, extra_json_schema=map_list("branch"))] = []
    """Slots of keys, if requests are assigned by a key. A Service keeps its own when others grow."""
    copies: Annotated[list[CopiesState], Meta(max_length=4, extra_json_schema=map_list("service"))] = []
    """Numbers of the copies, while the route is measured."""
    measured: Measured = []
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
