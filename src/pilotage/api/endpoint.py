"""`ServingEndpoint`: a model that is served, how, where, and how traffic gets there."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pilotage.api.base import Conditions, ObjectName, Part, SecretRef
from pilotage.api.model import Sha256, Source

REPLICAS_MAX = 1000
"""Of a revision. Each costs memory and requests in the operator, on a Host also an object."""
PRIORITY_MAX = 1_000_000_000
"""As Kubernetes has it for pods."""
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[int, Field(ge=0, le=86400)]
Kept = Literal["Volumes", "ModelCache", "Secrets"]
Priority = Annotated[int, Field(ge=-PRIORITY_MAX, le=PRIORITY_MAX)]
Labels = Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)]
Size = Annotated[
    str, Field(max_length=32, pattern=r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$", description="Such as 20Gi.")
]
Quantity = int | Annotated[str, Field(max_length=32, pattern=r"^[0-9]+(\.[0-9]+)?(m|Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$")]
Quantities = Annotated[dict[str, Quantity], Field(max_length=64)]
Argument = Annotated[str, Field(max_length=16384)]
"""Of a command line: a chat template or a JSON schema may be one."""
HostName = Annotated[
    str,
    Field(
        max_length=253,
        pattern=r"^(\*\.)?([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*[a-z]([-a-z0-9]*[a-z0-9])?$",
        description="The name that requests are for, such as assistant.example.com; not an address.",
    ),
]
RuntimeName = Literal["llama.cpp", "vllm", "sglang", "tgi", "custom"]
PlacementKind = Literal["Deployment", "KServe", "Host"]
RouteKind = Literal["None", "Ingress", "HTTPRoute", "HTTPProxy", "PilotageGateway"]


class ModelChoice(Part):
    """A Model of the same namespace, or a source."""

    name: Annotated[str | None, Field(min_length=1, max_length=253, description="Of a Model.")] = None
    source: Source | None = None
    sha256: Sha256 | None = None
    secret_ref: SecretRef | None = None


class EnvVar(Part):
    """A variable for the server."""

    name: Annotated[str, Field(min_length=1, max_length=256)]
    value: Annotated[str, Field(max_length=32768)] = ""


class Runtime(Part):
    """The program that serves."""

    name: Annotated[RuntimeName, Field(description="A preset, or custom.")] = "llama.cpp"
    image: Annotated[
        str | None, Field(max_length=1024, description="Instead of the preset's; a custom runtime needs one.")
    ] = None
    command: Annotated[list[Argument], Field(max_length=64, description="Instead of the image's.")] = Field(
        default_factory=list
    )
    args: Annotated[list[Argument], Field(max_length=512, description="After those that the preset gives.")] = Field(
        default_factory=list
    )
    env: Annotated[
        list[EnvVar],
        Field(
            max_length=256,
            description="For the server.",
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = Field(default_factory=list)
    port: Annotated[Port | None, Field(description="Where it listens, instead of the preset's.")] = None
    health_path: Annotated[
        str | None,
        Field(pattern="^/", max_length=1024, description="Answers 200 when it can serve; empty for the preset's."),
    ] = None


class HostSelector(Part):
    """Hosts by label."""

    match_labels: Annotated[Labels, Field(description="All of them.")] = Field(default_factory=dict)


class Placement(Part):
    """Where it runs."""

    kind: Annotated[PlacementKind, Field(description="As pods, by KServe, or on a host beside the cluster.")] = (
        "Deployment"
    )
    host: Annotated[str | None, Field(min_length=1, max_length=253, description="The name of a Host.")] = None
    host_selector: HostSelector | None = None
    priority: Annotated[Priority, Field(description="On a Host under memory pressure, the lowest goes first.")] = 0
    protected: Annotated[bool, Field(description="Never stopped because of memory pressure.")] = False


class Autoscaling(Part):
    """Instead of a fixed number of replicas."""

    min: Annotated[int, Field(ge=0, le=REPLICAS_MAX, description="The fewest replicas. 0 needs KEDA.")] = 1
    max: Annotated[int, Field(ge=1, le=REPLICAS_MAX, description="The most replicas.")]
    target_concurrency: Annotated[
        int | None,
        Field(ge=1, le=1_000_000, description="Requests at a time for each replica. Needs KEDA; else CPU is used."),
    ] = None
    target_cpu_percent: Annotated[
        int, Field(alias="targetCPUPercent", ge=1, le=1000, description="Of what is requested, for each replica.")
    ] = 80


class Resources(Part):
    """As in a container."""

    limits: Annotated[Quantities, Field(description="The most it may use.")] = Field(default_factory=dict)
    requests: Annotated[Quantities, Field(description="What a node must have for it.")] = Field(default_factory=dict)


class Toleration(Part):
    """As in a pod."""

    key: Annotated[str | None, Field(max_length=316, description="Of the taint; every one, without it.")] = None
    operator: Annotated[str | None, Field(max_length=64, description="Equal, unless it is given.")] = None
    value: Annotated[str | None, Field(max_length=63)] = None
    effect: Annotated[str | None, Field(max_length=64, description="Of the taint; every one, without it.")] = None
    toleration_seconds: Annotated[
        int | None, Field(ge=-(2**31), le=2**31, description="For how long; for ever, without it.")
    ] = None


class GatewayRef(Part):
    """The Gateway that an HTTPRoute attaches to."""

    name: ObjectName
    namespace: Annotated[
        ObjectName | None,
        Field(max_length=63, description="The endpoint's own, unless it is given; the Gateway says who may attach."),
    ] = None
    section_name: Annotated[ObjectName | None, Field(description="One listener of it.")] = None


class Route(Part):
    """How requests get there."""

    kind: Annotated[
        RouteKind, Field(description="None: by the Service alone. PilotageGateway: by the gateway that Pilotage runs.")
    ] = "None"
    host: HostName | None = None
    path: Annotated[str, Field(pattern="^/", max_length=1024, description="Requests below this path come here.")] = "/"
    class_name: Annotated[ObjectName | None, Field(description="The class of an Ingress or HTTPProxy.")] = None
    gateway: Annotated[GatewayRef | None, Field(description="An HTTPRoute needs one.")] = None
    tls: Annotated[SecretRef | None, Field(description="A Secret with the certificate of the host.")] = None


class Strategy(Part):
    """How one revision follows another."""

    type: Annotated[
        Literal["BlueGreen", "Recreate"],
        Field(description="BlueGreen: the new one is ready before the old one goes. Recreate: the old one goes first."),
    ] = "BlueGreen"


class PhaseTimeouts(Part):
    """How long a phase may take until it is reported as blocked. Nothing is forgotten or forced then."""

    detach: Seconds = 60
    drain: Seconds = 600
    quiesce: Seconds = 60
    stop: Seconds = 600
    remove: Seconds = 120


class Deletion(Part):
    """How it goes."""

    drain_seconds: Annotated[Seconds, Field(description="How long requests that are under way may take.")] = 30
    timeouts: PhaseTimeouts = Field(default_factory=PhaseTimeouts)
    keep: Annotated[
        list[Kept], Field(max_length=3, description="What stays.", json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = Field(default_factory=list)


class WeightsVolume(Part):
    """A volume claim for the weights, shared by all revisions. Without one each pod fetches into its own space."""

    size: Size
    storage_class_name: Annotated[
        ObjectName | None, Field(description="The cluster's default, unless it is given.")
    ] = None
    access_mode: Annotated[
        Literal["ReadWriteOnce", "ReadWriteMany"],
        Field(description="Several replicas on several nodes need the latter."),
    ] = "ReadWriteOnce"


class EndpointSpec(Part):
    """What is wanted."""

    model: ModelChoice
    runtime: Runtime = Field(default_factory=Runtime)
    placement: Placement = Field(default_factory=Placement)
    replicas: Annotated[int, Field(ge=0, le=REPLICAS_MAX, description="Not looked at while autoscaling is set.")] = 1
    autoscaling: Autoscaling | None = None
    resources: Resources = Field(default_factory=Resources)
    node_selector: Annotated[Labels, Field(description="As in a pod.")] = Field(default_factory=dict)
    tolerations: Annotated[list[Toleration], Field(max_length=64, description="As in a pod.")] = Field(
        default_factory=list
    )
    cache: WeightsVolume | None = None
    route: Route = Field(default_factory=Route)
    strategy: Strategy = Field(default_factory=Strategy)
    deletion: Deletion = Field(default_factory=Deletion)


class Replicas(Part):
    """How many there are."""

    ready: int = 0
    desired: int = 0


class LedgerEntry(Part):
    """One object that was made, or is about to be, for this endpoint. Written before it is made."""

    api_version: str
    kind: str
    resource: str
    name: str
    uid: Annotated[str, Field(description="Empty until it is known.")] = ""
    revision: Annotated[int | None, Field(description="None for what belongs to all revisions.")] = None


class PastRevision(Part):
    """A revision, to go back to."""

    number: int
    created: str
    state: Literal["Current", "Previous", "Failed", "Starting"]
    message: str = ""
    fingerprint: Annotated[str, Field(description="Of all that makes it another revision.")] = ""
    spec: dict[str, Any] = Field(default_factory=dict)
    model: Annotated[dict[str, str], Field(description="What its Model was then.")] = Field(default_factory=dict)


class Waiting(Part):
    """What a teardown waits for, for people."""

    object: str
    cause: str
    text: str
    since: str
    until: str


class TeardownState(Part):
    """How far a teardown is."""

    name: str
    phase: str = ""
    left: int | None = None
    waits: list[Waiting] = Field(default_factory=list)


class EndpointStatus(Part):
    """What is."""

    phase: Literal["Pending", "Deploying", "Serving", "Redeploying", "Degraded", "Deleting"] | None = None
    observed_generation: int | None = None
    conditions: Conditions = Field(default_factory=list)
    url: str | None = None
    revision: Annotated[str | None, Field(description="The one that serves.")] = None
    route_kind: str | None = None
    placement: str | None = None
    replicas: Replicas = Field(default_factory=Replicas)
    selector: Annotated[str | None, Field(description="Of the pods, for the scale subresource.")] = None
    waiting_for: str | None = None
    ledger: list[LedgerEntry] = Field(default_factory=list)
    history: list[PastRevision] = Field(default_factory=list)
    teardown: TeardownState | None = None


class Endpoint(Part):
    """A model that is served."""

    spec: EndpointSpec
    status: EndpointStatus = Field(default_factory=EndpointStatus)
