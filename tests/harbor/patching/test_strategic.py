"""Strategic merge patch, against a model; the directives are in the recorded answers."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage_harbor.patching import PatchError, strategic_merge
from pilotage_harbor.schema.builtin import builtin

POD = builtin("", "v1", "Pod")

NAMES = st.sampled_from("abcd")
TEXTS = st.sampled_from(["x", "y", "z"])
ENV = st.lists(st.fixed_dictionaries({"name": NAMES, "value": TEXTS}), max_size=3, unique_by=lambda item: item["name"])
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"image": TEXTS, "env": ENV, "args": st.lists(TEXTS, max_size=2)}),
    max_size=3,
    unique_by=lambda item: item["name"],
)
PODS = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({}, optional={"finalizers": st.lists(TEXTS, max_size=2, unique=True)})},
    optional={"spec": st.fixed_dictionaries({}, optional={"containers": CONTAINERS, "nodeName": TEXTS})},
)
_KEYED = {"containers", "env"}
_SETS = {"finalizers"}


def model(doc: Any, patch: Any, name: str = "") -> Any:
    """Content of the result, whatever its order."""
    if isinstance(doc, dict) and isinstance(patch, dict):
        return {**doc, **{key: model(doc.get(key), value, key) for key, value in patch.items()}}
    if name in _KEYED:
        mine = {item["name"]: item for item in doc or []}
        for item in patch:
            mine[item["name"]] = model(mine.get(item["name"], {}), item)
        return list(mine.values())
    return [*(doc or []), *(item for item in patch if item not in (doc or []))] if name in _SETS else patch


def unordered(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: unordered(item, key) for key, item in value.items()}
    if isinstance(value, list):
        items = [unordered(item) for item in value]
        return items if name == "args" else sorted(items, key=repr)
    return value


@given(PODS, PODS)
def test_lists_are_merged_by_their_keys(doc: Any, patch: Any) -> None:
    before, asked = copy.deepcopy(doc), copy.deepcopy(patch)
    result = strategic_merge(doc, patch, POD)
    assert unordered(result) == unordered(model(doc, patch))
    assert (doc, patch) == (before, asked)
    assert strategic_merge(result, patch, POD) == result


@given(CONTAINERS, CONTAINERS)
def test_the_patch_decides_the_order_of_what_it_names(old: Any, new: Any) -> None:
    result = strategic_merge({"spec": {"containers": old}}, {"spec": {"containers": new}}, POD)
    names = [item["name"] for item in result["spec"]["containers"]]
    wanted = [item["name"] for item in new]
    kept = [item["name"] for item in old if item["name"] not in wanted]
    assert [name for name in names if name in wanted] == wanted
    assert [name for name in names if name not in wanted] == kept


@pytest.mark.parametrize(
    ("doc", "patch", "code", "why"),
    [
        ({"spec": {"containers": [{"name": "a"}]}}, {"spec": {"containers": [1]}}, 500, "types are not identical"),
        ({"spec": {"containers": [[]]}}, {"spec": {"containers": [[]]}}, 422, "lists of lists"),
        (
            {"spec": {"x": {"a": 1}}},
            {"spec": {"x": {"b": 1}}},
            500,
            'api field in struct PodSpec for the json field "x"',
        ),
        ({}, {"metadata": {"$retainKeys": 1}}, 0, ""),
        ({"metadata": {}}, {"metadata": {"$retainKeys": 1}}, 400, "invalid patch format of retainKeys"),
        ({}, {"$deleteFromPrimitiveListx": []}, 400, "invalid patch format of primitive list"),
        ({}, {"$setElementOrderx/y": []}, 400, "invalid patch format of setElementOrder list"),
    ],
)
def test_what_cannot_be_merged(doc: Any, patch: Any, code: int, why: str) -> None:
    if not code:
        assert strategic_merge(doc, patch, POD) == patch
        return
    with pytest.raises(PatchError) as caught:
        strategic_merge(doc, patch, POD)
    assert caught.value.code == code
    assert why in caught.value.why
