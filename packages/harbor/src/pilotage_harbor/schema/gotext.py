"""Values in messages as Go formats them: %v, %q and encoding/json. Clients and people compare these texts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilotage_harbor.schema.node import Value


def number(value: float) -> str:
    """A number as %v writes it: no exponent below 1e21, no trailing ``.0``."""
    if isinstance(value, int):
        return str(value)
    if value != value or value in (float("inf"), float("-inf")):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(str(value), "NaN")
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    digits = repr(value)
    if 1e-4 <= abs(value) < 1e21:
        return str(int(value)) if value == int(value) else digits
    mantissa, _, exponent = f"{value:e}".partition("e") if "e" not in digits else digits.partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    sign, power = exponent[0], exponent.lstrip("+-").lstrip("0")
    return f"{mantissa}e{'-' if sign == '-' else '+'}{power.rjust(2, '0')}"


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES.update({"\\": "\\\\", '"': '\\"'})


def quote(text: str) -> str:
    """A string as %q writes it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escape, text))}"'


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class Struct(dict[str, object]):
    """A Go struct: unlike a map, its fields are shown in their own order."""


def dumps(value: object) -> str:
    """A value as encoding/json writes it: sorted keys, and what HTML could mistake is escaped."""
    text = json.dumps(value, sort_keys=not isinstance(value, Struct), separators=(",", ":"), ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def plain(value: Value) -> str:
    """Decoded JSON as %v writes it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{plain(value[name])}" for name in sorted(value)) + "]"
    return "[" + " ".join(map(plain, value)) + "]" if isinstance(value, list) else str(value)


def type_name(value: Value) -> str:
    """The Go type of decoded JSON, as %T writes it."""
    if value is None:
        return "<nil>"
    names = {bool: "bool", int: "int64", float: "float64", str: "string", list: "[]interface {}"}
    return names.get(type(value), "map[string]interface {}")


def bad_value(value: Value) -> str:
    """A value as field errors show it."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number(value)
    return dumps(value)
