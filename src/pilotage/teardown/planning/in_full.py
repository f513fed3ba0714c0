"""The kinds that have to be read in full.

They stand apart from what needs them, because they have to be known first: reading begins while the rest is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube import GroupKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage.kube import ApiResource

KEEPERS = frozenset(
    {
        GroupKind("coordination.k8s.io", "Lease"),
        GroupKind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    }
)
"""To tell who keeps a finalizer, and whether it runs."""
HAZARDS = KEEPERS | {
    GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
}
"""To tell what will stand in the way."""

_RELATED = {
    "": "PersistentVolume+ PersistentVolumeClaim+ PodTemplate ReplicationController Service ServiceAccount",
    "admissionregistration.k8s.io": "MutatingAdmissionPolicyBinding MutatingWebhookConfiguration+ "
    "ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration+",
    "apiextensions.crossplane.io": "Composition Usage",
    "apiregistration.k8s.io": "APIService+",
    "apps": "DaemonSet Deployment StatefulSet",
    "argoproj.io": "AnalysisRun AnalysisTemplate ClusterAnalysisTemplate Experiment Rollout+",
    "autoscaling": "HorizontalPodAutoscaler",
    "autoscaling.internal.knative.dev": "PodAutoscaler",
    "autoscaling.k8s.io": "VerticalPodAutoscaler",
    "batch": "CronJob Job",
    "cert-manager.io": "Certificate CertificateRequest Issuer",
    "gateway.networking.k8s.io": "BackendTLSPolicy GRPCRoute+ Gateway+ GatewayClass+ HTTPRoute+ ReferenceGrant "
    "TCPRoute+ TLSRoute+ UDPRoute+",
    "keda.sh": "ScaledJob ScaledObject TriggerAuthentication",
    "monitoring.coreos.com": "PodMonitor+ ServiceMonitor+",
    "networking.istio.io": "DestinationRule+ Gateway+ VirtualService+",
    "networking.k8s.io": "Ingress IngressClass+ NetworkPolicy",
    "pilotage.dev": "ClusterUsage+ GatewayRoute HostProcess Model ServingEndpoint Usage+",
    "pkg.crossplane.io": "Function FunctionRevision Provider ProviderRevision",
    "policy": "PodDisruptionBudget",
    "projectcontour.io": "ExtensionService HTTPProxy+ TLSCertificateDelegation",
    "protection.crossplane.io": "ClusterUsage Usage+",
    "rbac.authorization.k8s.io": "ClusterRoleBinding+ RoleBinding+",
    "serving.knative.dev": "Configuration DomainMapping+ Route Service",
    "serving.kserve.io": "InferenceGraph+ InferenceService ServingRuntime TrainedModel",
    "snapshot.storage.k8s.io": "VolumeSnapshot VolumeSnapshotContent+",
    "storage.k8s.io": "VolumeAttachment",
}
"""What the built-in rows of `relations` want to see all of, by group. A ``+`` behind a kind: one of them can point into
another namespace. A test compares it with them."""
_CATEGORIES = frozenset({"composite", "claim", "managed"})
_REACHING_CATEGORIES = frozenset({"composite", "managed"})
_ANYWHERE = frozenset({"ProviderConfigUsage"})
"""The same for their rows with a pattern: kinds that are not Kubernetes' own, by category or by name."""


def related(served: Iterable[ApiResource]) -> frozenset[GroupKind]:
    """`relations.full_kinds` of the built-in rows and these kinds, without the rows: they take a while to import."""
    kinds = {GroupKind(group, kind.rstrip("+")) for group, named in _RELATED.items() for kind in named.split()}
    return frozenset(kinds) | _by_pattern(served, _CATEGORIES, _ANYWHERE)


def reaching(served: Iterable[ApiResource]) -> frozenset[GroupKind]:
    """Those of them that can point into another namespace than their own."""
    named = (GroupKind(group, kind) for group, kinds in _RELATED.items() for kind in kinds.split())
    kinds = frozenset(GroupKind(group, kind[:-1]) for group, kind in named if kind.endswith("+"))
    return kinds | _by_pattern(served, _REACHING_CATEGORIES, frozenset())


def _by_pattern(
    served: Iterable[ApiResource], categories: frozenset[str], names: frozenset[str]
) -> frozenset[GroupKind]:
    kinds = set()
    for api in served:
        group, kind = api.resource.group, api.resource.kind
        if "." in group and not group.endswith(".k8s.io") and (kind in names or categories & {*api.categories}):
            kinds.add(GroupKind(group, kind))
    return frozenset(kinds)
