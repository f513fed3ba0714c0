"""Meaning of the scalars of YAML, as Go's parser has it (sigs.k8s.io/yaml): most of YAML 1.1, and some of 1.2.

Times stay text, and so do numbers that are too large and those with colons; ``1e3`` is a number, ``y`` and ``on`` are
booleans. Keys are texts. A tag that says nothing to JSON is passed over.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any, TypeAlias

Value: TypeAlias = Any
"""A decoded JSON value."""
MERGE = "merge"
"""The tag of the key ``<<``."""

_STANDARD = "tag:yaml.org,2002:"
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?")
_DIGITS_MAX = 64
_FLOAT_EXACT_MAX = 1e21
_KINDS: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}


def meaning(text: str, tag: str | None, *, plain: bool) -> tuple[str, Value]:
    """The tag of a scalar, as a name, and its value. ValueError for one that is not what its tag says."""
    if tag is None:
        if not plain:
            return "str", text
        if text == "<<":
            return MERGE, text
        value = _finite(_resolved(text))
        return type(value).__name__, value
    name = tag.removeprefix(_STANDARD)
    if name == MERGE:
        return MERGE, text
    value = _tagged(text, name)
    return type(value).__name__, value


def _tagged(text: str, name: str) -> Value:
    if name in _KINDS:
        value = _resolved(text)
        if not isinstance(value, _KINDS[name]) or (isinstance(value, bool) and name != "bool"):
            raise ValueError(f"cannot decode !!str `{text}` as a !!{name}")
        return _finite(value)
    if name == "binary":
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode(errors="replace")
        except (binascii.Error, ValueError):
            raise ValueError("!!binary value contains invalid base64 data") from None
    return text


def key_text(key: Value) -> str:
    """A scalar as the key of a JSON object."""
    if isinstance(key, str):
        return key
    if key is None:
        raise ValueError("unsupported map key of type: null")
    if isinstance(key, dict | list):
        raise ValueError("invalid map key")  # noqa: TRY004 - of the document, not of ours
    return ("true" if key else "false") if isinstance(key, bool) else str(key)


def _resolved(text: str) -> Value:
    """The value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    plain = text.replace("_", "")
    if len(plain) > _DIGITS_MAX:
        return text
    found = _INTEGER.fullmatch(plain)
    if found is not None:
        base = {2: 16, 3: 2, 4: 8, 5: 10}[found.lastindex or 5]
        number = int(found[found.lastindex or 5], base) * (-1 if found[1] == "-" else 1)
        if -(2**63) <= number < 2**64:
            return number
    if _FLOAT.fullmatch(plain):
        real = float(plain)
        if not math.isinf(real):
            return int(real) if real.is_integer() and abs(real) < _FLOAT_EXACT_MAX else real
    return text


def _finite(value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        shown = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
        raise ValueError(f"unsupported value: {shown}")
    return value
