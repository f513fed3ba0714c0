"""`Host`: a machine beside the cluster whose agent runs servers; `HostProcess`: one server on a Host;
`HostServices`: the Services that agents may add addresses to.

A HostProcess is to a Host what a pod is to a node. The operator creates one for each replica of a revision and assigns
it to a Host; the agent of that Host runs it, reports its status, and holds it with a finalizer until it is proven that
nothing of it runs.
"""

from typing import Annotated

from msgspec import Meta

from pilotage.api.base import SET, Conditions, ObjectName, Schema, Seconds, ShortName, map_list, matches, one_of
from pilotage.api.endpoint import HostSelector, Port, Priority, Runtime
from pilotage.api.model import Sha256
from pilotage.kube.wire import ObjectMeta

NAMESPACES_MAX = 1024
HOSTS_MAX = 10_000
NamespaceName = Annotated[str, matches(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
BYTES_MAX = 2**60
"""More than any machine has; and a number that every JSON reader keeps."""
Bytes = Annotated[int, Meta(ge=0, le=BYTES_MAX)]


class HostSpec(Schema, frozen=True):
    """Desired state of the Host, written by an administrator."""

    unschedulable: bool = False
    """Whether new processes are kept off the Host. Running ones stay."""
    allowed_namespaces: Annotated[list[NamespaceName], Meta(max_length=NAMESPACES_MAX, extra_json_schema=SET)] = []
    """Namespaces whose processes may run on the Host. If empty, all that its agent allows."""


class FoundRuntime(Schema, frozen=True):
    """Program on the Host that can serve models."""

    name: str
    """Name of the runtime."""
    path: str
    """Path of the program."""
    version: str = ""
    """Version of the program."""


class HostStatus(Schema, frozen=True):
    """Observed state of the Host, written by its agent, and by the operator where no agent runs."""

    phase: Annotated[str, one_of("Ready", "Pressed", "Stopping", "Stopped", "Lost")] | None = None
    """Summary of the conditions. Pressed: memory is short. Stopped: the agent was stopped. Lost: its Lease expired."""
    conditions: Conditions = []
    addresses: list[str] = []
    """Addresses of its servers. The first one is the default."""
    cpus: int | None = None
    """Number of CPUs."""
    memory_bytes: Bytes | None = None
    """Memory of the machine, in bytes."""
    free_bytes: Bytes | None = None
    """Memory available to new processes, in bytes, as estimated by the agent."""
    runtimes: Annotated[list[FoundRuntime], Meta(extra_json_schema=map_list("name"))] = []
    """Runtimes that are installed on the Host."""
    namespaces: Annotated[list[NamespaceName], Meta(max_length=NAMESPACES_MAX)] = []
    """Namespaces that its agent was started for. If empty, all."""
    processes: int | None = None
    """Number of servers that run."""
    agent_version: str | None = None
    """Version of the agent."""


class Host(Schema, frozen=True):
    """Machine beside the cluster that serves models."""

    metadata: ObjectMeta = ObjectMeta()
    spec: HostSpec = HostSpec()
    status: HostStatus = HostStatus()


class ServedModel(Schema, frozen=True, kw_only=True):
    """Model that the process serves, after the endpoint's reference was resolved."""

    name: Annotated[str, Meta(min_length=1)]
    """Name of the model in requests: the server's alias."""
    other_names: Annotated[list[ObjectName], Meta(max_length=16)] | None = None
    """More names in requests, for a server that answers to no other."""
    source: Annotated[str, Meta(min_length=1)]
    """Location of the weights."""
    sha256: Sha256 | None = None
    secret: str | None = None
    """Name of the Secret with the credentials of the source."""


class ProcessSpec(Schema, frozen=True, kw_only=True):
    """Desired process. It is immutable, apart from `host`, which is set once."""

    host: ObjectName | None = None
    """Host that the process is assigned to. Set once, by the operator."""
    host_name: ObjectName | None = None
    """Only Host that the process may run on."""
    host_selector: HostSelector | None = None
    """Hosts that the process may run on."""
    endpoint: Annotated[str, Meta(min_length=1)]
    """Name of the ServingEndpoint that it is a part of."""
    service: ShortName
    """Name of the Service that its address belongs to."""
    model: ServedModel
    runtime: Runtime = Runtime()
    port: Port | None = None
    """Port of the server. If unset, a free port is chosen."""
    memory_bytes: Bytes | None = None
    """Memory that it needs, in bytes. If unset, the agent makes an estimate."""
    priority: Priority = 0
    """Eviction order under memory pressure: the lowest priority goes first."""
    protected: bool = False
    """Whether the process is exempt from eviction."""
    start_seconds: Seconds = 600
    """Seconds from the start until the server has to be healthy."""
    drain_seconds: Seconds = 30
    """Seconds that requests in flight have to end."""


class ProcessStatus(Schema, frozen=True):
    """Observed state of the process, written by the agent of its Host."""

    phase: (
        Annotated[
            str,
            one_of("Pending", "Fetching", "Starting", "Running", "Unhealthy", "Evicted", "Failed", "Stopping", "Lost"),
        ]
        | None
    ) = None
    """Summary of the conditions."""
    observed_generation: int | None = None
    """Generation that the status is about."""
    conditions: Conditions = []
    ready: bool = False
    """Whether the server is healthy."""
    address: str | None = None
    """Address that the server is reached at."""
    port: int | None = None
    """Port that the server listens on."""
    pid: int | None = None
    """Process ID on the Host."""
    started: str | None = None
    """Time at which the process was started."""
    restarts: int = 0
    """Number of restarts."""
    memory_bytes: Bytes | None = None
    """Memory that is reserved for it, in bytes."""
    in_flight: int | None = None
    """Number of requests in flight, while the process is being stopped."""
    slice_uid: str | None = None
    """UID of the EndpointSlice with its address."""
    log_file: str | None = None
    """Path on the Host of the server's log."""
    message: str | None = None
    """Details of the phase, for people."""


class HostProcess(Schema, frozen=True):
    """Server process on a Host."""

    spec: ProcessSpec
    metadata: ObjectMeta = ObjectMeta()
    status: ProcessStatus = ProcessStatus()


class HostServicesSpec(Schema, frozen=True):
    """Services by Host, written by the operator alone."""

    hosts: Annotated[dict[str, list[Annotated[str, Meta(max_length=127)]]], Meta(max_length=HOSTS_MAX)] = {}
    """Services that the agent of each Host may add addresses to: NAMESPACE/NAME, by Host name."""


class HostServices(Schema, frozen=True):
    """Services that agents may add addresses to. An admission policy reads the object named `granted`.

    It is a kind of its own because kube-apiserver stops watching ConfigMaps for policies once a policy that reads them
    has been deleted and created again.
    """

    metadata: ObjectMeta = ObjectMeta()
    spec: HostServicesSpec = HostServicesSpec()
