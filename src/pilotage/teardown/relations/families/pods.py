"""What a pod needs to run, wherever a pod or a template of one is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube import GroupKind
from pilotage.teardown.relations.families.kinds import (
    CONFIG_MAP,
    PRIORITY_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RUNTIME_CLASS,
    SECRET,
    SERVICE_ACCOUNT,
    VOLUME_CLAIM,
)
from pilotage.teardown.relations.rows import Named, Relation, Row

if TYPE_CHECKING:
    from pilotage.teardown.relations.rows import Kind

TEMPLATES = {
    GroupKind("", "ReplicationController"): "spec.template.metadata.labels",
    GroupKind("apps", "DaemonSet"): "spec.template.metadata.labels",
    GroupKind("apps", "Deployment"): "spec.template.metadata.labels",
    GroupKind("apps", "ReplicaSet"): "spec.template.metadata.labels",
    GroupKind("apps", "StatefulSet"): "spec.template.metadata.labels",
    GroupKind("argoproj.io", "Rollout"): "spec.template.metadata.labels",
    GroupKind("batch", "CronJob"): "spec.jobTemplate.spec.template.metadata.labels",
    GroupKind("batch", "Job"): "spec.template.metadata.labels",
}
"""Where workloads keep the labels of the pods that they make: what selects such pods selects the workload too."""


def container_rows(group: str, kind: str, container: str, *, demand: bool = True) -> tuple[Row, ...]:
    """What the environment of one container is taken from."""

    def row(field: str, target: Kind) -> Row:
        return Row(group, kind, Relation.MOUNTS, f"{container}.{field}", Named((target,)), demand=demand)

    return (
        row("env[].valueFrom.configMapKeyRef", CONFIG_MAP),
        row("env[].valueFrom.secretKeyRef", SECRET),
        row("envFrom[].configMapRef", CONFIG_MAP),
        row("envFrom[].secretRef", SECRET),
    )


def volume_rows(group: str, kind: str, spec: str, *, demand: bool = True) -> tuple[Row, ...]:
    """What the volumes of a pod spec are made from, and the Secrets that its images are pulled with."""

    def row(field: str, target: Kind, name: str = "name") -> Row:
        return Row(group, kind, Relation.MOUNTS, f"{spec}.{field}", Named((target,), name=name), demand=demand)

    return (
        row("volumes[].configMap", CONFIG_MAP),
        row("volumes[].secret", SECRET, name="secretName"),
        row("volumes[].persistentVolumeClaim", VOLUME_CLAIM, name="claimName"),
        row("volumes[].projected.sources[].configMap", CONFIG_MAP),
        row("volumes[].projected.sources[].secret", SECRET),
        row("volumes[].csi.nodePublishSecretRef", SECRET),
        row("imagePullSecrets[]", SECRET),
    )


def pod_rows(group: str, kind: str, spec: str, *, demand: bool = True) -> tuple[Row, ...]:
    """All that the pod spec at a path of a kind names."""

    def row(field: str, target: Kind) -> Row:
        return Row(group, kind, Relation.MOUNTS, f"{spec}.{field}", Named((target,)), demand=demand)

    return (
        *volume_rows(group, kind, spec, demand=demand),
        *container_rows(group, kind, f"{spec}.containers[]", demand=demand),
        *container_rows(group, kind, f"{spec}.initContainers[]", demand=demand),
        row("serviceAccountName", SERVICE_ACCOUNT),
        row("priorityClassName", PRIORITY_CLASS),
        row("runtimeClassName", RUNTIME_CLASS),
    )


def workload_rows(group: str, kind: str, spec: str, *, demand: bool = True) -> tuple[Row, ...]:
    """The same for Kubernetes' own workloads, which may also claim devices."""

    def row(field: str, target: Kind) -> Row:
        return Row(group, kind, Relation.MOUNTS, f"{spec}.resourceClaims[].{field}", Named((target,)), demand=demand)

    return (
        *pod_rows(group, kind, spec, demand=demand),
        row("resourceClaimName", RESOURCE_CLAIM),
        row("resourceClaimTemplateName", RESOURCE_CLAIM_TEMPLATE),
    )
