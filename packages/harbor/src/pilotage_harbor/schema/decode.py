"""The message of Go's decoder about an object whose values have the wrong types. It becomes a 400.

A mismatch is remembered and decoding goes on, so the first one in the order of the document is told. A type that
decodes itself (a quantity, a time) stops at once, and what it says wins.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pilotage_harbor.schema.builtin import OBJECT_META, UNION, definition
from pilotage_harbor.schema.formats import is_date
from pilotage_harbor.schema.gotext import quote

if TYPE_CHECKING:
    from pilotage_harbor.schema.node import SchemaNode, Value

_QUANTITY = re.compile(r"([+-]?[0-9.]++)([eEinumkKMGTP]*+[-+]?[0-9]*+)")
_QUANTITY_CHARS_MAX = 1000
_EXPONENT_DIGITS_MAX = 3
_QUANTITY_WORDS = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)")
_SUFFIX = re.compile(r"[numkMGTPE]?|[KMGTPE]i|[eE][-+]?([0-9]++)")
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_LIMITS = {"int32": 2**31, "int64": 2**63}


class _Refused(Exception):
    """A type that decodes itself would not take its value."""


def decode_problem(schema: SchemaNode, obj: object, kind: str) -> str | None:
    """The first mismatch between an object and a built-in schema, in the decoder's words, or None.

    Of a custom resource only the metadata has Go types: the rest is `validate`'s business. `kind` is the object's.
    """
    if not schema.go_name:
        if not isinstance(obj, dict) or "metadata" not in obj:
            return None
        schema, obj, kind = definition(OBJECT_META), obj["metadata"], "ObjectMeta"
    decoder = _Decoder()
    try:
        decoder.decode(schema, obj, schema.go_name.rpartition(".")[2] or kind, "")
    except _Refused as refusal:
        return str(refusal)
    return decoder.first


class _WrongType(Exception):
    """It has another type inside: what was found, and that type."""


class _Decoder:
    def __init__(self) -> None:
        self.first: str | None = None

    def decode(self, node: SchemaNode, value: Value, struct: str, path: str) -> None:
        """`struct` is the Go struct that holds the value, `path` the fields that lead to it, without indexes."""
        if value is None:
            return
        if isinstance(value, dict) and node.type == "object":
            self._object(node, value, struct, path)
        elif isinstance(value, list) and node.type == "array" and node.items is not None:
            for element in value:
                self.decode(node.items, element, struct, path)
        elif node.format in _OWN:
            try:
                _OWN[node.format](node, value)
            except _WrongType as wrong:
                found, go_name = wrong.args
                raise _Refused(_words(found, go_name, struct, path)) from None
        elif node.type:
            self._scalar(node, value, struct, path)

    def _object(self, node: SchemaNode, value: dict[str, Any], struct: str, path: str) -> None:
        if node.additional is not None:
            for part in value.values():
                self.decode(node.additional, part, struct, path)
            return
        own = node.go_name.rpartition(".")[2] or struct
        for name, part in value.items():
            known = node.properties.get(name)
            if known is not None:
                step = f"{known.go_embedded}.{name}" if known.go_embedded else name
                self.decode(known, part, own, f"{path}.{step}" if path else step)

    def _scalar(self, node: SchemaNode, value: Value, struct: str, path: str) -> None:
        found = _found(value)
        if node.type == "string" and isinstance(value, str):
            if node.format == "byte":
                self._bytes(value)
        elif node.type == "boolean" and isinstance(value, bool):
            return
        elif node.type in ("integer", "number") and found == "number":
            if node.type == "integer" and not _is_integer(value, node.format):
                self._mismatch(f"number {value}", node, struct, path)
        elif node.type != "object" or node.go_name:
            self._mismatch(found, node, struct, path)

    def _bytes(self, value: str) -> None:
        problem = base64_problem(value)
        if problem is not None and self.first is None:
            self.first = problem

    def _mismatch(self, found: str, node: SchemaNode, struct: str, path: str) -> None:
        if self.first is None:
            self.first = _words(found, node.go_name, struct, path)


def _words(found: str, go_name: str, struct: str, path: str) -> str:
    where = f"struct field {struct}.{path}" if path else "value"
    return f"json: cannot unmarshal {found} into Go {where} of type {go_name}"


def _found(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


def _is_integer(value: float, width: str) -> bool:
    limit = _LIMITS.get(width, 2**63)
    return isinstance(value, int) and -limit <= value < limit


def base64_problem(text: str) -> str | None:
    """Error of Go's base64 decoder about a text, or None. Line breaks are ignored."""
    at = _corrupt_at(text.encode())
    return None if at is None else f"illegal base64 data at input byte {at}"


