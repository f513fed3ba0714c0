"""Leaks: objects that nothing will ever clean up, and references to objects that do not exist.

`find_leaks` decides from a world, without I/O. A family of leaks is one file. A false alarm is worse than a miss: what
is younger than a minute, or being deleted, is in progress; what could not be read is unknown, and unknown is not gone.
"""

from collections.abc import Callable, Iterator

from pilotage.kube import GroupKind
from pilotage.teardown.diagnosis.leaks import idle, orphans, owners, storage, teardowns, traffic
from pilotage.teardown.diagnosis.leaks.model import Leak, LeakCode, LeakSurvey, Severity
from pilotage.teardown.diagnosis.leaks.teardowns import LeftOver, left_over
from pilotage.teardown.snapshot.graph import Graph
from pilotage.teardown.snapshot.world import World

__all__ = ["Leak", "LeakCode", "LeftOver", "Severity", "find_leaks", "left_over", "undumped"]

_FAMILIES: tuple[Callable[[LeakSurvey], Iterator[Leak]], ...] = (
    teardowns.leaks,
    owners.leaks,
    traffic.leaks,
    orphans.leaks,
    idle.leaks,
    storage.leaks,
)


_LOOKED_AT = tuple(
    GroupKind(group, kind)
    for group, names in {
        "": "Namespace Node PersistentVolume PersistentVolumeClaim Pod Service",
        "admissionregistration.k8s.io": "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
        "apiextensions.k8s.io": "CustomResourceDefinition",
        "apiregistration.k8s.io": "APIService",
        "apps": "DaemonSet Deployment ReplicaSet StatefulSet",
        "autoscaling": "HorizontalPodAutoscaler",
        "batch": "CronJob Job",
        "discovery.k8s.io": "EndpointSlice",
        "networking.k8s.io": "Ingress",
        "policy": "PodDisruptionBudget",
        "storage.k8s.io": "VolumeAttachment",
    }.items()
    for kind in names.split()
)
"""The kinds of Kubernetes that leak, or that the targets of a leak would be of."""


def undumped(world: World) -> dict[str, str]:
    """The kinds of Kubernetes that leaks are looked for in, and of which a dump has nothing, each with why it is not
    known. None of a kind in a dump may mean that there is none, or that it was not asked for.
    """
    return {str(kind): world.problem(*kind) for kind in _LOOKED_AT if kind not in world.kinds and not world.live}


def find_leaks(world: World, graph: Graph) -> list[Leak]:
    """All leaks that this world shows, the worst first. It must hold all kinds that are served (`gather` without
    `kinds`), or be a dump: else a kind that was left out could be taken for one that is not served.
    """
    survey = LeakSurvey(world, graph)
    found = {leak.key: leak for family in _FAMILIES for leak in family(survey)}
    return sorted(found.values(), key=lambda leak: (leak.severity.rank, *leak.subject.name, leak.code))
