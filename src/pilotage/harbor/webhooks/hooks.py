"""One webhook of a configuration, compiled: which writes it is asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pilotage.harbor import errors
from pilotage.harbor.webhooks.conditions import Conditions
from pilotage.kube.selectors import EVERYTHING, LabelSelector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage.harbor.core import Core
    from pilotage.harbor.kinds import Json, Kind
    from pilotage.harbor.webhooks.admission import Attributes

NAMESPACES = "namespaces"
TIMEOUT_SECONDS = 10


class Rule(NamedTuple):
    """What a rule is about; ``*`` is anything."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """With the subresource; nothing is the object itself."""
    scope: str

    def matches(self, operation: str, kind: Kind, subresource: str) -> bool:
        """Whether it is about this."""
        return (
            _has(self.operations, operation)
            and _has(self.groups, kind.group)
            and _has(self.versions, kind.version)
            and self.scope in ("*", "Namespaced" if kind.namespaced else "Cluster")
            and any(each in ("*", kind.plural) and sub in ("*", subresource) for each, sub in self.resources)
        )


class Hook:
    """One webhook. `uid` tells it from all others."""

    def __init__(self, configuration: str, at: int, webhook: Json) -> None:
        self.name: str = webhook["name"]
        self.uid = f"{configuration}/{self.name}/{at}"
        self.client: Json = webhook.get("clientConfig") or {}
        self.ignores_failures = webhook.get("failurePolicy") == "Ignore"
        self.timeout_seconds: int = webhook.get("timeoutSeconds") or TIMEOUT_SECONDS
        self.side_effects: str | None = webhook.get("sideEffects")
        self.reinvocable = webhook.get("reinvocationPolicy") == "IfNeeded"
        self.review_versions: list[str] = webhook.get("admissionReviewVersions") or []
        self._rules = [_rule(rule) for rule in webhook.get("rules") or ()]
        self._equivalent = webhook.get("matchPolicy") != "Exact"
        self._namespaces = LabelSelector.from_object(webhook.get("namespaceSelector") or {})
        self._objects = LabelSelector.from_object(webhook.get("objectSelector") or {})
        self._conditions = Conditions(webhook.get("matchConditions") or (), self.ignores_failures)

    def kind_for(self, core: Core, attributes: Attributes) -> Kind | None:
        """As which kind to show it the write; None if it is not to be asked. Raises what its selectors raise."""
        scope = attributes.scope
        problem: errors.StatusError | None = None
        try:
            if not self._selects_namespace(core, attributes):
                return None
        except errors.StatusError as error:
            problem = error
        if self._objects != EVERYTHING and not self._selects_object(attributes):
            return None
        kind = self._match(core, attributes.operation, scope.kind, scope.subresource)
        if kind is not None and problem is not None:
            raise problem
        return kind

    def meets_conditions(self, request: Json, resource: Kind) -> bool:
        """Whether its matchConditions are met by the request of a review; 403 if that cannot be said."""
        return self._conditions.met(request, resource)

    def _match(self, core: Core, operation: str, kind: Kind, subresource: str) -> Kind | None:
        if any(rule.matches(operation, kind, subresource) for rule in self._rules):
            return kind
        if self._equivalent:
            others = [other for other in core.registry if other.storage == kind.storage and other is not kind]
            for rule in self._rules:
                for other in others:
                    if rule.matches(operation, other, subresource):
                        return other
        return None

    def _selects_namespace(self, core: Core, attributes: Attributes) -> bool:
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

    def _selects_object(self, attributes: Attributes) -> bool:
        both = (attributes.obj, attributes.old)
        return any(self._objects.matches(obj["metadata"].get("labels") or {}) for obj in both if obj is not None)


def hooks_of(configurations: Iterable[Json]) -> list[Hook]:
    """All webhooks of some configurations, in their order."""
    return [
        Hook(configuration["metadata"]["name"], at, webhook)
        for configuration in configurations
        for at, webhook in enumerate(configuration.get("webhooks") or ())
    ]


def name_of(attributes: Attributes) -> str:
    """The name that the request or the object gives; nothing if it is still to be generated."""
    scope = attributes.scope
    if scope.name:
        # Of a whole collection that is deleted, nothing is named.
        in_path = attributes.operation != "DELETE" or scope.call.path.endswith(f"/{scope.kind.plural}/{scope.name}")
        return scope.name if in_path or scope.subresource else ""
    obj: Any = attributes.obj if attributes.obj is not None else attributes.old
    name: str = (obj or {}).get("metadata", {}).get("name", "")
    return name


def _rule(rule: Json) -> Rule:
    resources = tuple((name.partition("/")[0], name.partition("/")[2]) for name in rule.get("resources") or ())
    return Rule(
        frozenset(rule.get("operations") or ()),
        frozenset(rule.get("apiGroups") or ()),
        frozenset(rule.get("apiVersions") or ()),
        resources,
        rule.get("scope") or "*",
    )


def _has(allowed: frozenset[str], wanted: str) -> bool:
    return wanted in allowed or "*" in allowed
