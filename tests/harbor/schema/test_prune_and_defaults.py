import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotage_harbor.schema import apply_defaults, from_openapi, prune, unknown_fields, validate
from pilotage_harbor.schema.openapi import node_of

SCHEMA = from_openapi(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "a": {"type": "string", "default": "x"},
                    "b": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    "c": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {}}}},
                    "d": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        },
    }
)
NAMES = st.sampled_from("abcd")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


def _object(spec: object) -> dict[str, Any]:
    return {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}, "spec": spec}


@given(VALUES)
def test_what_is_pruned_has_no_unknown_fields(spec):
    obj = _object(spec)
    named = unknown_fields(SCHEMA, obj)
    before = copy.deepcopy(obj)

    prune(SCHEMA, obj)

    assert unknown_fields(SCHEMA, obj) == []
    assert (obj != before) == bool(named)


@given(VALUES)
def test_defaults_are_filled_in_once(spec):
    obj = _object(spec)
    apply_defaults(SCHEMA, obj)
    once = copy.deepcopy(obj)

    apply_defaults(SCHEMA, obj)

    assert obj == once
    if isinstance(obj.get("spec"), dict):
        assert obj["spec"]["a"] is not None


@given(VALUES, VALUES)
def test_validation_never_fails_and_an_unchanged_object_is_always_right(spec, other):
    obj = _object(spec)

    assert isinstance(validate(SCHEMA, obj, _object(other)), list)
    assert validate(SCHEMA, obj, copy.deepcopy(obj)) == []


def test_metadata_is_pruned_as_what_it_is():
    obj = _object({})
    obj["metadata"].update({"labels": {"any": "x"}, "what": 1, "ownerReferences": [{"name": "x", "what": 2}]})

    assert unknown_fields(SCHEMA, obj) == ["metadata.ownerReferences[0].what", "metadata.what"]
    prune(SCHEMA, obj)
    assert obj["metadata"] == {"name": "x", "labels": {"any": "x"}, "ownerReferences": [{"name": "x"}]}


def test_a_default_is_copied():
    schema = node_of({"type": "object", "properties": {"a": {"type": "object", "default": {"b": []}}}})
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    apply_defaults(schema, first)
    first["a"]["b"].append(1)

    apply_defaults(schema, second)

    assert second == {"a": {"b": []}}


def test_names_can_be_restricted_and_other_metadata_cannot():
    schema = from_openapi(
        {
            "type": "object",
            "properties": {
                "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}},
            },
        }
    )
    obj = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "long-name", "labels": {"a": "b"}}}

    assert [str(cause) for cause in validate(schema, obj)] == ["metadata.name: Too long: may not be more than 3 bytes"]


def test_of_a_status_write_only_the_status_is_checked():
    schema = from_openapi(
        {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": {"a": {"type": "integer"}}},
                "status": {"type": "object", "properties": {"b": {"type": "integer"}}},
            },
        }
    )
    obj = {**_object({"a": "x"}), "status": {"b": "y"}}

    assert [str(cause) for cause in validate(schema, obj, part="status")] == [
        'status.b: Invalid value: "string": b in body must be of type integer: "string"'
    ]
