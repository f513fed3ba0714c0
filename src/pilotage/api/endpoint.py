"""`ServingEndpoint`: a model that is served, with its runtime, its placement and its route."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from pilotage.api.base import (
    REPLICAS_MAX,
    SET,
    Argument,
    EnvVar,
    ObjectName,
    Schema,
    Seconds,
    SecretRef,
    ShortName,
    map_list,
    matches,
)
from pilotage.api.endpoint_status import EndpointStatus
from pilotage.api.model import Sha256, Source
from pilotage.api.strategy import Strategy
from pilotage.kube.wire import ObjectMeta

PRIORITY_MAX = 1_000_000_000
"""Highest priority that Kubernetes lets users give to pods."""
Port = Annotated[int, Meta(ge=1, le=65535)]
Kept = Literal["Volumes", "ModelCache", "Secrets"]
Priority = Annotated[int, Meta(ge=-PRIORITY_MAX, le=PRIORITY_MAX)]
Labels = Annotated[dict[str, Annotated[str, Meta(max_length=63)]], Meta(max_length=64)]
_NUMBER = r"[0-9]+(\.[0-9]+)?"
Size = Annotated[str, matches(f"^{_NUMBER}(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$", max_length=32)]
Quantity = int | Annotated[str, matches(f"^{_NUMBER}(m|Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$", max_length=32)]
Quantities = Annotated[dict[str, Quantity], Meta(max_length=64)]
Path = Annotated[str, Meta(pattern="^/", max_length=1024)]
HostName = Annotated[
    str,
    matches(r"^(\*\.)?([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=253),
]
Choice = Annotated[str, Meta(max_length=63)]
"""The name of a runtime, or the kind of a placement or route. Which there are is known to their registries, in higher
layers; the CRD lists them (`operator.crds`)."""


class ModelChoice(Schema, frozen=True):
    """Model to serve: exactly one of `name` and `source`."""

    name: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    """Name of a Model in the same namespace."""
    source: Source | None = None
    sha256: Sha256 | None = None
    secret_ref: SecretRef | None = None
    """Secret in the same namespace with the credentials of the source."""


class Runtime(Schema, frozen=True):
    """Program that serves the model."""

    name: Choice = "llama.cpp"
    """Name of a preset, or custom."""
    image: Annotated[str, Meta(max_length=1024)] | None = None
    """Container image. Defaults to the preset's; a custom runtime requires one."""
    command: Annotated[list[Argument], Meta(max_length=64)] = []
    """Entrypoint. Defaults to the image's entrypoint."""
    args: Annotated[list[Argument], Meta(max_length=512)] = []
    """Arguments, appended to those of the preset."""
    env: Annotated[list[EnvVar], Meta(max_length=256, extra_json_schema=map_list("name"))] = []
    """Environment variables of the server."""
    port: Port | None = None
    """Port that the server listens on. Defaults to the preset's port."""
    health_path: Path | None = None
    """Path that answers 200 once the server can serve. Defaults to the preset's path."""


class HostSelector(Schema, frozen=True):
    """Selector of Hosts by their labels."""

    match_labels: Labels = {}
    """Labels that a Host must have, all of them."""


class Placement(Schema, frozen=True):
    """Place where the replicas run."""

    kind: Choice = "Deployment"
    """Deployment: pods of a Deployment. KServe: an InferenceService. Host: processes on Hosts."""
    host: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    """Name of the Host. For kind Host only."""
    host_selector: HostSelector | None = None
    """Hosts to choose from. For kind Host only."""
    priority: Priority = 0
    """Eviction order on a Host under memory pressure: the lowest priority goes first."""
    protected: bool = False
    """Whether replicas are exempt from eviction on a Host."""


class Autoscaling(Schema, frozen=True, kw_only=True):
    """Bounds and targets of autoscaling. If set, `replicas` is ignored."""

    min: Annotated[int, Meta(ge=0, le=REPLICAS_MAX)] = 1
    """Minimum number of replicas. 0 requires KEDA."""
    max: Annotated[int, Meta(ge=1, le=REPLICAS_MAX)]
    """Maximum number of replicas."""
    target_concurrency: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """Target number of concurrent requests per replica. Requires KEDA. If unset, CPU utilization is the target."""
    target_cpu_percent: Annotated[int, Meta(ge=1, le=1000)] = field(default=80, name="targetCPUPercent")
    """Target CPU utilization per replica, as a percentage of the CPU request."""


class Resources(Schema, frozen=True):
    """Compute resources of each replica, as in a container."""

    limits: Quantities = {}
    """Maximum amounts that a replica may use."""
    requests: Quantities = {}
    """Amounts that are reserved for a replica."""


