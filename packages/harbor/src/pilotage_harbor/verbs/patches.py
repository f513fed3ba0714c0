"""PATCH, of each of its four types, and its refusals: with the patch or the object, and the reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import check_manager, telling
from pilotage_harbor.apimachinery.go_json import go_words
from pilotage_harbor.patching import json_patch, merge_patch, strategic_merge
from pilotage_harbor.schema.gotext import plain, quote
from pilotage_harbor.verbs import bodies
from pilotage_harbor.verbs.deletions import TRIES_MAX
from pilotage_harbor.verbs.metadata import check_update
from pilotage_harbor.verbs.server_side_apply import apply_config
from pilotage_harbor.verbs.writes import Overtaken, change_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.core import Core
    from pilotage_harbor.core.scope import Scope
    from pilotage_harbor.kinds import Json
    from pilotage_harbor.verbs.writes import Written

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


async def patch(core: Core, scope: Scope) -> Written:
    """A PATCH of any type. A server-side apply to a name that is free creates the object."""
    kind, call = scope.kind, scope.call
    check_manager(call)
    media = call.headers.get("content-type", "").partition(";")[0].strip()
    types = (JSON_PATCH, MERGE_PATCH, *(() if kind.custom else (STRATEGIC_PATCH,)), APPLY_PATCH)
    if media == STRATEGIC_PATCH and kind.custom:
        raise errors.unsupported_media_type(types)
    if media not in types:
        raise errors.StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    if media == APPLY_PATCH:
        return await apply_config(core, scope)
    if call.query.get("force"):
        words = "Forbidden: may not be specified for non-apply patch"
        raise errors.invalid(
            "meta.k8s.io", "PatchOptions", "", [errors.StatusCause("force", "FieldValueForbidden", words)]
        )
    warnings: list[str] = []

    def patched(obj: Json) -> Json:
        change, odd = change_of(scope, media)
        new = change(obj)
        try:
            bodies.check_kind(new, kind)
            warnings[:] = bodies.check_fields(new, kind, call.option("fieldValidation"), odd)
        except errors.StatusError as error:
            why = error.why if isinstance(error, bodies.Undecodable) else error.message.partition(": ")[2]
            why = why or error.message
            raise (refused_strategic(call.body, why) if media == STRATEGIC_PATCH else refused(new, why)) from None
        check_update(new, scope)
        return new

    for tries_left in reversed(range(TRIES_MAX)):
        entry = core.store.get(kind.storage, scope.namespace, scope.name)
        if entry is None:
            raise errors.not_found(kind.group, kind.plural, scope.name)
        try:
            with telling(warnings):
                return await change_object(core, scope, entry, patched, warnings)
        except Overtaken:
            if not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


def change_of(scope: Scope, media: str) -> tuple[Callable[[Json], Json], list[str]]:
    """The patch as a function, and what is odd about it: fields that it has twice. 400 for one that cannot be read."""
    body, schema = scope.call.body, scope.kind.schema
    try:
        patch_ = msgspec.json.decode(body)
        words = bodies.depth_problem_untrusted(body, patch_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        words = go_words(body)
    if words:
        raise errors.bad_request(words if media == STRATEGIC_PATCH else f"error decoding patch: {words}")
    duplicates = bodies.duplicates(body) if len(msgspec.json.encode(patch_)) != len(body) else []
    if media == JSON_PATCH:
        odd = unknown_members(patch_) + [f"json patch {each}" for each in duplicates]
        return lambda obj: json_patch(obj, patch_), odd
    if media == MERGE_PATCH:
        return lambda obj: merge_patch(obj, patch_), duplicates
    return lambda obj: strategic_merge(obj, patch_, schema), duplicates


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
    cause = errors.StatusCause("patch", "FieldValueInvalid", f"Invalid value: {quote(shown)}: {why}")
    return errors.invalid("", "", "", [cause])


def unstructured_words(why: str) -> str:
    """Message of Go's decoder about a wrong type, in the words of the converter that works on decoded objects."""
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
    """Warnings about members of a JSON patch that no operation has."""
    if not isinstance(operations, list):
        return []
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(operations)
        if isinstance(operation, dict)
        for name in operation
        if name not in _OPERATION
    ]
