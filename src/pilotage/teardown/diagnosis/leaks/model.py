"""The leak, and the survey that leaks are found in: is it in progress, and is its target certainly gone?"""

import enum
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pilotage.catalogue.relation import Relation
from pilotage.kube import GroupKind, Json
from pilotage.teardown.diagnosis.remedies import place
from pilotage.teardown.snapshot.fields import seconds_since
from pilotage.teardown.snapshot.graph import Edge, Graph
from pilotage.teardown.snapshot.world import Item, Name, World


class Severity(enum.StrEnum):
    """Severity of a leak."""

    HIGH = "high"
    """It breaks something now: requests fail, writes are refused, a machine is kept busy."""
    MEDIUM = "medium"
    """It costs something, or will never go by itself."""
    LOW = "low"
    """It is in the way of nobody but the reader."""

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return tuple(Severity).index(self)


class LeakCode(enum.StrEnum):
    """The names of all leaks, for scripts: they are added, never changed."""

    HOLD_LEFT = "hold-left"
    """Our own finalizer, of a teardown that was not finished."""
    LIVES_ON = "lives-on"
    """It stands in a receipt as something to go, and is there."""
    OWNED_BY_THE_GONE = "owned-by-the-gone"
    """Something whose owner stands in a receipt, and that stayed."""
    OWNER_GONE = "owner-gone"
    """None of its owners is there, as far as was read: the garbage collector should have taken it."""
    OWNER_WRONG_UID = "owner-wrong-uid"
    """The owner is gone, and another object has its name by now."""
    OWNER_IN_OTHER_NAMESPACE = "owner-in-other-namespace"
    """Its owner is in another namespace, which counts as gone."""
    OWNER_NAMESPACED = "owner-namespaced"
    """It has no namespace, and its owner, which is gone, had one: it is never collected."""
    OWNER_NOT_SERVED = "owner-not-served"
    """The kind of its owner is not served any more: it is never collected."""
    SLICE_WITHOUT_SERVICE = "slice-without-service"
    SLICE_WITH_GONE_PODS = "slice-with-gone-pods"
    ROUTE_TO_NOTHING = "route-to-nothing"
    REPLICASET_ORPHANED = "replicaset-orphaned"
    POD_ORPHANED = "pod-orphaned"
    JOB_ORPHANED = "job-orphaned"
    CLAIM_OF_GONE_STATEFULSET = "claim-of-gone-statefulset"
    SCALES_NOTHING = "scales-nothing"
    PROTECTS_NOTHING = "protects-nothing"
    MONITORS_NOTHING = "monitors-nothing"
    WEBHOOK_WITHOUT_SERVICE = "webhook-without-service"
    APISERVICE_WITHOUT_SERVICE = "apiservice-without-service"
    CONVERSION_WITHOUT_SERVICE = "conversion-without-service"
    VOLUME_RELEASED = "volume-released"
    VOLUME_FAILED = "volume-failed"
    ATTACHED_TO_GONE_NODE = "attached-to-gone-node"


class Leak(NamedTuple):
    """One thing that was left behind."""

    code: LeakCode
    subject: Item
    text: str
    """Description, as the rest of a sentence that begins with its name."""
    severity: Severity
    costs: str
    """Cost while it stays."""
    command: str
    """Command that removes it."""
    effect: str
    """Effect of the command, and what may be lost."""
    evidence: tuple[str, ...] = ()
    missing: Name | None = None
    """The missing target."""

    @property
    def key(self) -> tuple[str, str]:
        """Identity: equal for the same leak, found again."""
        return self.code, self.subject.uid

    def concerns(self, namespace: str) -> bool:
        """Whether it is about this namespace: in it, or without a namespace and pointing there."""
        at = self.subject.meta.namespace
        return at == namespace or (not at and self.missing is not None and self.missing.namespace == namespace)

    def to_json(self, complete: Callable[[str], str] = str) -> Json:
        """All of it. `complete` completes the command."""
        subject = self.subject
        return {
            "code": str(self.code),
            "severity": str(self.severity),
            "apiVersion": subject.resource.api_version,
            "kind": subject.resource.kind,
            "namespace": subject.meta.namespace,
            "name": subject.meta.name,
            "uid": subject.uid,
            "text": self.text,
            "evidence": list(self.evidence),
            "costs": self.costs,
            "remedy": {"command": complete(self.command), "effect": self.effect},
        }


def delete(item: Item) -> str:
    """Command that takes an object down, with what it owns, and proves it."""
    return f"pilotage delete {place(item)}"


YOUNG_SECONDS = 60
"""Things younger than this are being made: their owners, Services and endpoints may be yet to come."""


class LeakSurvey:
    """A world and its graph, looked at for leaks."""

    def __init__(self, world: World, graph: Graph) -> None:
        self.world = world
        self.graph = graph
        self._leaving = {item.meta.name for item in world.of("", "Namespace") if item.terminating}

    def settled(self, item: Item) -> bool:
        """Whether it is neither being made nor being deleted. Of unknown age is not settled."""
        if item.terminating or item.meta.namespace in self._leaving:
            return False
        age = seconds_since(self.world.now, item.meta.creation_timestamp)
        return age is not None and age >= YOUNG_SECONDS

    def of(self, group: str, kind: str) -> Iterator[Item]:
        """All settled objects of a kind."""
        return (item for item in self.world.of(group, kind) if self.settled(item))

    def read(self, kind: GroupKind | tuple[str, str], namespace: str = "") -> bool:
        """Whether the objects of a kind are known there."""
        return not self.world.problem(kind[0], kind[1], namespace)

    def gone(self, name: Name) -> bool:
        """Whether nothing of this name is there: its kind was read, and it was not among them."""
        return self.world.find(*name) is None and self.read(name.group_kind, name.namespace)

    def pointing_at_nothing(self, relation: Relation) -> Iterator[Edge]:
        """The edges of settled objects to what is gone, each source and name once."""
        seen = set()
        for edge in self.graph.dangling:
            key = edge.source.uid, edge.name
            if edge.relation is relation and key not in seen and self.settled(edge.source) and self.gone(edge.name):
                seen.add(key)
                yield edge

    def owned(self, item: Item) -> bool:
        """Whether an owner of it is there, who is then the one to ask."""
        return any(self.world.get(owner.uid) is not None for owner in item.meta.owner_references)
