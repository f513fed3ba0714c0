"""JSON patch: the operations, and what makes a patch fail as a whole. More of it is in the recorded answers."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage_harbor.patching import PatchError, json_patch

DOC = {"a": {"b": [1, 2, 3], "c": None}, "x/y": 1, "m~n": 2}


@pytest.mark.parametrize(
    ("operations", "want"),
    [
        ([{"op": "add", "path": "/a/b/0", "value": 0}], {"a": {"b": [0, 1, 2, 3], "c": None}}),
        ([{"op": "add", "path": "/a/b/3", "value": 4}], {"a": {"b": [1, 2, 3, 4], "c": None}}),
        ([{"op": "add", "path": "/a/b/-", "value": 4}], {"a": {"b": [1, 2, 3, 4], "c": None}}),
        ([{"op": "remove", "path": "/a/b/-1"}], {"a": {"b": [1, 2], "c": None}}),
        ([{"op": "replace", "path": "/a/b/1", "value": {}}], {"a": {"b": [1, {}, 3], "c": None}}),
        ([{"op": "replace", "path": "/a/none", "value": 1}], {"a": {"b": [1, 2, 3], "c": None, "none": 1}}),
        ([{"op": "move", "from": "/a/b", "path": "/a/d"}], {"a": {"c": None, "d": [1, 2, 3]}}),
        ([{"op": "copy", "from": "/a/none", "path": "/a/d"}], {"a": {"b": [1, 2, 3], "c": None, "d": None}}),
        ([{"op": "add", "path": "/a/d"}], {"a": {"b": [1, 2, 3], "c": None, "d": None}}),
        ([{"op": "test", "path": "/a/c", "value": None}], {}),
        ([{"op": "test", "path": "/a/none"}], {}),
        ([{"op": "remove", "path": "/x~1y"}, {"op": "replace", "path": "/m~0n", "value": 3}], {"x/y": None, "m~n": 3}),
    ],
)
def test_operations(operations: list[Any], want: dict[str, Any]) -> None:
    before = copy.deepcopy(DOC)
    result = json_patch(DOC, operations)
    expected = {**DOC, **want}
    if want.get("x/y", 1) is None:
        del expected["x/y"]
    assert result == expected
    assert before == DOC


def test_the_whole_document_can_be_replaced() -> None:
    assert json_patch(DOC, [{"op": "replace", "path": "", "value": {"new": 1}}]) == {"new": 1}


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ({"op": "add", "path": "/none/x", "value": 1}, 'add operation does not apply: doc is missing path: "/none/x"'),
        ({"op": "add", "path": "/a/b/5", "value": 1}, "error in add for path: '/a/b/5'"),
        ({"op": "add", "path": "/a/b/x", "value": 1}, "error in add for path: '/a/b/x'"),
        ({"op": "remove", "path": "/a/z"}, "Unable to remove nonexistent key: z"),
        ({"op": "replace", "path": "/a/b/3", "value": 1}, "replace operation does not apply: doc is missing key"),
        ({"op": "replace", "path": "", "value": 1}, "replace operation value must be object or array"),
        ({"op": "replace", "path": "", "value": []}, "the patched document is not an object"),
        ({"op": "test", "path": "/x~1y", "value": 1.0}, "testing value /x~1y failed: test failed"),
        ({"op": "test", "path": "/x~1y", "value": True}, "testing value /x~1y failed: test failed"),
        ({"op": "move", "from": "/nope", "path": "/a"}, "Unable to remove nonexistent key: nope"),
        ({"op": "add"}, "add operation failed to decode path: missing value"),
        ({"op": 1, "path": "/a"}, "Unexpected kind: unknown"),
    ],
)
def test_what_does_not_apply_is_unprocessable(operation: dict[str, Any], why: str) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch(DOC, [{"op": "add", "path": "/new", "value": 1}, operation])
    assert why in caught.value.why
    assert caught.value.code == 422
    assert caught.value.message == "the server rejected our request due to an error in our request"


def test_too_many_operations() -> None:
    with pytest.raises(PatchError) as caught:
        json_patch({}, [{"op": "test", "path": ""}] * 10_001)
    assert caught.value.code == 413
    assert "The allowed maximum operations in a JSON patch is 10000, got 10001" in caught.value.message


SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab~/", max_size=3)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text("ab~/", max_size=2), VALUES, max_size=4)


def escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


@given(OBJECTS, OBJECTS)
def test_a_patch_that_spells_out_the_difference_makes_one_object_of_another(old: Any, new: Any) -> None:
    operations: list[Any] = [{"op": "remove", "path": f"/{escaped(key)}"} for key in old if key not in new]
    operations += [{"op": "add", "path": f"/{escaped(key)}", "value": value} for key, value in new.items()]
    operations += [{"op": "test", "path": f"/{escaped(key)}", "value": value} for key, value in new.items()]
    before = copy.deepcopy(old)
    assert json_patch(old, operations) == new
    assert old == before
