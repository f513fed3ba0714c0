"""Affinities that make no sense, and why."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage_harbor.builtin.affinity_rules import affinity_problems

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def nodes(**requirement: Any) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}}


def field(**requirement: Any) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [requirement]}]}}}


@pytest.mark.parametrize(
    ("affinity", "where", "words"),
    [
        ({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}, "nodeSelectorTerms", "at least one"),
        (nodes(key="a", operator="In"), "values", "must be specified when"),
        (nodes(key="a", operator="Exists", values=["x"]), "values", "may not be specified when"),
        (nodes(key="a", operator="Gt", values=[]), "values", "single value"),
        (nodes(key="a", operator="Near", values=[]), "operator", "not a valid selector operator"),
        (nodes(key="a b", operator="Exists"), "key", "name part must consist of"),
        (nodes(key="a", operator="In", values=["-"]), "values[0]", "a valid label must be"),
        (field(key="metadata.uid", operator="In", values=["x"]), "key", "not a valid field selector key"),
        (field(key="metadata.name", operator="In", values=["x", "y"]), "values", "must be only one value"),
        (field(key="metadata.name", operator="In", values=["X"]), "values[0]", "lower case"),
        ({"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}, "weight", "in the range 1-100"),
        ({"podAffinity": {REQUIRED: [{"topologyKey": "k", "namespaces": ["A"]}]}}, "namespace", "lower case"),
        (
            {"podAntiAffinity": {PREFERRED: [{"weight": 101, "podAffinityTerm": {"topologyKey": "k"}}]}},
            "weight",
            "in the range 1-100",
        ),
    ],
)
def test_what_is_wrong(affinity: dict[str, Any], where: str, words: str) -> None:
    found = affinity_problems(affinity, "spec.affinity")
    assert len(found) == 1
    assert found[0].field.endswith(f".{where}")
    assert words in found[0].message


def test_a_good_one() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
    node = nodes(key="kubernetes.io/arch", operator="In", values=["amd64"])
    pods = {"podAffinity": {REQUIRED: [term]}, "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}}
    assert affinity_problems(node | pods, "spec.affinity") == []
    assert affinity_problems(None, "spec.affinity") == []


def test_what_is_preferred_may_ask_for_labels_that_no_node_can_have() -> None:
    term = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]}
    affinity = {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": term}]}}
    assert affinity_problems(affinity, "spec.affinity") == []
