"""Lists that are sets or maps: no element, and no key, may be there twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.schema.causes import duplicate, invalid
from pilotage_harbor.schema.gotext import dumps

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.schema.node import SchemaNode, Value


def list_problems(schema: SchemaNode, value: Value, path: str = "") -> list[StatusCause]:
    """Elements that are twice in a set, or entries that are twice in a list map."""
    causes: list[StatusCause] = []
    _check_unique(schema, value, path, causes)
    return causes


def _check_unique(node: SchemaNode, value: Value, path: str, causes: list[StatusCause]) -> None:
    if isinstance(value, dict):
        properties, additional = node.properties, node.additional
        for name, part in value.items():
            if isinstance(part, (dict, list)):
                known = properties.get(name)
                if known is not None:
                    if not known.go_name:
                        _check_unique(known, part, f"{path}.{name}" if path else name, causes)
                elif additional is not None:
                    _check_unique(additional, part, f"{path}[{name}]", causes)
    elif isinstance(value, list):
        _check_list(node, value, path, causes)


def _check_list(node: SchemaNode, value: list[Any], path: str, causes: list[StatusCause]) -> None:
    if node.list_type == "set":
        causes += [duplicate(f"{path}[{at}]", value[at]) for at in _repeated(value)]
    elif node.list_type == "map":
        causes += _map_problems(node, value, path)
    if node.items is not None:
        for at, part in enumerate(value):
            if isinstance(part, (dict, list)):
                _check_unique(node.items, part, f"{path}[{at}]", causes)


def _map_problems(node: SchemaNode, value: list[Any], path: str) -> list[StatusCause]:
    for at, entry in enumerate(value):
        if entry is not None and not isinstance(entry, dict):
            return [invalid(f"{path}[{at}]", entry, "must be an object for an array of list-type map")]
    keys = [{name: (entry or {})[name] for name in node.list_map_keys if name in (entry or {})} for entry in value]
    return [duplicate(f"{path}[{at}]", keys[at]) for at in _repeated(keys)]


def _repeated(values: list[Any]) -> list[int]:
    """Positions at which a value occurs for the second time. A third occurrence is not reported."""
    seen: dict[str, int] = {}
    found: list[int] = []
    for at, value in enumerate(values):
        text = value if isinstance(value, str) else f"\0{dumps(value)}"
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            found.append(at)
    return found
