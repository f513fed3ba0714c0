"""Placement on Hosts beside the cluster: a Service, and a HostProcess for each replica, which the agent of a Host runs.

The Service has no selector. The agent adds the address of its server to it, as an EndpointSlice, while the server is
healthy. On which Host a process runs is decided when it is there, and once: see `controllers.host.scheduling`.
"""

import math
from collections.abc import Iterator

from pilotage.api.host import BYTES_MAX, ProcessSpec, ServedModel
from pilotage.api.names import PROCESS_FINALIZER, PROCESSES
from pilotage.kube import Object, Resource
from pilotage.serving.manifests import manifest, service
from pilotage.serving.parts import Capabilities, DesiredObject, EndpointRef, Readiness, ResolvedModel, revision_name
from pilotage.serving.placements.contract import Find, ServiceBackend
from pilotage.serving.pod import PORT_NAME
from pilotage.serving.quantity import amount
from pilotage.serving.revision import replicas_of
from pilotage.serving.runtimes import RUNTIMES
from pilotage.serving.weights import scheme_of

SERVICE_PORT = 80
SILENT = "Silent"
"""Phase of a process that was ready by the last words of an agent that has not been heard of since."""
HOST_SILENT = "HostSilent"
"""Reason of a readiness that rests on such a process: it may be in traffic, and answer."""


class _Host:
    kind = "Host"
    observed: tuple[Resource, ...] = (PROCESSES,)

    def desired(
        self,
        endpoint: EndpointRef,
        revision: int,
        model: ResolvedModel,
        capabilities: Capabilities,  # noqa: ARG002
    ) -> list[DesiredObject]:
        """A Service, and a HostProcess for each replica. The Service comes first: the agents add addresses to it."""
        ports = [{"name": PORT_NAME, "port": SERVICE_PORT, "targetPort": PORT_NAME}]
        names = [process_name(endpoint, revision, number) for number in range(replicas_of(endpoint.spec))]
        return [service(endpoint, revision, {"ports": ports}), *_processes(endpoint, revision, model, names)]

    def readiness(self, endpoint: EndpointRef, revision: int, find: Find) -> Readiness:
        """Readiness of the processes."""
        desired = replicas_of(endpoint.spec)
        names = [process_name(endpoint, revision, number) for number in range(desired)]
        return _readiness([(name, find(PROCESSES, name)) for name in names])

    def backend(self, endpoint: EndpointRef, revision: int) -> ServiceBackend:
        """The Service of the revision, which has no selector."""
        return ServiceBackend(revision_name(endpoint.name, revision), SERVICE_PORT)

    def problems(self, endpoint: EndpointRef, model: ResolvedModel, capabilities: Capabilities) -> Iterator[str]:  # noqa: ARG002
        """Features that need pods, a claim or an image."""
        spec = endpoint.spec
        if spec.autoscaling is not None:
            yield "Placement Host has a fixed number of replicas; take autoscaling out."
        if spec.cache is not None:
            yield "Placement Host has no volume claims; take cache out."
        if RUNTIMES[spec.runtime.name].custom and not spec.runtime.command:
            yield "A Host runs programs of its own and no images: give the custom runtime a command."
        if scheme_of(model.source) == "pvc":
            yield f"{model.source} is on a claim in the cluster, which a Host cannot mount: use another source."


def process_name(endpoint: EndpointRef, revision: int, number: int) -> str:
    """Name of the HostProcess of one replica; the first is number 0."""
    return f"{revision_name(endpoint.name, revision)}-{number}"


def _processes(endpoint: EndpointRef, revision: int, model: ResolvedModel, names: list[str]) -> Iterator[DesiredObject]:
    """A HostProcess of each name. They differ in nothing else, so all share one spec, which nobody may change."""
    placement = endpoint.spec.placement
    spec = ProcessSpec(
        host_name=placement.host,
        host_selector=placement.host_selector,
        endpoint=endpoint.name,
        service=revision_name(endpoint.name, revision),
        model=ServedModel(
            name=model.name,
            other_names=[*model.other_names] or None,
            source=model.source,
            sha256=model.sha256 or None,
            secret=model.secret or None,
        ),
        runtime=endpoint.spec.runtime,
        port=endpoint.spec.runtime.port,
        memory_bytes=_memory(endpoint),
        priority=placement.priority,
        protected=placement.protected,
        drain_seconds=endpoint.spec.deletion.drain_seconds,
    )
    written = spec.written()
    for name in names:
        made = manifest(PROCESSES, endpoint, name, revision, written)
        made.body["metadata"]["finalizers"] = [PROCESS_FINALIZER]
        yield made


def _memory(endpoint: EndpointRef) -> int | None:
    """Memory that one server needs, if the spec says so."""
    resources = endpoint.spec.resources
    given = resources.requests.get("memory", resources.limits.get("memory"))
    found = None if given is None else amount(given)
    return None if found is None else min(math.ceil(found), BYTES_MAX)


def _readiness(processes: list[tuple[str, Object | None]]) -> Readiness:
    desired = len(processes)
    if not desired:
        return Readiness(0, 0, True, "ScaledToZero", "No replicas are wanted.")
    others = [(name, found) for name, found in processes if found is None or not _is_ready(found)]
    ready = desired - len(others)
    counted = f"{ready} of {desired} processes are ready"
    if not others:
        return Readiness(ready, desired, True, "ProcessesReady", f"{counted}.")
    phases = [_phase(found) for _, found in others]
    failed = all(phase == "Failed" for phase in phases)
    # The one whose trouble time does not mend says more than one that is on its way.
    worst = min(range(len(others)), key=lambda index: _URGENT.get(phases[index], len(_URGENT)))
    reason = _REASONS.get(phases[worst], "ProcessesStarting")
    said, where = _said(*others[worst])
    return Readiness(
        ready,
        desired,
        False,
        reason,
        f"{said.rstrip('. ')} ({where}; {counted}).",
        failed=failed,
        troubled=phases[worst] in _REASONS,
        unknown=not ready and bool({"Lost", SILENT} & {*phases}),
    )


_REASONS = {
    "Failed": "ProcessFailed",
    "Lost": "HostLost",
    SILENT: HOST_SILENT,
    "Evicted": "ProcessEvicted",
    "Unhealthy": "ProcessUnhealthy",
    "Unplaced": "Unplaced",
}
_URGENT = {phase: rank for rank, phase in enumerate(_REASONS)}


def _is_ready(process: Object) -> bool:
    return not process.meta.terminating and process.get("status", "ready") is True


def _phase(process: Object | None) -> str:
    if process is None or process.meta.terminating:
        return ""
    if not process.get("spec", "host"):
        return "Unplaced"
    return process.get("status", "phase") or ""


def _said(name: str, process: Object | None) -> tuple[str, str]:
    """State of one process for people, as its agent says it; and which one it is, on which Host."""
    where = f"hostprocess/{name}"
    if process is None:
        return "not created yet", where
    host = process.get("spec", "host")
    said = process.get("status", "message") or ""
    if process.meta.terminating:
        return "being deleted, and replaced then", where
    if not host:
        return f"not placed: {said or 'no Host was chosen yet'}", where
    where += f" on host/{host}"
    phase = process.get("status", "phase")
    if not phase:
        return f"the agent of host/{host} has not accepted it yet", where
    return (said, f"{where}: {phase}") if said else (phase, where)


PLACEMENT = _Host()
