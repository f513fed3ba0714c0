"""The leak: one object that was left behind."""

import enum
from typing import NamedTuple

from pilotage.kube import Json
from pilotage.teardown.diagnosis.remedies import place
from pilotage.teardown.snapshot.world import Item, Name


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

    def to_json(self) -> Json:
        """All of it."""
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
            "remedy": {"command": self.command, "effect": self.effect},
        }


def delete(item: Item) -> str:
    """Command that takes an object down, with what it owns, and proves it."""
    return f"pilotage delete {place(item)}"
