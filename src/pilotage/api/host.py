"""`Host`: a machine beside the cluster whose agent runs servers; `HostProcess`: a server that runs on one, or should;
`HostServices`: what agents may give addresses to.

A HostProcess is to a Host what a pod is to a node. The operator makes one for each replica of a revision and says on
which Host it runs; the agent of that Host runs it, says how it is, and holds it with a finalizer until it is proven
that nothing of it runs.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pilotage.api.base import Conditions, ObjectName, Part
from pilotage.api.endpoint import HostSelector, Port, Priority, Runtime, Seconds
from pilotage.api.model import Sha256

NAMESPACES_MAX = 1024
HOSTS_MAX = 10_000
NamespaceName = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
BYTES_MAX = 2**60
"""More than any machine has; and a number that every JSON reader keeps."""
Bytes = Annotated[int, Field(ge=0, le=BYTES_MAX)]


class HostSpec(Part):
    """Desired state of the Host, written by an administrator."""

    unschedulable: Annotated[bool, Field(description="Nothing new is placed there; what runs goes on.")] = False
    allowed_namespaces: Annotated[
        list[NamespaceName],
        Field(
            max_length=NAMESPACES_MAX,
            description="Namespaces whose processes may run there; empty for all that its agent allows.",
            json_schema_extra={"x-kubernetes-list-type": "set"},
        ),
    ] = Field(default_factory=list)


class FoundRuntime(Part):
    """A program that can serve, found on the host."""

    name: str
    path: str
    version: str = ""


class HostStatus(Part):
    """What its agent says; of `phase` and of the conditions the operator has the last word when the agent is silent."""

    phase: Annotated[
        Literal["Ready", "Pressed", "Stopping", "Lost"] | None,
        Field(description="Lost: its agent has not renewed its Lease."),
    ] = None
    conditions: Conditions = Field(default_factory=list)
    addresses: Annotated[list[str], Field(description="Where its servers are reached, the first one by default.")] = (
        Field(default_factory=list)
    )
    cpus: int | None = None
    memory_bytes: Bytes | None = None
    free_bytes: Annotated[Bytes | None, Field(description="For new servers, as its agent reckons.")] = None
    runtimes: Annotated[
        list[FoundRuntime],
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
    ] = Field(default_factory=list)
    namespaces: Annotated[
        list[NamespaceName],
        Field(max_length=NAMESPACES_MAX, description="Namespaces that its agent was started for; empty for all."),
    ] = Field(default_factory=list)
    processes: Annotated[int | None, Field(description="How many servers run.")] = None
    agent_version: str | None = None


class Host(Part):
    """A machine beside the cluster."""

    spec: HostSpec = Field(default_factory=HostSpec)
    status: HostStatus = Field(default_factory=HostStatus)


class ServedModel(Part):
    """The weights, after the endpoint's Model was looked up."""

    name: Annotated[str, Field(min_length=1, description="As clients call it; the server's alias.")]
    source: Annotated[str, Field(min_length=1, description="Where the weights come from.")]
    sha256: Sha256 | None = None
    secret: Annotated[str | None, Field(description="The name of a Secret with the credentials of the source.")] = None


class ProcessSpec(Part):
    """Desired process. Apart from `host`, which is set once, it is never changed: the CRD has a rule for that."""

    host: Annotated[ObjectName | None, Field(description="Where it runs: set once, by who places it.")] = None
    host_name: Annotated[ObjectName | None, Field(description="The only Host that it may run on.")] = None
    host_selector: Annotated[HostSelector | None, Field(description="The Hosts that it may run on.")] = None
    endpoint: Annotated[str, Field(min_length=1, description="The ServingEndpoint that it is a part of.")]
    service: Annotated[ObjectName, Field(max_length=63, description="The Service that its address belongs to.")]
    model: ServedModel
    runtime: Runtime = Field(default_factory=Runtime)
    port: Annotated[Port | None, Field(description="A free one, unless it is given.")] = None
    memory_bytes: Annotated[
        Bytes | None, Field(description="What it needs; its agent's estimate where it is not given.")
    ] = None
    priority: Annotated[Priority, Field(description="Under pressure, the lowest goes first.")] = 0
    protected: Annotated[bool, Field(description="Never stopped because of pressure.")] = False
    start_seconds: Annotated[Seconds, Field(description="Until it has to be healthy.")] = 600
    drain_seconds: Annotated[Seconds, Field(description="How long requests that are under way may take.")] = 30


class ProcessStatus(Part):
    """How it is, as its agent says."""

    phase: (
        Literal["Pending", "Fetching", "Starting", "Running", "Unhealthy", "Evicted", "Failed", "Stopping", "Lost"]
        | None
    ) = None
    observed_generation: int | None = None
    conditions: Conditions = Field(default_factory=list)
    ready: bool = False
    address: str | None = None
    port: int | None = None
    pid: int | None = None
    started: str | None = None
    restarts: int = 0
    memory_bytes: Bytes | None = None
    in_flight: Annotated[int | None, Field(description="Requests under way, while it is stopping.")] = None
    slice_uid: Annotated[str | None, Field(description="Of the EndpointSlice with its address.")] = None
    log_file: Annotated[str | None, Field(description="On its Host: what the server prints.")] = None
    message: str | None = None


class HostProcess(Part):
    """One server on one Host."""

    spec: ProcessSpec
    status: ProcessStatus = Field(default_factory=ProcessStatus)


class HostServicesSpec(Part):
    """Services by Host, written by the operator alone."""

    hosts: Annotated[
        dict[str, list[Annotated[str, Field(max_length=127)]]],
        Field(
            max_length=HOSTS_MAX,
            description="By the name of a Host: the Services that its agent may give addresses to, NAMESPACE/NAME.",
        ),
    ] = Field(default_factory=dict)


class HostServices(Part):
    """Services that agents may give addresses to: an admission policy reads the object called `granted`.

    A kind of its own, because kube-apiserver stops to follow ConfigMaps for policies once a policy that reads them was
    deleted and made again.
    """

    spec: HostServicesSpec = Field(default_factory=HostServicesSpec)
