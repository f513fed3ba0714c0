"""The difference between two objects, as sets of fields: new or changed, and removed.

The sets are FieldsV1 trees (see `fieldset`). This runs at every write, so parts that are equal are not looked into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.patching.fieldset import LEAF as MEMBER
from pilotage_harbor.patching.fieldset import Tree, union
from pilotage_harbor.patching.shape import IF_EMPTY, LEAF, LIST_SET, MAP, OwnershipShape, list_element

if TYPE_CHECKING:
    from pilotage_harbor.patching.values import Json, Value

Difference = tuple[Tree | None, Tree | None]
"""Changed and removed fields below a value; None for nothing, an empty tree for the value itself."""

_SAME: Difference = (None, None)
_ABSENT: Any = object()
_CONTAINERS = frozenset((dict, list))


def whole(shape: OwnershipShape | None, value: Value) -> Tree:
    """All fields of a value that was not there before (or is not there any more), the value itself included."""
    if shape is None or not value:
        return MEMBER
    if shape.kind != MAP:
        return _whole_list(shape, value)
    if type(value) is not dict:
        return MEMBER
    if shape.flat:
        tree: Tree = {f"f:{name}": MEMBER for name in value}
        tree["."] = MEMBER
        return tree
    tree = {".": MEMBER}
    fields = shape.fields
    for name, item in value.items():
        try:
            element, part, absent = fields[name]
        except KeyError:
            element, part, absent = shape.field(name)
        if item:
            tree[element] = MEMBER if part is None else whole(part, item)
        elif not (absent and _is_absent(item, absent)):
            tree[element] = MEMBER
    for element in shape.always_elements:
        if element not in tree:
            tree[element] = MEMBER
    return tree


def _whole_list(shape: OwnershipShape, value: Value) -> Tree:
    kind = shape.kind
    if kind == LEAF or type(value) is not list:
        return MEMBER
    tree: Tree = {".": MEMBER}
    for item in value:
        element = list_element(shape, item)
        if element is not None:
            # Elements that share a key are owned together, as a whole.
            tree[element] = MEMBER if kind == LIST_SET or element in tree else whole(shape.item, item)
    return tree


def difference(shape: OwnershipShape, old: Json, new: Json) -> Difference:
    """Difference between the members of two objects."""
    changed: Tree = {}
    removed: Tree = {}
    for name, item in new.items():
        before = old.get(name, _ABSENT)
        if before is not item and before != item:
            _compare_member(shape, name, before, item, changed, removed)
    for name, before in old.items():
        if name not in new:
            _compare_member(shape, name, before, _ABSENT, changed, removed)
    return changed or None, removed or None


def _compare_member(shape: OwnershipShape, name: str, old: Value, new: Value, changed: Tree, removed: Tree) -> None:
    element, part, absent = shape.fields.get(name) or shape.field(name)
    if absent:
        if old is not _ABSENT and _is_absent(old, absent):
            old = _ABSENT
        if new is not _ABSENT and _is_absent(new, absent):
            new = _ABSENT
        if name in shape.always:
            old = shape.always[name] if old is _ABSENT else old
            new = shape.always[name] if new is _ABSENT else new
    if old is _ABSENT:
        if new is not _ABSENT:
            changed[element] = whole(part, new)
    elif new is _ABSENT:
        removed[element] = whole(part, old)
    elif part is None:
        # In a Go struct, null and empty are the same.
        if old or new or not shape.go:
            changed[element] = MEMBER
    else:
        more, less = _between(part, old, new)
        if more is not None:
            changed[element] = more
        if less is not None:
            removed[element] = less


def _is_absent(value: Value, absent: int) -> bool:
    return value is None or (absent == IF_EMPTY and not value and type(value) in _CONTAINERS)


def _between(shape: OwnershipShape, old: Value, new: Value) -> Difference:
    """Difference between two values that both exist."""
    container: type = dict if shape.kind == MAP else list
    if not {type(old), type(new)} <= {container, type(None)}:
        return _retyped(shape, old, new, container)
    if not old and not new:
        return _SAME if shape.go or old == new else (MEMBER, None)
    if container is dict:
        return difference(shape, old or {}, new or {})
    return _between_lists(shape, old or [], new or [])


def _retyped(shape: OwnershipShape, old: Value, new: Value, container: type) -> Difference:
    """A value became, or was, something that has no members."""
    if old == new:
        return _SAME
    changed: Tree = MEMBER
    removed: Tree | None = None
    if new and type(new) is container:
        changed = union({".": MEMBER}, whole(shape, new))
    if old and type(old) is container:
        removed = {element: below for element, below in whole(shape, old).items() if element != "."}
    return changed, removed


def _between_lists(shape: OwnershipShape, old: list[Any], new: list[Any]) -> Difference:
    before = _by_element(shape, old)
    after = _by_element(shape, new)
    changed: Tree = {}
    removed: Tree = {}
    item_shape = None if shape.kind == LIST_SET or shape.item.kind == LEAF else shape.item
    for element, items in after.items():
        if before.get(element) != items:
            more, less = _between_elements(item_shape, before.get(element, []), items)
            if more is not None:
                changed[element] = more
            if less is not None:
                removed[element] = less
    for element, items in before.items():
        if element not in after:
            removed[element] = whole(item_shape, items[0]) if len(items) == 1 else MEMBER
    return changed or None, removed or None


def _between_elements(shape: OwnershipShape | None, old: list[Any], new: list[Any]) -> Difference:
    """Difference between the elements of one key. Several are invalid, but can be stored: then none is looked
    into, and they are owned together."""
    if not old:
        return (whole(shape, new[0]) if len(new) == 1 else MEMBER), None
    if len(old) == 1 and len(new) == 1:
        return (MEMBER, None) if shape is None else _between(shape, old[0], new[0])
    if len(old) == 1:
        return MEMBER, whole(shape, old[0])
    return (whole(shape, new[0]), MEMBER) if len(new) == 1 else (MEMBER, None)


def _by_element(shape: OwnershipShape, items: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        element = list_element(shape, item)
        if element is not None:
            found.setdefault(element, []).append(item)
    return found
