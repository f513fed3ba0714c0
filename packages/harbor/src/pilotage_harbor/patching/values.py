"""Operations on JSON values that all patches share."""

from __future__ import annotations

from typing import Any, TypeAlias

Json = dict[str, Any]
Value: TypeAlias = Any
"""A decoded JSON value."""


def copied(value: Value) -> Value:
    """A deep copy of a decoded JSON value."""
    if type(value) is dict:
        return {key: copied(item) if type(item) in _NESTED else item for key, item in value.items()}
    if type(value) is list:
        return [copied(item) if type(item) in _NESTED else item for item in value]
    return value


_NESTED = frozenset((dict, list))


def same(left: Value, right: Value) -> bool:
    """Whether two JSON values are the same text: unlike ``==``, 1 is neither 1.0 nor true."""
    if type(left) is not type(right):
        return False
    if type(left) is dict:
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if type(left) is list:
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def without_nulls(value: Value) -> Value:
    """A copy in which no object has a null: what a patch means that adds this value. Nulls in arrays stay."""
    if type(value) is dict:
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if type(value) is list:
        return [without_nulls(item) for item in value]
    return value


def go_type(value: Value) -> str:
    """The name that Go's JSON decoder has for the kind of a value."""
    return {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")


def go_text(value: Value) -> str:
    """A value as Go's ``%v`` prints it: ``map[a:1 b:[x y]]``."""
    if type(value) is dict:
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if type(value) is list:
        return f"[{' '.join(map(go_text, value))}]"
    if value is None:
        return "<nil>"
    if type(value) is bool:
        return "true" if value else "false"
    return str(value)
