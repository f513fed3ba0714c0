"""Fields that can be selected by, and formats that mean nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage_harbor.builtin.crd_schemas import selectable_problems, unknown_formats

TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object", "properties": {"name": TEXT}},
        "spec": {
            "type": "object",
            "properties": {
                "text": TEXT,
                "list": {"type": "array", "items": TEXT},
                "map": {"type": "object", "additionalProperties": TEXT},
            },
        },
    },
}


def problems(*paths: str) -> list[str]:
    return [str(each) for each in selectable_problems([{"jsonPath": path} for path in paths], SCHEMA, "f")]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "Required value"),
        (".spec.none", "does not refer to a valid field"),
        (".spec.text.more", "does not refer to a valid field"),
        (".spec.list[0]", "array notation is not allowed"),
        (".spec.", "unexpected end of JSON path"),
        (".spec.list", "must point to a field of type string, boolean or integer"),
        (".metadata.name", "must not point to fields in metadata"),
    ],
)
def test_what_cannot_be_selected_by(path: str, words: str) -> None:
    found = problems(path)
    assert len(found) == 1
    assert found[0].startswith("f[0].jsonPath: ")
    assert words in found[0]


def test_what_can() -> None:
    assert problems(".spec.text", ".spec.map.key") == []
    assert problems(".spec.text", ".spec.text") == ['f[1].jsonPath: Duplicate value: ".spec.text"']
    assert problems(*(f".spec.map.k{number}" for number in range(9))) == ["f: Too many: 9: must have at most 8 items"]


def test_formats_are_looked_for_everywhere_and_told_once() -> None:
    odd = {"type": "string", "format": "moon-phase"}
    schema = {
        "properties": {
            "a": {"items": odd},
            "b": {"additionalProperties": odd},
            "c": {"type": "string", "format": "uri"},
        },
        "allOf": [{"properties": {"d": {"type": "integer", "format": "date"}}}],
    }
    versions = [{"schema": {"openAPIV3Schema": schema}}, {"schema": {"openAPIV3Schema": schema}}]
    assert sorted(unknown_formats({"versions": versions})) == ["date", "moon-phase"]
