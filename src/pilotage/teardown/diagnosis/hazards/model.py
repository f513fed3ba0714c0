"""The hazard, and the outlook that hazards are found in."""

import enum
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from pilotage.kube import Json
from pilotage.teardown.planning.ledger import Entry, Ledger
from pilotage.teardown.snapshot.graph import Graph
from pilotage.teardown.snapshot.world import Item, Name, World


class HazardCode(enum.StrEnum):
    """The names of all hazards, for scripts: they are added, never changed."""

    # keepers
    KEEPER_DEAD = "keeper-dead"
    """An object has a finalizer whose controller does not run."""
    KEEPER_MISSING = "keeper-missing"
    """An object has a finalizer, and nothing in the cluster was found that would remove it."""
    KEEPER_UNKNOWN = "keeper-unknown"
    """An object has a finalizer, and whether anybody would remove it could not be seen."""
    KEEPER_GOES_FIRST = "keeper-goes-first"
    """A controller goes, and objects that only it can let go of stay, or go too late."""
    LOAD_BALANCER_UNKEPT = "load-balancer-unkept"
    """A Service has a cloud load balancer, and no cloud controller was seen that would give it back."""

    # jobs, owners
    JOB_PODS_ORPHANED = "job-pods-orphaned"
    """Pods of a Job that goes were orphaned before, and stay."""
    NEVER_COLLECTED = "never-collected"
    """Something names a going object as its owner and is never collected."""
    OWNER_MAKES_IT_AGAIN = "owner-makes-it-again"
    """The controller of a named object stays."""

    # appliers
    APPLIED_AGAIN = "applied-again"
    """A GitOps tool or a release made a member of the ledger, and applies it again."""

    # references
    ROUTE_LOSES_BACKEND = "route-loses-backend"
    SCALER_LOSES_TARGET = "scaler-loses-target"
    WEBHOOK_LOSES_SERVICE = "webhook-loses-service"
    APISERVICE_LOSES_SERVICE = "apiservice-loses-service"
    REFERENCE_DANGLES = "reference-dangles"
    """Something that stays mounts, needs or is about something that goes."""
    SELECTS_NOTHING_LEFT = "selects-nothing-left"
    """A Service, budget or monitor stays, and all that it selects goes."""
    REFERS_TO_OTHER_NAMESPACE = "refers-to-other-namespace"
    """A member of the ledger refers to an object in another namespace that stays."""

    # permissions
    MAY_NOT_DELETE = "may-not-delete"
    MAY_NOT_READ = "may-not-read"
    MAY_NOT_WATCH = "may-not-watch"
    MAY_NOT_PATCH = "may-not-patch"

    # admission
    WEBHOOK_FAILS = "webhook-fails"
    """A webhook that is asked about deletes, or about the removal of finalizers, does not answer."""
    WEBHOOK_DENIES = "webhook-denies"
    ADMISSION_REFUSES = "admission-refuses"
    """A dry run of the delete was refused otherwise: by a policy, or by the server itself."""
    APISERVICE_DEAD = "apiservice-dead"
    """Some API does not answer, so that no namespace can be proven empty."""

    # protection
    IN_USE = "in-use"
    """A Usage keeps an object from being deleted."""
    CLAIM_IN_USE = "claim-in-use"
    """A volume claim goes, and a pod that mounts it stays."""
    BUDGET_IGNORED = "budget-ignored"
    """A note: a disruption budget does not keep pods from being deleted."""

    # what was seen
    KINDS_UNREAD = "kinds-unread"
    NAMESPACE_CONTENT_UNKNOWN = "namespace-content-unknown"
    POD_ON_LOST_NODE = "pod-on-lost-node"
    VOLUME_RETAINED = "volume-retained"
    CYCLE = "cycle"
    KEPT_FROM_OWNER = "kept-from-owner"


class Hazard(msgspec.Struct, frozen=True):
    """One thing that will probably stand in the way, or that somebody should know before."""

    code: HazardCode
    subject: Item | Name
    said: str
    """Description, as the rest of a sentence that begins with its name."""
    blocks: bool
    """Whether the teardown probably does not get to its end because of it, or leaves something that cannot go."""
    advice: str
    """Advice; empty where there is nothing to do."""
    evidence: tuple[str, ...] = ()
    command: str = ""
    """Command that the advice ends in, if it does."""

    @property
    def text(self) -> str:
        """The whole sentence."""
        return f"{self.subject} {self.said}"

    def to_json(self, complete: Callable[[str], str] = str) -> Json:
        """All of it. `complete` completes the command."""
        name = self.subject.name if isinstance(self.subject, Item) else self.subject
        return {
            "code": str(self.code),
            "blocks": self.blocks,
            "group": name.group,
            "kind": name.kind,
            "namespace": name.namespace,
            "name": name.name,
            "text": self.text,
            "advice": self.advice,
            "command": complete(self.command),
            "evidence": list(self.evidence),
        }


class HazardGroup(NamedTuple):
    """Objects that meet the same hazard: one speaks for all."""

    example: Item
    size: int

    def __str__(self) -> str:
        return f"{self.example}" + (f" and {self.size - 1} more like it" if self.size > 1 else "")


class Outlook:
    """A ledger, seen in its world: what goes, and what stays."""

    def __init__(self, world: World, graph: Graph, ledger: Ledger) -> None:
        self.world = world
        self.graph = graph
        self.ledger = ledger
        self._going = {entry.uid: entry for entry in ledger.going}
        self.going: dict[str, Item] = {uid: item for uid in self._going if (item := world.get(uid)) is not None}

    def entry(self, item: Item) -> Entry:
        """The entry of something that goes."""
        return self._going[item.uid]

    def goes(self, item: Item) -> bool:
        """Whether it is part of the teardown, or on its way out anyhow."""
        return item.uid in self._going or item.terminating

    def of(self, group: str, kind: str) -> Iterator[Item]:
        """Members of the ledger that go, of one kind."""
        return (item for item in self.going.values() if item.group_kind == (group, kind))

    def namespaces(self) -> Iterator[Item]:
        """The namespaces that go."""
        return self.of("", "Namespace")

    @staticmethod
    def groups(items: Iterable[tuple[object, Item]]) -> dict[object, HazardGroup]:
        """Items, those of the same key together."""
        found: dict[object, HazardGroup] = {}
        for key, item in items:
            known = found.get(key)
            found[key] = HazardGroup(item, 1) if known is None else known._replace(size=known.size + 1)
        return found
