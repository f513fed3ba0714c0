"""Matching of writes with an admission hook or policy: rules for resources, selectors for namespaces and objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pilotage.kube.selectors import EVERYTHING, LabelSelector
from pilotage_harbor.apimachinery import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage_harbor.core import Core
    from pilotage_harbor.core.admission import AdmissionAttributes
    from pilotage_harbor.kinds import Json, Kind

NAMESPACES = "namespaces"


class ResourceRule(NamedTuple):
    """Operations and resources; ``*`` is anything."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """Resource with its subresource; an empty one is the object itself."""
    scope: str
    names: frozenset[str]
    """Names of objects; none is every name."""

    def covers(self, operation: str, kind: Kind, subresource: str) -> bool:
        """Whether it is about such writes, of whichever object."""
        return (
            _has(self.operations, operation)
            and _has(self.groups, kind.group)
            and _has(self.versions, kind.version)
            and self.scope in ("*", "Namespaced" if kind.namespaced else "Cluster")
            and any(each in ("*", kind.plural) and sub in ("*", subresource) for each, sub in self.resources)
        )

    def matches(self, attributes: AdmissionAttributes, kind: Kind) -> bool:
        """Whether it is about this write, seen as a write of `kind`."""
        covers = self.covers(attributes.operation, kind, attributes.scope.subresource)
        return covers and (not self.names or name_of(attributes) in self.names)


class MatchResources:
    """The ``MatchResources`` of a policy or binding; those of a webhook call their rules ``rules``.

    `everything`: no rules mean every resource, as in a binding, and not none.
    """

    def __init__(self, said: Json, *, rules: str = "resourceRules", everything: bool = False) -> None:
        self._rules = [rule_of(rule) for rule in said.get(rules) or ()]
        self._excluded = [rule_of(rule) for rule in said.get("excludeResourceRules") or ()]
        self._everything = everything and not self._rules
        self._equivalent = said.get("matchPolicy") != "Exact"
        self._namespaces = LabelSelector.from_object(said.get("namespaceSelector") or {})
        self._objects = LabelSelector.from_object(said.get("objectSelector") or {})

    def concerns(self, core: Core, operation: str, kind: Kind, subresource: str) -> bool:
        """Whether any object of a kind could match. The answer holds until the served kinds change."""
        kinds = [kind, *(_others(core, kind) if self._equivalent else ())]
        return self._everything or any(
            rule.covers(operation, each, subresource) for rule in self._rules for each in kinds
        )

    def kind_for(self, core: Core, attributes: AdmissionAttributes) -> Kind | None:
        """The kind as which the write matches; None if it does not. Raises what its selectors raise."""
        problem: errors.StatusError | None = None
        try:
            if not self._selects_namespace(core, attributes):
                return None
        except errors.StatusError as error:
            problem = error
        if self._objects != EVERYTHING and not self._selects_object(attributes):
            return None
        if self._excluded and self._kind(self._excluded, core, attributes) is not None:
            return None
        kind = attributes.scope.kind if self._everything else self._kind(self._rules, core, attributes)
        if kind is not None and problem is not None:
            raise problem
        return kind

    def _kind(self, rules: Iterable[ResourceRule], core: Core, attributes: AdmissionAttributes) -> Kind | None:
        kind = attributes.scope.kind
        if any(rule.matches(attributes, kind) for rule in rules):
            return kind
        if self._equivalent:
            others = _others(core, kind)
            for rule in rules if others else ():
                for other in others:
                    if rule.matches(attributes, other):
                        return other
        return None

    def _selects_namespace(self, core: Core, attributes: AdmissionAttributes) -> bool:
        kind = attributes.scope.kind
        is_namespace = kind.storage == NAMESPACES
        if self._namespaces == EVERYTHING or not (kind.namespaced or is_namespace):
            return True
        if is_namespace and not attributes.scope.subresource and attributes.operation in ("CREATE", "UPDATE"):
            return self._namespaces.matches(attributes.obj["metadata"].get("labels") or {})
        name = attributes.scope.namespace if kind.namespaced else name_of(attributes)
        entry = core.store.get(NAMESPACES, "", name)
        if entry is None:
            raise errors.not_found("", NAMESPACES, name)
        return self._namespaces.matches(entry.labels)

    def _selects_object(self, attributes: AdmissionAttributes) -> bool:
        both = (attributes.obj, attributes.old)
        return any(self._objects.matches(_labels(obj)) for obj in both if obj is not None)


def rule_of(rule: Json) -> ResourceRule:
    """A rule of a webhook, policy or binding."""
    resources = tuple((name.partition("/")[0], name.partition("/")[2]) for name in rule.get("resources") or ())
    return ResourceRule(
        frozenset(rule.get("operations") or ()),
        frozenset(rule.get("apiGroups") or ()),
        frozenset(rule.get("apiVersions") or ()),
        resources,
        rule.get("scope") or "*",
        frozenset(rule.get("resourceNames") or ()),
    )


def name_of(attributes: AdmissionAttributes) -> str:
    """The name that the request or the object gives; nothing if it is still to be generated."""
    scope = attributes.scope
    if scope.name:
        # Of a whole collection that is deleted, nothing is named.
        in_path = attributes.operation != "DELETE" or scope.call.path.endswith(f"/{scope.kind.plural}/{scope.name}")
        return scope.name if in_path or scope.subresource else ""
    obj: Any = attributes.obj if attributes.obj is not None else attributes.old
    name: str = (obj or {}).get("metadata", {}).get("name", "")
    return name


def namespace_of(attributes: AdmissionAttributes) -> str:
    """The namespace of a request; a Namespace is in itself."""
    scope = attributes.scope
    return name_of(attributes) if scope.kind.storage == NAMESPACES else scope.namespace


def _others(core: Core, kind: Kind) -> list[Kind]:
    """The other versions under which the objects of a kind are served."""
    return [other for other in core.registry if other.storage == kind.storage and other is not kind]


def _labels(obj: Json) -> Any:  # noqa: ANN401 - as it was sent
    return (obj.get("metadata") or {}).get("labels") or {}


def _has(allowed: frozenset[str], wanted: str) -> bool:
    return wanted in allowed or "*" in allowed
