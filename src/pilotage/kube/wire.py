"""Objects as they come over the wire: metadata typed, the rest kept as the bytes it came in.

Most of what a controller receives is looked at once, by its metadata, and dropped. So an `Object` decodes its metadata
and leaves the rest alone until somebody asks. It is a read-only view: what is sent to the API is a plain dict, and the
only way to get one from an `Object` is `to_dict`, which decodes everything. A partly decoded object cannot be PUT.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, TypeVar

import msgspec

from pilotage.kube.names import ObjectKey, ObjectRef

Json = dict[str, Any]
T = TypeVar("T")


class OwnerReference(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Owner of an object; identified by uid, never by name."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """metadata, without managedFields (those are in `Object.to_dict`). Times are RFC 3339 text, as the server sent it.

    Not tracked by the cyclic garbage collector: it holds only text and flat containers of text.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    generate_name: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def terminating(self) -> bool:
        """Whether its deletion has begun."""
        return bool(self.deletion_timestamp)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages it, if one does."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class _Head(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class ListMeta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """metadata of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _EventHead(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    type: str
    object: _Head


_head = msgspec.json.Decoder(_Head)
_list = msgspec.json.Decoder(_List)
_event = msgspec.json.Decoder(_Event)
_event_head = msgspec.json.Decoder(_EventHead)
_any = msgspec.json.Decoder()


class Object(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One object as the server sent it: `meta` is decoded, `raw` is all of it, and nothing can be changed in place.

    Compared by identity, and invisible to the cyclic garbage collector: a cache of 100,000 costs it nothing.
    """

    raw: bytes
    meta: ObjectMeta
    api_version: str
    kind: str

    @classmethod
    def decode(cls, raw: bytes, api_version: str = "", kind: str = "") -> Object:
        """Decode JSON. `api_version` and `kind` are for items of lists, which do not carry their own."""
        try:
            head = _head.decode(raw)
        except msgspec.ValidationError:
            head = _tolerant_head(raw)
        return cls(raw, head.metadata, head.api_version or api_version, head.kind or kind)

    @classmethod
    def from_dict(cls, body: Json) -> Object:
        """The view of an object that was made here."""
        return cls.decode(encode(body))

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.meta.namespace, self.meta.name)

    @property
    def ref(self) -> ObjectRef:
        """Kind, namespace, name and uid."""
        return ObjectRef(self.api_version, self.kind, self.meta.namespace, self.meta.name, self.meta.uid)

    def to_dict(self) -> Json:
        """All of it, decoded afresh: yours to change and to send back."""
        decoded: Json = _any.decode(self.raw)
        known = {name: value for name, value in (("apiVersion", self.api_version), ("kind", self.kind)) if value}
        return known | decoded

    def decode_as(self, type_: type[T]) -> T:
        """The object as a msgspec type, which may name only the fields that it needs."""
        return msgspec.json.decode(self.raw, type=type_)

    def get(self, *path: str, default: Any = None) -> Any:  # noqa: ANN401 - JSON has no narrower type
        """The value at a path of field names, or the default. Decodes each time: keep the result, not the path."""
        value: Any = _any.decode(self.raw)
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return default
            value = value[name]
        return value

    def __repr__(self) -> str:
        return f"<{self.ref} uid={self.meta.uid} rv={self.meta.resource_version}>"


class ObjectList(msgspec.Struct, frozen=True):
    """A list, or one chunk of it: the objects, and the version of the collection at which they were read."""

    resource_version: str
    items: list[Object]
    continue_token: str = ""
    remaining: int | None = None


def decode_list(raw: bytes) -> ObjectList:
    """A list answer. Each item gets bytes of its own, so that keeping one does not keep the whole answer alive."""
    decoded = _list.decode(raw)
    kind = decoded.kind.removesuffix("List")
    items = [Object.decode(bytes(item), decoded.api_version, kind) for item in decoded.items or ()]
    meta = decoded.metadata
    return ObjectList(meta.resource_version, items, meta.continue_, meta.remaining_item_count)


_EVENT_TYPES = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
_EVENT_STARTS = {type_: f'{{"type":"{type_}","object":'.encode() for type_ in _EVENT_TYPES}


def decode_event(line: bytes) -> tuple[str, Object]:
    """One line of a watch: the event's type, and its object (of an ERROR, a Status). DecodeError for anything else.

    With the end of the line, as it comes, or without.

    The line is decoded once: kube-apiserver writes the type first, so the object's bytes are cut out, not parsed.
    """
    try:
        event = _event_head.decode(line)
    except msgspec.ValidationError:  # perhaps nulls, which the slower way knows how to take
        return _decode_event_in_two(line)
    start = _EVENT_STARTS.get(event.type)
    end = -2 if line.endswith(b"}}\n") else -1
    if start is None or not line.startswith(start) or (end == -1 and not line.endswith(b"}}")):
        return _decode_event_in_two(line)
    head = event.object
    return event.type, Object(line[len(start) : end], head.metadata, head.api_version, head.kind)


def _decode_event_in_two(line: bytes) -> tuple[str, Object]:
    event = _event.decode(line)
    return event.type, Object.decode(bytes(event.object))


def encode(body: Any) -> bytes:  # noqa: ANN401 - anything that is JSON
    """JSON, compact."""
    return msgspec.json.encode(body)


def parse_time(text: str) -> dt.datetime:
    """A time of the API (RFC 3339, with or without fractions) as an aware datetime."""
    return dt.datetime.fromisoformat(text)


def format_time(moment: dt.datetime) -> str:
    """metav1.Time: whole seconds, UTC."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: dt.datetime) -> str:
    """metav1.MicroTime: with microseconds, as Leases and Events want it."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _tolerant_head(raw: bytes) -> _Head:
    """Decoder for servers that write null where kube-apiserver leaves a field out."""
    body = _any.decode(raw)
    if not isinstance(body, dict):
        raise msgspec.ValidationError(f"expected an object, got {type(body).__name__}")
    meta = body.get("metadata")
    meta = {name: value for name, value in meta.items() if value is not None} if isinstance(meta, dict) else {}
    return msgspec.convert(
        {"apiVersion": body.get("apiVersion") or "", "kind": body.get("kind") or "", "metadata": meta}, _Head
    )
