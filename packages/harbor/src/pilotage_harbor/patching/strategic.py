"""Strategic merge patch: a merge patch that knows which lists are merged by a key, and takes directives.

Only for built-in kinds: how a list is merged is a fact of the Go type, and a custom resource has none. The directives:

- ``$patch: replace`` or ``delete`` in an object: take the patch alone, or nothing;
- an element with ``$patch: delete`` in a list that is merged by key: remove the one with that key; ``replace``: the
  patch is the list;
- ``$deleteFromPrimitiveList/<list>``: remove these values;
- ``$setElementOrder/<list>``: the order of what the patch names;
- ``$retainKeys`` in an object: all its other members go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.patching.errors import PatchError
from pilotage_harbor.patching.values import Json, Value, copied, go_text, go_type, without_nulls

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.patching.values import Value
    from pilotage_harbor.schema.node import SchemaNode

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_DELETE_VALUES = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"

_BAD_RETAIN = "invalid patch format of retainKeys"
_BAD_ORDER = "invalid patch format of setElementOrder list"
_BAD_DELETE = "invalid patch format of primitive list"


def strategic_merge(doc: Json, patch: Value, schema: SchemaNode) -> Json:
    """The object with the patch merged into it, by the patch strategies of its schema. Neither input is changed.

    Raises:
        PatchError: the patch makes no sense (400), or cannot be applied to what is there (422, 500).
    """
    if type(patch) is not dict:
        raise PatchError(f"json: cannot unmarshal {go_type(patch)} into Go value of type map[string]interface {{}}")
    return _merged(copied(doc), copied(patch), schema)


def _merged(original: Json, patch: Json, schema: SchemaNode | None) -> Json:
    """Merge `patch` into `original`; both are ours to change."""
    if _DIRECTIVE in patch:
        return _directed(patch)
    _retain_keys(original, patch)
    _merge_ordered_lists(original, patch, schema)
    for key, value in patch.items():
        if key.startswith(_DELETE_VALUES):
            _delete_values(original, _list_name(key, _DELETE_VALUES, _BAD_DELETE), value)
        elif value is None:
            original.pop(key, None)
        else:
            current = original.get(key)
            if type(value) is dict and type(current) is dict:
                part, strategy, _ = _strategy(schema, key)
                original[key] = value if strategy == "replace" else _merged(current, value, part)
            elif type(value) is list and type(current) is list:
                part, strategy, merge_key = _strategy(schema, key)
                original[key] = _merged_list(current, value, part, merge_key) if strategy == "merge" else value
            else:
                _put(original, key, without_nulls(value))
    return original


def _directed(patch: Json) -> Json:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        del patch[_DIRECTIVE]
        return patch
    if directive == "delete":
        return {}
    raise PatchError(f"unknown patch type: {go_text(directive)} in map: {go_text(patch)}", 500)


def _put(original: Json, key: str, value: Value) -> None:
    """Set a member to a value of the patch, without what is only meant as a directive."""
    if type(value) is dict and _DIRECTIVE in value:
        original.pop(key, None)
    else:
        original[key] = _without_directives(value)


def _without_directives(value: Value) -> Value:
    if type(value) is dict:
        return {
            key: _without_directives(item)
            for key, item in value.items()
            if not (type(item) is dict and _DIRECTIVE in item)
        }
    if type(value) is list:
        return [_without_directives(item) for item in value if not (type(item) is dict and _DIRECTIVE in item)]
    return value


def _strategy(schema: SchemaNode | None, key: str) -> tuple[SchemaNode | None, str, str]:
    """The schema of a member (of a list: of its elements), its patch strategy and its merge key."""
    if schema is None:
        return None, "", ""
    part = schema.properties.get(key)
    if part is None:
        if schema.properties:
            name = schema.go_name.rpartition(".")[2]
            words = f'unable to find api field in struct {name} for the json field "{key}"'
            raise PatchError(words, 500)
        return schema.additional, "", ""
    strategy = next((one for one in part.patch_strategy.split(",") if one != "retainKeys"), "")
    merge_key = part.patch_merge_key
    return (part.items if part.type == "array" else part), strategy, merge_key


def _retain_keys(original: Json, patch: Json) -> None:
    if _RETAIN not in patch:
        return
    names = patch.pop(_RETAIN)
    if type(names) is not list:
        raise PatchError(_BAD_RETAIN)
    for key, value in patch.items():
        if value is not None and key not in names and not key.startswith((_DELETE_VALUES, _ORDER)):
            raise PatchError(_BAD_RETAIN)
    for key in [key for key in original if key not in names]:
        del original[key]


def _merge_ordered_lists(original: Json, patch: Json, schema: SchemaNode | None) -> None:
    """Merge the lists whose order the patch gives, and take them out of the patch."""
    for directive in [key for key in patch if key.startswith(_ORDER)]:
        order = patch.pop(directive)
        if type(order) is not list:
            raise PatchError(f"expected a []interface {{}}, but received a {_go_type(order)}", 500)
        key = _list_name(directive, _ORDER, _BAD_ORDER)
        current, change = original.get(key), patch.get(key)
        for value, present in ((current, key in original), (change, key in patch)):
            if present and type(value) is not list:
                raise PatchError(f"expected a []interface {{}}, but received a {_go_type(value)}", 500)
        part, strategy, merge_key = _strategy(schema, key)
        _check_order(change or [], order, merge_key)
        if current is None and change is None:
            continue
        patch.pop(key, None)
        if current is None:
            merged = _without_directives(change)
        elif change is None:
            merged = current
        elif strategy == "merge":
            merged = _merged_list(list(current), change, part, merge_key)
        else:
            merged = change
        original[key] = ordered(merged, order, current or [], merge_key) if merged else merged


def _check_order(change: list[Any], order: list[Any], merge_key: str) -> None:
    """Check that the elements of the patch are in the order that it sets."""
    for one in order:
        _key_of(one, merge_key)
    if not order or not change:
        return
    named = iter(order)
    for item in change:
        if merge_key and type(item) is dict and _DIRECTIVE in item:
            continue
        key = _key_of(item, merge_key)
        if not any(_key_of(one, merge_key) == key for one in named):
            words = f"The order in patch list:\n{go_text(change)}\n doesn't match {_ORDER} list:\n{go_text(order)}\n"
            raise PatchError(words, 500)


def _delete_values(original: Json, key: str, values: Value) -> None:
    current = original.get(key)
    if values is None:
        original.pop(key, None)
    elif type(current) is list and type(values) is list:
        _check_elements(current, values)
        original[key] = [item for item in current if item not in values]


def _merged_list(original: list[Any], patch: list[Any], schema: SchemaNode | None, merge_key: str) -> list[Any]:
    if not original and not patch:
        return original
    if _check_elements(original, patch) is not dict:
        merged = list(dict.fromkeys([*original, *patch]))
        return ordered(merged, patch, original, "")
    if not merge_key:
        raise PatchError(f"cannot merge lists without merge key for {schema.type if schema else 'struct'}", 500)
    original, patch = _special_elements(original, patch, merge_key)
    merged = list(original)
    for item in patch:
        key = _key_of(item, merge_key)
        for index, current in enumerate(merged):
            if current.get(merge_key) == key:
                merged[index] = _merged(current, item, schema)
                break
        else:
            merged.append(without_nulls(item))
    return ordered(merged, patch, original, merge_key)


def _special_elements(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Do what the elements with a directive say; the list as it is then, and the other elements."""
    plain = [item for item in patch if _DIRECTIVE not in item]
    replace = False
    for item in patch:
        if _DIRECTIVE not in item:
            continue
        directive = item[_DIRECTIVE]
        if directive == "delete":
            key = _key_of(item, merge_key)
            original = [current for current in original if current.get(merge_key) != key]
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise PatchError("merging lists cannot yet be specified in the patch", 500)
        else:
            raise PatchError(f"unknown patch type: {go_text(directive)} in map: {go_text(item)}", 500)
    return (plain, []) if replace else (original, plain)


