"""Defaults of custom resources: what is absent, or null where null may not be, gets the schema's default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.schema.node import UNSET

if TYPE_CHECKING:
    from pilotage_harbor.schema.node import SchemaNode, Value

Json = dict[str, Any]


def apply_defaults(schema: SchemaNode, obj: Json) -> None:
    """Fill in the defaults, in place; drop nulls that may not be there and have no default."""
    _drop_nulls(schema, obj)
    if schema.has_defaults:
        _fill(schema, obj)


def _drop_nulls(node: SchemaNode, value: Json | list[Any]) -> None:
    if isinstance(value, list):
        items = node.items
        if items is not None:
            for element in value:
                if isinstance(element, (dict, list)):
                    _drop_nulls(items, element)
        return
    properties, additional = node.properties, node.additional
    nulls: list[str] = []
    for name, part in value.items():
        if part is None:
            known = properties.get(name) or additional
            if known is not None and not known.nullable and known.default is UNSET:
                nulls.append(name)
        elif isinstance(part, (dict, list)):
            known = properties.get(name) or additional
            if known is not None:
                _drop_nulls(known, part)
    for name in nulls:
        del value[name]


def _fill(node: SchemaNode, value: Json | list[Any]) -> None:
    if isinstance(value, dict):
        for name, known in node.properties.items():
            if known.default is not UNSET and _is_absent(value, name, known):
                value[name] = _copy(known.default)
            if known.has_defaults:
                part = value.get(name)
                if isinstance(part, (dict, list)):
                    _fill(known, part)
        if node.additional is not None:
            _fill_each(node.additional, value, [name for name in value if name not in node.properties])
    elif node.items is not None:
        _fill_each(node.items, value, range(len(value)))


def _is_absent(value: Json, name: str, known: SchemaNode) -> bool:
    return name not in value or (value[name] is None and not known.nullable)


def _fill_each(node: SchemaNode, value: Value, places: Value) -> None:
    for place in places:
        if value[place] is None and not node.nullable and node.default is not UNSET:
            value[place] = _copy(node.default)
        if node.has_defaults and isinstance(value[place], (dict, list)):
            _fill(node, value[place])


def _copy(value: Value) -> Value:
    if isinstance(value, dict):
        return {name: _copy(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_copy(part) for part in value]
    return value
