"""Sets of fields, kept as FieldsV1 trees: the form in which managedFields carries them.

A tree is a dict from path element to the tree below it. Path elements are ``f:name`` (a member), ``k:{"name":"x"}`` (an
element of a list map), ``v:"x"`` (a value of a list set) and ``i:0``. A field is in the set if its tree is empty, or
has the key ``.`` beside its members; a tree that is neither does not occur. So ``{"f:spec": {"f:replicas": {}}}`` is
the set of one field, `.spec.replicas`, and an empty tree at the top is the empty set.

Trees are never changed once made, and results share parts with their operands.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pilotage_harbor.patching.shape import LIST_MAP, MAP, OwnershipShape, json_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage_harbor.patching.values import Value

Tree = dict[str, Any]
Path = tuple[str, ...]
"""Path elements from the top."""

LEAF: Tree = {}
"""The tree of a field alone. One for all of them: most of a set is leaves, and nobody changes a tree."""

_SELF: Tree = {".": LEAF}


def union(left: Tree, right: Tree) -> Tree:
    """The fields that are in either set."""
    if not left or not right:
        return left or right
    result = dict(left)
    for element, more in right.items():
        mine = result.get(element)
        if mine is None:
            result[element] = more
        elif mine and more:
            result[element] = union(mine, more)
        elif mine or more:
            result[element] = {".": {}, **(mine or more)}
    return result


def difference(left: Tree, right: Tree) -> Tree:
    """The fields of `left` that are not in `right`. Fields below one that is in `right` stay."""
    result: Tree | None = None
    for element, less in right.items():
        mine = left.get(element)
        if mine is None:
            continue
        rest: Tree | None = None
        if mine:
            rest = difference(mine, less or _SELF)
            if rest is mine:
                continue
            rest = _normal(rest)
        elif less and "." not in less:
            continue
        if result is None:
            result = dict(left)
        if rest is None:
            del result[element]
        else:
            result[element] = rest
    return left if result is None else result


def without(left: Tree, right: Tree) -> Tree:
    """The fields of `left` that are neither in `right` nor below a field that is."""
    result: Tree | None = None
    for element, less in right.items():
        mine = left.get(element)
        if mine is None:
            continue
        rest: Tree | None = None
        if less and "." not in less:
            rest = without(mine, less)
            if rest is mine:
                continue
            rest = _normal(rest)
        if result is None:
            result = dict(left)
        if rest is None:
            del result[element]
        else:
            result[element] = rest
    return left if result is None else result


def intersection(left: Tree, right: Tree) -> Tree:
    """The fields that are in both sets."""
    result: Tree = {}
    for element, mine in left.items():
        other = right.get(element)
        if other is None:
            continue
        if not mine and not other:
            result[element] = {}
            continue
        both = _normal(intersection(mine or _SELF, other or _SELF))
        if both is not None:
            result[element] = both
    return result


def _normal(members: Tree) -> Tree | None:
    """Normal form of an element with these members: nothing, itself (an empty tree), or the members."""
    if not members:
        return None
    return {} if len(members) == 1 and "." in members else members


def has(tree: Tree, path: Path) -> bool:
    """Whether the field at a path is in the set."""
    for element in path:
        below = tree.get(element)
        if below is None:
            return False
        tree = below
    return not tree or "." in tree


def paths(tree: Tree, prefix: Path = ()) -> Iterator[Path]:
    """All fields of a set in the order of kube-apiserver: at each level first the fields, then what is below them."""
    elements = sorted((element for element in tree if element != "."), key=_order)
    for element in elements:
        below = tree[element]
        if not below or "." in below:
            yield (*prefix, element)
    for element in elements:
        yield from paths(tree[element], (*prefix, element))


def path_text(path: Path) -> str:
    """A path as in a message: ``.spec.containers[name="web"].image``."""
    return "".join(map(element_text, path))


def element_text(element: str) -> str:
    """One path element as in a message."""
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "i":
        return f"[{rest}]"
    value = json.loads(rest)
    if kind == "k":
        return f"[{','.join(f'{name}={_go_value(part)}' for name, part in value.items())}]"
    return f"[={_go_value(value)}]"


def _go_value(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False) if type(value) is str else json_text(value)


def _order(element: str) -> tuple[Any, ...]:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return (0, rest)
    if kind == "k":
        return (1, [(name, *_rank(value)) for name, value in json.loads(rest).items()])
    if kind == "v":
        return (2, *_rank(json.loads(rest)))
    return (3, int(rest))


def _rank(value: Value) -> tuple[int, Any]:
    """Values of all types in one order: numbers, text, booleans, the rest."""
    if type(value) in (int, float):
        return (0, value)
    if type(value) is str:
        return (1, value)
    return (2, value) if type(value) is bool else (3, str(value))


def with_named_fields(tree: Tree, shape: OwnershipShape | None) -> Tree:
    """The set with, for each field of it, also the declared members that it is below of."""
    result: Tree = {}
    for element, below in tree.items():
        if not below:
            result[element] = below
            continue
        part, declared = _below(shape, element)
        members = with_named_fields(below, part)
        if declared and "." not in members:
            members = {".": {}, **members}
        result[element] = members
    return result


def _below(shape: OwnershipShape | None, element: str) -> tuple[OwnershipShape | None, bool]:
    """The shape at an element, and whether it is a declared member."""
    if shape is None:
        return None, False
    if shape.kind == MAP and element.startswith("f:"):
        name = element[2:]
        return shape.member(name), name in shape.declared
    if shape.kind == LIST_MAP and element.startswith("k:"):
        return shape.item, False
    return None, False


def decoded(fields: Value) -> Tree:
    """The set that a client's FieldsV1 means, in the form that this module keeps.

    Raises:
        ValueError: it is not FieldsV1.
    """
    if fields is None:
        return {}
    if type(fields) is not dict:
        raise ValueError("FieldsV1 must be an object")
    result: Tree = {}
    for element, below in fields.items():
        if element == ".":
            result["."] = {}
            continue
        if len(element) < 2 or element[1] != ":":
            raise ValueError(f"{element!r} is not a path element")
        # Kinds of elements that a later version may know are dropped, as kube-apiserver does.
        if element[0] in "fkvi":
            members = decoded(below)
            result[_canonical(element)] = {} if len(members) == 1 and "." in members else members
    return result


def _canonical(element: str) -> str:
    if element[0] == "f":
        return element
    value = json.loads(element[2:])
    if element[0] == "k":
        if type(value) is not dict:
            raise ValueError(f"{element!r} is not a path element")
        return f"k:{{{','.join(f'{json_text(name)}:{json_text(value[name])}' for name in sorted(value))}}}"
    return f"{element[0]}:{json_text(value)}"
