"""Version 2 as protobuf, read back by the numbers of gnostic's OpenAPIv2.proto."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage_harbor.openapi import protobuf

from .world import World, crd

DOCUMENT_PATHS, DOCUMENT_DEFINITIONS = 8, 9
PATHS_PATH, PATH_ITEM_PATCH, OPERATION_CONSUMES, OPERATION_EXTENSION = 2, 8, 7, 13
SCHEMA_TYPE, SCHEMA_PROPERTIES, SCHEMA_EXTENSION = 22, 25, 31


def fields(message: bytes) -> dict[int, list[Any]]:
    """The fields of a message, by number."""
    found: dict[int, list[Any]] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while at < len(message):
        number, form = divmod(varint(), 8)
        if form == 0:
            value: object = varint()
        elif form == 1:
            value = struct.unpack("<d", message[at : at + 8])[0]
            at += 8
        else:
            assert form == 2
            size = varint()
            value = message[at : at + size]
            assert len(value) == size
            at += size
        found.setdefault(number, []).append(value)
    return found


def entries(message: bytes, number: int) -> dict[str, bytes]:
    """A repeated message of a name and a value, as a map."""
    return {pair[1][0].decode(): pair[2][0] for pair in map(fields, fields(message).get(number, ()))}


def extensions(message: bytes, number: int) -> dict[str, object]:
    return {name: msgspec.json.decode(fields(value)[2][0]) for name, value in entries(message, number).items()}


@pytest.fixture
def document() -> dict[int, list[Any]]:
    world = World()
    world.define(crd({"type": "object", "properties": {"spec": {"type": "object", "description": "Ünïcode"}}}))
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    return fields(world.ask("/openapi/v2", accept=accept).body)


def test_the_same_definitions_as_in_json(document):
    names = entries(document[DOCUMENT_DEFINITIONS][0], 1).keys()
    world = World()
    world.define(crd({"type": "object"}))
    assert names == world.document("/openapi/v2")["definitions"].keys()


def test_a_kind_and_its_fields_are_found(document):
    definitions = entries(document[DOCUMENT_DEFINITIONS][0], 1)
    pod = definitions["io.k8s.api.core.v1.Pod"]
    assert extensions(pod, SCHEMA_EXTENSION) == {
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "Pod", "version": "v1"}]
    }
    properties = entries(fields(definitions["io.k8s.api.core.v1.PodSpec"])[SCHEMA_PROPERTIES][0], 1)
    assert extensions(properties["containers"], SCHEMA_EXTENSION)["x-kubernetes-patch-merge-key"] == "name"
    assert fields(fields(properties["containers"])[SCHEMA_TYPE][0]) == {1: [b"array"]}
    custom = entries(fields(definitions["com.example.stable.v1.CronTab"])[SCHEMA_PROPERTIES][0], 1)
    assert fields(custom["spec"])[4] == ["Ünïcode".encode()]


def test_how_a_kind_is_patched(document):
    paths = entries(document[DOCUMENT_PATHS][0], PATHS_PATH)
    patch = fields(paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"])[PATH_ITEM_PATCH][0]
    assert b"application/strategic-merge-patch+json" in fields(patch)[OPERATION_CONSUMES]
    assert extensions(patch, OPERATION_EXTENSION)["x-kubernetes-action"] == "patch"


@given(
    st.dictionaries(st.text(min_size=1), st.integers(-(2**63), 2**63 - 1), max_size=3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
)
def test_values_of_every_form_come_back(bounds, number, text):
    schema = {
        "type": "object",
        "description": text,
        "maximum": number,
        "uniqueItems": True,
        "properties": {name: {"maxLength": bound, "enum": [bound, None]} for name, bound in bounds.items()},
        "additionalProperties": False,
        "items": {"additionalProperties": {"type": "string"}},
        "nullable": True,
    }
    raw = msgspec.Raw(msgspec.json.encode(schema))
    made = fields(entries(fields(protobuf.encode({"definitions": {"it": raw}}))[DOCUMENT_DEFINITIONS][0], 1)["it"])
    assert made[4] == [text.encode()]
    assert made[7] == [number]
    assert made[16] == [1]
    assert fields(made[21][0]) == {2: [0]}
    properties = {name: fields(part) for name, part in entries(made[SCHEMA_PROPERTIES][0], 1).items()}
    assert {name: part[11][0] for name, part in properties.items()} == {name: n % 2**64 for name, n in bounds.items()}
    assert all(msgspec.json.decode(fields(part[20][1])[2][0]) is None for part in properties.values())
    assert set(made) == {4, 7, 16, 21, SCHEMA_TYPE, 23, SCHEMA_PROPERTIES}
