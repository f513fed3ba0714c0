"""Merge patch, against a model that is written as the RFC is."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from pilotage_harbor.patching import PatchError, merge_patch
from tests.harbor.patching.test_json_patch import OBJECTS


def model(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = model(result.get(key), value)
    return result


def without_nulls_in_lists(value: Any) -> Any:
    """Deviation of kube-apiserver from the RFC: objects in a list that a patch sets lose their nulls, too."""
    if isinstance(value, dict):
        return {key: without_nulls_in_lists(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_pruned(item) for item in value]
    return value


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    return [_pruned(item) for item in value] if isinstance(value, list) else value


@given(OBJECTS, OBJECTS)
def test_it_is_what_the_rfc_says(doc: Any, patch: Any) -> None:
    before, asked = copy.deepcopy(doc), copy.deepcopy(patch)
    assert merge_patch(doc, patch) == model(doc, without_nulls_in_lists(patch))
    assert (doc, patch) == (before, asked)


@given(OBJECTS, OBJECTS)
def test_twice_is_once(doc: Any, patch: Any) -> None:
    once = merge_patch(doc, patch)
    assert merge_patch(once, patch) == once


@pytest.mark.parametrize(("patch", "kind"), [([], "array"), ("x", "string"), (1, "number"), (True, "bool")])
def test_only_an_object_is_a_patch(patch: Any, kind: str) -> None:
    with pytest.raises(PatchError, match=f"cannot unmarshal {kind} into Go value") as caught:
        merge_patch({}, patch)
    assert caught.value.code == 400
