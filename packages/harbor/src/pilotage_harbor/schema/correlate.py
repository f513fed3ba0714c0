"""Correlation of the parts of an object with those of its old state: by key, or by entry of a list map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pilotage_harbor.schema.node import SchemaNode, Value


class _Nothing:
    """There was no such part, or it cannot be told which it was."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()


def old_field(old: Value, name: str) -> Value:
    """The old value under a key, or `NOTHING`."""
    return old.get(name, NOTHING) if isinstance(old, dict) else NOTHING


def old_item(node: SchemaNode, element: Value, old: Value) -> Value:
    """The entry of a list map that had the same keys, or `NOTHING`. Other lists are one thing as a whole."""
    if node.list_type != "map" or not isinstance(old, list) or not isinstance(element, dict):
        return NOTHING
    keys = [element.get(name) for name in node.list_map_keys]
    for entry in old:
        if isinstance(entry, dict) and [entry.get(name) for name in node.list_map_keys] == keys:
            return entry
    return NOTHING
