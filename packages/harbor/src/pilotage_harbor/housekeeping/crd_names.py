"""Acceptance of the names that a CustomResourceDefinition asks for: those that no other of its group has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pilotage_harbor.kinds import Json

    Condition = tuple[str, str, str, str]
    """Type, status, reason, message."""

_LISTS = ("shortNames", "categories")


def judge_names(definition: Json, group: Iterable[Json]) -> tuple[Json, list[Condition]] | None:
    """The accepted names, and the conditions NamesAccepted and Established; None if nothing changes.

    `group` are all definitions of its group, itself included.
    """
    wanted = definition["spec"]["names"]
    status = definition.get("status") or {}
    accepted = status.get("acceptedNames") or {}
    if _same(wanted, accepted):
        return None
    resources, kinds = _taken(group)
    names = {**accepted}
    problem: tuple[str, str] | None = None
    for field, taken, reason in (
        ("plural", resources, "PluralConflict"),
        ("singular", resources, "SingularConflict"),
        ("shortNames", resources, "ShortNamesConflict"),
        ("kind", kinds, "KindConflict"),
        ("listKind", kinds, "ListKindConflict"),
    ):
        conflicts = _conflicts(wanted.get(field), accepted.get(field), taken)
        if conflicts:
            problem = reason, conflicts
        elif field in wanted:
            names[field] = wanted[field]
        else:
            names.pop(field, None)
    names.pop("categories", None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    naming = ("NamesAccepted", "False", *problem) if problem else _ACCEPTED
    if _same(names, accepted) and _find(status, "NamesAccepted") == naming:
        return None
    return names, [naming, _established(status, naming)]


_ACCEPTED: Condition = ("NamesAccepted", "True", "NoConflicts", "no conflicts found")


def _established(status: Json, naming: Condition) -> Condition:
    current = _find(status, "Established") or ("Established", "False", "NotAccepted", "not all names are accepted")
    if current[1] != "True" and naming is _ACCEPTED:
        return "Established", "False", "Installing", "the initial names have been accepted"
    return current


def _conflicts(wanted: str | list[str] | None, accepted: str | list[str] | None, taken: Collection[str]) -> str:
    """Conflicts in the words of the condition; empty if there are none."""
    if wanted == accepted:
        return ""
    own = [accepted] if isinstance(accepted, str) else accepted or []
    asked = [wanted] if isinstance(wanted, str) else wanted or []
    words = [f'"{name}" is already in use' for name in asked if name not in own and name in taken]
    return words[0] if len(words) == 1 else f"[{', '.join(words)}]" if words else ""


def _taken(group: Iterable[Json]) -> tuple[set[str], set[str]]:
    """The names of resources and of kinds that are in use."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for definition in group:
        names = (definition.get("status") or {}).get("acceptedNames") or {}
        resources |= {names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())}
        kinds |= {names.get("kind", ""), names.get("listKind", "")}
    return resources - {""}, kinds - {""}


def _same(one: Json, other: Json) -> bool:
    """An empty list is as good as none."""
    return _trimmed(one) == _trimmed(other)


def _trimmed(names: Json) -> Json:
    return {field: value for field, value in names.items() if value or field not in _LISTS}


def _find(status: Json, type_: str) -> Condition | None:
    for condition in status.get("conditions") or ():
        if condition["type"] == type_:
            return type_, condition["status"], condition.get("reason", ""), condition.get("message", "")
    return None
