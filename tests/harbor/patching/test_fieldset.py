"""Sets of fields as trees, against sets of paths."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage_harbor.patching.fieldset import (
    decoded,
    difference,
    has,
    intersection,
    path_text,
    paths,
    union,
    without,
)

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"n":"x"}', 'v:"y"'])
PATHS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)
SETS = st.frozensets(PATHS, max_size=8)


def tree(members: Any) -> dict[str, Any]:
    """The tree of a set, made as simply as possible."""
    result: dict[str, Any] = {}
    heads = {path[0] for path in members}
    for head in heads:
        below = {path[1:] for path in members if path[0] == head and len(path) > 1}
        subtree = tree(below)
        if (head,) in members and below:
            subtree["."] = {}
        result[head] = subtree
    return result


@given(SETS, SETS)
def test_the_operations_are_those_of_sets(left: Any, right: Any) -> None:
    assert union(tree(left), tree(right)) == tree(left | right)
    assert difference(tree(left), tree(right)) == tree(left - right)
    assert intersection(tree(left), tree(right)) == tree(left & right)
    rest = {path for path in left if not any(path[: len(other)] == other for other in right)}
    assert without(tree(left), tree(right)) == tree(rest)


@given(SETS, PATHS)
def test_a_tree_knows_its_paths(members: Any, path: Any) -> None:
    assert set(paths(tree(members))) == members
    assert has(tree(members), path) == (path in members)
    assert decoded(tree(members)) == tree(members)


def test_paths_come_in_the_order_of_kube_apiserver() -> None:
    fields = {
        "f:spec": {
            "f:b": {},
            "f:list": {'k:{"port":9}': {".": {}, "f:x": {}}, 'k:{"port":80}': {}, 'v:"s"': {}, "v:1": {}},
            "f:a": {".": {}, "f:z": {}},
        },
        "f:data": {},
    }
    assert [path_text(path) for path in paths(fields)] == [
        ".data",
        ".spec.a",
        ".spec.b",
        ".spec.a.z",
        ".spec.list[port=9]",
        ".spec.list[port=80]",
        ".spec.list[=1]",
        '.spec.list[="s"]',
        ".spec.list[port=9].x",
    ]


def test_what_a_client_sends_is_brought_into_form() -> None:
    sent: Any = {"f:a": {".": {}}, 'k:{"b": 1, "a":"<"}': {"f:x": {}}, "z:later": {}}
    assert decoded(sent) == {"f:a": {}, 'k:{"a":"\\u003c","b":1}': {"f:x": {}}}


@pytest.mark.parametrize("sent", [[], {"nonsense": {}}, {"f": {}}, {"k:[]": {}}, {"v:{": {}}, {"f:a": "x"}])
def test_what_is_not_fields_is_refused(sent: Any) -> None:
    with pytest.raises(ValueError):
        decoded(sent)
