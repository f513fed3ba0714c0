"""Validation of the schema of a CustomResourceDefinition, as in apiextensions.

A schema must be structural: every field has a type where it stands, and anyOf, allOf, oneOf and not may only restrict
values. Its defaults must be valid, and its rules must compile.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from pilotage_harbor.schema import rules
from pilotage_harbor.schema.causes import NO_FIELD, child, forbidden, invalid, key, required
from pilotage_harbor.schema.check import validate_value
from pilotage_harbor.schema.embedded import embedded_problems
from pilotage_harbor.schema.openapi import from_openapi, node_of
from pilotage_harbor.schema.patterns import PatternError, compile_pattern
from pilotage_harbor.schema.prune import unknown_in
from pilotage_harbor.schema.vocabulary import vocabulary_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage_harbor.apimachinery.errors import StatusCause

Json = dict[str, Any]

_X = "x-kubernetes-"
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_TYPE_MISSING = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_ROOT_FIELDS = (
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    (f"{_X}preserve-unknown-fields", "XPreserveUnknownFields"),
    (f"{_X}validations", "XValidations"),
)


def structural_problems(schema: Json, path: str, *, has_status: bool = False) -> list[StatusCause]:
    """Problems of an openAPIV3Schema. `path` is the field that holds it; `has_status` says that the status is a
    subresource, so that less is allowed at the root."""
    return list(_problems(msgspec.json.encode(schema), path, has_status))


@lru_cache(maxsize=64)
def _problems(encoded: bytes, path: str, has_status: bool) -> tuple[StatusCause, ...]:
    """Remembered, because the same definitions come again and again: with each start of whoever installs them."""
    schema: Json = msgspec.json.decode(encoded)
    causes: list[StatusCause] = []
    if has_status:
        causes += _root_problems(schema, path)
    if schema.get("nullable"):
        causes.append(forbidden(child(path, "nullable"), "nullable cannot be true at the root"))
    shape = sorted([*_invariants(schema, "root", path), *_completeness(schema, schema, path, path)], key=str)
    vocabulary = vocabulary_problems(schema, path)
    if not shape and not vocabulary:
        # Only now is the schema understood.
        shape = _default_problems(schema, path)
    causes += [*shape, *vocabulary]
    if not shape:
        causes += rules.rule_problems(schema, path)
    return tuple(causes)


def _root_problems(schema: Json, path: str) -> Iterator[StatusCause]:
    if schema.get("type", "object") != "object":
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield invalid(child(path, "type"), schema["type"], detail)
        return
    allowed = dict(_ROOT_FIELDS)
    if any(value and name not in allowed for name, value in schema.items()):
        words = " ".join(allowed.values())
        detail = f"only [{words}] fields are allowed at the root of the schema if the status subresource is enabled"
        yield invalid(path, schema, detail)


def _invariants(schema: Json, level: str, path: str) -> Iterator[StatusCause]:
    """Violations of the rules for structural schemas at this node and below."""
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict | list):
        yield required(child(path, "items"), "must be specified")
    if isinstance(schema.get("items"), dict):
        yield from _invariants(schema["items"], "item", child(path, "items"))
    for name, part in (schema.get("properties") or {}).items():
        yield from _invariants(part, "field", key(child(path, "properties"), name))
    additional = schema.get("additionalProperties")
    if additional is not None:
        if level == "root":
            yield forbidden(child(path, "additionalProperties"), "must not be used at the root")
        if isinstance(additional, dict):
            yield from _invariants(additional, "field", child(path, "additionalProperties"))
    yield from _extension_problems(schema, path)
    yield from _value_problems(schema, path, skip_any_of=schema.get("anyOf") == _INT_OR_STRING)
    yield from _type_problems(schema, level, path)
    yield from _meta_problems(schema, level, path)


def _extension_problems(schema: Json, path: str) -> Iterator[StatusCause]:
    if schema.get(f"{_X}int-or-string"):
        for name in (f"{_X}preserve-unknown-fields", f"{_X}embedded-resource"):
            if schema.get(name):
                yield invalid(child(path, name), True, f"must be false if {_X}int-or-string is true")


def _type_problems(schema: Json, level: str, path: str) -> Iterator[StatusCause]:
    kind = schema.get("type", "")
    where = child(path, "type")
    embedded = schema.get(f"{_X}embedded-resource")
    if embedded and kind != "object":
        detail = f"must be object if {_X}embedded-resource is true"
        yield invalid(where, kind, detail) if kind else required(where, detail)
    elif not kind and not schema.get(f"{_X}int-or-string") and not schema.get(f"{_X}preserve-unknown-fields"):
        yield required(where, _TYPE_MISSING[level])
    if embedded and schema.get("additionalProperties") is not None:
        detail = f"must not be used if {_X}embedded-resource is set"
        yield forbidden(child(path, "additionalProperties"), detail)
    if level == "root" and kind and kind != "object":
        yield invalid(where, kind, "must be object at the root")
    if embedded and not schema.get(f"{_X}preserve-unknown-fields") and not schema.get("properties"):
        detail = f"must not be empty if {_X}embedded-resource is true without {_X}preserve-unknown-fields"
        yield required(child(path, "properties"), detail)


def _meta_problems(schema: Json, level: str, path: str) -> Iterator[StatusCause]:
    properties = schema.get("properties") or {}
    is_object = level == "root" or schema.get(f"{_X}embedded-resource")
    for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        where = key(child(path, "properties"), name)
        if name in properties and is_object and properties[name].get("type", "") != wanted:
            yield invalid(child(where, "type"), properties[name].get("type", ""), f"must be {wanted}")
    if "metadata" in properties and level == "root":
        said = dict(properties["metadata"])
        names = set(said.pop("properties", None) or {})
        said.pop("type", None)
        said.pop("default", None)
        if not names <= {"name", "generateName"} or any(said.values()):
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden(key(child(path, "properties"), "metadata"), detail)


def _value_problems(schema: Json, path: str, *, skip_any_of: bool) -> Iterator[StatusCause]:
    all_of = schema.get("allOf") or []
    for name in ("anyOf", "allOf", "oneOf"):
        if name == "anyOf" and skip_any_of:
            continue
        for at, branch in enumerate(schema.get(name) or ()):
            skip = name == "allOf" and at == 0 and all_of[0].get("anyOf") == _INT_OR_STRING
            yield from _branch_problems(branch, f"{child(path, name)}[{at}]", skip_any_of=skip)
    if isinstance(schema.get("not"), dict):
        yield from _branch_problems(schema["not"], child(path, "not"))
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(child(path, "pattern"), schema["pattern"], detail)


# What a branch may not say, and what it must be instead.
_BRANCH_FORBIDDEN = (
    ("type", "empty"),
    ("additionalProperties", "undefined"),
    ("default", "undefined"),
    ("title", "empty"),
    ("description", "empty"),
    ("nullable", "false"),
    (f"{_X}preserve-unknown-fields", "false"),
    (f"{_X}embedded-resource", "false"),
    (f"{_X}int-or-string", "false"),
    (f"{_X}list-map-keys", "empty"),
    (f"{_X}list-type", "undefined"),
    (f"{_X}map-type", "undefined"),
    (f"{_X}validations", "empty"),
)


def _branch_problems(schema: Json, path: str, *, skip_any_of: bool = False) -> Iterator[StatusCause]:
    yield from _value_problems(schema, path, skip_any_of=skip_any_of)
    if isinstance(schema.get("items"), dict):
        yield from _branch_problems(schema["items"], child(path, "items"))
    for name, part in (schema.get("properties") or {}).items():
        yield from _branch_problems(part, key(child(path, "properties"), name))
    for name, wanted in _BRANCH_FORBIDDEN:
        value = schema.get(name)
        if value is not None if wanted == "undefined" else value:
            yield forbidden(child(path, name), f"must be {wanted} to be structural")
    if "metadata" in (schema.get("properties") or {}):
        where = key(child(path, "properties"), "metadata")
        yield forbidden(where, "must not be specified in a nested context")


def _completeness(branch: Json, schema: Json | None, path: str, branch_path: str) -> Iterator[StatusCause]:
    """Violations by nodes that a branch has and the structural schema lacks."""
    for name in ("allOf", "anyOf", "oneOf"):
        for at, part in enumerate(branch.get(name) or ()):
            yield from _branch_completeness(part, schema, path, f"{child(branch_path, name)}[{at}]")
    if isinstance(branch.get("not"), dict):
        yield from _branch_completeness(branch["not"], schema, path, child(branch_path, "not"))


def _branch_completeness(branch: Json, schema: Json | None, path: str, branch_path: str) -> Iterator[StatusCause]:
    if schema is None:
        yield required(path, f"because it is defined in {branch_path}")
        return
    yield from _completeness(branch, schema, path, branch_path)
    if isinstance(branch.get("items"), dict):
        items = schema.get("items") if isinstance(schema.get("items"), dict) else None
        yield from _branch_completeness(branch["items"], items, child(path, "items"), child(branch_path, "items"))
    for name, part in (branch.get("properties") or {}).items():
        where, from_where = key(child(path, "properties"), name), key(child(branch_path, "properties"), name)
        yield from _branch_completeness(part, (schema.get("properties") or {}).get(name), where, from_where)


def _default_problems(schema: Json, path: str, *, root: bool = True) -> list[StatusCause]:
    """Defaults must fit their own schema. Those inside metadata are not looked at."""
    causes: list[StatusCause] = []
    default = schema.get("default")
    where = child(path, "default")
    if default is not None:
        node = from_openapi(schema) if root else node_of(schema)
        if isinstance(default, (dict, list)) and unknown_in(node, default):
            causes.append(invalid(where, default, "must not have unknown fields"))
        if root:
            node.embedded = node.has_embedded = True
        found = embedded_problems(node, default) or validate_value(node, default)
        causes += [
            cause._replace(field=where if cause.field in ("", NO_FIELD) else child(where, cause.field))
            for cause in found
        ]
    if isinstance(schema.get("items"), dict):
        causes += _default_problems(schema["items"], child(path, "items"), root=False)
    inside = root or schema.get(f"{_X}embedded-resource")
    for name, part in (schema.get("properties") or {}).items():
        if not (inside and name in ("metadata", "apiVersion", "kind")):
            causes += _default_problems(part, key(child(path, "properties"), name), root=False)
    return causes
