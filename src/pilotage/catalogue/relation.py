"""Relations between objects, and the fields that state them.

A kind's row lists its fields that name other objects: ``mounts("spec.tls[].secretName", A_SECRET)``. A field is a path
from the top of the object: ``spec.rules[].backendRefs[]`` goes through lists, ``spec.nodes.*.steps[]`` through all
values of a map, and ``metadata.labels[kubernetes.io/service-name]`` takes a key that has dots of its own. Of the
metadata there are the name, the labels and the annotations.

`teardown.relations` compiles the fields and finds the objects that they name.
"""

import enum
import functools

import msgspec

from pilotage.catalogue.groups import is_custom

OWN_GROUP = "."
"""Placeholder for the group of a target: the group of the source, or the nearest domain above it that has the kind.

A bucket of ``s3.aws.upbound.io`` is configured by a ProviderConfig of ``aws.upbound.io``.
"""

ANY_NAMESPACE = "*"
"""Placeholder for the namespaces of a selector: all of them."""


class Relation(enum.StrEnum):
    """Relation of a source to its target."""

    OWNS = "owns"
    """The target's ownerReferences, with the right uid and scope: the only relation the garbage collector knows."""
    SELECTS = "selects"
    """A label selector: a Service's for its pods (and the workloads that make them), a PodMonitor's for its pods."""
    ROUTES_TO = "routes to"
    """Traffic goes from the source to the target."""
    SCALES = "scales"
    MOUNTS = "mounts"
    """Needs it to run: ConfigMaps, Secrets, volumes, ServiceAccounts of pods and pod templates."""
    PROTECTS = "protects"
    """Keeps the target from going: disruption budgets, Usages."""
    CLAIMS = "claims"
    """Holds it for itself: a PersistentVolumeClaim its volume."""
    TARGETS = "targets"
    """Is about it in another way: a binding its role, an admission webhook or an APIService its Service."""
    NEEDS = "needs"
    """Is nothing without it, but is not about it: a claim its StorageClass, a route its Gateway, a user its Usage."""
    DEFINES = "defines"
    """A CustomResourceDefinition its instances; a Namespace what is in it."""


# How a field names its target


class TargetKind(msgspec.Struct, frozen=True):
    """The kind of a target, with its scope: a cluster-scoped target has no namespace, wherever it is named from."""

    group: str
    kind: str
    namespaced: bool = True


class NameForm(enum.StrEnum):
    """Notation of a name."""

    PLAIN = "plain"
    SLASHED = "namespace/name"
    """The namespace may stand before the name, with a slash."""
    HOST = "host"
    """A host name as seen from inside the cluster: ``web``, ``web.shop.svc``, ``http://web.shop.svc.cluster.local:80``."""
    VOLUME_URI = "pvc://"
    """The claim in a URI such as ``pvc://models/llama``. Other URIs point at nothing in the cluster."""
    NUMBERED = "numbered"
    """The field, the source's own name and a number, joined by dashes: the claims of a StatefulSet."""


class ByName(msgspec.Struct, frozen=True):
    """The kind is fixed, the field gives the name: as text, or in an object with the name below it."""

    kinds: tuple[TargetKind, ...]
    """Candidates: the first that has an object of this name is meant."""
    name: str = "name"
    """Path of the name below the field, if the field is an object."""
    namespace: str = ""
    """Path of the namespace below the field, if it may be another one; else it is the source's own."""
    form: NameForm = NameForm.PLAIN


class ByReference(msgspec.Struct, frozen=True):
    """The field is an object that says group, kind and name itself; here is where each stands below the field."""

    group: str = "apiVersion"
    """Path of the group; of ``apiVersion``, the version is cut off. Empty: always that of `default`."""
    kind: str = "kind"
    name: str = "name"
    namespace: str = ""
    """Empty: the target is in the source's own namespace, or cluster-scoped."""
    default: TargetKind | None = None
    """Target kind where group or kind are left out. Without a default, such a reference points at nothing."""


class BySelector(msgspec.Struct, frozen=True):
    """The field is a label selector over the objects of some kinds."""

    kinds: tuple[TargetKind, ...] = ()
    """Selected kinds. With ``Pod`` among them, workloads whose pod template has such labels are selected as well."""
    plain: bool = False
    """Whether it is a map of labels, which selects nothing when empty; else it has matchLabels and matchExpressions."""
    namespaces: str = ""
    """Empty: the source's own. `ANY_NAMESPACE`: all. Else the path, from the top, of an object with any, matchNames."""
    reference: ByReference | None = None
    """Paths of group and kind of the selected objects; the selector itself is at `selector` below the field."""
    selector: str = ""


Target = ByName | ByReference | BySelector


class When(msgspec.Struct, frozen=True):
    """A row holds only where the value below the field is one of these; None stands for a value that is not there."""

    field: str
    values: tuple[str | bool | None, ...]


# The fields of a kind


class RelationField(msgspec.Struct, frozen=True):
    """One field of a kind that names other objects."""

    relation: Relation
    field: str
    target: Target
    when: When | None = None
    note: str = ""
    """The name of a value below the field that is worth saying with the edge: ``weight``."""
    back: bool = False
    """Whether it is the named object that has the relation to this one: the edge runs back, from there to here.

    A volume names the claim that claims it. Where the named object is not there, the edge runs forward, to nothing.
    """

    @property
    def from_metadata(self) -> bool:
        """Whether the metadata alone is enough."""
        return self.field.startswith("metadata.")

    @property
    def reaches(self) -> bool:
        """Whether it can point into another namespace than that of its object."""
        target = self.target
        if isinstance(target, BySelector):
            return bool(target.namespaces)
        return bool(target.namespace) or (
            isinstance(target, ByName) and target.form in (NameForm.SLASHED, NameForm.HOST)
        )


selects = functools.partial(RelationField, Relation.SELECTS)
routes_to = functools.partial(RelationField, Relation.ROUTES_TO)
scales = functools.partial(RelationField, Relation.SCALES)
mounts = functools.partial(RelationField, Relation.MOUNTS)
protects = functools.partial(RelationField, Relation.PROTECTS)
claims = functools.partial(RelationField, Relation.CLAIMS)
targets = functools.partial(RelationField, Relation.TARGETS)
needs = functools.partial(RelationField, Relation.NEEDS)
defines = functools.partial(RelationField, Relation.DEFINES)


class RelationRow(RelationField, frozen=True, kw_only=True):
    """A field with its kind: one row of the table that relations are compiled from."""

    group: str
    """May be a pattern: ``*.example.com`` for all groups of a domain, ``*`` for all that are not Kubernetes' own."""
    kind: str
    """``*``: all kinds of the group."""
    demand: bool = True
    """Whether the kind is worth reading in full for this row; see `KnownKind.needs_body`."""
    category: str = ""
    """Discovery category, for a row with a pattern, of the kinds that are worth reading in full for it."""

    @property
    def pattern(self) -> bool:
        """Whether it is for more than one kind."""
        return self.kind == "*" or self.group.startswith("*")

    def applies_to(self, group: str, kind: str) -> bool:
        """Whether it is about objects of this kind."""
        if self.kind not in ("*", kind):
            return False
        if self.group == "*":
            return is_custom(group)
        if self.group.startswith("*."):
            return group.endswith(self.group[1:]) or group == self.group[2:]
        return group == self.group
