"""The schema of a custom resource, from the openAPIV3Schema of its definition.

The schema must be structural: `structural_problems` says whether it is. What cannot be understood is ignored here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.schema.builtin import OBJECT_META, definition
from pilotage_harbor.schema.node import UNSET, Rule, SchemaNode

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]

# What is copied as it is: attribute and key.
_PLAIN = (
    ("type", "type"),
    ("format", "format"),
    ("nullable", "nullable"),
    ("pattern", "pattern"),
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("exclusive_minimum", "exclusiveMinimum"),
    ("exclusive_maximum", "exclusiveMaximum"),
    ("multiple_of", "multipleOf"),
    ("min_length", "minLength"),
    ("max_length", "maxLength"),
    ("min_items", "minItems"),
    ("max_items", "maxItems"),
    ("unique_items", "uniqueItems"),
    ("min_properties", "minProperties"),
    ("max_properties", "maxProperties"),
    ("title", "title"),
    ("description", "description"),
    ("int_or_string", "x-kubernetes-int-or-string"),
    ("preserve_unknown", "x-kubernetes-preserve-unknown-fields"),
    ("embedded", "x-kubernetes-embedded-resource"),
    ("list_type", "x-kubernetes-list-type"),
    ("map_type", "x-kubernetes-map-type"),
)
_TUPLES = (("required", "required"), ("enum", "enum"), ("list_map_keys", "x-kubernetes-list-map-keys"))
_BRANCHES = (("all_of", "allOf"), ("any_of", "anyOf"), ("one_of", "oneOf"))


def from_openapi(schema: Json) -> SchemaNode:
    """The schema of the whole object. apiVersion, kind and metadata need not be described: they are known."""
    root = node_of(schema)
    _add_meta(root)
    return root


def node_of(schema: Mapping[str, Any]) -> SchemaNode:
    """The schema of a part of an object."""
    node = SchemaNode()
    for attribute, name in _PLAIN:
        value = schema.get(name)
        if value is not None:
            setattr(node, attribute, value)
    for attribute, name in _TUPLES:
        if schema.get(name):
            setattr(node, attribute, tuple(schema[name]))
    for attribute, name in _BRANCHES:
        if schema.get(name):
            setattr(node, attribute, tuple(map(node_of, schema[name])))
    if isinstance(schema.get("not"), dict):
        node.not_ = node_of(schema["not"])
    # A default of null says nothing, as in Kubernetes.
    node.default = UNSET if schema.get("default") is None else schema["default"]
    node.rules = tuple(map(_rule, schema.get("x-kubernetes-validations") or ()))
    _add_parts(node, schema)
    if node.embedded:
        _add_meta(node)
    return node


def _add_parts(node: SchemaNode, schema: Mapping[str, Any]) -> None:
    node.properties = {name: node_of(part) for name, part in (schema.get("properties") or {}).items()}
    if isinstance(schema.get("items"), dict):
        node.items = node_of(schema["items"])
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        node.additional = node_of(additional)
    elif additional is True:
        node.additional = SchemaNode()
    parts = [*node.properties.values(), node.items, node.additional]
    node.has_rules = bool(node.rules) or any(part is not None and part.has_rules for part in parts)
    node.has_embedded = node.embedded or any(part is not None and part.has_embedded for part in parts)
    node.has_defaults = any(part is not None and (part.has_defaults or part.default is not UNSET) for part in parts)


def _rule(entry: Mapping[str, Any]) -> Rule:
    return Rule(
        rule=entry.get("rule", ""),
        message=entry.get("message", ""),
        message_expression=entry.get("messageExpression", ""),
        reason=entry.get("reason") or "",
        field_path=entry.get("fieldPath", ""),
        optional_old_self=bool(entry.get("optionalOldSelf")),
    )


def _add_meta(node: SchemaNode) -> None:
    """Add what every object has. A definition can restrict names, and nothing else of the metadata."""
    node.properties.setdefault("apiVersion", SchemaNode(type="string"))
    node.properties.setdefault("kind", SchemaNode(type="string"))
    known = definition(OBJECT_META).properties
    said = node.properties.get("metadata")
    restricted = {name: part for name, part in said.properties.items() if name in known} if said else {}
    required = said.required if said else ()
    node.properties["metadata"] = SchemaNode(type="object", properties={**known, **restricted}, required=required)
