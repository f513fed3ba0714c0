"""Recorded answers of a real API server about schemas and objects (`cases.py`): ours are the same."""

import copy
import json
import re
from typing import Any

import pytest

from pilotage_harbor.schema import (
    apply_defaults,
    builtin,
    decode_problem,
    from_openapi,
    prune,
    structural_problems,
    unknown_fields,
    validate,
)
from tests.harbor.schema import cases, recording

RECORDED = json.loads(recording.RECORDED.read_text())
SCHEMAS = {name: from_openapi(schema) for name, schema in cases.SCHEMAS.items()}
PATH = "spec.validation.openAPIV3Schema"
"""Path that the server gives for the schema of a definition when all versions have the same one."""
KINDS = {
    "configmaps": ("", "v1", "ConfigMap"),
    "pods": ("", "v1", "Pod"),
    "deployments": ("apps", "v1", "Deployment"),
    "services": ("", "v1", "Service"),
}


def _causes(answer: dict[str, Any]) -> set[tuple[str, ...]]:
    return {tuple(cause) for cause in answer.get("causes", ())}


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_an_object_is_taken_or_refused_as_recorded(case: cases.Case):
    answer, schema = RECORDED["cases"][case.name], SCHEMAS[case.schema]
    obj = recording.complete(case, copy.deepcopy(case.obj))
    strict = unknown_fields(schema, obj)
    prune(schema, obj)
    apply_defaults(schema, obj)
    old = None if case.old is None else recording.complete(case, copy.deepcopy(case.old))
    if old is not None:
        apply_defaults(schema, old)
        old["metadata"] = obj["metadata"]
    before = copy.deepcopy(obj)

    found = {tuple(cause) for cause in validate(schema, obj, old)}

    assert found == _causes(answer)
    assert obj == before
    if answer["code"] < 300:
        assert obj.get("spec") == answer["spec"]
    if "strict" in answer:
        assert strict == re.findall(r'unknown field "([^"]*)"', answer["strict"])
    elif answer["code"] < 300:
        assert not strict


@pytest.mark.parametrize("name", cases.DEFINITIONS)
def test_a_definition_is_taken_or_refused_as_recorded(name: str):
    found = structural_problems(cases.DEFINITIONS[name], PATH)

    assert {tuple(cause) for cause in found} == _causes(RECORDED["definitions"][name])


@pytest.mark.parametrize("schema", cases.SCHEMAS.values(), ids=cases.SCHEMAS)
def test_a_definition_that_the_server_has_taken_is_right(schema: dict[str, Any]):
    assert structural_problems(schema, PATH) == []


@pytest.mark.parametrize("body", cases.BODIES, ids=lambda body: body.name)
def test_a_body_cannot_be_decoded_for_the_recorded_reason(body: cases.Body):
    group, version, kind = KINDS[body.path.rpartition("/")[2]]
    answer = RECORDED["bodies"][body.name]
    assert answer["code"] == 400

    problem = decode_problem(builtin(group, version, kind), body.body, kind)

    assert f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}' == answer["message"]


@pytest.mark.parametrize("name", cases.METADATA)
def test_metadata_of_a_custom_resource_cannot_be_decoded_for_the_recorded_reason(name: str):
    answer = RECORDED["cases"][f"metadata: {name}"]
    assert answer["code"] == 400

    problem = decode_problem(SCHEMAS["shape"], {"metadata": cases.METADATA[name]}, "Shape")

    assert f'Shape in version "v1" cannot be handled as a Shape: {problem}' == answer["message"]


@pytest.mark.parametrize("body", cases.STRICT, ids=lambda body: body.name)
def test_unknown_fields_are_named_as_recorded(body: cases.Body):
    schema = builtin(*KINDS[body.path.rpartition("/")[2]])
    said = re.findall(r'unknown field "([^"]*)"', RECORDED["strict"][body.name]["message"])
    assert said

    assert unknown_fields(schema, body.body) == said


def test_the_recording_is_still_what_a_server_says(cluster):
    with recording.sender(cluster.kubeconfig) as send:
        answers = recording.ask(send)

    assert recording.differences(RECORDED, answers) == []
