"""The document of version 2 as protobuf: the form in which Go clients ask for it, and take no other.

kubectl needs it for what it checks itself: a List, and kinds that can be created and not patched. The messages are
those of gnostic's OpenAPIv2.proto; a message is written from a table that says the number and the form of each field.
Only what harbor's documents have is in the tables. Values of any type (extensions, defaults) are carried as YAML text,
which JSON is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

Json = dict[str, Any]
Write = Callable[[Any], bytes]
"""Writes one field: its number, its length, its value."""

_VARINT, _DOUBLE, _BYTES = 0, 1, 2


def encode(document: Json) -> bytes:
    """The message of a document of version 2. What stands in it as raw JSON is read."""
    return _document(document)


def _varint(number: int) -> bytes:
    out = bytearray()
    number &= 0xFFFF_FFFF_FFFF_FFFF  # a negative one has all its 64 bits
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_SMALL = [_varint(number) for number in range(1024)]


def _sized(key: bytes, value: bytes) -> bytes:
    size = len(value)
    return key + (_SMALL[size] if size < 1024 else _varint(size)) + value


def _key(number: int, form: int) -> bytes:
    return _varint(number << 3 | form)


# Fields


def _text(number: int) -> Write:
    key = _key(number, _BYTES)
    return lambda value: _sized(key, value.encode())


def _flag(number: int) -> Write:
    key = _key(number, _VARINT)
    return lambda value: key + (b"\x01" if value else b"\x00")


def _integer(number: int) -> Write:
    key = _key(number, _VARINT)
    return lambda value: key + _varint(int(value))


def _float(number: int) -> Write:
    key = _key(number, _DOUBLE)
    return lambda value: key + struct.pack("<d", value)


def _any(number: int) -> Write:
    key, inner = _key(number, _BYTES), _text(2)
    return lambda value: _sized(key, inner(msgspec.json.encode(value).decode()))


def _each(write: Write) -> Write:
    return lambda values: b"".join(map(write, values))


def _inside(number: int, message: Write) -> Write:
    key = _key(number, _BYTES)
    return lambda value: _sized(key, message(value))


def _named(number: int, message: Write) -> Write:
    """A map: a repeated message of a name and a value."""
    key, name_of, value_of = _key(number, _BYTES), _text(1), _inside(2, message)
    return lambda entries: b"".join(_sized(key, name_of(name) + value_of(value)) for name, value in entries.items())


def _message(fields: dict[str, Write], extensions: int = 0) -> Write:
    """A message of an object. What is in no field is left out, but for extensions."""
    extension = _named(extensions, _any_body) if extensions else None

    def write(value: Json) -> bytes:
        parts = []
        for name, part in value.items():
            field = fields.get(name)
            if field is not None:
                parts.append(field(part))
            elif extension is not None and name.startswith("x-"):
                parts.append(extension({name: part}))
        return b"".join(parts)

    return write


def _any_body(value: object) -> bytes:
    return _YAML(msgspec.json.encode(value).decode())


_YAML = _text(2)


# Messages


def _schema(value: Json | msgspec.Raw) -> bytes:
    return _schema_message(msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value)


def _additional(value: Json | bool) -> bytes:
    return _ADDITIONAL_FLAG(value) if isinstance(value, bool) else _ADDITIONAL_SCHEMA(value)


_ADDITIONAL_SCHEMA = _inside(1, _schema)
_ADDITIONAL_FLAG = _flag(2)
_EXTERNAL_DOCS = _message({"description": _text(1), "url": _text(2)})

_schema_message = _message(
    {
        "$ref": _text(1),
        "format": _text(2),
        "title": _text(3),
        "description": _text(4),
        "default": _any(5),
        "multipleOf": _float(6),
        "maximum": _float(7),
        "exclusiveMaximum": _flag(8),
        "minimum": _float(9),
        "exclusiveMinimum": _flag(10),
        "maxLength": _integer(11),
        "minLength": _integer(12),
        "pattern": _text(13),
        "maxItems": _integer(14),
        "minItems": _integer(15),
        "uniqueItems": _flag(16),
        "maxProperties": _integer(17),
        "minProperties": _integer(18),
        "required": _each(_text(19)),
        "enum": _each(_any(20)),
        "additionalProperties": _inside(21, _additional),
        "type": _inside(22, _text(1)),
        "items": _inside(23, _inside(1, _schema)),
        "properties": _inside(25, _named(1, _schema)),
        "externalDocs": _inside(29, _EXTERNAL_DOCS),
        "example": _any(30),
    },
    extensions=31,
)

_BODY = _inside(
    1,
    _message(
        {"description": _text(1), "name": _text(2), "in": _text(3), "required": _flag(4), "schema": _inside(5, _schema)}
    ),
)
_SIMPLE = {
    "query": (3, {"required": 1, "in": 2, "description": 3, "name": 4, "type": 6, "uniqueItems": 20}),
    "path": (4, {"required": 1, "in": 2, "description": 3, "name": 4, "type": 5, "uniqueItems": 19}),
}
_FLAGS = ("required", "uniqueItems")
_NOT_BODY = {
    where: _inside(
        2, _inside(number, _message({name: (_flag if name in _FLAGS else _text)(at) for name, at in fields.items()}))
    )
    for where, (number, fields) in _SIMPLE.items()
}


def _parameter(value: Json) -> bytes:
    if value["in"] == "body":
        return _PARAMETER(_BODY(value))
    return _same_parameter(tuple(value.items()))


@lru_cache(maxsize=256)
def _same_parameter(value: tuple[tuple[str, Any], ...]) -> bytes:
    """There are some thirty parameters, and thousands of places where they stand."""
    parameter = dict(value)
    return _PARAMETER(_NOT_BODY[parameter["in"]](parameter))


_PARAMETER = _inside(1, lambda written: written)
_RESPONSE = _inside(1, _message({"description": _text(1), "schema": _inside(2, _inside(1, _schema))}))
_SECURITY = _named(1, _each(_text(1)))

_operation = _message(
    {
        "tags": _each(_text(1)),
        "operationId": _text(5),
        "produces": _each(_text(6)),
        "consumes": _each(_text(7)),
        "parameters": _each(_inside(8, _parameter)),
        "responses": _inside(9, _named(1, _RESPONSE)),
        "schemes": _each(_text(10)),
    },
    extensions=13,
)
_path_item = _message(
    {
        "get": _inside(2, _operation),
        "put": _inside(3, _operation),
        "post": _inside(4, _operation),
        "delete": _inside(5, _operation),
        "patch": _inside(8, _operation),
        "parameters": _each(_inside(9, _parameter)),
    }
)
_API_KEY = _inside(2, _message({"type": _text(1), "name": _text(2), "in": _text(3), "description": _text(4)}))
_document = _message(
    {
        "swagger": _text(1),
        "info": _inside(2, _message({"title": _text(1), "version": _text(2)})),
        "paths": _inside(8, _named(2, _path_item)),
        "definitions": _inside(9, _named(1, _schema)),
        "security": _each(_inside(12, _SECURITY)),
        "securityDefinitions": _inside(13, _named(1, _API_KEY)),
    }
)
