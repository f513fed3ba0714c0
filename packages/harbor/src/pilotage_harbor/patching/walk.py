"""Server-side apply on values: collecting their fields, merging one into another, removing fields.

All of it follows the shape of the kind. Inputs are not changed; results share parts with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.patching.fieldset import Tree, element_text
from pilotage_harbor.patching.shape import LEAF, LIST_MAP, LIST_SET, MAP, OwnershipShape, list_element
from pilotage_harbor.patching.values import go_text

if TYPE_CHECKING:
    from pilotage_harbor.patching.values import Json, Value

_NOTHING: Any = object()


def fields_of(shape: OwnershipShape, value: Json) -> Tree:
    """The fields that an applied configuration claims: its leaves, and the elements and members it names."""
    return _members(shape, value)


def _members(shape: OwnershipShape, value: Json) -> Tree:
    tree: Tree = {}
    fields = shape.fields
    for name, item in value.items():
        element, part, _ = fields.get(name) or shape.field(name)
        below = _claimed(part, item)
        own = item is None or item == {} or name not in fields
        if below is None:
            if own:
                tree[element] = {}
        elif below and own:
            tree[element] = {".": {}, **below}
        else:
            tree[element] = below
    return tree


def _claimed(shape: OwnershipShape | None, value: Value) -> Tree | None:
    """The tree of a member: None if it claims nothing, empty if it is claimed itself."""
    if shape is None:
        return {}
    if shape.kind == MAP and type(value) is dict:
        return _members(shape, value) or None
    if shape.kind not in (MAP, LEAF) and type(value) is list:
        tree: Tree = {}
        for item in value:
            element = list_element(shape, item)
            if element is None:
                continue
            if element in tree or shape.kind == LIST_SET:
                tree[element] = {}
                continue
            below = _claimed(None if shape.item is None or shape.item.kind == LEAF else shape.item, item)
            tree[element] = {".": {}, **below} if below else {}
        return tree or None
    return None if value is None else {}


def merged(shape: OwnershipShape | None, live: Value, config: Value) -> Value:
    """The live value with the configuration on top. What the configuration does not mention stays."""
    if shape is None or shape.kind == LEAF or not (live or config):
        return config
    if config is None:
        # Null says nothing about members, so they stay.
        return live if type(live) in (dict, list) else None
    if shape.kind == MAP and type(config) is dict and type(live) is dict:
        result = dict(live)
        fields = shape.fields
        for name, item in config.items():
            before = result.get(name, _NOTHING)
            result[name] = (
                item
                if before is _NOTHING or before is None
                else merged((fields.get(name) or shape.field(name))[1], before, item)
            )
        return result
    if shape.kind not in (MAP, LEAF) and type(config) is list and type(live) is list:
        return _merged_lists(shape, live, config)
    return config


def _merged_lists(shape: OwnershipShape, live: list[Any], config: list[Any]) -> list[Any]:
    """Live elements and those of the configuration, which decides the order of what it names."""
    ours = {list_element(shape, item): item for item in config}
    theirs: dict[str | None, Any] = {}
    for item in live:
        element = list_element(shape, item)
        # Elements that share a key are not merged with anything.
        theirs[element] = _NOTHING if element in theirs else item

    def combined(element: str | None) -> Value:
        before = theirs.get(element, _NOTHING)
        item = ours[element]
        return item if before is _NOTHING else merged(shape.item, before, item)

    wanted = list(ours)
    shared = iter([element for element in wanted if element in theirs])
    following = next(shared, None)
    left = [(list_element(shape, item), item) for item in live]
    result: list[Any] = []
    done: set[str | None] = set()
    i = j = 0
    while i < len(left) or j < len(wanted):
        if i < len(left) and j < len(wanted):
            element = left[i][0]
            if element == wanted[j]:
                result.append(combined(element))
                done.add(element)
                i, j = i + 1, j + 1
                following = next(shared, None)
                continue
            if element in ours and following is not None and element != following:
                # It is named, but its turn comes later.
                i += 1
                continue
        if i < len(left):
            element, item = left[i]
            if element not in ours:
                result.append(item)
                i += 1
                continue
            if element in done:
                i += 1
        if j < len(wanted):
            element = wanted[j]
            result.append(combined(element))
            done.add(element)
            j += 1
            if following is not None and element == following:
                following = next(shared, None)
    return result


def nulled(shape: OwnershipShape | None, live: Value, config: Value) -> Tree:
    """The leaves of the live value that the configuration sets to null. That counts as a change, not as a removal."""
    tree: Tree = {}
    if shape is None or type(live) is not type(config):
        return tree
    if shape.kind == MAP and type(config) is dict:
        for name, item in config.items():
            element, part, _ = shape.fields.get(name) or shape.field(name)
            before = live.get(name)
            if item is None:
                if part is None and before is not None:
                    tree[element] = {}
            elif below := nulled(part, before, item):
                tree[element] = below
    elif shape.kind == LIST_MAP and type(config) is list:
        theirs = {list_element(shape, item): item for item in live}
        for item in config:
            found = list_element(shape, item)
            if found is not None and (below := nulled(shape.item, theirs.get(found), item)):
                tree[found] = below
    return tree


def removed(shape: OwnershipShape | None, value: Value, fields: Tree) -> Value:
    """The value without these fields; None if nothing is left of it."""
    if shape is None or shape.kind == LEAF:
        # A list or map that is owned as a whole has nothing inside that could go alone.
        return None if type(value) in (dict, list) else value
    if shape.kind == MAP:
        if type(value) is not dict:
            return None if type(value) is list else value
        result: Json = {}
        for name, item in value.items():
            element, part, _ = shape.fields.get(name) or shape.field(name)
            below = fields.get(element)
            if below is None:
                result[name] = item
            elif below and "." not in below:
                result[name] = removed(part, item, below)
        return result or None
    if type(value) is not list:
        return None
    kept = []
    for item in value:
        below = fields.get(list_element(shape, item) or "")
        if below is None:
            kept.append(item)
        elif below and "." not in below:
            kept.append(removed(shape.item, item, below))
    return kept or None


def problems(shape: OwnershipShape, value: Value) -> list[str]:
    """Reasons why a value cannot be applied: undeclared members, types that do not fit, elements without a key."""
    return [f"{path}: {words}" if path else words for path, words in _problems(shape, value)]


def _problems(shape: OwnershipShape | None, value: Value) -> list[tuple[str, str]]:
    if value is None or shape is None:
        return []
    if shape.kind == MAP:
        if type(value) is dict:
            return _map_problems(shape, value)
        return [] if shape.loose else [("", f"expected map, got {_unstructured(value)}")]
    if shape.kind == LEAF:
        return _scalar_problems(shape.scalar, value)
    if type(value) is not list:
        return [("", f"expected list, got {_unstructured(value)}")]
    found: list[tuple[str, str]] = []
    seen = set()
    for index, item in enumerate(value):
        element = list_element(shape, item)
        if element is None:
            found.append(("", f"element {index}: {_keyless(shape, item)}"))
            return found
        text = element_text(element)
        if element in seen:
            found.append(("", f"duplicate entries for key {text}"))
        seen.add(element)
        found += [(text + path, words) for path, words in _problems(shape.item, item)]
    return found


def _map_problems(shape: OwnershipShape, value: Json) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, item in value.items():
        part = shape.member(name)
        if part is None:
            return [*found, (f".{name}", "field not declared in schema")]
        found += [(f".{name}{path}", words) for path, words in _problems(part, item)]
    return found


def _scalar_problems(scalar: str, value: Value) -> list[tuple[str, str]]:
    if scalar in ("integer", "number") and type(value) not in (int, float):
        return [("", f"expected numeric (int or float), got {_go_type(value)}")]
    if scalar == "string" and type(value) is not str:
        return [("", f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}")]
    if scalar == "boolean" and type(value) is not bool:
        return [("", f"expected boolean, got {_unstructured(value)}")]
    return []


def _keyless(shape: OwnershipShape, item: Value) -> str:
    if shape.kind == LIST_SET:
        if type(item) is dict:
            return "associative list without keys has an element that's a map type"
        if type(item) is list:
            return "not supported: associative list with lists as elements"
        return "associative list without keys has an element that's an explicit null"
    if item is None:
        return "associative list with keys may not have a null element"
    if type(item) is not dict:
        return "associative list with keys may not have non-map elements"
    names = " ".join(f'"{name}"' for name, _ in shape.keys)
    words = "associative list with keys has an element that omits all key fields"
    return f"{words} [{names}] (and doesn't have default values for any key fields)"


def _go_type(value: Value) -> str:
    names = {str: "string", bool: "bool", list: "[]interface {}", dict: "map[string]interface {}"}
    return names.get(type(value), "int64")


def _go_syntax(value: Value) -> str:
    if type(value) is str:
        return f'"{value}"'
    return str(value).lower() if type(value) is bool else str(value)


def _unstructured(value: Value) -> str:
    return f"&{{{go_text(value)}}}"


def go_nulls(shape: OwnershipShape | None, value: Value) -> Value:
    """The value without nulls, as Go decodes it: a member is absent, a value of a map of strings is empty."""
    if type(value) is list:
        return [go_nulls(None if shape is None or shape.kind == LEAF else shape.item, item) for item in value]
    if type(value) is not dict or shape is None or shape.kind != MAP:
        return value
    if shape.flat:
        return {name: "" if item is None else item for name, item in value.items()}
    return {
        name: go_nulls((shape.fields.get(name) or shape.field(name))[1], item)
        for name, item in value.items()
        if item is not None
    }