def _corrupt_at(data: bytes) -> int | None:
    places = [(at, byte) for at, byte in enumerate(data) if byte not in b"\r\n"]
    for number, (at, byte) in enumerate(places):
        if byte != ord("="):
            if byte not in _BASE64:
                return at
            continue
        place = number % 4
        if place < 2:
            return at
        if place == 2:
            if number + 1 == len(places):
                return len(data)
            number += 1
            if places[number][1] != ord("="):
                return places[number][0] - 1
        return places[number + 1][0] if number + 1 < len(places) else None
    rest = len(places) % 4
    return len(data) - rest if rest else None


def _quantity(_node: SchemaNode, value: object) -> None:
    if isinstance(value, (dict, list, bool)):
        raise _Refused(_QUANTITY_WORDS)
    text = value.strip() if isinstance(value, str) else str(value)
    problem = quantity_problem(text)
    if problem:
        raise _Refused(problem)


def quantity_problem(text: str) -> str | None:
    """Problems of a quantity, in resource.ParseQuantity's words, or None.

    Kubernetes knows no bound of its own, and is kept busy for minutes by an exponent of ten digits.
    """
    if not text or len(text) > _QUANTITY_CHARS_MAX:
        return _QUANTITY_WORDS
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return _QUANTITY_WORDS
    if not _NUMBER.fullmatch(found.group(1)):
        return "unable to parse numeric part of quantity" if found.group(1).count(".") > 1 else _QUANTITY_WORDS
    suffix = _SUFFIX.fullmatch(found.group(2))
    if suffix is None or len((suffix.group(1) or "").lstrip("0")) > _EXPONENT_DIGITS_MAX:
        return "unable to parse quantity's suffix"
    return None


def _int_or_string(_node: SchemaNode, value: object) -> None:
    if isinstance(value, str):
        return
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not _is_integer(value, "int32"):
            raise _WrongType(f"number {value}", "int32")
        return
    raise _WrongType(_found(value), "int32")


_CLOCK = re.compile(r"(\d{2}):(\d{2}):(\d{2})(?:[.,]\d+)?(Z|[+-]\d{2}:\d{2})", re.ASCII)
_LAYOUTS = {"v1.Time": "2006-01-02T15:04:05Z07:00", "v1.MicroTime": "2006-01-02T15:04:05.000000Z07:00"}


def _time(node: SchemaNode, value: object) -> None:
    if not isinstance(value, str):
        raise _WrongType(_found(value), "string")
    layout = _LAYOUTS.get(node.go_name, _LAYOUTS["v1.Time"])
    problem = time_problem(value, layout)
    if problem:
        raise _Refused(problem)


def time_problem(text: str, layout: str) -> str | None:
    """Error of Go's time.Parse about a time, or None."""
    clock = _CLOCK.fullmatch(text[11:])
    if len(text) > 11 and text[10] == "T" and is_date(text[:10]) and clock and _clock_is_right(clock, layout):
        return None
    rest, wanted = _where_it_stops(text, _STEPS_MICRO if layout == _LAYOUTS["v1.MicroTime"] else _STEPS)
    if wanted is None:
        return f"parsing time {quote(text)}: {rest}"
    return f"parsing time {quote(text)} as {quote(layout)}: cannot parse {quote(rest)} as {quote(wanted)}"


def _clock_is_right(clock: re.Match[str], layout: str) -> bool:
    micro = ".000000" in layout
    fraction = len(clock.group()) - len(clock.group(4)) - 8
    return clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59" and (not micro or fraction == 7)


_STEPS = (
    (r"\d{4}", "2006", ""),
    ("-", "-", ""),
    (r"\d{2}", "01", "month"),
    ("-", "-", ""),
    (r"\d{2}", "02", "day"),
    ("T", "T", ""),
    (r"\d{2}", "15", "hour"),
    (":", ":", ""),
    (r"\d{2}", "04", "minute"),
    (":", ":", ""),
    (r"\d{2}(?:[.,]\d+)?", "05", "second"),
    (r"Z|[+-]\d{2}:\d{2}", "Z07:00", ""),
)
_STEPS_MICRO = (*_STEPS[:-2], (r"\d{2}", "05", "second"), (r"[.,]\d{6}", ".000000", ""), _STEPS[-1])
_HIGHEST = {"month": 12, "day": 31, "hour": 23, "minute": 59, "second": 59}


def _where_it_stops(text: str, steps: tuple[tuple[str, str, str], ...]) -> tuple[str, str | None]:
    """Rest of a text at which parsing a time stops and the element expected there, or the complaint and None."""
    rest = text
    for pattern, wanted, name in steps:
        found = re.compile(pattern, re.ASCII).match(rest)
        if found is None:
            return rest, wanted
        if name and int(found.group()[:2]) > _HIGHEST[name]:
            return f"{name} out of range", None
        rest = rest[found.end() :]
    return (f"extra text: {quote(rest)}", None) if rest else ("day out of range", None)


def _union(_node: SchemaNode, _value: object) -> None:
    return


_OWN = {"quantity": _quantity, "int-or-string": _int_or_string, "date-time": _time, UNION: _union}
