"""Shared parts of the models: the kinds they use, and reading of pods and owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage.kube import Absent, Resource, merge_patch
from pilotage.kube.wire import format_time, parse_time
from pilotage.runtime.clock import utc_now

if TYPE_CHECKING:
    import datetime as dt

    from pilotage.kube import Client, Json, Object

PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
SERVICES = Resource("", "v1", "services", "Service")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")

FINISHED = ("Succeeded", "Failed")


def owner_reference(resource: Resource, obj: Object, *, blocks: bool = True) -> Json:
    """The reference of a controller's child to its owner."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": obj.meta.name,
        "uid": obj.meta.uid,
        "controller": True,
        "blockOwnerDeletion": blocks,
    }


def is_mine(owner: Object, child: Object) -> bool:
    """Whether a child is controlled by exactly this owner."""
    return child.meta.controller is not None and child.meta.controller.uid == owner.meta.uid


def condition(body: Json, type_: str) -> Json | None:
    """A condition of an object's status."""
    conditions = (body.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == type_), None)


def is_ready(pod: Json) -> bool:
    """Whether a pod's condition Ready is true."""
    ready = condition(pod, "Ready")
    return ready is not None and ready["status"] == "True"


def ready_since(pod: Json) -> dt.datetime:
    """Time at which it became ready."""
    ready = condition(pod, "Ready")
    return parse_time(ready["lastTransitionTime"]) if ready and ready.get("lastTransitionTime") else utc_now()


def now_text() -> str:
    """The time, as the API writes it."""
    return format_time(utc_now())


def with_condition(
    conditions: list[Json],
    type_: str,
    *,
    status: bool | None,
    reason: str,
    message: str,
    **more: Any,  # noqa: ANN401 - JSON
) -> list[Json]:
    """The conditions with one set. Its transition time stays unless its status (None: unknown) changes."""
    old = next((each for each in conditions if each["type"] == type_), None)
    text = status_text(status=status)
    since = old["lastTransitionTime"] if old is not None and old["status"] == text else now_text()
    new = {"type": type_, "status": text, "lastTransitionTime": since, "reason": reason, "message": message, **more}
    if old is None:
        return [*conditions, new]
    return [new if each is old else each for each in conditions]


def status_text(*, status: bool | None) -> str:
    """The time as conditions have it."""
    return "Unknown" if status is None else str(status)


async def write_status(client: Client, resource: Resource, obj: Object, status: Json) -> None:
    """Write what differs from the status that is there; nothing if nothing does. It may be gone meanwhile."""
    old = obj.get("status", default={})
    changes = {name: value for name, value in status.items() if old.get(name) != value}
    changes |= dict.fromkeys(name for name in old if name not in status and name in _COUNTS)
    if not changes:
        return
    patch = merge_patch({"status": changes}, resource_version=obj.meta.resource_version)
    try:
        await client.patch(resource, obj.key, patch, subresource="status")
    except Absent:
        return


_COUNTS = (
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "updatedReplicas",
    "fullyLabeledReplicas",
    "terminatingReplicas",
    "currentReplicas",
    "active",
    "ready",
    "succeeded",
    "failed",
)
"""Counters: what is zero is left out, as Go would."""
