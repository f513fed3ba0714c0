"""Conversion between stored and served objects: dicts, bytes, and the version asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pilotage_harbor.storage.store import StoredObject

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json, Kind

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


_ORDER = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
"""The order in which kube-apiserver writes metadata: what matters comes first."""


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_metadata = msgspec.json.Decoder(_Metadata)


def to_entry(kind: Kind, obj: Json, version: int) -> StoredObject:
    """The entry to store for an object that was written as this kind. Sets its resourceVersion."""
    meta = obj["metadata"]
    meta["resourceVersion"] = str(version)
    obj["metadata"] = meta = {name: meta[name] for name in _ORDER if name in meta} | meta
    stored = kind.to_storage(obj) if kind.to_storage is not None else obj
    raw = _encode({"apiVersion": stored["apiVersion"], "kind": stored["kind"], "metadata": meta} | stored)
    return StoredObject(raw, version, meta.get("namespace", ""), meta["name"], meta["uid"], meta.get("labels") or {})


def from_entry(kind: Kind, entry: StoredObject) -> Json:
    """A stored object as this kind: a dict of its own, free to be changed."""
    obj: Json = _decode(entry.raw)
    if kind.from_storage is not None and not _is_as_served(kind, entry):
        obj = kind.from_storage(obj)
    return obj


def as_stored(entry: StoredObject) -> Json:
    """A stored object in the version that it was stored in."""
    obj: Json = _decode(entry.raw)
    return obj


def metadata_of(entry: StoredObject) -> Json:
    """The metadata of a stored object, as it was written."""
    meta: Json = _decode(_metadata.decode(entry.raw).metadata)
    return meta


def as_bytes(kind: Kind, entry: StoredObject) -> bytes:
    """A stored object as the JSON of this kind."""
    if _is_as_served(kind, entry):
        return entry.raw
    obj = from_entry(kind, entry)
    return _encode({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": obj["metadata"]} | obj)


def as_item(kind: Kind, entry: StoredObject) -> bytes:
    """The same as an item of a list: those of built-in kinds do not say what they are."""
    raw = as_bytes(kind, entry)
    return raw if kind.custom else b"{" + raw[len(kind.prefix) :]


def as_metadata(entry: StoredObject, version: str) -> bytes:
    """A PartialObjectMetadata."""
    head = f'{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/{version}","metadata":'.encode()
    return head + bytes(_metadata.decode(entry.raw).metadata) + b"}"


def with_version(entry: StoredObject, version: int) -> StoredObject:
    """The same object under another resourceVersion."""
    obj: dict[str, Any] = _decode(entry.raw)
    obj["metadata"]["resourceVersion"] = str(version)
    return StoredObject(_encode(obj), version, entry.namespace, entry.name, entry.uid, entry.labels)


def _is_as_served(kind: Kind, entry: StoredObject) -> bool:
    return entry.version >= kind.as_of and entry.raw.startswith(kind.prefix)
