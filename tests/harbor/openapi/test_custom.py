"""Published schema of a custom kind."""

from __future__ import annotations

from typing import Any

import pytest

from .world import World, crd

GVK = "x-kubernetes-group-version-kind"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
EITHER = [{"type": "integer"}, {"type": "string"}]
INT_OR_STRING = "x-kubernetes-int-or-string"
PRESERVE = "x-kubernetes-preserve-unknown-fields"


def published(schema, *, v2: bool = False, **more: Any):
    """The component for a definition with this schema."""
    world = World()
    world.define(crd(schema, **more))
    if v2:
        return world.document("/openapi/v2")["definitions"]["com.example.stable.v1.CronTab"]
    document = world.document("/openapi/v3/apis/stable.example.com/v1")
    return document["components"]["schemas"]["com.example.stable.v1.CronTab"]


def field(schema, *, v2: bool = False):
    """Published form of one field."""
    made = published({"type": "object", "properties": {"field": schema}, "required": ["field"]}, v2=v2)
    return made["properties"]["field"]


def test_descriptions_and_bounds_are_as_they_were_written():
    said = {"type": "string", "description": "An image.", "enum": ["a", "b"], "default": "a", "maxLength": 3}
    assert field(said) == said


def test_every_object_has_metadata():
    made = published({"type": "object", "properties": {"metadata": {"type": "object"}}})
    assert made["properties"]["metadata"]["allOf"] == [{"$ref": f"#/components/schemas/{META}ObjectMeta"}]
    assert made["properties"].keys() == {"apiVersion", "kind", "metadata"}
    assert made[GVK] == [{"group": "stable.example.com", "kind": "CronTab", "version": "v1"}]


def test_the_list_has_the_items():
    world = World()
    world.define(crd({"type": "object"}))
    schemas = world.document("/openapi/v3/apis/stable.example.com/v1")["components"]["schemas"]
    made = schemas["com.example.stable.v1.CronTabList"]
    assert made["properties"]["items"]["items"] == {"$ref": "#/components/schemas/com.example.stable.v1.CronTab"}
    assert made[GVK][0]["kind"] == "CronTabList"


def test_selectable_fields_are_named():
    made = published({"type": "object"}, selectableFields=[{"jsonPath": ".spec.color"}])
    assert made["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.color"}]


@pytest.mark.parametrize(
    ("schema", "want"),
    [
        ({INT_OR_STRING: True}, {INT_OR_STRING: True, "anyOf": EITHER}),
        ({INT_OR_STRING: True, "anyOf": EITHER}, {INT_OR_STRING: True, "anyOf": EITHER}),
        (
            {INT_OR_STRING: True, "allOf": [{"anyOf": EITHER}, {"minimum": 1}]},
            {INT_OR_STRING: True, "allOf": [{"anyOf": EITHER}, {"minimum": 1}]},
        ),
        (
            {INT_OR_STRING: True, "anyOf": [{"minimum": 1}]},
            {INT_OR_STRING: True, "anyOf": [{"minimum": 1}], "allOf": [{"anyOf": EITHER}]},
        ),
        ({"type": "string", "nullable": False, PRESERVE: False}, {"type": "string"}),
        ({"type": "string", "maxLength": None, "example": None}, {"type": "string"}),
        ({"type": "boolean", "default": False}, {"type": "boolean", "default": False}),
    ],
)
def test_words_that_every_client_understands(schema, want):
    assert field(schema) == want


def test_an_embedded_object_is_one():
    schema = {
        "type": "array",
        "items": {"type": "object", "x-kubernetes-embedded-resource": True, "required": ["kind"]},
    }
    made = field(schema)["items"]
    assert made["properties"].keys() == {"apiVersion", "kind", "metadata"}
    assert made["required"] == ["kind", "apiVersion"]


@pytest.mark.parametrize("v2", [False, True])
def test_without_a_schema_nothing_is_said(v2: bool):
    made = published(None, v2=v2)
    assert {key: value for key, value in made.items() if key != GVK} == {"type": "object"}


@pytest.mark.parametrize(
    ("schema", "want"),
    [
        ({"type": "string", "default": "x", "maxLength": 3}, {"type": "string", "maxLength": 3}),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}]},
         {"type": "object", "properties": {"a": {"type": "string"}}}),
        ({"type": "object", "nullable": True, "properties": {"a": {}}}, {}),
        ({"type": "object", PRESERVE: True, "properties": {"a": {}}}, {PRESERVE: True}),
        ({"type": "array", PRESERVE: True, "items": {}}, {PRESERVE: True}),
        ({INT_OR_STRING: True, "anyOf": EITHER}, {INT_OR_STRING: True}),
        ({"type": "object", "properties": {"a": {"type": "string", "nullable": True}}, "required": ["a"]},
         {"type": "object", "properties": {"a": {}}}),
    ],
)  # fmt: skip
def test_version_2_leaves_open_what_it_cannot_say(schema, want):
    assert field(schema, v2=True) == want


def test_version_2_says_nothing_of_an_object_with_unknown_fields():
    made = published({"type": "object", PRESERVE: True, "properties": {"spec": {"type": "object"}}}, v2=True)
    assert made == {"type": "object", GVK: [{"group": "stable.example.com", "kind": "CronTab", "version": "v1"}]}