class Toleration(Schema, frozen=True):
    """Toleration of a taint, as in a pod."""

    key: Annotated[str, Meta(max_length=316)] | None = None
    """Key of the taint. If unset, every key."""
    operator: Annotated[str, Meta(max_length=64)] | None = None
    """Exists or Equal. Defaults to Equal."""
    value: Annotated[str, Meta(max_length=63)] | None = None
    """Value of the taint, for Equal."""
    effect: Annotated[str, Meta(max_length=64)] | None = None
    """Effect of the taint. If unset, every effect."""
    toleration_seconds: Annotated[int, Meta(ge=-(2**31), le=2**31)] | None = None
    """Seconds for which a NoExecute taint is tolerated. If unset, forever."""


class GatewayRef(Schema, frozen=True):
    """Gateway that an HTTPRoute attaches to."""

    name: ObjectName
    """Name of the Gateway."""
    namespace: ShortName | None = None
    """Namespace of the Gateway, which has to allow the attachment. Defaults to the endpoint's namespace."""
    section_name: ObjectName | None = None
    """Name of one listener of the Gateway. If unset, all listeners."""


class Route(Schema, frozen=True):
    """Route by which requests reach the endpoint."""

    kind: Choice = "None"
    """Kind of the route. None: the Service alone. PilotageGateway: a GatewayRoute of the gateway that Pilotage runs."""
    host: HostName | None = None
    """Host name of the requests, such as assistant.example.com. An IP address is not allowed."""
    path: Path = "/"
    """Path prefix of the requests."""
    class_name: ObjectName | None = None
    """Class of the Ingress or HTTPProxy."""
    gateway: GatewayRef | None = None
    """Gateway that the HTTPRoute attaches to. Required for kind HTTPRoute."""
    tls: SecretRef | None = None
    """Secret with the TLS certificate of the host. For kinds Ingress and HTTPProxy."""


class PhaseTimeouts(Schema, frozen=True):
    """Seconds after which each phase of a teardown is reported as blocked. Nothing is skipped or forced then."""

    detach: Seconds = 60
    """Time until no route sends requests to it."""
    drain: Seconds = 600
    """Time until requests in flight have ended."""
    quiesce: Seconds = 60
    """Time until its autoscalers are gone."""
    stop: Seconds = 600
    """Time until its pods or processes are gone."""
    remove: Seconds = 120
    """Time until its other objects are gone."""

    def total(self) -> int:
        """The seconds of all phases."""
        return sum(msgspec.structs.astuple(self))


class Deletion(Schema, frozen=True):
    """Policy for removing the endpoint, and each superseded revision."""

    drain_seconds: Seconds = 30
    """Seconds that requests in flight have to end."""
    timeouts: PhaseTimeouts = PhaseTimeouts()
    keep: Annotated[list[Kept], Meta(max_length=3, extra_json_schema=SET)] = []
    """Objects that are kept when the endpoint is deleted."""


class WeightsVolume(Schema, frozen=True):
    """Volume claim for the weights, shared by all revisions. If unset, each pod fetches into ephemeral storage."""

    size: Size
    """Requested size, such as 20Gi."""
    storage_class_name: ObjectName | None = None
    """StorageClass of the claim. Defaults to the cluster's default class."""
    access_mode: Literal["ReadWriteOnce", "ReadWriteMany"] = "ReadWriteOnce"
    """Access mode of the claim. Replicas on several nodes require ReadWriteMany."""


REVISION_FIELDS = ("model", "runtime", "placement", "resources", "nodeSelector", "tolerations", "cache")
"""Fields of `EndpointSpec` that make a new revision: a running pod cannot take them on. The others change in place."""


class EndpointSpec(Schema, frozen=True):
    """Desired state of the endpoint."""

    model: ModelChoice
    runtime: Runtime = Runtime()
    placement: Placement = Placement()
    replicas: Annotated[int, Meta(ge=0, le=REPLICAS_MAX)] = 1
    """Number of replicas. Ignored while `autoscaling` is set."""
    autoscaling: Autoscaling | None = None
    resources: Resources = Resources()
    node_selector: Labels = {}
    """Node labels that its pods require, as in a pod."""
    tolerations: Annotated[list[Toleration], Meta(max_length=64)] = []
    """Tolerations of its pods, as in a pod."""
    cache: WeightsVolume | None = None
    route: Route = Route()
    strategy: Strategy = Strategy()
    deletion: Deletion = Deletion()


class Endpoint(Schema, frozen=True):
    """Model that is served, on pods or on Hosts, and the route to it."""

    spec: EndpointSpec
    metadata: ObjectMeta = ObjectMeta()
    status: EndpointStatus = EndpointStatus()
