"""Members that the Go structs of built-in kinds always have, set or not.

kube-apiserver compares Go structs, and a member that is a struct itself, or that is written though it is empty, is on
both sides of every comparison. So nobody gains or loses it: who first sets a Deployment's strategy owns what is in it,
but not the strategy. The schema does not tell these members, apart from those that it requires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pilotage_harbor.patching.values import Value
    from pilotage_harbor.schema.node import SchemaNode

# By Go type: what is not required. A time that is no pointer is a struct; without a value it is null.
_MORE = {
    "ClusterRole": ("rules",),
    "Container": ("resources",),
    "ContainerImage": ("names",),
    "ContainerStateRunning": ("startedAt",),
    "ContainerStateTerminated": ("finishedAt", "startedAt"),
    "ContainerStatus": ("lastState", "state"),
    "CSINodeDriver": ("topologyKeys",),
    "CustomResourceDefinitionStatus": ("acceptedNames", "conditions", "storedVersions"),
    "DaemonSetSpec": ("updateStrategy",),
    "DeploymentSpec": ("strategy",),
    "Endpoint": ("conditions",),
    "EndpointSlice": ("endpoints", "ports"),
    "EphemeralContainer": ("resources",),
    "Event": (
        "deprecatedFirstTimestamp",
        "deprecatedLastTimestamp",
        "deprecatedSource",
        "eventTime",
        "firstTimestamp",
        "lastTimestamp",
        "regarding",
        "reportingComponent",
        "source",
    ),
    "EventSeries": ("lastObservedTime",),
    "HorizontalPodAutoscalerStatus": ("currentMetrics",),
    "IngressServiceBackend": ("port",),
    "IngressStatus": ("loadBalancer",),
    "NetworkPolicySpec": ("podSelector",),
    "NodeDaemonEndpoints": ("kubeletEndpoint",),
    "NodeRuntimeHandler": ("name",),
    "NodeStatus": ("daemonEndpoints", "nodeInfo"),
    "PersistentVolumeClaimSpec": ("resources",),
    "PodDisruptionBudgetStatus": ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"),
    "PodTemplate": ("template",),
    "PriorityClass": ("value",),
    "ProjectedVolumeSource": ("sources",),
    "ReplicaSetSpec": ("template",),
    "ResourceClaimSpec": ("devices",),
    "Role": ("rules",),
    "RoleRef": ("apiGroup",),
    "ServiceStatus": ("loadBalancer",),
    "StatefulSetOrdinals": ("start",),
    "StatefulSetSpec": ("serviceName", "updateStrategy"),
    "StatefulSetStatus": ("availableReplicas",),
    "VolumeError": ("time",),
}
_STRUCTS = ("metadata", "spec", "status")
_CONDITION_TIMES = ("lastHeartbeatTime", "lastProbeTime", "lastTransitionTime", "lastUpdateTime")
# What looks like one of these and is a pointer.
_POINTERS = {"CustomResourceSubresources": ("status",)}


def always_there(schema: SchemaNode) -> dict[str, Any]:
    """The members of a struct that are always there, with what they are where nothing was set."""
    go_type = schema.go_name.rpartition(".")[2]
    times = _CONDITION_TIMES if go_type.endswith("Condition") else ()
    names = {*schema.required, *_STRUCTS, *times, *_MORE.get(go_type, ())}.difference(_POINTERS.get(go_type, ()))
    return {name: _zero(part) for name in sorted(names) if (part := schema.properties.get(name)) is not None}


def _zero(schema: SchemaNode) -> Value:
    if schema.type == "object" and schema.properties:
        return {}
    if schema.format in ("date-time", "quantity", "int-or-string"):
        return None
    return {"string": "", "integer": 0, "number": 0, "boolean": False}.get(schema.type)
