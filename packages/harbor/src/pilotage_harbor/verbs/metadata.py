"""The API's treatment of metadata, for objects of all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery import errors

if TYPE_CHECKING:
    from pilotage_harbor.core.scope import Scope
    from pilotage_harbor.kinds import Json

_SERVER_SIDE = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_UNSAID_IF_EMPTY = ("uid", "resourceVersion", "generation", "creationTimestamp")
"""Clients that send protobuf send these also when they are not set."""
_KEPT = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def check_create(obj: Json, scope: Scope) -> None:
    """Complete the namespace of a new object; refuse what contradicts the path."""
    meta = _metadata(obj)
    _check_namespace(meta, scope)
    version = str(meta.get("resourceVersion") or "")
    if version.isascii() and version.isdecimal() and version.strip("0"):  # 0, or what is no number, is taken for none
        words = "resourceVersion should not be set on objects to be created"
        raise errors.StatusError(500, "", words)
    meta.pop("resourceVersion", None)


def check_update(obj: Json, scope: Scope) -> None:
    """Complete namespace and name of a changed object; refuse what contradicts the path."""
    meta = _metadata(obj)
    _check_namespace(meta, scope)
    name = meta.get("name") or ""
    if not name:
        words = f"the name of the object ({scope.name} based on URL) was undeterminable: name must be provided"
        raise errors.bad_request(words)
    if name != scope.name:
        words = f"the name of the object ({name}) does not match the name on the URL ({scope.name})"
        raise errors.bad_request(words)


def begin(obj: Json, uid: str, now: str) -> None:
    """Give a new object its identity."""
    meta = obj["metadata"]
    for name in _SERVER_SIDE:
        meta.pop(name, None)
    meta["uid"] = uid
    meta["creationTimestamp"] = now
    _clean(meta)


def carry_over(new: Json, old: Json) -> None:
    """Keep what an update cannot change and need not say."""
    meta, before = new["metadata"], old["metadata"]
    for name in _KEPT:
        if meta.get(name) is None or name in (
            "generation",
            "creationTimestamp",
        ):  # what is said and is not so will be refused
            meta.pop(name, None)
            if name in before:
                meta[name] = before[name]
    meta["resourceVersion"] = before["resourceVersion"]
    _clean(meta)


def _clean(meta: Json) -> None:
    """Drop what Go would not write down: empty maps and lists, and null."""
    for name in ("labels", "annotations", "finalizers", "ownerReferences", "generateName", "selfLink"):
        if name in meta and not meta[name]:
            del meta[name]


def _metadata(obj: Json) -> Json:
    meta = obj.get("metadata")
    if meta is None:
        meta = obj["metadata"] = {}
    if not isinstance(meta, dict):
        raise errors.bad_request("metadata must be an object")
    for name in _UNSAID_IF_EMPTY:
        if name in meta and not meta[name]:
            del meta[name]
    return meta


def _check_namespace(meta: Json, scope: Scope) -> None:
    given = meta.get("namespace") or ""
    if not scope.kind.namespaced:
        meta.pop("namespace", None)
        return
    if given and given != scope.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    meta["namespace"] = scope.namespace