def _key_of(item: Value, merge_key: str) -> Value:
    """The value by which an element is known. It is a scalar: elements are looked up by it."""
    if not merge_key:
        key = item
    elif type(item) is not dict:
        raise PatchError(f"expected a map[string]interface {{}}, but received a {_go_type(item)}", 500)
    elif merge_key not in item:
        raise PatchError(f"map: {go_text(item)} does not contain declared merge key: {merge_key}", 500)
    else:
        key = item[merge_key]
    if type(key) in (dict, list):
        raise PatchError(f"a list element cannot be known by a {go_type(key)}: {go_text(key)}")
    return key


def _check_elements(*lists: list[Any]) -> type:
    """The one type that all elements have."""
    kinds = {type(item) for items in lists for item in items}
    if list in kinds:
        raise PatchError("lists of lists are not supported", 422)
    if len(kinds) > 1:
        raise PatchError(f"list element types are not identical: {go_text(list(lists))}", 500)
    return kinds.pop() if kinds else str


def _list_name(directive: str, prefix: str, problem: str) -> str:
    head, slash, name = directive.partition("/")
    if not slash or head != prefix:
        raise PatchError(problem)
    return name


def _go_type(value: Value) -> str:
    names = {dict: "map[string]interface {}", list: "[]interface {}", bool: "bool", int: "int64", float: "float64"}
    return "%!s(<nil>)" if value is None else names.get(type(value), "string")


def ordered(merged: list[Any], patch_order: list[Any], server_order: list[Any], merge_key: str) -> list[Any]:
    """The elements of `merged` in order. Without a merge key, elements are values; else they are known by that key."""

    def key_of(item: Value) -> Value:
        return item.get(merge_key) if merge_key else item

    patch_rank = _ranks(patch_order, key_of)
    server_rank = _ranks(server_order, key_of)
    named = sorted((item for item in merged if key_of(item) in patch_rank), key=lambda item: patch_rank[key_of(item)])
    others = [item for item in merged if key_of(item) not in patch_rank]
    others.sort(key=lambda item: server_rank.get(key_of(item), -1))
    result: list[Any] = []
    waiting = iter(named)
    following = next(waiting, None)
    for item in others:
        rank = server_rank.get(key_of(item))
        while following is not None:
            other = server_rank.get(key_of(following))
            if rank is not None and other is not None and rank < other:
                break
            result.append(following)
            following = next(waiting, None)
        result.append(item)
    if following is not None:
        result.append(following)
    result.extend(waiting)
    return result


def _ranks(items: list[Any], key_of: Callable[[Any], Any]) -> dict[Any, int]:
    ranks: dict[Any, int] = {}
    for index, item in enumerate(items):
        ranks.setdefault(key_of(item), index)
    return ranks
