"""The functions that Kubernetes adds to CEL for what CEL has itself: lists, strings and regular expressions. Pure.

What a rule may not ask is a ValueError, which becomes the error of the rule.
"""

from __future__ import annotations

import re
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from pilotage_harbor.schema.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.schema.node import Value

# lists


def is_sorted(values: list[Any]) -> bool:
    """Whether no value is less than the one before it."""
    return all(a <= b for a, b in pairwise(values))


def extreme(choose: Callable[[list[Any]], Value], name: str) -> Callable[[list[Any]], Value]:
    """The function that gives the least or the greatest value; ValueError on an empty list."""

    def run(values: list[Any]) -> Value:
        if not values:
            raise ValueError(f"{name} called on empty list")
        return choose(values)

    return run


def total(values: list[Any]) -> Value:
    """The sum; 0 for an empty list."""
    return sum(values[1:], values[0]) if values else 0


def index_of(value: Value, wanted: Value, start: int = 0) -> int:
    """Index of the first occurrence in a string (from `start` on) or in a list; -1 if there is none."""
    if isinstance(value, str):
        return value.find(wanted, start)
    return next((at for at, element in enumerate(value) if element == wanted), -1)


def last_index_of(value: Value, wanted: Value, end: int | None = None) -> int:
    """Index of the last occurrence in a string (up to `end`) or in a list; -1 if there is none."""
    if isinstance(value, str):
        return value.rfind(wanted, 0, len(value) if end is None else end + len(wanted))
    return next((at for at in range(len(value) - 1, -1, -1) if value[at] == wanted), -1)


# sets: cel-cpp's own compare each with each, which a long list makes too slow


def _members(values: list[Any]) -> set[Any]:
    return {_member(value) for value in values}


def _member(value: Value) -> Any:  # noqa: ANN401 - anything that is equal where the values are
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, list):
        return (list, tuple(map(_member, value)))
    if isinstance(value, dict):
        return (dict, frozenset((_member(key), _member(each)) for key, each in value.items()))
    return value


def contains_all(values: list[Any], wanted: list[Any]) -> bool:
    """Whether a list has all elements of another one."""
    return _members(wanted) <= _members(values)


def equivalent(values: list[Any], others: list[Any]) -> bool:
    """Whether two lists have the same elements, however often and in whichever order."""
    return _members(values) == _members(others)


def intersects(values: list[Any], others: list[Any]) -> bool:
    """Whether two lists have an element in common."""
    return not _members(values).isdisjoint(_members(others))


# strings


def char_at(text: str, at: int) -> str:
    """One character; an empty text just behind the last."""
    if not 0 <= at <= len(text):
        raise ValueError(f"index out of range: {at}")
    return text[at : at + 1]


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    """A text with `count` occurrences replaced, or all."""
    return text.replace(old, new, count)


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    """The parts of a text, at most `limit`; without a separator, its characters."""
    if limit == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def substring(text: str, start: int, end: int | None = None) -> str:
    """Text from `start` up to before `end`; ValueError where the text does not reach."""
    last = len(text) if end is None else end
    if not 0 <= start <= last <= len(text):
        raise ValueError(f"index out of range: {start if start > len(text) or start < 0 else last}")
    return text[start:last]


def join(parts: list[str], separator: str = "") -> str:
    """The parts with the separator between them."""
    return separator.join(parts)


def ascii_case(text: str, *, upper: bool) -> str:
    """ASCII letters in one case, the others as they are."""
    if text.isascii():
        return text.upper() if upper else text.lower()
    return "".join((c.upper() if upper else c.lower()) if c.isascii() else c for c in text)


_VERB = re.compile(r"%(?:\.(\d+))?(.)", re.DOTALL)


def formatted(text: str, arguments: list[Any]) -> str:
    """Each clause of a text with its argument in its place; ValueError for a clause that is none."""
    rest = iter(arguments)

    def one(found: re.Match[str]) -> str:
        precision, verb = found.groups()
        if verb == "%":
            return "%"
        value: Any = next(rest, None)
        if verb == "s":
            return _text(value)
        if verb == "d":
            return str(int(value))
        if verb in "fe":
            return f"{float(value):.{precision or 6}{verb}}"
        if verb in "xXbo":
            if isinstance(value, (str, bytes)):
                digits = (value.encode() if isinstance(value, str) else value).hex()
                return digits.upper() if verb == "X" else digits
            return format(int(value), verb)
        raise ValueError(f'unrecognized formatting clause "{verb}"')

    return _VERB.sub(one, text)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_text(k)}: {_text(v)}' for k, v in sorted(value.items()))}}}"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.decode() if isinstance(value, bytes) else str(value)


# regular expressions


def find(text: str, pattern: str) -> str:
    """The first match, or an empty text."""
    found = compile_pattern(pattern).search(text)
    return str(found.group()) if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """The matches, at most `limit` if it is not negative."""
    found = compile_pattern(pattern).finditer(text)
    return [match.group() for match in islice(found, limit if limit >= 0 else None)]
