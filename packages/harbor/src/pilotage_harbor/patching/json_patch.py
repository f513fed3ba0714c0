"""JSON patch (RFC 6902), with the habits of the library that kube-apiserver uses.

Where it departs from the RFC: ``replace`` of a member that is not there adds it, ``copy`` of one that is not there
copies a null, an index may count from the end (-1), and an operation without a value means null.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pilotage_harbor.patching.errors import PatchError
from pilotage_harbor.patching.values import Json, Value, copied, go_type, same

OPERATIONS_MAX = 10_000
COPIED_BYTES_MAX = 3 * 1024 * 1024

_INDEX = re.compile(r"[+-]?[0-9]{1,18}")
_MISSING = "missing value"


def json_patch(doc: Json, operations: Value) -> Json:
    """The object after all the operations. Nothing is changed in place; a failing operation fails the patch.

    Raises:
        PatchError: the patch is malformed (400), has too many operations (413), or does not apply (422).
    """
    if type(operations) is not list:
        kind = go_type(operations)
        raise PatchError(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type []handlers.jsonPatchOp"
        )
    if len(operations) > OPERATIONS_MAX:
        words = f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(operations)}"
        raise PatchError(words, 413)
    result: Any = copied(doc)
    copied_bytes = 0
    for operation in operations:
        if type(operation) is not dict:
            kind = go_type(operation)
            words = f"json: cannot unmarshal {kind} into Go value of type handlers.jsonPatchOp"
            raise PatchError(f"error decoding patch: {words}")
        if operation.get("op") == "copy":
            copied_bytes += _copied_bytes(result, operation)
            if copied_bytes > COPIED_BYTES_MAX:
                size = f"the accumulated size increase of copy is {copied_bytes}"
                raise _refused(f"Unable to complete the copy, {size}, exceeding the limit {COPIED_BYTES_MAX}")
        result = _applied(result, operation)
    if type(result) is not dict:
        raise _refused("the patched document is not an object")
    return result


def _applied(doc: Value, operation: Json) -> Value:
    name = operation.get("op")
    act = _ACTIONS.get(name) if type(name) is str else None
    if act is None:
        raise _refused(f"Unexpected kind: {name if type(name) is str else 'unknown'}")
    return act(doc, operation)


def _add(doc: Value, operation: Json) -> Value:
    path = _pointer(operation, "path", "add")
    holder, key = _found(doc, path)
    if holder is None:
        raise _refused(f'add operation does not apply: doc is missing path: "{path}": {_MISSING}')
    _insert(holder, key, copied(operation.get("value")), f"error in add for path: '{path}'")
    return doc


def _remove(doc: Value, operation: Json) -> Value:
    path = _pointer(operation, "path", "remove")
    holder, key = _found(doc, path)
    if holder is None:
        raise _refused(f'remove operation does not apply: doc is missing path: "{path}": {_MISSING}')
    _delete(holder, key, f"error in remove for path: '{path}'")
    return doc


def _replace(doc: Value, operation: Json) -> Value:
    path = _pointer(operation, "path", "replace")
    value = copied(operation.get("value"))
    if not path:
        if type(value) not in (dict, list):
            raise _refused("replace operation value must be object or array")
        return value
    holder, key = _found(doc, path)
    if holder is None:
        raise _refused(f"replace operation does not apply: doc is missing path: {path}: {_MISSING}")
    if type(holder) is dict:
        holder[key] = value
    else:
        index = _index(holder, key, f"replace operation does not apply: doc is missing key: {path}: {_MISSING}")
        holder[index] = value
    return doc


def _move(doc: Value, operation: Json) -> Value:
    value, holder, key = _source(doc, operation, "move")
    _delete(holder, key, f"error in move for path: '{key}'")
    path = _pointer(operation, "path", "move")
    holder, key = _found(doc, path)
    if holder is None:
        raise _refused(f"move operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    _insert(holder, key, value, f"error in move for path: '{path}'")
    return doc


def _copy(doc: Value, operation: Json) -> Value:
    value, _, _ = _source(doc, operation, "copy")
    path = _pointer(operation, "path", "copy")
    holder, key = _found(doc, path)
    if holder is None:
        raise _refused(f"copy operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    _insert(holder, key, copied(value), "error while adding value during copy")
    return doc


def _copied_bytes(doc: Value, operation: Json) -> int:
    """Bytes by which a copy makes the object longer."""
    return len(msgspec.json.encode(_source(doc, operation, "copy")[0]))


def _test(doc: Value, operation: Json) -> Value:
    path = _pointer(operation, "path", "test")
    value = doc
    if path:
        holder, key = _found(doc, path)
        if holder is None:
            raise _refused(f"test operation does not apply: is missing path: {path}: {_MISSING}")
        value = _get(holder, key, f"error in test for path: '{path}'")
    if not same(value, operation.get("value")):
        raise _refused(f"testing value {path} failed: test failed")
    return doc


_ACTIONS = {"add": _add, "remove": _remove, "replace": _replace, "move": _move, "copy": _copy, "test": _test}


def _pointer(operation: Json, name: str, act: str) -> str:
    pointer = operation.get(name)
    if type(pointer) is not str:
        raise _refused(f"{act} operation failed to decode {name}: {_MISSING}")
    return pointer


def _found(doc: Value, path: str) -> tuple[Any, str]:
    """The container of the last part of a path, and that part; None if the path leads nowhere."""
    parts = path.split("/")
    if len(parts) < 2:
        return None, ""
    holder = doc
    for part in parts[1:-1]:
        key = part.replace("~1", "/").replace("~0", "~")
        if type(holder) is dict:
            holder = holder.get(key)
        else:
            index = _in_range(holder, key)
            holder = None if index is None else holder[index]
        if type(holder) not in (dict, list):
            return None, ""
    return holder, parts[-1].replace("~1", "/").replace("~0", "~")


def _source(doc: Value, operation: Json, act: str) -> tuple[Any, Any, str]:
    path = _pointer(operation, "from", act)
    holder, key = _found(doc, path)
    if holder is None:
        raise _refused(f"{act} operation does not apply: doc is missing from path: {path}: {_MISSING}")
    return _get(holder, key, f"error in {act} for path: '{path}'"), holder, key


def _get(holder: Value, key: str, context: str) -> Value:
    return holder.get(key) if type(holder) is dict else holder[_index(holder, key, context)]


def _insert(holder: Value, key: str, value: Value, context: str) -> None:
    if type(holder) is dict:
        holder[key] = value
    elif key == "-":
        holder.append(value)
    else:
        # One more place than there are elements: the end.
        holder.insert(_index([*holder, None], key, context), value)


def _delete(holder: Value, key: str, context: str) -> None:
    if type(holder) is dict:
        if key not in holder:
            raise _refused(f"{context}: Unable to remove nonexistent key: {key}: {_MISSING}")
        del holder[key]
    else:
        del holder[_index(holder, key, context)]


def _index(array: list[Any], key: str, context: str) -> int:
    index = _in_range(array, key)
    if index is None:
        raise _refused(f"{context}: Unable to access invalid index: {key}: invalid index referenced")
    return index


def _in_range(array: list[Any], key: str) -> int | None:
    if not _INDEX.fullmatch(key):
        return None
    index = int(key)
    if index < 0:
        index += len(array)
    return index if 0 <= index < len(array) else None


def _refused(why: str) -> PatchError:
    return PatchError(why, 422)
