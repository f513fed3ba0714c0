"""Cells of tables that several kinds share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.builtin.base import path
from pilotage_harbor.kinds import TableColumn
from pilotage_harbor.kinds.table import since

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.kinds import Json


def text(name: str, cell: Callable[[Json], Any], *, wide: bool = False, type_: str = "string") -> TableColumn:
    """A column that depends on the object alone."""
    return TableColumn(name, type_, lambda obj, _: cell(obj), priority=1 if wide else 0)


def at(*names: str, default: Any = "") -> Callable[[Json], Any]:  # noqa: ANN401 - JSON
    """The value at a path."""

    def cell(obj: Json) -> Any:  # noqa: ANN401 - JSON
        value = path(obj, *names)
        return default if value is None else value

    return cell


def number(name: str, *names: str) -> TableColumn:
    """A column of whole numbers, 0 where there is none."""
    return text(name, at(*names, default=0), type_="integer")


def ago(name: str, *names: str, default: str = "<none>") -> TableColumn:
    """Age of the time at a path."""

    def cell(obj: Json, now: float) -> str:
        value = path(obj, *names)
        return since(value, now) if value else default

    return TableColumn(name, "string", cell)


def labels(value: Json | None) -> str:
    """A map of labels."""
    return ",".join(f"{key}={each}" for key, each in sorted(value.items())) if value else "<none>"


def selector(value: Json | None, *, empty: str = "<none>") -> str:
    """A LabelSelector as kubectl takes it."""
    if not value:
        return empty
    parts = [(key, f"{key}={each}") for key, each in (value.get("matchLabels") or {}).items()]
    for term in value.get("matchExpressions") or ():
        key, values = term["key"], ",".join(sorted(term.get("values") or ()))
        words = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append((key, words.get(term["operator"], f"!{key}")))
    return ",".join(part for _, part in sorted(parts, key=lambda each: each[0])) or empty


def template_columns(*names: str, select: Callable[[Json], str] | None = None) -> tuple[TableColumn, ...]:
    """The wide columns of a workload whose pod template's spec is at a path."""

    def joined(what: str) -> Callable[[Json], str]:
        return lambda obj: ",".join(each.get(what, "") for each in path(obj, *names, "containers") or ())

    columns = [text("Containers", joined("name"), wide=True), text("Images", joined("image"), wide=True)]
    if select is not None:
        columns.append(text("Selector", select, wide=True))
    return tuple(columns)


def few(items: list[str], count: int | None = None, limit: int = 3) -> str:
    """The first of many."""
    if not items:
        return "<unset>"
    shown = ",".join(items[:limit])
    total = len(items) if count is None else count
    return f"{shown} + {total - limit} more..." if total > limit else shown
