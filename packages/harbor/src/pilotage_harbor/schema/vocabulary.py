"""Keywords that a CustomResourceDefinition's schema may use, and their combinations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pilotage_harbor.schema.causes import child, forbidden, invalid, key, not_supported, required
from pilotage_harbor.schema.field_path import resolve
from pilotage_harbor.schema.openapi import node_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage_harbor.apimachinery.errors import StatusCause

Json = dict[str, Any]

_X = "x-kubernetes-"
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_REASONS = ("FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate")
_META = ("metadata", "kind", "apiVersion")
_NEWLINE = re.compile(r"[\n\r]")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_DEFAULT_INSIDE = "inside additionalProperties applying to object metadata"


class _Place(NamedTuple):
    """Position in the schema."""

    root: bool = False
    in_meta: bool = False
    no_defaults: str = ""
    """Reason why there may be no default here; "" if there may."""


def vocabulary_problems(schema: Json, path: str) -> list[StatusCause]:
    """Problems of the words of a schema."""
    return list(_problems(schema, path, _Place(root=True)))


def _problems(schema: Json, path: str, place: _Place) -> Iterator[StatusCause]:
    yield from _word_problems(schema, path, place)
    additional = schema.get("additionalProperties")
    if additional is not None:
        if schema.get("properties") and additional is not True:
            detail = "additionalProperties and properties are mutual exclusive"
            yield forbidden(child(path, "additionalProperties"), detail)
        if isinstance(additional, dict):
            reason = _DEFAULT_INSIDE if place.in_meta else place.no_defaults
            inner = place._replace(root=False, no_defaults=reason)
            yield from _problems(additional, child(path, "additionalProperties"), inner)
    is_object = place.root or schema.get(f"{_X}embedded-resource")
    for name, part in (schema.get("properties") or {}).items():
        inner = place._replace(root=False)
        if is_object and name in _META:
            inner = inner._replace(in_meta=True)
            if place.root:
                inner = inner._replace(no_defaults=f"in top-level {name}")
        yield from _problems(part, key(child(path, "properties"), name), inner)
    inner = place._replace(root=False)
    if isinstance(schema.get("not"), dict):
        yield from _problems(schema["not"], child(path, "not"), inner)
    for name in ("allOf", "oneOf", "anyOf"):
        for at, part in enumerate(schema.get(name) or ()):
            yield from _problems(part, f"{child(path, name)}[{at}]", inner)
    if isinstance(schema.get("items"), dict):
        yield from _problems(schema["items"], child(path, "items"), inner)
    yield from _map_problems(schema, path)
    yield from _list_problems(schema, path)
    yield from _list_map_problems(schema, path)
    yield from _rule_problems(schema, path)


def _word_problems(schema: Json, path: str, place: _Place) -> Iterator[StatusCause]:
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        yield not_supported(child(path, "type"), kind, _TYPES)
    if schema.get("default") is not None and place.no_defaults:
        yield forbidden(child(path, "default"), f"must not be set {place.no_defaults}")
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield forbidden(child(path, name), f"{name} is not supported")
    if kind == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        yield forbidden(child(path, "type"), detail)
    if isinstance(schema.get("items"), list) and schema["items"]:
        yield forbidden(child(path, "items"), "items must be a schema object and not an array")
    if place.in_meta and schema.get(f"{_X}embedded-resource"):
        yield forbidden(child(path, f"{_X}embedded-resource"), "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(child(path, "uniqueItems"), detail)
    if schema.get(f"{_X}preserve-unknown-fields") is False:
        yield invalid(child(path, f"{_X}preserve-unknown-fields"), False, "must be true or undefined")


def _map_problems(schema: Json, path: str) -> Iterator[StatusCause]:
    map_type = schema.get(f"{_X}map-type")
    if map_type is None:
        return
    if schema.get("type") != "object":
        yield _must_be("object", schema, path, f"{_X}map-type")
    if map_type not in ("atomic", "granular"):
        yield not_supported(child(path, f"{_X}map-type"), map_type, ("atomic", "granular"))


def _must_be(wanted: str, schema: Json, path: str, word: str) -> StatusCause:
    detail = f"must be {wanted} if {word} is specified"
    where = child(path, "type")
    return invalid(where, schema["type"], detail) if schema.get("type") else required(where, detail)


def _list_problems(schema: Json, path: str) -> Iterator[StatusCause]:
    list_type = schema.get(f"{_X}list-type")
    where = child(path, f"{_X}list-type")
    if list_type is not None:
        items = schema.get("items")
        if schema.get("type") != "array":
            yield _must_be("array", schema, path, f"{_X}list-type")
        elif list_type == "set" and isinstance(items, dict):
            yield from _set_problems(items, child(path, "items"))
        if list_type not in ("atomic", "set", "map"):
            yield not_supported(where, list_type, ("atomic", "set", "map"))
    if schema.get(f"{_X}list-map-keys") and list_type != "map":
        detail = f"must be map if {_X}list-map-keys is non-empty"
        yield required(where, detail) if list_type is None else invalid(where, list_type, detail)


def _set_problems(items: Json, path: str) -> Iterator[StatusCause]:
    detail = f"must be atomic as item of a list with {_X}list-type=set"
    if items.get("type") == "array" and items.get(f"{_X}list-type") not in (None, "atomic"):
        yield invalid(child(path, f"{_X}list-type"), items[f"{_X}list-type"], detail)
    elif items.get("type") == "object" and items.get(f"{_X}map-type") != "atomic":
        # What is shown is the list type, which is usually not there: a slip of theirs that is kept.
        yield invalid(child(path, f"{_X}map-type"), items.get(f"{_X}list-type"), detail)


def _list_map_problems(schema: Json, path: str) -> Iterator[StatusCause]:
    list_type, items = schema.get(f"{_X}list-type"), schema.get("items")
    keys = schema.get(f"{_X}list-map-keys") or []
    if list_type == "map":
        if not keys:
            yield required(child(path, f"{_X}list-map-keys"), f"must not be empty if {_X}list-type is map")
        if not items:
            yield required(child(path, "items"), f"must have a schema if {_X}list-type is map")
        elif isinstance(items, dict) and items.get("type", "") != "object":
            detail = f"must be object if parent array's {_X}list-type is map"
            yield invalid(child(path, "items.type"), items.get("type", ""), detail)
        elif isinstance(items, dict):
            yield from _key_problems(keys, items, path)
    if list_type in ("set", "map") and isinstance(items, dict):
        yield from _item_problems(list_type, keys, items, path)


def _key_problems(keys: list[str], items: Json, path: str) -> Iterator[StatusCause]:
    where = child(path, f"{_X}list-map-keys")
    for at, name in enumerate(keys):
        part = (items.get("properties") or {}).get(name)
        if part is None:
            yield invalid(where, keys, "entries must all be names of item properties")
        elif part.get("type") in ("array", "object"):
            detail = f"must be a scalar type if parent array's {_X}list-type is map"
            yield invalid(f"{key(child(path, 'items.properties'), name)}.type", items["type"], detail)
        if name in keys[:at]:
            yield invalid(where, keys, "must not contain duplicate entries")


def _item_problems(list_type: str, keys: list[str], items: Json, path: str) -> Iterator[StatusCause]:
    if items.get("nullable"):
        yield forbidden(child(path, "items.nullable"), f"cannot be nullable when {_X}list-type is {list_type}")
    if list_type != "map":
        return
    why = f"this property is in {_X}list-map-keys, so it"
    for name in keys:
        part = (items.get("properties") or {}).get(name)
        if part is None:
            continue
        where = key(child(path, "items.properties"), name)
        if name not in (items.get("required") or ()) and part.get("default") is None:
            yield required(child(where, "default"), f"{why} must have a default or be a required property")
        if part.get("nullable"):
            yield forbidden(child(where, "nullable"), f"{why} cannot be nullable")


def _rule_problems(schema: Json, path: str) -> Iterator[StatusCause]:
    for at, rule in enumerate(schema.get(f"{_X}validations") or ()):
        where = f"{child(path, f'{_X}validations')}[{at}]"
        yield from _text_problems(rule, where)
        if rule.get("messageExpression") and not rule["messageExpression"].strip():
            detail = "messageExpression must be non-empty if specified"
            yield required(child(where, "messageExpression"), detail)
        if rule.get("reason") and rule["reason"] not in _REASONS:
            yield not_supported(child(where, "reason"), rule["reason"], sorted(_REASONS))
        yield from _field_path_problems(schema, rule.get("fieldPath") or "", child(where, "fieldPath"))


def _text_problems(rule: Json, where: str) -> Iterator[StatusCause]:
    text, message = rule.get("rule", "").strip(), rule.get("message") or ""
    if not text:
        yield required(child(where, "rule"), "rule is not specified")
    elif message and not message.strip():
        yield invalid(child(where, "message"), message, "must be non-empty if specified")
    elif _NEWLINE.search(message.strip()):
        yield invalid(child(where, "message"), message, "must not contain line breaks")
    elif _NEWLINE.search(text) and not message.strip():
        yield required(child(where, "message"), "message must be specified if rule contains line breaks")


def _field_path_problems(schema: Json, field_path: str, where: str) -> Iterator[StatusCause]:
    if not field_path:
        return
    if not field_path.strip():
        yield invalid(where, field_path, "must be non-empty if specified")
    if _NEWLINE.search(field_path):
        yield invalid(where, field_path, "must not contain line breaks")
    if resolve(node_of(schema), field_path) is None:
        yield invalid(where, field_path, "must be a valid path")
