"""JSON merge patch (RFC 7386), as kube-apiserver applies it."""

from __future__ import annotations

from pilotage_harbor.patching.errors import PatchError
from pilotage_harbor.patching.values import Json, Value, copied, go_type, without_nulls


def merge_patch(doc: Json, patch: Value) -> Json:
    """The object with the patch merged into it. Neither is changed, and the result shares nothing with them.

    Raises:
        PatchError: the patch is not an object.
    """
    if type(patch) is not dict:
        kind = go_type(patch)
        raise PatchError(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )
    return _merged(copied(doc), patch)


def _merged(result: Json, patch: Json) -> Json:
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif type(value) is dict and type(current := result.get(key)) is dict:
            _merged(current, value)
        else:
            result[key] = without_nulls(value)
    return result
