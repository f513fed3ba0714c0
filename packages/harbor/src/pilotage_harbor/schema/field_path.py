"""The fieldPath of a rule: where below its own place a rule says the mistake is, as ``.spec.x`` or ``['a.b']``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pilotage_harbor.schema.causes import child, key

if TYPE_CHECKING:
    from pilotage_harbor.schema.node import SchemaNode

_STEP = re.compile(r"\.([^.\[\]']+)|\['((?:\\.|[^'\\])*)'\]")
_ESCAPE = re.compile(r"\\(.)")


def resolve(node: SchemaNode, path: str) -> str | None:
    """The path as errors show it, or None if it leads nowhere in this schema."""
    at, shown = 0, ""
    current: SchemaNode | None = node
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None or current is None:
            return None
        name = step.group(1) if step.group(1) is not None else _ESCAPE.sub(r"\1", step.group(2))
        if current.properties:
            shown, current = child(shown, name), current.properties.get(name)
        else:
            shown, current = key(shown, name), current.additional
        if current is None:
            return None
        at = step.end()
    return shown
