"""The round trip of an object through Go's types, which all built-in objects make in kube-apiserver.

Empty fields that are optional vanish, some fields are written even when they are empty, quantities and times come
out in their canonical form. Which field is which was read from the Go types into `shapes.json` (see `make_shapes`),
where each field of a type has a code: `*` a pointer (kept once it is set), `!` written always, `0` left out while zero,
and then `s` text, `i` integer, `f` number, `b` boolean, `y` bytes, `q` quantity, `o` integer or text, `t` time,
`u` time with microseconds, `r` anything, `<type` a struct, `[` a list of, `{` a map of.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from pilotage_harbor.builtin.quantity import canonical

Json = dict[str, Any]
Shaper = Callable[[Any], Any]
"""Brings a value into form: in place where it is a struct, and returns it."""

_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").fullmatch
_ZEROS: dict[str, Callable[[], Any]] = {"s": str, "i": int, "f": int, "b": bool, "o": int, "q": lambda: "0"}


@cache
def shape(name: str) -> Shaper:
    """The shaper of a type, such as ``core.Pod``. It leaves fields alone that the type does not have."""
    return _struct(name)


@cache
def _table() -> dict[str, dict[str, str]]:
    raw = Path(__file__).with_name("shapes.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, dict[str, str]])


class _Struct:
    """The shaper of one struct. Its fields are looked up at first use, since types may contain themselves."""

    __slots__ = ("_always", "_name", "_rules")

    def __init__(self, name: str) -> None:
        self._name = name
        self._rules: dict[str, tuple[bool, Shaper | None]] | None = None
        self._always: list[tuple[str, Callable[[], Any]]] = []

    def _compiled(self) -> dict[str, tuple[bool, Shaper | None]]:
        rules: dict[str, tuple[bool, Shaper | None]] = {}
        for field, code in _table()[self._name].items():
            flags, base = _split(code)
            pointer, always, zero = (flag in flags for flag in "*!0")
            # An empty list does not survive storage: it comes back as none at all.
            empties = base[0] not in "<qtur" and (not always or base[0] in "[{")
            rules[field] = (not pointer and empties, _shaper(base))
            if pointer:
                if always:
                    self._always.append((field, _none))
            elif base[0] == "<" and not zero:
                self._always.append((field, _maker(_struct(base[1:]))))
            elif always or (base[0] in "tu" and not zero):
                self._always.append((field, _ZEROS.get(base[0], _none)))
        self._rules = rules
        return rules

    def __call__(self, obj: Any) -> Any:  # noqa: ANN401 - JSON
        rules = self._rules
        if rules is None:
            rules = self._compiled()
        if type(obj) is not dict:
            return self({}) if obj is None else obj
        dropped: list[str] = []
        for field, value in obj.items():
            rule = rules.get(field)
            if rule is None:
                continue
            omit, shaper = rule
            if value is None or (omit and not value):
                dropped.append(field)
            elif shaper is not None:
                shaped = shaper(value)
                if shaped is not value:
                    obj[field] = shaped
        for field in dropped:
            del obj[field]
        for field, make in self._always:
            if field not in obj:
                obj[field] = make()
        return obj


@cache
def _struct(name: str) -> _Struct:
    return _Struct(name)


def _none() -> None:
    return None


def _maker(walk: Shaper) -> Callable[[], Any]:
    return lambda: walk({})


def _split(code: str) -> tuple[str, str]:
    base = code.lstrip("*!0")
    return code[: len(code) - len(base)], base


def _shaper(base: str) -> Shaper | None:
    match base[0]:
        case "<":
            return _struct(base[1:])
        case "q":
            return canonical
        case "t":
            return _time
        case "u":
            return _micro_time
        case "[":
            inner = _shaper(base[1:])
            if base[1:] == "s":
                return _texts
            return None if inner is None else _list_of(inner)
        case "{":
            inner = _shaper(base[1:])
            if base[1:] == "q":
                return _resources
            if base[1:] == "s":
                return _named_texts
            return None if inner is None else _map_of(inner)
        case _:
            return None


def _texts(values: Any) -> Any:  # noqa: ANN401 - JSON
    """The list with empty strings for nulls, as Go decodes it."""
    return ["" if value is None else value for value in values] if type(values) is list and None in values else values


def _named_texts(values: Any) -> Any:  # noqa: ANN401 - JSON
    """The map with empty strings for nulls, as Go decodes it."""
    if type(values) is dict and None in values.values():
        return {name: "" if value is None else value for name, value in values.items()}
    return values


def _list_of(inner: Shaper) -> Shaper:
    def walk(values: Any) -> Any:  # noqa: ANN401 - JSON
        if type(values) is list:
            for index, value in enumerate(values):
                shaped = inner(value)
                if shaped is not value:
                    values[index] = shaped
        return values

    return walk


def _map_of(inner: Shaper) -> Shaper:
    def walk(values: Any) -> Any:  # noqa: ANN401 - JSON
        if type(values) is dict:
            for key, value in values.items():
                shaped = inner(value)
                if shaped is not value:
                    values[key] = shaped
        return values

    return walk


def _resources(values: Any) -> Any:  # noqa: ANN401 - JSON
    if type(values) is dict:
        for key, value in values.items():
            if type(value) in (str, int, float):
                values[key] = canonical(value, milli=True)
    return values


def _time(text: Any) -> Any:  # noqa: ANN401 - JSON
    if type(text) is not str or _UTC(text):
        return text
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return text


def _micro_time(text: Any) -> Any:  # noqa: ANN401 - JSON
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    except (ValueError, TypeError):
        return text
