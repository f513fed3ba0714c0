"""Fields that a schema does not know: dropped on every write, and named where a client asks for strictness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.schema.builtin import UNION

if TYPE_CHECKING:
    from pilotage_harbor.schema.node import SchemaNode

Json = dict[str, Any]


def prune(schema: SchemaNode, obj: Json) -> None:
    """Drop every field that the schema does not know, in place."""
    _prune(schema, obj)


def _prune(node: SchemaNode, value: Json | list[Any]) -> None:
    if isinstance(value, list):
        if node.format == UNION:
            _prune_union(node, value)
            return
        items = node.items
        if items is None:
            _empty(node, value)
            return
        for element in value:
            if isinstance(element, (dict, list)):
                _prune(items, element)
        return
    properties, additional = node.properties, node.additional
    unknown: list[str] = []
    for name, part in value.items():
        known = properties.get(name) or additional
        if known is not None:
            if isinstance(part, (dict, list)):
                _prune(known, part)
        elif not node.preserve_unknown:
            unknown.append(name)
    for name in unknown:
        del value[name]


def _empty(node: SchemaNode, value: list[Any]) -> None:
    """A list that the schema says nothing about: what its objects hold is unknown."""
    if node.preserve_unknown:
        return
    for element in value:
        if isinstance(element, dict):
            element.clear()
        elif isinstance(element, list):
            _empty(node, element)


def _prune_union(node: SchemaNode, value: list[Any]) -> None:
    for element in value:
        if isinstance(element, dict):
            _prune(node, element)


def unknown_fields(schema: SchemaNode, obj: Json) -> list[str]:
    """The paths of the fields that `prune` would drop, as strict validation names them: ``spec.list[0].foo``.

    In the order of the object for built-in kinds, as Go's decoder finds them. For custom resources sorted, and those
    in metadata last.
    """
    found: list[str] = []
    in_metadata: list[str] = []
    _unknown(schema, obj, "", found, in_metadata)
    return found if schema.go_name else sorted(found) + sorted(in_metadata)


def unknown_in(node: SchemaNode, value: Json | list[Any]) -> bool:
    """Whether a part of an object has any field that its schema does not know."""
    found: list[str] = []
    _unknown(node, value, "", found, found)
    return bool(found)


def _unknown(node: SchemaNode, value: object, path: str, found: list[str], in_metadata: list[str]) -> None:
    if node.format == UNION:
        return
    if isinstance(value, dict):
        properties, additional = node.properties, node.additional
        for name, part in value.items():
            known = properties.get(name) or additional
            where = f"{path}.{name}" if path else name
            if known is None:
                if not node.preserve_unknown:
                    found.append(where)
            elif isinstance(part, (dict, list)):
                inside = name == "metadata" and not node.go_name and (node.embedded or not path)
                _unknown(known, part, where, in_metadata if inside else found, in_metadata)
    elif isinstance(value, list):
        _unknown_in_list(node, value, path, found, in_metadata)


def _unknown_in_list(node: SchemaNode, value: list[Any], path: str, found: list[str], in_metadata: list[str]) -> None:
    for at, part in enumerate(value):
        if isinstance(part, (dict, list)):
            if node.items is not None:
                _unknown(node.items, part, f"{path}[{at}]", found, in_metadata)
            elif not node.preserve_unknown:
                _all_unknown(part, f"{path}[{at}]", found)


def _all_unknown(value: Json | list[Any], path: str, found: list[str]) -> None:
    if isinstance(value, dict):
        found += [f"{path}.{name}" for name in value]
    else:
        for at, part in enumerate(value):
            if isinstance(part, (dict, list)):
                _all_unknown(part, f"{path}[{at}]", found)
