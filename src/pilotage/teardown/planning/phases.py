"""The phases of a teardown, and the phase in which an object of a kind goes.

The order of the phases is the order of the teardown of anything that serves: first nobody is sent to it any more, then
what would fight back goes, then what runs, then what it needed, then what owned it all.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from pilotage.teardown.snapshot.world import GroupKind

if TYPE_CHECKING:
    from collections.abc import Iterable


class Phase(enum.IntEnum):
    """In order. An object has one of detach, quiesce, stop, remove, release; the others are steps of the whole."""

    CORDON = 0
    """The intent is on record: owners whose parts go one by one are held and marked for deletion."""
    DETACH = 1
    """Routes go: nobody new is sent here."""
    DRAIN = 2
    """What is under way ends, for as long as the policy gives it."""
    QUIESCE = 3
    """Writers that would fight go: autoscalers, schedules, admission webhooks."""
    STOP = 4
    """What runs goes, with its pods."""
    REMOVE = 5
    """Services, configuration, budgets, volumes: what the workload needed."""
    RELEASE = 6
    """Owners, definitions, namespaces: what held the rest together."""
    PROVE = 7
    """Everything is read afresh."""

    def __str__(self) -> str:
        return self.name.lower()


def _kinds(group: str, *kinds: str) -> Iterable[GroupKind]:
    return (GroupKind(group, kind) for kind in kinds)


WORKLOADS = frozenset(
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
    **dict.fromkeys(WORKLOADS, Phase.STOP),
    **dict.fromkeys(_kinds("pilotage.dev", "HostProcess"), Phase.STOP),
    **dict.fromkeys(_kinds("", "Namespace"), Phase.RELEASE),
    **dict.fromkeys(_kinds("apiextensions.k8s.io", "CustomResourceDefinition"), Phase.RELEASE),
}


def phase_of(kind: GroupKind) -> Phase:
    """The phase in which objects of a kind go, unless what they own says otherwise."""
    return _PHASES.get(kind, Phase.REMOVE)


def is_built_in(group: str) -> bool:
    """Whether the kinds of a group come with Kubernetes: their owners delete no parts of their own in any order."""
    return "." not in group or (group.endswith(".k8s.io") and not group.endswith(".x-k8s.io"))
