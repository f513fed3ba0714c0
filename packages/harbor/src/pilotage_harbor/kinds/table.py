"""Objects as a table: what `kubectl get` prints is made here (meta.k8s.io/v1 Table).

`kubectl` hides columns of priority 1 unless it is asked for `-o wide`; the server always sends them all.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery.jsonpath import PathError, as_text, find
from pilotage_harbor.kinds import TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pilotage_harbor.kinds import Json, Kind

UNKNOWN = "<unknown>"
INVALID = "<invalid>"


def table(kind: Kind, objects: Iterable[Json], now: float, include: str = "Metadata", version: str = "v1") -> Json:
    """The table of some objects of a kind. `include` is what goes with each row: None, Metadata or Object."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {},
        "columnDefinitions": [definition(column) for column in kind.columns or NAME_AND_AGE],
        "rows": [row(kind, obj, now, include, version) for obj in objects],
    }


def row(kind: Kind, obj: Json, now: float, include: str = "Metadata", version: str = "v1") -> Json:
    """One row of such a table."""
    made: Json = {"cells": [column.cell(obj, now) for column in kind.columns or NAME_AND_AGE]}
    if include == "Object":
        made["object"] = obj
    elif include != "None":
        meta = obj.get("metadata", {})
        made["object"] = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": meta}
    return made


def definition(column: TableColumn) -> Json:
    """One entry of columnDefinitions."""
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def duration(seconds: float) -> str:
    """A length of time as people say it: the coarser, the longer it is."""
    if seconds < -1:
        return INVALID
    if seconds < 0:
        return "0s"
    whole = int(seconds)
    if whole < 120:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(hours // 24, "d", hours % 24, "h")
    days = hours // 24
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def since(time: str | None, now: float) -> str:
    """Age of a time of the API."""
    if not time:
        return UNKNOWN
    try:
        return duration(now - datetime.fromisoformat(time).timestamp())
    except ValueError:
        return INVALID


def age(obj: Json, now: float) -> str:
    """Age of an object."""
    return since(obj.get("metadata", {}).get("creationTimestamp"), now)


def name(obj: Json, _now: float) -> str:
    """Name of an object."""
    found: str = obj.get("metadata", {}).get("name", "")
    return found


NAME = TableColumn("Name", "string", name, "name")
AGE = TableColumn("Age", "string", age)
NAME_AND_AGE = (NAME, TableColumn("Created At", "date", lambda obj, _: obj["metadata"].get("creationTimestamp")))
"""Columns of a kind that has none of its own."""


def custom_columns(printer_columns: Sequence[Json]) -> tuple[TableColumn, ...]:
    """The columns of a version of a CustomResourceDefinition, from its additionalPrinterColumns."""
    if not printer_columns:
        return (NAME, TableColumn("Age", "date", age))
    return (
        NAME,
        *(
            TableColumn(
                each["name"],
                each["type"],
                _custom_cell(each["jsonPath"], each["type"]),
                each.get("format", ""),
                each.get("description")
                or f"Custom resource definition column (in JSONPath format): {each['jsonPath']}",
                each.get("priority", 0),
            )
            for each in printer_columns
        ),
    )


def _custom_cell(path: str, type_: str) -> Callable[[Json, float], Any]:
    def cell(obj: Json, now: float) -> Any:  # noqa: ANN401 - JSON
        try:
            found = find(path, obj)
        except PathError:
            return None
        if not found:
            return None
        value = found[0]
        if type_ == "string":
            return as_text(value)
        if type_ == "date":
            return since(value, now) if isinstance(value, str) else INVALID
        return _of_type(value, type_)

    return cell


def _of_type(value: Any, type_: str) -> Any:  # noqa: ANN401 - JSON
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match type_:
        case "integer":
            return int(value) if number else None
        case "number":
            return value if number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case _:
            return None
