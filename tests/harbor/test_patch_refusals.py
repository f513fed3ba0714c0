"""The words for patches that leave no object of its kind. Those marked so were recorded from kube-apiserver."""

from __future__ import annotations

import pytest

from pilotage_harbor.verbs.patches import refused_strategic, unknown_members, unstructured_words

FIELD = "json: cannot unmarshal {} into Go struct field DeploymentSpec.spec.replicas of type {}"


@pytest.mark.parametrize(
    ("found", "target", "words"),
    [
        ("string", "int32", "unrecognized type: int32"),  # recorded
        ("number", "string", "cannot convert int64 to string"),
        ("number 1.5", "int32", "cannot convert float64 to int32"),
        ("bool", "string", "unrecognized type: string"),
        ("string", "[]v1.Container", "cannot restore slice from string"),
        ("array", "map[string]string", "cannot restore map from slice"),
        ("object", "v1.PodSpec", "cannot restore struct from: map"),
    ],
)
def test_the_converter_has_its_own_words_for_a_wrong_type(found: str, target: str, words: str) -> None:
    assert unstructured_words(FIELD.format(found, target)) == words


def test_other_problems_are_told_as_they_are() -> None:
    assert unstructured_words('strict decoding error: unknown field "x"') == 'strict decoding error: unknown field "x"'


def test_a_strategic_patch_is_shown_as_go_prints_it() -> None:
    error = refused_strategic(b'{"b": [1, null, true], "a": {"x": "y", "f": 1.5}}', "why")
    assert error.message.endswith('patch: Invalid value: "map[a:map[f:1.5 x:y] b:[1 <nil> true]]": why')


def test_members_that_no_operation_has() -> None:
    operations = [{"op": "add", "path": "/a", "value": 1, "foo": 2}, {"op": "copy", "from": "/a", "path": "/b"}]
    assert unknown_members(operations) == ['json patch unknown field "[0].foo"']
    assert unknown_members({"op": "add"}) == []
