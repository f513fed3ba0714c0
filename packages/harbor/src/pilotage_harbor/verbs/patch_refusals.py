"""Refusals of patches that leave no object of their kind: with the patch or the object, and the reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from pilotage_harbor.apimachinery import errors
from pilotage_harbor.schema.gotext import plain, quote

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json

_MISMATCH = re.compile(r"json: cannot unmarshal (\w+)( \S+)? into Go (?:struct field \S+|value) of type (.+)")
_KINDS = {"string": "string", "bool": "bool", "array": "slice", "object": "map", "number": "int64"}
_OPERATION = frozenset({"op", "path", "from", "value"})


def refused(new: Json, why: str) -> errors.StatusError:
    """422: what a JSON or a merge patch has made of the object does not fit its kind."""
    return _invalid(msgspec.json.encode(new).decode(), why)


def refused_strategic(patch: bytes, why: str) -> errors.StatusError:
    """The same of a strategic merge patch. That one never becomes JSON again, so other words are used."""
    return _invalid(plain(msgspec.json.decode(patch)), unstructured_words(why))


def _invalid(shown: str, why: str) -> errors.StatusError:
    cause = errors.Cause("patch", "FieldValueInvalid", f"Invalid value: {quote(shown)}: {why}")
    return errors.invalid("", "", "", [cause])


def unstructured_words(why: str) -> str:
    """What Go's decoder says of a wrong type, in the words of the converter that works on decoded objects."""
    found = _MISMATCH.fullmatch(why)
    if found is None:
        return why
    kind, target = "float64" if found[2] else _KINDS.get(found[1], found[1]), found[3]
    if target.startswith("[]"):
        return f"cannot restore slice from {kind}"
    if target.startswith("map["):
        return f"cannot restore map from {kind}"
    if "." in target:
        return f"cannot restore struct from: {kind}"
    convertible = kind in ("int64", "float64") and (target != "bool" and (kind, target) != ("float64", "string"))
    return f"cannot convert {kind} to {target}" if convertible else f"unrecognized type: {target}"


def unknown_members(operations: Any) -> list[str]:  # noqa: ANN401 - JSON
    """What a JSON patch has beyond what an operation is made of."""
    if not isinstance(operations, list):
        return []
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(operations)
        if isinstance(operation, dict)
        for name in operation
        if name not in _OPERATION
    ]
