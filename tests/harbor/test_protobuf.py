"""Bodies as client-go sends them: in protobuf, with every field that is no pointer, set or not."""

import struct
from typing import Any

import pytest

from pilotage_harbor.protobuf import BadMessage, from_protobuf_untrusted


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number: int, value: Any) -> bytes:
    """One field of a message: a number, text, a message, or a float."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def schema_of(raw: bytes) -> Any:
    """The schema of the one version of a CustomResourceDefinition that was sent with it."""
    version = field(1, "v1") + field(4, field(1, raw))
    body = envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(1, "g") + field(7, version)))
    obj = from_protobuf_untrusted(body)
    assert obj["spec"]["group"] == "g"
    return obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


STRING = field(5, "string")
UNSET = field(1, "") + field(2, "") + field(4, "") + field(10, 0) + field(15, "") + field(37, 0)
"""Bytes in every schema: id, $schema, description, exclusiveMaximum, pattern and nullable, all of them empty."""


def test_delete_options_belong_to_every_group():
    raw = field(4, "Background") + field(2, field(1, "some-uid"))
    for api_version in ("v1", "apps/v1", "policy/v1", "example.com/v1"):
        assert from_protobuf_untrusted(envelope(api_version, "DeleteOptions", raw)) == {
            "apiVersion": api_version,
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": "some-uid"},
        }


def test_what_a_group_does_not_have_is_refused():
    with pytest.raises(BadMessage, match=r'no kind "Pod" is registered for version "apps/v1"'):
        from_protobuf_untrusted(envelope("apps/v1", "Pod", b""))


def test_a_field_that_protobuf_spells_otherwise_has_its_own_name():
    body = envelope("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", field(2, field(1, "hook")))
    assert from_protobuf_untrusted(body)["webhooks"] == [{"name": "hook"}]


def test_keywords_of_a_schema_have_the_names_that_json_has():
    raw = STRING + field(2, "draft") + field(3, "#/x") + field(38, 1) + field(41, "name") + field(44, field(1, "true"))
    assert schema_of(raw) == {
        "type": "string",
        "$schema": "draft",
        "$ref": "#/x",
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-validations": [{"rule": "true"}],
    }


def test_what_a_schema_does_not_say_is_left_out_at_every_depth():
    inner = STRING + UNSET
    raw = field(5, "object") + UNSET + field(24, field(1, inner)) + field(30, field(1, 0) + field(2, inner))
    raw += field(29, field(1, "a") + field(2, inner))
    assert schema_of(raw) == {
        "type": "object",
        "items": {"type": "string"},
        "additionalProperties": {"type": "string"},
        "properties": {"a": {"type": "string"}},
    }


def test_zero_is_kept_where_it_says_something():
    raw = field(5, "integer") + field(11, 0.0) + field(9, 1.5) + field(14, 0) + field(38, 0)
    assert schema_of(raw) == {
        "type": "integer",
        "minimum": 0,
        "maximum": 1.5,
        "minLength": 0,
        "x-kubernetes-preserve-unknown-fields": False,
    }


@pytest.mark.parametrize(
    ("keyword", "number", "raw", "value"),
    [
        ("additionalProperties", 30, field(1, 1), True),
        ("additionalProperties", 30, field(1, 0), False),
        ("items", 24, field(2, STRING) + field(2, STRING), [{"type": "string"}, {"type": "string"}]),
        ("default", 8, field(1, b'{"a":[1]}'), {"a": [1]}),
        ("default", 8, field(1, b"null"), None),
    ],
)
def test_what_stands_in_place_of_a_schema_or_is_any_json(keyword: str, number: int, raw: bytes, value: object):
    assert schema_of(STRING + field(number, raw)) == {"type": "string", keyword: value}


def test_a_dependency_is_a_schema_or_names():
    raw = STRING + field(32, field(1, "a") + field(2, field(2, "b") + field(2, "c")))
    raw += field(32, field(1, "d") + field(2, field(1, STRING)))
    assert schema_of(raw)["dependencies"] == {"a": ["b", "c"], "d": {"type": "string"}}


def test_a_schema_that_is_nested_without_end_is_refused():
    raw = STRING
    for _ in range(200):
        raw = field(28, raw)
    with pytest.raises(BadMessage, match="nested too deeply"):
        schema_of(raw)
