"""Causes in apimachinery's words, one function for each kind of field error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.errors import StatusCause
from pilotage_harbor.schema.gotext import bad_value, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage_harbor.schema.node import Value

NO_FIELD = "<nil>"
"""The field of an error that is about no field in particular."""


def invalid(field: str, value: Value, detail: str) -> StatusCause:
    """A value that is malformed."""
    return StatusCause(field, "FieldValueInvalid", f"Invalid value: {bad_value(value)}: {detail}")


def invalid_object(field: str, detail: str) -> StatusCause:
    """An object or list that is malformed: it is not shown."""
    return StatusCause(field, "FieldValueInvalid", f"Invalid value: {detail}")


def type_invalid(field: str, value: Value, detail: str) -> StatusCause:
    """A value that has the wrong type."""
    return StatusCause(field, "FieldValueTypeInvalid", f"Invalid value: {bad_value(value)}: {detail}")


def required(field: str, detail: str = "") -> StatusCause:
    """A value that is missing."""
    return StatusCause(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def forbidden(field: str, detail: str) -> StatusCause:
    """A value that may not be there."""
    return StatusCause(field, "FieldValueForbidden", f"Forbidden: {detail}" if detail else "Forbidden")


def duplicate(field: str, value: Value) -> StatusCause:
    """A value that is there already."""
    return StatusCause(field, "FieldValueDuplicate", f"Duplicate value: {bad_value(value)}")


def not_supported(field: str, value: Value, supported: Iterable[str]) -> StatusCause:
    """A value that is none of those that there are."""
    words = ", ".join(map(quote, supported))
    detail = f": supported values: {words}" if words else ""
    return StatusCause(field, "FieldValueNotSupported", f"Unsupported value: {bad_value(value)}{detail}")


def too_long(field: str, limit: int) -> StatusCause:
    """A text that is too long; it is not shown."""
    unit = "byte" if limit == 1 else "bytes"
    return StatusCause(field, "FieldValueTooLong", f"Too long: may not be more than {limit} {unit}")


def too_many(field: str, count: int, limit: int) -> StatusCause:
    """A list or map with too many entries."""
    unit = "item" if limit == 1 else "items"
    return StatusCause(field, "FieldValueTooMany", f"Too many: {count}: must have at most {limit} {unit}")


def child(field: str, name: str) -> str:
    """The path of a field of an object."""
    return f"{field}.{name}" if field else name


def key(field: str, name: str) -> str:
    """The path of an entry of a map."""
    return f"{field}[{name}]"
