"""Values as rules see them: a number is a double though JSON wrote ``1``, a date-time is a timestamp."""

from __future__ import annotations

import base64
import binascii
import re
from fractions import Fraction
from typing import TYPE_CHECKING

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from pilotage_harbor.schema.cel_names import escape

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.schema.node import SchemaNode, Value

_SECOND = 10**9
_UNITS = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_UNITS |= {"d": 86400 * _SECOND, "w": 7 * 86400 * _SECOND}
_DURATION = re.compile(r"(\d+\.?\d*|\.\d+)\s*([a-zµμ]+)", re.IGNORECASE)
_LONG_UNITS = (("nano", "ns"), ("micro", "us"), ("milli", "ms"), ("sec", "s"), ("min", "m"), ("h", "h"), ("d", "d"))


def converter(node: SchemaNode) -> Callable[[Value], Value]:
    """Converter from a value of a node to what a rule sees. It costs nothing where nothing has to change."""
    return _converted(node) if _changes(node) else _same


def _same(value: Value) -> Value:
    return value


def _changes(node: SchemaNode) -> bool:
    """Whether there is anything below a node that a rule sees otherwise than JSON has it."""
    if node.go_name:
        return False
    if node.type == "number" or (node.type == "string" and node.format in _FORMATS):
        return True
    if any(escape(name) != name for name in node.properties):
        return True
    parts = [*node.properties.values(), node.items, node.additional]
    return any(part is not None and _changes(part) for part in parts)


def _converted(node: SchemaNode) -> Callable[[Value], Value]:
    def convert(value: Value) -> Value:
        return _convert(node, value)

    return convert


def _convert(node: SchemaNode, value: Value) -> Value:
    if isinstance(value, dict):
        changed = {}
        for name, part in value.items():
            known = node.properties.get(name)
            if known is not None:
                changed[escape(name) or name] = _convert(known, part)
            else:
                changed[name] = _convert(node.additional, part) if node.additional is not None else part
        return changed
    if isinstance(value, list):
        return [_convert(node.items, part) for part in value] if node.items is not None else value
    if isinstance(value, int) and node.type == "number" and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and node.format in _FORMATS and node.type == "string":
        return _FORMATS[node.format](value)
    return value


def _bytes(text: str) -> Value:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return text


def _time(text: str) -> Value:
    moment = Timestamp()
    try:
        moment.FromJsonString(text.upper() if "T" in text.upper() else f"{text}T00:00:00Z")
    except ValueError:
        return text
    return moment


def _duration(text: str) -> Value:
    nanoseconds = 0
    for amount, unit in _DURATION.findall(text):
        short = unit if unit in _UNITS else next((s for long, s in _LONG_UNITS if unit.lower().startswith(long)), "w")
        nanoseconds += int(Fraction(amount) * _UNITS[short])
    duration = Duration()
    duration.FromNanoseconds(-nanoseconds if text.startswith("-") else nanoseconds)
    return duration


_FORMATS: dict[str, Callable[[str], Value]] = {
    "byte": _bytes,
    "date": _time,
    "date-time": _time,
    "duration": _duration,
}
