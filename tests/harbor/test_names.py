"""Names and metadata. What the real server says about most of it is recorded in tests/harbor/builtin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage_harbor.apimachinery.metadata_rules import (
    metadata_problems,
    metadata_update_problems,
    selector_matches,
    selector_problems,
)
from pilotage_harbor.apimachinery.names import (
    dns1035,
    dns_label,
    dns_subdomain,
    env_name,
    path_segment,
    port_name,
    qualified_name,
)

LETTERS = st.text("ab-.A_/", max_size=70)


@given(LETTERS)
def test_a_label_is_a_subdomain_without_dots(name: str):
    if not dns_label(name):
        assert not dns_subdomain(name)
        assert "." not in name
    if not dns1035(name):
        assert not dns_label(name)


def test_a_beginning_may_end_with_a_dash():
    assert dns_label("a-")
    assert dns_label("a-", prefix=True) == []
    assert dns_label("a.-", prefix=True) == []  # the real server ignores the last two characters, too
    assert dns_label("-a-b-", prefix=True)


@pytest.mark.parametrize(
    ("problems", "words"),
    [
        (dns_subdomain("a" * 254), ["must be no more than 253 characters"]),
        (dns_label("a.b"), ["must not contain dots"]),
        (path_segment("a/b%"), ["may not contain '/'", "may not contain '%'"]),
        (path_segment(".."), ["may not be '..'"]),
        (qualified_name("/b"), ["prefix part must be non-empty"]),
        (qualified_name("a" * 64), ["name part must be no more than 63 bytes"]),
        (
            env_name("a=b"),
            ["a valid environment variable name must consist only of printable ASCII characters other than '='"],
        ),
        (port_name("a--b"), ["must not contain consecutive hyphens"]),
        (port_name("12"), ["must contain at least one letter (a-z)"]),
    ],
)
def test_what_is_said(problems: list[str], words: list[str]):
    assert problems == words


def test_a_name_and_a_namespace_are_needed():
    found = metadata_problems({}, namespaced=True, name_problems=dns_subdomain)
    assert [str(cause) for cause in found] == [
        "metadata.name: Required value: name or generateName is required",
        "metadata.namespace: Required value",
    ]
    found = metadata_problems({"name": "a", "namespace": "b"}, namespaced=False, name_problems=dns_subdomain)
    assert [str(cause) for cause in found] == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_a_deleting_object_gets_no_new_finalizers():
    old = {"name": "a", "resourceVersion": "1", "deletionTimestamp": "t", "finalizers": ["a/b"]}
    assert metadata_update_problems(old | {"finalizers": []}, old) == []
    (cause,) = metadata_update_problems(old | {"finalizers": ["a/b", "c/e", "c/d"]}, old)
    assert cause.message == (
        "Forbidden: no new finalizers can be added if the object is being deleted,"
        ' found new finalizers []string{"c/d", "c/e"}'
    )


def test_what_of_metadata_never_changes():
    old = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 2}
    new = {"name": "b", "namespace": "m", "uid": "v", "resourceVersion": "", "generation": 1}
    assert [cause.field for cause in metadata_update_problems(new, old)] == [
        f"metadata.{name}" for name in ("resourceVersion", "generation", "name", "namespace", "uid")
    ]


@pytest.mark.parametrize(
    ("term", "labels", "matches"),
    [
        ({"key": "a", "operator": "In", "values": ["b"]}, {"a": "b"}, True),
        ({"key": "a", "operator": "In", "values": ["b"]}, {}, False),
        ({"key": "a", "operator": "NotIn", "values": ["b"]}, {}, True),
        ({"key": "a", "operator": "NotIn", "values": ["b"]}, {"a": "b"}, False),
        ({"key": "a", "operator": "Exists"}, {"a": ""}, True),
        ({"key": "a", "operator": "DoesNotExist"}, {"a": ""}, False),
    ],
)
def test_selectors_in_objects(term: dict[str, object], labels: dict[str, str], matches: bool):
    selector = {"matchExpressions": [term]}
    assert selector_problems(selector, "x") == []
    assert selector_matches(selector, labels) is matches
