"""Whether the fields of a row are in a kind's published schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilotage.catalogue.relation import ByName, ByReference, BySelector, RelationRow
from pilotage.kube import Json
from pilotage.teardown.relations.compiled import steps


class SchemaError(LookupError):
    pass


def fields_below(row: RelationRow) -> Iterator[str]:
    """Fields that a row expects below its own. The name of an object may as well be the field itself."""
    target = row.target
    if isinstance(target, ByName):
        yield from filter(None, (target.namespace, row.note, row.when.field if row.when else ""))
    elif isinstance(target, ByReference):
        yield from filter(None, (target.group, target.kind, target.name, target.namespace, row.note))
    elif isinstance(target, BySelector) and target.reference:
        yield from (target.reference.group, target.reference.kind, target.selector)


def check(row: RelationRow, schema: Json, definitions: Json) -> None:
    """Raises SchemaError where the schema does not have what the row names."""
    at = walk(schema, row.field, definitions)
    target = row.target
    if isinstance(target, ByName) and "properties" in at:
        walk(at, target.name, definitions)
    for path in fields_below(row):
        walk(at, path, definitions)
    if isinstance(target, BySelector) and target.namespaces not in ("", "*"):
        walk(schema, target.namespaces, definitions)


def walk(schema: Json, path: str, definitions: Json) -> Json:
    at = resolve(schema, definitions)
    for step in steps(path):
        if at.get("x-kubernetes-preserve-unknown-fields") and "properties" not in at:
            return {}
        if step == "[]":
            inner = at.get("items")
        elif step == "*":
            # All values of a map; or, where the keys are fixed, any of them that fits the rest of the path.
            inner = at.get("additionalProperties") or _merged(at, definitions)
        else:
            inner = at.get("properties", {}).get(step) or at.get("additionalProperties")
        if not isinstance(inner, dict):
            raise SchemaError(f"{path}: there is no {step}")
        at = resolve(inner, definitions)
    return at


def resolve(schema: Json, definitions: Json) -> Json:
    while "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    return schema


def _merged(schema: Json, definitions: Json) -> Json:
    together: dict[str, Any] = {}
    for part in schema.get("properties", {}).values():
        together |= resolve(part, definitions).get("properties", {})
    return {"properties": together}
