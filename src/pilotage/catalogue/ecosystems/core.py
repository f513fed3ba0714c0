"""Core kinds: pods, Services and their endpoints, volumes, accounts, namespaces, Events and Leases."""

from pilotage.catalogue.kind import Ecosystem, Keep, KnownKind, ReadFor
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import (
    ByName,
    ByReference,
    BySelector,
    TargetKind,
    claims,
    mounts,
    needs,
    routes_to,
    selects,
    targets,
)
from pilotage.catalogue.shared import (
    A_NODE,
    A_SECRET,
    A_SECRET_ANYWHERE,
    A_SERVICE,
    A_SERVICE_ACCOUNT,
    A_VOLUME,
    POD,
    STORAGE_CLASS,
    VOLUME_CLAIM,
    container_fields,
    workload,
    workload_fields,
)
from pilotage.kube import GroupKind

_STORAGE_CLASS = ByName((STORAGE_CLASS,))
_CSI_SECRETS = (
    "controllerExpandSecretRef",
    "controllerPublishSecretRef",
    "nodeExpandSecretRef",
    "nodePublishSecretRef",
    "nodeStageSecretRef",
)
_TEMPLATE = workload_fields("spec.template.spec")

ECOSYSTEM = Ecosystem(
    "Core",
    (
        KnownKind(
            "",
            "Pod",
            short_names=("po",),
            relations=(
                *workload_fields("spec"),
                *container_fields("spec.ephemeralContainers[]"),
                needs("spec.nodeName", A_NODE),
            ),
            needs_body=False,
            phase=Phase.STOP,
            workload=True,
            serves=True,
        ),
        workload("", "ReplicationController", short_names=("rc",), relations=_TEMPLATE, makes=(GroupKind("", "Pod"),)),
        KnownKind("", "PodTemplate", relations=workload_fields("template.spec")),
        KnownKind(
            "",
            "Service",
            short_names=("svc",),
            relations=(selects("spec.selector", BySelector((POD,), plain=True)),),
            makes=(GroupKind("discovery.k8s.io", "EndpointSlice"),),
            serves=True,
        ),
        # Slices and Endpoints are tied to their Service by a label and by the name, with no reference at all.
        KnownKind(
            "discovery.k8s.io",
            "EndpointSlice",
            relations=(
                targets("metadata.labels[kubernetes.io/service-name]", A_SERVICE),
                routes_to("endpoints[].targetRef", ByReference(namespace="namespace", default=POD)),
            ),
            needs_body=False,
            read_for=frozenset({ReadFor.LEAKS}),
        ),
        KnownKind(
            "", "Endpoints", short_names=("ep",), relations=(targets("metadata.name", A_SERVICE),), cluster_made=True
        ),
        KnownKind(
            "",
            "PersistentVolumeClaim",
            short_names=("pvc",),
            relations=(
                claims("spec.volumeName", A_VOLUME),
                needs("spec.storageClassName", _STORAGE_CLASS),
                needs(
                    "spec.volumeAttributesClassName",
                    ByName((TargetKind("storage.k8s.io", "VolumeAttributesClass", namespaced=False),)),
                ),
                needs("spec.dataSourceRef", ByReference(group="apiGroup", namespace="namespace", default=VOLUME_CLAIM)),
            ),
            keep=Keep.VOLUMES,
        ),
        KnownKind(
            "",
            "PersistentVolume",
            short_names=("pv",),
            relations=(
                claims("spec.claimRef", ByName((VOLUME_CLAIM,), namespace="namespace"), back=True),
                needs("spec.storageClassName", _STORAGE_CLASS),
                *(mounts(f"spec.csi.{each}", A_SECRET_ANYWHERE) for each in _CSI_SECRETS),
            ),
            keep=Keep.VOLUMES,
        ),
        KnownKind(
            "",
            "ServiceAccount",
            short_names=("sa",),
            relations=(mounts("secrets[]", A_SECRET), mounts("imagePullSecrets[]", A_SECRET)),
        ),
        KnownKind(
            "",
            "Secret",
            relations=(targets("metadata.annotations[kubernetes.io/service-account.name]", A_SERVICE_ACCOUNT),),
            keep=Keep.SECRETS,
        ),
        KnownKind("", "ConfigMap", short_names=("cm",), keep=Keep.CONFIGS),
        KnownKind("", "Namespace", short_names=("ns",), phase=Phase.RELEASE),
        KnownKind("", "Node", short_names=("no",)),
        KnownKind("", "LimitRange", short_names=("limits",)),
        KnownKind("", "ResourceQuota", short_names=("quota",)),
        KnownKind("", "ComponentStatus", computed=True),
        KnownKind("", "Event", short_names=("ev",), only_if_asked=True, cluster_made=True),
        KnownKind("events.k8s.io", "Event", only_if_asked=True, cluster_made=True),
        KnownKind(
            "coordination.k8s.io",
            "Lease",
            read_for=frozenset({ReadFor.FINALIZERS}),
            only_if_asked=True,
            cluster_made=True,
        ),
    ),
)
