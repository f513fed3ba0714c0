"""The published schemas of built-in kinds against those that Kubernetes publishes."""

from __future__ import annotations

import msgspec
import pytest

from pilotage_harbor.openapi.components import builtin_component

EXTENSIONS = ("list-type", "list-map-keys", "map-type", "patch-strategy", "patch-merge-key")


def shape(schema):
    """Parts of a schema that both sides can express, in the words of the source."""
    if len(schema.get("allOf", ())) == 1:
        schema = {**schema, **schema["allOf"][0]}
    made = {f"x-kubernetes-{key}": schema.get(f"x-kubernetes-{key}") for key in EXTENSIONS}
    if "$ref" in schema:
        return {**made, "$ref": schema["$ref"].rpartition("/")[2]}
    kind = schema.get("type", "")
    made["type"] = next(each for each in kind if each != "null") if isinstance(kind, list) else kind
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            made[key] = shape(schema[key])
    made["properties"] = {name: shape(part) for name, part in schema.get("properties", {}).items()}
    made["required"] = schema.get("required") or []
    return made


def test_all_definitions_say_what_kubernetes_says():
    pytest.importorskip("kubernetes_validate")
    from pilotage_harbor.schema.make import definitions

    source = definitions()
    assert len(source) > 700
    for name, wanted in source.items():
        component = builtin_component(name, v2=False)
        assert shape(msgspec.json.decode(component.raw)) == shape(wanted), name


@pytest.mark.parametrize("v2", [False, True])
def test_a_value_of_two_types(v2: bool):
    name = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
    made = msgspec.json.decode(builtin_component(name, v2).raw)
    types = {"type": "string"} if v2 else {"oneOf": [{"type": "integer"}, {"type": "string"}]}
    assert made == {"format": "int-or-string", **types}


def test_a_kind_that_refers_to_itself_ends():
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    assert name in builtin_component(name, v2=False).refers_to
