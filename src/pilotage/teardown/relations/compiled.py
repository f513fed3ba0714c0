"""Rows compiled by kind: all fields of a kind are found in one walk, and only the parts that they name are decoded."""

import functools
import re
from collections.abc import Iterable
from typing import Any, TypedDict

import msgspec

from pilotage.catalogue.registry import all_relation_rows, pod_labels
from pilotage.catalogue.relation import ByName, BySelector, NameForm, RelationRow, TargetKind
from pilotage.kube import ApiResource, GroupKind, Json
from pilotage.teardown.snapshot.world import Item

_STEP = re.compile(r"\[\]|\[([^\]]+)\]|\*|[^.\[\]*]+")
_PATH = re.compile(r"[^.\[\]*]+(\[\]|\[[^\]]+\])*(\.([^.\[\]*]+|\*)(\[\]|\[[^\]]+\])*)*")
_EACH = "[]"
_POD = TargetKind("", "Pod")
_EVERY = "*"

BUILT_IN = all_relation_rows()
"""The rows of the catalogue."""

Trail = tuple[Any, ...]
"""The way to a value, innermost last, as nested pairs: cheap to extend, and spelled out only if something is found."""


def steps(path: str) -> list[str]:
    """The steps of a path: names, ``[]`` for each of a list, ``*`` for each of a map. ValueError if it is none."""
    if not _PATH.fullmatch(path):
        raise ValueError(f"{path!r} is not a path such as spec.rules[].backendRefs[]")
    return [match[1] or match[0] for match in _STEP.finditer(path)]


def below(value: object, path: str) -> object:
    """Value at a path of plain names below another; None where there is nothing."""
    if "." not in path:
        return value.get(path) if type(value) is dict else None
    for name in path.split("."):
        if type(value) is not dict:
            return None
        value = value.get(name)
    return value


@functools.lru_cache(maxsize=4096)
def spell(trail: Trail) -> str:
    """The path of a value, with the places in lists: ``spec.rules[0].backendRefs[1]``."""
    parts: list[str] = []
    while trail:
        trail, part = trail
        parts.append(f"[{part}]" if isinstance(part, int) or "." in part else f".{part}")
    return "".join(reversed(parts)).removeprefix(".")


Found = tuple["RelationRow | None", object, Trail]
"""A value that a row is about, and the way to it. Without a row: the labels of the kind's pod template."""


class _Node:
    """One step further into an object."""

    __slots__ = ("each", "every", "keys", "rows")

    def __init__(self) -> None:
        self.keys: dict[str, _Node] = {}
        self.each: _Node | None = None
        self.every: _Node | None = None
        self.rows: list[RelationRow | None] = []

    def add(self, path: str, row: RelationRow | None) -> None:
        node = self
        for step in steps(path):
            if step == _EACH:
                node.each = node.each or _Node()
                node = node.each
            elif step == _EVERY:
                node.every = node.every or _Node()
                node = node.every
            else:
                node = node.keys.setdefault(step, _Node())
        node.rows.append(row)

    def walk(self, value: object, trail: Trail, found: list[Found]) -> None:
        if self.rows:
            found += [(row, value, trail) for row in self.rows]
        if type(value) is dict:
            keys = self.keys
            # By the shorter of the two: a pod template has many fields that could be there, and few that are.
            for key in keys if len(keys) < len(value) else value:
                if key in keys and (inner := value.get(key)) is not None:
                    keys[key].walk(inner, (trail, key), found)
            if self.every is not None:
                for key, inner in value.items():
                    self.every.walk(inner, (trail, key), found)
        elif self.each is not None and type(value) is list:
            for i, inner in enumerate(value):
                self.each.walk(inner, (trail, i), found)


