"""Kinds, labels and finalizers that code treats in a way of their own, by name."""

from pilotage.kube import GroupKind

DEFINITION = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
LEASE = GroupKind("coordination.k8s.io", "Lease")
NAMESPACE = GroupKind("", "Namespace")
NODE = GroupKind("", "Node")
POD = GroupKind("", "Pod")
SERVICE = GroupKind("", "Service")
SERVICE_ACCOUNT = GroupKind("", "ServiceAccount")
SLICE = GroupKind("discovery.k8s.io", "EndpointSlice")
VOLUME = GroupKind("", "PersistentVolume")
VOLUME_CLAIM = GroupKind("", "PersistentVolumeClaim")
APPLIERS = (
    GroupKind("argoproj.io", "Application"),
    GroupKind("kustomize.toolkit.fluxcd.io", "Kustomization"),
    GroupKind("helm.toolkit.fluxcd.io", "HelmRelease"),
)
"""The kinds of GitOps tools whose objects apply others, of any namespace."""
WEBHOOKS = tuple(
    GroupKind("admissionregistration.k8s.io", kind)
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
)

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
LOAD_BALANCER = "service.kubernetes.io/load-balancer-cleanup"

IN_USE = "crossplane.io/in-use"
JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")
JOB_UIDS = ("batch.kubernetes.io/controller-uid", "controller-uid")
SERVICE_NAME = "kubernetes.io/service-name"
"""Label of an EndpointSlice with the name of its Service."""
