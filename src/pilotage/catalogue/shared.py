"""Targets, groups of fields and rows that more than one ecosystem uses."""

import functools

from pilotage.catalogue.kind import KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import (
    ByName,
    ByReference,
    BySelector,
    RelationField,
    TargetKind,
    mounts,
    needs,
    protects,
)

CONFIG_MAP = TargetKind("", "ConfigMap")
NODE = TargetKind("", "Node", namespaced=False)
POD = TargetKind("", "Pod")
SECRET = TargetKind("", "Secret")
SERVICE = TargetKind("", "Service")
SERVICE_ACCOUNT = TargetKind("", "ServiceAccount")
VOLUME = TargetKind("", "PersistentVolume", namespaced=False)
VOLUME_CLAIM = TargetKind("", "PersistentVolumeClaim")
INGRESS = TargetKind("networking.k8s.io", "Ingress")
INGRESS_CLASS = TargetKind("networking.k8s.io", "IngressClass", namespaced=False)
STORAGE_CLASS = TargetKind("storage.k8s.io", "StorageClass", namespaced=False)

A_CONFIG_MAP = ByName((CONFIG_MAP,))
A_POD_BY_LABELS = BySelector((POD,))
A_SECRET = ByName((SECRET,))
A_SECRET_ANYWHERE = ByName((SECRET,), namespace="namespace")
A_SERVICE = ByName((SERVICE,))
A_SERVICE_ANYWHERE = ByName((SERVICE,), namespace="namespace")
A_SERVICE_ACCOUNT = ByName((SERVICE_ACCOUNT,))
A_VOLUME = ByName((VOLUME,))
A_VOLUME_CLAIM = ByName((VOLUME_CLAIM,))
AN_INGRESS = ByName((INGRESS,))
AN_INGRESS_CLASS = ByName((INGRESS_CLASS,))
A_NODE = ByName((NODE,))
ANYTHING = ByReference()
ANYTHING_BY_GROUP = ByReference(group="apiGroup")

_PRIORITY_CLASS = ByName((TargetKind("scheduling.k8s.io", "PriorityClass", namespaced=False),))
_RESOURCE_CLAIM = ByName((TargetKind("resource.k8s.io", "ResourceClaim"),))
_RESOURCE_CLAIM_TEMPLATE = ByName((TargetKind("resource.k8s.io", "ResourceClaimTemplate"),))
_RUNTIME_CLASS = ByName((TargetKind("node.k8s.io", "RuntimeClass", namespaced=False),))

TEMPLATE_LABELS = "spec.template.metadata.labels"
"""Path of the labels of the pods, in nearly all workloads."""

workload = functools.partial(KnownKind, phase=Phase.STOP, workload=True, pod_labels=TEMPLATE_LABELS)
"""Row of a kind that runs pods of a template."""


# A pod spec, wherever it is written down


def container_fields(container: str) -> tuple[RelationField, ...]:
    """The objects that the environment of one container is taken from."""
    return (
        mounts(f"{container}.env[].valueFrom.configMapKeyRef", A_CONFIG_MAP),
        mounts(f"{container}.env[].valueFrom.secretKeyRef", A_SECRET),
        mounts(f"{container}.envFrom[].configMapRef", A_CONFIG_MAP),
        mounts(f"{container}.envFrom[].secretRef", A_SECRET),
    )


def volume_fields(spec: str) -> tuple[RelationField, ...]:
    """The objects that the volumes of a pod spec are made from, and the Secrets that its images are pulled with."""
    return (
        mounts(f"{spec}.volumes[].configMap", A_CONFIG_MAP),
        mounts(f"{spec}.volumes[].secret", ByName((SECRET,), name="secretName")),
        mounts(f"{spec}.volumes[].persistentVolumeClaim", ByName((VOLUME_CLAIM,), name="claimName")),
        mounts(f"{spec}.volumes[].projected.sources[].configMap", A_CONFIG_MAP),
        mounts(f"{spec}.volumes[].projected.sources[].secret", A_SECRET),
        mounts(f"{spec}.volumes[].csi.nodePublishSecretRef", A_SECRET),
        mounts(f"{spec}.imagePullSecrets[]", A_SECRET),
    )


def pod_fields(spec: str) -> tuple[RelationField, ...]:
    """All fields of a pod spec that name objects."""
    return (
        *volume_fields(spec),
        *container_fields(f"{spec}.containers[]"),
        *container_fields(f"{spec}.initContainers[]"),
        mounts(f"{spec}.serviceAccountName", A_SERVICE_ACCOUNT),
        mounts(f"{spec}.priorityClassName", _PRIORITY_CLASS),
        mounts(f"{spec}.runtimeClassName", _RUNTIME_CLASS),
    )


def workload_fields(spec: str) -> tuple[RelationField, ...]:
    """All fields of a pod spec of Kubernetes' own workloads, which may also claim devices."""
    return (
        *pod_fields(spec),
        mounts(f"{spec}.resourceClaims[].resourceClaimName", _RESOURCE_CLAIM),
        mounts(f"{spec}.resourceClaims[].resourceClaimTemplateName", _RESOURCE_CLAIM_TEMPLATE),
    )


# Usages, Crossplane's and our own


def usage_fields(*, across: bool = False, user_across: bool = False) -> tuple[RelationField, ...]:
    """A Usage names the object in use, or selects it until its controller has chosen.

    `across`: what is in use may be in another namespace; `user_across`: so may its user.
    """
    used = ByReference(name="resourceRef.name", namespace="resourceRef.namespace" if across else "")
    user = ByReference(name="resourceRef.name", namespace="resourceRef.namespace" if user_across else "")
    selector = BySelector(reference=used, selector="resourceSelector.matchLabels", plain=True)
    return (
        protects("spec.of", used),
        protects("spec.of", selector),
        # Its user goes before it, so the user is said to need it: where both are composed, the controller waits for it.
        needs("spec.by", user, back=True),
        needs("spec.by", selector, back=True),
    )
