"""`GatewayRoute`: how requests that reach Pilotage's own gateway get to an endpoint, and what Envoy has made of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pilotage.api.base import Conditions, Part
from pilotage.api.endpoint import HostName, Port

Weight = Annotated[int, Field(ge=0, le=100)]


ModelName = Annotated[str, Field(min_length=1, max_length=1024)]


class RouteBackend(Part):
    """A Service of the same namespace, and its share of the requests."""

    service: Annotated[str, Field(min_length=1, description="Its name.")]
    port: Annotated[Port, Field(description="Of the Service.")] = 80
    weight: Annotated[Weight, Field(description="0: it is known to the gateway, and gets nothing.")] = 100


class GatewayRouteSpec(Part):
    """Which requests go where. Each of `models`, the path ``/endpoints/NAMESPACE/NAME`` and `host` leads here."""

    endpoint: Annotated[
        str,
        Field(
            pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63, description="The NAME in /endpoints/NAMESPACE/NAME."
        ),
    ]
    models: Annotated[
        list[ModelName], Field(description="The `model` in the body of requests to /v1/….", max_length=16)
    ] = Field(default_factory=list)
    host: HostName | None = None
    path: Annotated[str, Field(pattern="^/", max_length=1024, description="Of requests for `host`.")] = "/"
    backends: Annotated[
        list[RouteBackend], Field(max_length=16, description="Their weights add up to 100; without any, 503.")
    ] = Field(default_factory=list)


class BackendState(Part):
    """What the gateway counts for one Service, also for one that the route named until a moment ago."""

    service: str
    in_flight: Annotated[int, Field(ge=0, description="Requests under way to it, pending ones included.")] = 0


class ClaimState(Part):
    """A name that the route has, or waits for. Names are with those that have them, also after a restart."""

    kind: Literal["model", "host", "path"]
    name: str
    path: Annotated[str, Field(description="Of a host: the path below it.")] = ""
    turn: Annotated[int, Field(ge=1, description="Of those that wait, the lowest is next.")]
    held: Annotated[bool, Field(description="Requests for this name come here.")] = False


class GatewayRouteStatus(Part):
    """What Envoy has loaded of it."""

    observed_generation: Annotated[int | None, Field(description="What the rest of this status is about.")] = None
    state: Annotated[
        Literal["Programmed", "Pending", "Rejected"] | None,
        Field(description="Programmed: Envoy has acknowledged the version that carries this generation."),
    ] = None
    version: Annotated[str | None, Field(description="Of Envoy's configuration that carries it.")] = None
    message: Annotated[str | None, Field(description="Why it is rejected, in Envoy's own words.")] = None
    counts: Annotated[
        list[BackendState],
        Field(
            description="For Services without a share, and those that just left the route.",
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["service"]},
        ),
    ] = Field(default_factory=list)
    claims: Annotated[list[ClaimState], Field(description="Who has which name, as the gateway remembers it.")] = Field(
        default_factory=list
    )
    conditions: Conditions = Field(default_factory=list)


class GatewayRoute(Part):
    """How requests get from the gateway to an endpoint."""

    spec: GatewayRouteSpec
    status: GatewayRouteStatus = Field(default_factory=GatewayRouteStatus)