class CompiledKind:
    """All rows of one kind."""

    def __init__(self, rows: Iterable[RelationRow], template: str | None) -> None:
        self._metadata, self._body = _Node(), _Node()
        tops: dict[str, None] = {}
        each = tuple(rows)
        for row in each:
            (self._metadata if row.from_metadata else self._body).add(row.field, row)
            if not row.from_metadata:
                tops.update(dict.fromkeys(_tops(row)))
        if template:
            self._body.add(template, None)
            tops[steps(template)[0]] = None
        # Decoding a few fields and skipping the rest takes a third of decoding everything: metadata alone, with its
        # managedFields, is often more than half of an object.
        self._decode = msgspec.json.Decoder(TypedDict("Parts", dict.fromkeys(tops, Any), total=False)).decode  # type: ignore[operator]
        self._full = bool(tops)
        targets = [row.target for row in each]
        self._selected = [target for target in targets if type(target) is BySelector]
        self._numbered = [target for target in targets if type(target) is ByName and target.form is NameForm.NUMBERED]
        self.points_back = any(row.back for row in each)
        """Whether it has rows that run back."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look for."""
        return not self._full and not self._metadata.keys

    @property
    def selects(self) -> bool:
        """Whether it selects by labels."""
        return bool(self._selected)

    def may_number(self, kind: GroupKind) -> bool:
        """Whether it points at objects of this kind by names that it does not spell out."""
        return any((each.group, each.kind) == kind for target in self._numbered for each in target.kinds)

    def may_select(self, kind: GroupKind, *, templated: bool) -> bool:
        """Whether it selects among objects of this kind. `templated`: they have the labels of their pods as well."""
        return any(
            target.reference is not None
            or any((each.group, each.kind) == kind or (templated and each == _POD) for each in target.kinds)
            for target in self._selected
        )

    def find(self, item: Item) -> list[Found]:
        """All values that rows are about, as far as the item was read."""
        found: list[Found] = []
        if self._metadata.keys:
            meta = item.meta
            known: Json = {"name": meta.name, "labels": meta.labels, "annotations": meta.annotations}
            self._metadata.walk({"metadata": known}, (), found)
        if self._full and item.full:
            self._body.walk(self.parts(item), (), found)
        return found

    def parts(self, item: Item) -> Json:
        """The fields at the top that rows begin with."""
        if item.decoded is not None:
            return item.decoded
        parts: Json = self._decode(item.object.raw)
        return parts


def _tops(row: RelationRow) -> list[str]:
    namespaces = getattr(row.target, "namespaces", "")
    paths = [row.field, *([namespaces] if namespaces not in ("", _EVERY) else [])]
    return [steps(path)[0] for path in paths]


class CompiledRows:
    """All rows of a table, compiled by kind when a kind is first met."""

    def __init__(self, rows: tuple[RelationRow, ...]) -> None:
        self._rows: dict[tuple[str, str], list[RelationRow]] = {}
        self._patterns: list[RelationRow] = []
        for row in rows:
            if row.pattern:
                self._patterns.append(row)
            else:
                self._rows.setdefault((row.group, row.kind), []).append(row)
        self._compiled: dict[tuple[str, str], CompiledKind | None] = {}

    def of(self, group: str, kind: str) -> CompiledKind | None:
        """The rows of a kind; None if it has none."""
        key = (group, kind)
        if key not in self._compiled:
            rows = [*self._rows.get(key, ()), *(row for row in self._patterns if row.applies_to(group, kind))]
            found = CompiledKind(rows, pod_labels().get(GroupKind(group, kind)))
            self._compiled[key] = None if found.empty else found
        return self._compiled[key]


@functools.lru_cache(maxsize=8)
def compiled(rows: tuple[RelationRow, ...]) -> CompiledRows:
    """The compiled table, kept."""
    return CompiledRows(rows)


def full_kinds(rows: tuple[RelationRow, ...] = BUILT_IN, served: Iterable[ApiResource] = ()) -> frozenset[GroupKind]:
    """The kinds that have to be read in full, so that `relate` sees all there is.

    Rows with a pattern, such as those for all managed resources of Crossplane, ask for no kind by themselves: of the
    `served` kinds, as discovery lists them, those count that match the pattern and carry the row's category. Without
    `served` there are none.
    """
    asking = [row for row in rows if row.demand and not row.from_metadata]
    kinds = {GroupKind(row.group, row.kind) for row in asking if not row.pattern}
    patterns = [row for row in asking if row.pattern]
    for api in served:
        group, kind = api.resource.group, api.resource.kind
        if any(
            (not row.category or row.category in api.categories) and row.applies_to(group, kind) for row in patterns
        ):
            kinds.add(GroupKind(group, kind))
    return frozenset(kinds)
