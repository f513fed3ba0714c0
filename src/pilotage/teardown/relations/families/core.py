"""Pods, Services, volumes and accounts."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import (
    A_SECRET,
    A_SECRET_ANYWHERE,
    NODE,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    STORAGE_CLASS,
    VOLUME,
    VOLUME_CLAIM,
)
from pilotage.teardown.relations.families.pods import container_rows, workload_rows
from pilotage.teardown.relations.rows import Kind, Named, Reference, Relation, Row, Selected

_VOLUME_SOURCE = Reference(group="apiGroup", namespace="namespace", default=VOLUME_CLAIM)
_CLASS = Named((STORAGE_CLASS,))
_ATTRIBUTES = Named((Kind("storage.k8s.io", "VolumeAttributesClass", namespaced=False),))
_CSI_SECRETS = (
    "controllerExpandSecretRef",
    "controllerPublishSecretRef",
    "nodeExpandSecretRef",
    "nodePublishSecretRef",
    "nodeStageSecretRef",
)

ROWS = (
    *workload_rows("", "Pod", "spec", demand=False),
    *container_rows("", "Pod", "spec.ephemeralContainers[]", demand=False),
    Row("", "Pod", Relation.NEEDS, "spec.nodeName", Named((NODE,)), demand=False),
    *workload_rows("", "ReplicationController", "spec.template.spec"),
    *workload_rows("", "PodTemplate", "template.spec"),
    Row("", "Service", Relation.SELECTS, "spec.selector", Selected((POD,), plain=True)),
    # Slices and Endpoints are tied to their Service by a label and by the name, with no reference at all.
    Row(
        "discovery.k8s.io",
        "EndpointSlice",
        Relation.TARGETS,
        "metadata.labels[kubernetes.io/service-name]",
        Named((SERVICE,)),
    ),
    Row(
        "discovery.k8s.io",
        "EndpointSlice",
        Relation.ROUTES_TO,
        "endpoints[].targetRef",
        Reference(namespace="namespace", default=POD),
        demand=False,
    ),
    Row("", "Endpoints", Relation.TARGETS, "metadata.name", Named((SERVICE,))),
    Row("", "PersistentVolumeClaim", Relation.CLAIMS, "spec.volumeName", Named((VOLUME,))),
    Row("", "PersistentVolumeClaim", Relation.NEEDS, "spec.storageClassName", _CLASS),
    Row("", "PersistentVolumeClaim", Relation.NEEDS, "spec.volumeAttributesClassName", _ATTRIBUTES),
    Row("", "PersistentVolumeClaim", Relation.NEEDS, "spec.dataSourceRef", _VOLUME_SOURCE),
    Row(
        "",
        "PersistentVolume",
        Relation.CLAIMS,
        "spec.claimRef",
        Named((VOLUME_CLAIM,), namespace="namespace"),
        back=True,
    ),
    Row("", "PersistentVolume", Relation.NEEDS, "spec.storageClassName", _CLASS),
    *(Row("", "PersistentVolume", Relation.MOUNTS, f"spec.csi.{ref}", A_SECRET_ANYWHERE) for ref in _CSI_SECRETS),
    Row("", "ServiceAccount", Relation.MOUNTS, "secrets[]", A_SECRET),
    Row("", "ServiceAccount", Relation.MOUNTS, "imagePullSecrets[]", A_SECRET),
    Row(
        "",
        "Secret",
        Relation.TARGETS,
        "metadata.annotations[kubernetes.io/service-account.name]",
        Named((SERVICE_ACCOUNT,)),
    ),
)
