"""Selection of the objects of a list, watch or deletecollection: by namespace, labels and fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube.selectors import FieldSelector, LabelSelector, SelectorError
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.core.objects import from_entry
from pilotage_harbor.verbs.selector_errors import field_selector_problem, label_selector_problem

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.calls import Call
    from pilotage_harbor.kinds import Kind
    from pilotage_harbor.storage.store import StoredObject

_CHEAP = frozenset({"metadata.name", "metadata.namespace"})


class Choice:
    """The selectors of a request; raises 400 for those that make no sense."""

    def __init__(self, kind: Kind, call: Call, namespace: str = "", name: str = "") -> None:
        self._kind = kind
        self._namespace = namespace
        labels, fields = call.option("labelSelector"), call.option("fieldSelector")
        self._labels = _labels(labels) if labels else None
        self._fields = _fields(kind, fields) if fields else None
        self.looks_into = self._fields is not None and not _CHEAP.issuperset(_names(self._fields))
        """Whether each object has to be decoded for it."""
        self.name = name or _wanted_name(self._fields)
        """The only name that it can be, if there is one."""
        self.selects = bool(self._labels or self._fields or name)
        """Whether an object can be in or out depending on what it is like."""
        self._only = name

    def includes(self, entry: StoredObject) -> bool:
        """Whether this object is meant."""
        if self._namespace and entry.namespace != self._namespace:
            return False
        if not self.selects:
            return True
        if self._only and entry.name != self._only:
            return False
        if self._labels is not None and not self._labels.matches(entry.labels):
            return False
        if self._fields is None:
            return True
        values = {"metadata.name": entry.name, "metadata.namespace": entry.namespace}
        if self.looks_into:
            values |= self._kind.strategy.fields(from_entry(self._kind, entry))
        return self._fields.matches(values)


def _labels(text: str) -> LabelSelector:
    try:
        return LabelSelector.parse(text)
    except SelectorError:
        raise errors.bad_request(label_selector_problem(text)) from None


def _fields(kind: Kind, text: str) -> FieldSelector:
    try:
        selector = FieldSelector.parse(text)
    except SelectorError:
        raise errors.bad_request(field_selector_problem(text)) from None
    for name in _names(selector):
        if name not in _CHEAP and name not in kind.selectable:
            if kind.custom or kind.selectable:
                raise errors.bad_request(f"field label not supported: {name}")
            words = f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            raise errors.bad_request(words)
    return selector


def _names(selector: FieldSelector) -> list[str]:
    return [requirement.field for requirement in selector.requirements]


def _wanted_name(selector: FieldSelector | None) -> str:
    for requirement in selector.requirements if selector is not None else ():
        if requirement.field == "metadata.name" and requirement.equal:
            return requirement.value
    return ""
