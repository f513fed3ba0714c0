"""What YAML means, as Go's parser has it (sigs.k8s.io/yaml): most of YAML 1.1, and some of 1.2.

Times stay text, and so do numbers that are too large and those with colons; ``1e3`` is a number, ``y`` and ``on`` are
booleans. Keys are texts. A tag that says nothing to JSON is passed over.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from functools import cache
from typing import Any, TypeAlias

MERGED_MAX = 500_000
Node: TypeAlias = Any
"""A node as the composer makes it: with an id, a tag and a value."""

Value: TypeAlias = Any
"""A decoded JSON value."""
_STANDARD = "tag:yaml.org,2002:"
_PLAIN = "a plain scalar"  # no document can have such a tag
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


def load_untrusted(body: bytes) -> Value:
    """The document as JSON. Raises `yaml.YAMLError` or `ValueError`. How deep it goes is for others to bound."""
    import yaml

    node = yaml.compose(body, Loader=_loader())
    return None if node is None else _Builder().value(node)


@cache
def _loader() -> Any:  # noqa: ANN401 - one of two classes
    """The fastest parser there is, which tells plain scalars from others and leaves their meaning to us."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}  # noqa: RUF012 - as the base class has it

    return Loader


class _Builder:
    """Makes values of nodes; what an alias names is made once."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._open: set[int] = set()
        self._merged = 0

    def value(self, node: Node) -> Value:
        if node.id == "scalar":
            return _scalar(node)
        known = id(node)
        if known not in self._made:
            if known in self._open:
                raise ValueError("anchor value contains itself")
            self._open.add(known)
            self._made[known] = (
                [self.value(each) for each in node.value] if node.id == "sequence" else self._mapping(node)
            )
        return self._made[known]

    def _mapping(self, node: Node) -> dict[str, Any]:
        made: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == f"{_STANDARD}merge" or (key.tag == _PLAIN and key.value == "<<"):
                self._merge(value, merged)
            else:
                made[_key(key)] = self.value(value)
        return {**merged, **made} if merged else made

    def _merge(self, node: Node, into: dict[str, Any]) -> None:
        for each in reversed(node.value) if node.id == "sequence" else [node]:
            if each.id != "mapping":
                raise ValueError("map merge requires map or sequence of maps as the value")
            source = self.value(each)
            self._merged += len(source) + 1
            if self._merged > MERGED_MAX:
                raise ValueError("document contains excessive aliasing")
            into.update(source)


def _key(node: Node) -> str:
    if node.id != "scalar":
        raise ValueError("invalid map key")
    key = _scalar(node)
    if isinstance(key, str):
        return key
    if key is None:
        raise ValueError("unsupported map key of type: null")
    return ("true" if key else "false") if isinstance(key, bool) else str(key)


def _scalar(node: Node) -> Value:
    text, tag = node.value, node.tag
    if tag == _PLAIN:
        return _finite(_resolved(text))
    name = tag.removeprefix(_STANDARD)
    if tag == name or name == "str":
        return text
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


def _resolved(text: str) -> Value:
    """What a plain scalar stands for."""
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
