"""Decoder of protobuf to JSON, for the messages of `messages.txt`."""

from __future__ import annotations

import base64
import datetime as dt
import json
import struct
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
DEPTH_MAX = 100

_MAGIC = b"k8s\x00"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions"
_PACKAGES = {
    "": "io.k8s.api.core",
    "rbac.authorization.k8s.io": "io.k8s.api.rbac",
    "apiextensions.k8s.io": _EXTENSIONS,
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
_OPTIONS = ("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions")
"""Kinds that every group has in each of its versions."""


class BadMessage(Exception):
    """The bytes are no message of a known type."""


class _Field(NamedTuple):
    name: str
    mark: str
    """``*`` repeated, ``%`` a map, ``~`` inlined."""
    type: str
    """A scalar's name, or ``@`` and a message's."""


def from_protobuf_untrusted(body: bytes, kind: str = "", api_version: str = "") -> dict[str, Any]:
    """The object in an envelope; what the envelope does not say of its kind, the arguments do. Raises BadMessage."""
    if not body.startswith(_MAGIC):
        raise BadMessage("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    raw, named = b"", {}
    for number, value in _fields(body[len(_MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            named = {each: text for each, text in _fields(value) if isinstance(text, bytes)}
        elif number == 2 and isinstance(value, bytes):
            raw = value
    api_version = _text(named.get(1, b"")) or api_version
    kind = _text(named.get(2, b"")) or kind
    message = _message_of(api_version, kind)
    if message is None:
        raise BadMessage(f'no kind "{kind}" is registered for version "{api_version}"')
    obj: dict[str, Any] = {"apiVersion": api_version, "kind": kind}
    obj.update(_decode(message, raw, 0))
    return obj


@cache
def _messages() -> dict[str, str]:
    lines = Path(__file__).with_name("messages.txt").read_text().splitlines()
    return dict(line.partition(" ")[::2] for line in lines)


@cache
def _message(name: str) -> dict[int, _Field]:
    fields = {}
    for word in _messages().get(name, "").split():
        number, field, type_ = word.split(":")
        mark = type_[0] if type_[0] in "*%~" else ""
        fields[int(number)] = _Field(field, mark, type_.removeprefix(mark))
    return fields


def _message_of(api_version: str, kind: str) -> str | None:
    if (api_version == "v1" or kind in _OPTIONS) and f"{_META}.{kind}" in _messages():
        return f"{_META}.{kind}"
    group, _, version = api_version.rpartition("/")
    package = _PACKAGES.get(group) or f"io.k8s.api.{group.partition('.')[0]}"
    name = f"{package}.{version}.{kind}"
    return name if name in _messages() else None


def _decode(message: str, raw: bytes, depth: int) -> Any:  # noqa: ANN401 - JSON
    if depth > DEPTH_MAX:
        raise BadMessage("it is nested too deeply")
    special = _SPECIAL.get(message)
    if special is not None:
        return special(dict(_fields(raw)))
    if message in _SCHEMA_OR:
        return _schema_or(message, raw, depth)
    known = _message(message)
    if message.endswith((".ExtraValue", ".Verbs")):  # lists that Go has given a type of their own
        return [_text(value) for _, value in _fields(raw)]
    obj: dict[str, Any] = {}
    for number, value in _fields(raw):
        field = known.get(number)
        if field is None:
            continue
        if field.mark == "%":
            key, inner = _pair(field, value, depth)
            obj.setdefault(field.name, {})[key] = inner
        elif field.mark == "*":
            obj.setdefault(field.name, []).append(_value(field.type, value, depth))
        elif field.mark == "~":
            obj.update(_value(field.type, value, depth))
        else:
            obj[field.name] = _value(field.type, value, depth)
    if message == _SCHEMA:
        return {name: inner for name, inner in obj.items() if inner or name not in _EMPTY_IN_SCHEMAS}
    return obj


def _schema_or(message: str, raw: bytes, depth: int) -> Any:  # noqa: ANN401 - JSON
    """A JSON schema, or what may stand in its place: true or false, or a list."""
    at = _SCHEMA_OR[message]
    fields = list(_fields(raw))
    for number, value in fields:
        if number == at:
            return _decode(_SCHEMA, _bytes(value), depth + 1)
    if message.endswith("OrBool"):
        return any(value for _, value in fields)
    item = "string" if message.endswith("OrStringArray") else f"@{_SCHEMA}"
    return [_value(item, value, depth) for _, value in fields] or None


def _pair(field: _Field, value: int | bytes, depth: int) -> tuple[str, Any]:
    parts = dict(_fields(_bytes(value)))
    empty: int | bytes = b"" if field.type in ("string", "bytes") or field.type.startswith("@") else 0
    return _text(parts.get(1, b"")), _value(field.type, parts.get(2, empty), depth)


def _value(type_: str, value: int | bytes, depth: int) -> Any:  # noqa: ANN401 - JSON
    if type_.startswith("@"):
        return _decode(type_[1:], _bytes(value), depth + 1)
    if type_ == "string":
        return _text(value)
    if type_ == "bytes":
        return base64.b64encode(_bytes(value)).decode()
    if type_ == "double":
        number: float = struct.unpack("<d", _bytes(value))[0]
        return int(number) if number.is_integer() else number
    if isinstance(value, bytes):
        raise BadMessage("bytes where a number should be")
    return bool(value) if type_ == "bool" else _signed(value)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise BadMessage("a number where bytes should be")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError:
        raise BadMessage("a text that is not UTF-8") from None


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, as they come: numbers, and bytes for all else."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(raw, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _varint(raw, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise BadMessage(f"proto: illegal wireType {wire}")
        if at + size > len(raw):
            raise BadMessage("unexpected EOF")
        yield number, raw[at : at + size]
        at += size


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(raw) and shift < 70:
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7
    raise BadMessage("unexpected EOF" if at >= len(raw) else "proto: integer overflow")


def _time(parts: dict[int, int | bytes]) -> Any:  # noqa: ANN401 - JSON
    seconds = parts.get(1)
    if not isinstance(seconds, int):
        return None
    moment = dt.datetime.fromtimestamp(_signed(seconds), dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(parts: dict[int, int | bytes]) -> Any:  # noqa: ANN401 - JSON
    seconds, nanos = parts.get(1), parts.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int):
        return None
    moment = dt.datetime.fromtimestamp(_signed(seconds), dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + f".{nanos // 1000:06}Z"


def _int_or_string(parts: dict[int, int | bytes]) -> Any:  # noqa: ANN401 - JSON
    if parts.get(1):
        return _text(parts.get(3, b""))
    number = parts.get(2, 0)
    return _signed(number) if isinstance(number, int) else 0


def _json(parts: dict[int, int | bytes]) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(_bytes(parts.get(1, b"null")) or b"null")
    except ValueError:
        raise BadMessage("JSON inside of it that cannot be read") from None


_SCHEMA = f"{_EXTENSIONS}.v1.JSONSchemaProps"
_SCHEMA_OR = {f"{_SCHEMA}OrArray": 1, f"{_SCHEMA}OrBool": 2, f"{_SCHEMA}OrStringArray": 1}
"""Field numbers of the schema in them."""
_EMPTY_IN_SCHEMAS = frozenset(
    {
        "id",
        "$schema",
        "description",
        "type",
        "format",
        "title",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "pattern",
        "uniqueItems",
        "nullable",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    }
)
"""Fields that a client sends with every schema, set or not. In other kinds, their strategies sort that out."""

_SPECIAL: dict[str, Callable[[dict[int, int | bytes]], Any]] = {
    f"{_META}.Time": _time,
    f"{_META}.MicroTime": _micro_time,
    f"{_META}.FieldsV1": _json,
    f"{_META}.Duration": lambda parts: parts.get(1, 0),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _json,
    f"{_EXTENSIONS}.v1.JSON": _json,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": lambda parts: _text(parts.get(1, b"")),
}
