"""Short ways to say what is wrong with a field, in the words of apimachinery's field errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery.errors import StatusCause

if TYPE_CHECKING:
    from collections.abc import Iterable

IMMUTABLE = "field is immutable"
_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def invalid(field: str, value: object, why: str) -> StatusCause:
    """The value is malformed or out of bounds."""
    return StatusCause(field, "FieldValueInvalid", _body("Invalid value", value, why))


def required(field: str, why: str = "") -> StatusCause:
    """A value has to be there."""
    return StatusCause(field, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


def not_supported(field: str, value: object, supported: Iterable[str]) -> StatusCause:
    """The value is none of those that there are."""
    why = "supported values: " + ", ".join(f'"{each}"' for each in supported)
    return StatusCause(field, "FieldValueNotSupported", _body("Unsupported value", value, why))


def forbidden(field: str, why: str) -> StatusCause:
    """The value would be fine elsewhere, or at another time."""
    return StatusCause(field, "FieldValueForbidden", f"Forbidden: {why}")


def duplicate(field: str, value: object) -> StatusCause:
    """The value is there already."""
    return StatusCause(field, "FieldValueDuplicate", _body("Duplicate value", value, ""))


def not_found(field: str, value: object) -> StatusCause:
    """The value refers to nothing."""
    return StatusCause(field, "FieldValueNotFound", _body("Not found", value, ""))


def too_long(field: str, limit: int) -> StatusCause:
    """A text is too long; it is not repeated."""
    return StatusCause(field, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def too_many(field: str, count: int, limit: int) -> StatusCause:
    """A list is too long."""
    return StatusCause(field, "FieldValueTooMany", f"Too many: {count}: must have at most {limit} items")


def each_invalid(field: str, value: object, problems: Iterable[str]) -> list[StatusCause]:
    """One cause for each thing that is wrong with one value."""
    return [invalid(field, value, why) for why in problems]


def nonnegative(field: str, value: int | None) -> list[StatusCause]:
    """A number that may be absent, but not below zero."""
    return [invalid(field, value, "must be greater than or equal to 0")] if value is not None and value < 0 else []


def immutable(field: str, new: object, old: object) -> list[StatusCause]:
    """The value must be what it was."""
    return [invalid(field, new, IMMUTABLE)] if new != old else []


def go_json(value: Any) -> str:  # noqa: ANN401 - anything that is JSON
    """JSON as Go's encoder writes it: compact, keys of maps sorted, and nothing that HTML would mind."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(_HTML)


def _body(what: str, value: object, why: str) -> str:
    if isinstance(value, str):
        shown = json.dumps(value, ensure_ascii=False)  # close enough to Go's %q for what people type
    elif isinstance(value, bool):
        shown = "true" if value else "false"
    elif isinstance(value, int | float):
        shown = str(value)
    else:
        shown = go_json(value)
    return f"{what}: {shown}: {why}" if why else f"{what}: {shown}"
