"""The fields in the schema of a CustomResourceDefinition: which can be selected by, and which formats they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import duplicate, invalid, required, too_many
from pilotage_harbor.schema.formats import supported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json

SELECTABLE_MAX = 8
_WRONG_TYPE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def selectable_problems(fields: list[Json], schema: Json, field: str) -> list[StatusCause]:
    """Problems of the fields that field selectors are to know."""
    problems: list[StatusCause] = []
    seen: set[str] = set()
    for index, selectable in enumerate(fields):
        here, path = f"{field}[{index}].jsonPath", selectable.get("jsonPath", "")
        if not path:
            problems.append(required(here))
            continue
        try:
            found = _found(schema, path)
        except ValueError as error:
            problems.append(invalid(here, path, f"is an invalid path: {error}"))
            continue
        if path.lstrip(".").partition(".")[0] == "metadata":
            problems.append(invalid(here, path, "must not point to fields in metadata"))
        if found.get("type") not in ("string", "boolean", "integer"):
            problems.append(invalid(here, path, _WRONG_TYPE))
        if path in seen:
            problems.append(duplicate(here, path))
        seen.add(path)
    if len(seen) > SELECTABLE_MAX:
        problems.append(too_many(field, len(seen), SELECTABLE_MAX))
    return problems


def _found(schema: Json, path: str) -> Json:
    """The schema of the field at a path; ValueError says why there is none."""
    if "[" in path:
        raise ValueError("array notation is not allowed")
    first, *names = path.split(".")
    if first:
        raise ValueError(f"expected [ or . but got: {first}")
    for name in names:
        if not name:
            raise ValueError("unexpected end of JSON path")
        properties, rest = schema.get("properties"), schema.get("additionalProperties")
        inner = properties.get(name) if properties is not None else rest
        if not isinstance(inner, dict):
            raise ValueError("does not refer to a valid field")  # noqa: TRY004 - of the schema, not of a value
        schema = inner
    return schema


def unknown_formats(spec: Json) -> list[str]:
    """The formats in a definition's schemas that no value is checked against."""
    found = [
        format_
        for version in spec.get("versions") or ()
        for format_ in _unknown_formats((version.get("schema") or {}).get("openAPIV3Schema") or {})
    ]
    return list(dict.fromkeys(found))


def _unknown_formats(schema: Json) -> Iterator[str]:
    format_ = schema.get("format")
    if format_ and not supported(schema.get("type", ""), format_):
        yield format_
    for name in ("items", "not", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from _unknown_formats(schema[name])
    for name in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(name) or ():
            yield from _unknown_formats(part)
    for part in (schema.get("properties") or {}).values():
        yield from _unknown_formats(part)
