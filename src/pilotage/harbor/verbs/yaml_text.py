"""YAML as strangers send it: how deep it goes, before it is loaded, and which keys it has twice.

The loader that is written in C keeps no count of its own: a document that is nested deeply enough ends the process.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml

DEPTH_MAX = 250
"""How deep a body may be nested, in JSON as well. Who walks through one takes up to three calls for each level."""


def is_too_deep_untrusted(body: bytes) -> bool:
    """Whether it is nested more deeply than is safe to load."""
    # Whatever else opens a level needs a line with more indentation than the one before it.
    if sum(body.count(mark) for mark in (b"[", b"{", b"-", b"?")) + math.isqrt(2 * len(body)) < DEPTH_MAX:
        return False
    import yaml

    depth = 0
    try:
        for event in yaml.parse(body, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEPTH_MAX:
                    return True
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except (yaml.YAMLError, UnicodeDecodeError):
        return False  # whoever loads it will say what is wrong
    return False


def repeated_keys_untrusted(body: bytes) -> list[str]:
    """One line for each key that was there before, in the order in which Go meets them; none for what is no YAML."""
    import yaml

    if is_too_deep_untrusted(body):
        return []
    try:
        node = yaml.compose(body, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError):
        return []
    found: list[str] = []
    if node is not None:
        try:
            _walk(node, found, set())
        except RecursionError:
            return []
    return found


def _walk(node: yaml.Node, found: list[str], visited: set[int]) -> None:
    from yaml import MappingNode, ScalarNode, SequenceNode

    if id(node) in visited:  # an alias: walked where it was first met
        return
    visited.add(id(node))
    if isinstance(node, SequenceNode):
        for item in node.value:
            _walk(item, found, visited)
    elif isinstance(node, MappingNode):
        seen = set()
        for key, value in node.value:
            _walk(value, found, visited)
            name = (key.tag, key.value) if isinstance(key, ScalarNode) else None
            if name in seen:
                shown = json.dumps(key.value, ensure_ascii=False) if key.tag.endswith(":str") else key.value
                found.append(f"line {value.start_mark.line + 1}: key {shown} already set in map")
            if name is not None:
                seen.add(name)
