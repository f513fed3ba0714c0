"""One row of the catalogue: all that Pilotage knows about a kind, in columns."""

import enum

import msgspec

from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import Relation, RelationField
from pilotage.kube import GroupKind


class Keep(enum.StrEnum):
    """A family of objects that a teardown can keep."""

    VOLUMES = "volumes"
    CACHES = "caches"
    """Fetched weights: Models, and claims that are called ``…-cache``."""
    SECRETS = "secrets"
    CONFIGS = "configs"


class ReadFor(enum.StrEnum):
    """A purpose for which a kind is read in full, besides its relations."""

    FINALIZERS = "finalizers"
    """Bodies are read to tell which controller removes a finalizer, and whether it runs."""
    HAZARDS = "hazards"
    """Bodies are read to predict what will block a teardown."""
    LEAKS = "leaks"
    """Bodies are read to find what was left behind."""


class Guard(msgspec.Struct, frozen=True):
    """A kind that protects pods against disruption and does not forbid their deletion.

    It goes after the pods that it protects, and together with them where it protects nothing else. Its relations say
    which pods these are (`Relation.PROTECTS`). The fields are paths in its body; empty: it has no such field, and `why`
    does not mention it.
    """

    disruptions_allowed: str = ""
    """Number of pods that may be evicted now."""
    healthy: str = ""
    healthy_wanted: str = ""
    settings: tuple[str, ...] = ()
    """Settings of its author; the first that is set is quoted."""


class KnownKind(msgspec.Struct, frozen=True):
    """One kind. The default of each column is what is true of a kind that nothing is known about."""

    group: str
    """``*`` with kind ``*``: all kinds of `category` that are neither Kubernetes' own nor its projects'."""
    kind: str
    short_names: tuple[str, ...] = ()
    """Short names as kubectl knows them: a dump does not have them."""
    category: str = ""
    """Discovery category, for a row for many kinds, of those that are read in full for its relations."""

    # Reading
    relations: tuple[RelationField, ...] = ()
    """Its fields that name other objects."""
    needs_body: bool = True
    """Whether its objects are read in full for its relations.

    Not those that a controller makes by the thousand from a template that is read anyway, and not those that are huge.
    Where such an object was read in full, its relations count all the same.
    """
    read_for: frozenset[ReadFor] = frozenset()
    """Other purposes for which it is read in full."""
    only_if_asked: bool = False
    """Many objects, often written, and nobody's to take down: read only where somebody asks for the kind."""
    computed: bool = False
    """Its objects are made up by a server when it is asked: there is nothing behind them to delete."""

    # Planning
    phase: Phase = Phase.REMOVE
    """The phase in which its objects go, unless what they own says otherwise."""
    workload: bool = False
    """Runs pods. Deleted in the background: the collector takes the pods afterwards, and these are proven gone."""
    pod_labels: str = ""
    """Path of the labels of a workload's pods: whatever selects such pods selects the workload too."""
    makes: tuple[GroupKind, ...] = ()
    """Kinds that its controller creates for it, where these are all: so for the controllers of Kubernetes."""
    takes_down: frozenset[Relation] = frozenset()
    """Relations between its objects and their parts where no owner reference says whose these are.

    Its controller takes such parts down, in order, before it removes its finalizer. `DEFINES` leads to parts, any other
    relation comes from them.
    """
    cluster_made: bool = False
    """Made by the cluster for other objects, and gone with them: not listed among the contents of a namespace."""
    guard: Guard | None = None
    keep: Keep | None = None
    """The family by which a teardown can keep its objects."""

    # Traffic
    route_status: tuple[str, ...] = ("status.parents", "status.conditions", "status.ingress")
    """Paths in a route, one of which a router fills when it has accepted the route. Empty: routers write no status."""

    # Diagnosis
    serves: bool = False
    """Runs something, or brings traffic to it: named by `why` while it still serves below a deleted object."""
    scaled: bool = False
    """Has replicas that an autoscaler may set back."""
    monitors: bool = False
    """Selects what is scraped: one that selects nothing is a leak."""

    @property
    def group_kind(self) -> GroupKind:
        """Group and kind."""
        return GroupKind(self.group, self.kind)


class KnownFinalizer(msgspec.Struct, frozen=True):
    """One finalizer, or several of one controller."""

    patterns: tuple[str, ...]
    """Its names, with ``*`` for any text."""
    who: str
    """The controller that takes it off, as a person calls it."""
    does: str
    """Work of the controller before it removes the finalizer, as the end of "before that it …"."""
    leaks: str
    """Leftovers if the finalizer is removed by hand."""
    workloads: tuple[str, ...] = ()
    """Names of the Deployment, StatefulSet or DaemonSet that runs the controller, with ``*`` for any text."""
    namespaces: tuple[str, ...] = ()
    """Namespaces in which the controller usually runs; it is looked for everywhere, and here first."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels of its workload, any of which is enough."""
    leases: tuple[str, ...] = ()
    """Names of its Lease, with ``*`` for any text."""
    builtin: bool = False
    """Whether the controller is a part of Kubernetes itself."""


class Ecosystem(msgspec.Struct, frozen=True):
    """One file of the catalogue: a project, its kinds and its finalizers."""

    title: str
    kinds: tuple[KnownKind, ...] = ()
    finalizers: tuple[KnownFinalizer, ...] = ()
    defined: bool = False
    """Whether a CustomResourceDefinition defines each of its kinds: once that is gone, no object of it is left."""
