"""Lookups in the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.catalogue.phase import Phase
from pilotage.kube import GroupKind

if TYPE_CHECKING:
    from collections.abc import Iterable


def _kinds(group: str, *kinds: str) -> Iterable[GroupKind]:
    return (GroupKind(group, kind) for kind in kinds)


_WORKLOADS = frozenset(
    {
        *_kinds("", "Pod", "ReplicationController"),
        *_kinds("apps", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"),
        *_kinds("batch", "Job"),
        *_kinds("argoproj.io", "Rollout"),
        *_kinds("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    }
)
"""What runs pods. Deleted in the background: the collector takes the pods afterwards, and these are proven gone."""

_PHASES: dict[GroupKind, Phase] = {
    **dict.fromkeys(_kinds("networking.k8s.io", "Ingress"), Phase.DETACH),
    **dict.fromkeys(_kinds("extensions", "Ingress"), Phase.DETACH),
    **dict.fromkeys(
        _kinds("gateway.networking.k8s.io", "HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute", "Gateway"),
        Phase.DETACH,
    ),
    **dict.fromkeys(_kinds("projectcontour.io", "HTTPProxy"), Phase.DETACH),
    **dict.fromkeys(_kinds("pilotage.dev", "GatewayRoute"), Phase.DETACH),
    **dict.fromkeys(_kinds("networking.istio.io", "VirtualService", "Gateway"), Phase.DETACH),
    **dict.fromkeys(_kinds("traefik.io", "IngressRoute", "IngressRouteTCP", "IngressRouteUDP"), Phase.DETACH),
    **dict.fromkeys(_kinds("route.openshift.io", "Route"), Phase.DETACH),
    **dict.fromkeys(_kinds("autoscaling", "HorizontalPodAutoscaler"), Phase.QUIESCE),
    **dict.fromkeys(_kinds("autoscaling.k8s.io", "VerticalPodAutoscaler"), Phase.QUIESCE),
    **dict.fromkeys(_kinds("autoscaling.internal.knative.dev", "PodAutoscaler"), Phase.QUIESCE),
    **dict.fromkeys(_kinds("keda.sh", "ScaledObject", "ScaledJob"), Phase.QUIESCE),
    **dict.fromkeys(_kinds("batch", "CronJob"), Phase.QUIESCE),
    **dict.fromkeys(
        _kinds("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
        Phase.QUIESCE,
    ),
    **dict.fromkeys(_kinds("apiregistration.k8s.io", "APIService"), Phase.QUIESCE),
    **dict.fromkeys(_WORKLOADS, Phase.STOP),
    **dict.fromkeys(_kinds("pilotage.dev", "HostProcess"), Phase.STOP),
    **dict.fromkeys(_kinds("", "Namespace"), Phase.RELEASE),
    **dict.fromkeys(_kinds("apiextensions.k8s.io", "CustomResourceDefinition"), Phase.RELEASE),
}


def phase_of(kind: GroupKind) -> Phase:
    """The phase in which objects of a kind go, unless what they own says otherwise."""
    return _PHASES.get(kind, Phase.REMOVE)


def workloads() -> frozenset[GroupKind]:
    """The kinds that run pods."""
    return _WORKLOADS


def is_built_in(group: str) -> bool:
    """Whether the kinds of a group come with Kubernetes: their owners delete no parts of their own in any order."""
    return "." not in group or (group.endswith(".k8s.io") and not group.endswith(".x-k8s.io"))
