"""The fields that a write to an object changed, of those that can be owned.

Not owned are the fields that say which object it is, those that are the server's own, and those on which this kind of
write has no effect (the status, for a write to the object itself).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pilotage_harbor.patching.compare import difference
from pilotage_harbor.patching.fieldset import Tree, without
from pilotage_harbor.patching.fieldset import difference as without_members

if TYPE_CHECKING:
    from pilotage_harbor.patching.shape import OwnershipShape
    from pilotage_harbor.patching.values import Json

_UNOWNED_META = tuple(
    f"f:{name}"
    for name in (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    )
)
_IDENTITY: Tree = {"f:apiVersion": {}, "f:kind": {}, "f:metadata": {".": {}, **{name: {} for name in _UNOWNED_META}}}
_EMPTY: Json = {}


def changes(shape: OwnershipShape, old: Json | None, new: Json, reset: tuple[str, ...]) -> tuple[Tree, Tree]:
    """Ownable fields that a write changed, and those that it removed. `old` is None for a new object."""
    skip, unowned = _reset(reset)
    before = _EMPTY if old is None else old
    changed: Tree = {}
    gone: Tree = {}
    for name, after in new.items():
        if name in skip:
            continue
        if name == "metadata":
            _metadata_changes(shape, before.get(name) or _EMPTY, after, changed, gone)
        elif name not in before:
            _member_changes(shape, _EMPTY, {name: after}, changed, gone)
        elif after is not before[name] and after != before[name]:
            _member_changes(shape, {name: before[name]}, {name: after}, changed, gone)
    for name in before:
        if name not in new and name not in skip:
            _member_changes(shape, {name: before[name]}, _EMPTY, changed, gone)
    if unowned:
        return without(changed, unowned), without(gone, unowned)
    return changed, gone


def _member_changes(shape: OwnershipShape, old: Json, new: Json, changed: Tree, gone: Tree) -> None:
    more, less = difference(shape, old, new)
    if more is not None:
        changed.update(more)
    if less is not None:
        gone.update(less)


def _metadata_changes(shape: OwnershipShape, old: Json, new: Json, changed: Tree, gone: Tree) -> None:
    part = shape.member("metadata")
    if part is None:
        return
    for tree, into in zip(difference(part, old, new), (changed, gone), strict=True):
        if tree is not None:
            for element in _UNOWNED_META:
                tree.pop(element, None)
            if tree:
                into["f:metadata"] = tree


def tracked(fields: Tree, reset: tuple[str, ...]) -> Tree:
    """A set without what this kind of write has no effect on."""
    return without(fields, _reset(reset)[1])


def strip_identity(fields: Tree) -> Tree:
    """A set without what nobody can own."""
    return without_members(fields, _IDENTITY)


@lru_cache(maxsize=1024)
def _reset(paths: tuple[str, ...]) -> tuple[frozenset[str], Tree]:
    """The members that are not even looked at, and the set of what nobody owns through this write."""
    tree: Tree = {}
    for path in paths:
        node = tree
        for name in path.split("."):
            node = node.setdefault(f"f:{name}", {})
        node["."] = {}
    return frozenset(("apiVersion", "kind", *(path for path in paths if "." not in path))), tree
