"""Patches, as values: what to send and under which content type.

A merge patch replaces lists whole. To take one element out of a list that others also write (finalizers, owner
references), use `without_finalizer`, which fails rather than overwrite what somebody else has changed.
"""

from typing import NamedTuple

from pilotage.kube.wire import Json, Object, encode


class Patch(NamedTuple):
    """A body and its content type."""

    content_type: str
    body: bytes


def merge_patch(changes: Json, *, resource_version: str = "") -> Patch:
    """RFC 7386. With a resourceVersion it is refused (Conflict) unless the object is still at that version."""
    if resource_version:
        changes = changes | {"metadata": {**changes.get("metadata", {}), "resourceVersion": resource_version}}
    return Patch("application/merge-patch+json", encode(changes))


def json_patch(operations: list[Json]) -> Patch:
    """RFC 6902: all operations or none; a failed ``test`` is Invalid."""
    return Patch("application/json-patch+json", encode(operations))


def apply_patch(body: Json) -> Patch:
    """Server-side apply: the fields that the field manager wants to own, and no others. JSON is YAML."""
    return Patch("application/apply-patch+yaml", encode(body))


def without_finalizer(obj: Object, finalizer: str) -> Patch | None:
    """Remove one finalizer of exactly this object at exactly this version; None if it is not there."""
    if finalizer not in obj.meta.finalizers:
        return None
    kept = [name for name in obj.meta.finalizers if name != finalizer]
    return merge_patch(
        {"metadata": {"finalizers": kept, "uid": obj.meta.uid}}, resource_version=obj.meta.resource_version
    )
