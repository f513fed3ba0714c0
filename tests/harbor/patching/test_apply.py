"""Server-side apply of any object: the invariants. The exact answers are in the recorded ones."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage_harbor.patching import ApplyConflict, apply
from pilotage_harbor.schema.openapi import from_openapi
from tests.harbor.patching.scenarios import CRD
from tests.harbor.patching.test_managed import FIRST, SECOND, owned

BOX = from_openapi(CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"])

# An empty set or list map claims nothing, not even itself: so there are none here.
COLOURS = st.lists(st.sampled_from(["red", "green", "blue"]), min_size=1, max_size=3, unique=True)
DOORS = st.lists(
    st.fixed_dictionaries(
        {"side": st.sampled_from("nsw"), "number": st.just(1)}, optional={"width": st.integers(0, 2)}
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda door: door["side"],
)
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "colours": COLOURS,
        "doors": DOORS,
        "tags": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2),
        "whole": st.fixed_dictionaries({}, optional={"a": st.sampled_from("xy"), "b": st.sampled_from("xy")}),
        "plain": st.lists(st.sampled_from("xy"), max_size=2),
    },
).map(lambda spec: {"apiVersion": "patching.test/v1", "kind": "Box", "metadata": {"name": "x"}, "spec": spec})


def applied(live: Any, config: Any, manager: str = "a", *, now: str = FIRST, force: bool = True) -> Any:
    before, asked = copy.deepcopy(live), copy.deepcopy(config)
    version = config["apiVersion"]
    result = apply(live, config, schema=BOX, manager=manager, api_version=version, now=now, force=force)
    assert (live, config) == (before, asked)
    return result


@given(CONFIGS, CONFIGS)
def test_applied_twice_is_applied_once(first: Any, second: Any) -> None:
    live = applied(applied(None, first), second, "b")
    assert applied(live, second, "b", now=SECOND, force=False) == live


@given(CONFIGS, CONFIGS)
def test_a_lone_manager_gets_what_it_says_now(first: Any, second: Any) -> None:
    live = applied(applied(None, first), second)
    fresh = applied(None, second)
    assert cleaned(live) == cleaned(fresh)
    assert owned(live) == owned(fresh)


@given(CONFIGS, CONFIGS)
def test_whoever_stops_leaves_what_the_other_one_said(first: Any, second: Any) -> None:
    live = applied(applied(None, first), second, "b")
    nothing = {**first, "spec": {}}
    assert cleaned(applied(live, nothing)) == cleaned(applied(None, second, "b"))


@given(CONFIGS, CONFIGS)
def test_without_force_it_either_changes_nothing_of_others_or_says_what_it_would(first: Any, second: Any) -> None:
    live = applied(None, first)
    lost = owned(live).get("a", set()) - owned(applied(live, second, "b")).get("a", set())
    if lost:
        with pytest.raises(ApplyConflict) as caught:
            applied(live, second, "b", force=False)
        assert {path for _, path in caught.value.conflicts} == lost
    else:
        assert applied(live, second, "b", force=False) == applied(live, second, "b")


def cleaned(value: Any) -> Any:
    """Object without ownership, empty values, nulls, and without the order of what has none."""
    if isinstance(value, dict):
        members = {name: cleaned(item) for name, item in value.items() if name != "managedFields"}
        return {name: item for name, item in members.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return (
            sorted((cleaned(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
            if value and value[0] not in ("x", "y")
            else value
        )
    return value


def test_conflicts_are_told_by_manager_and_field() -> None:
    box = {"apiVersion": "patching.test/v1", "kind": "Box", "metadata": {"name": "x"}}
    live = applied(None, {**box, "spec": {"size": 1, "tags": {"a": "x"}}}, "zoe")
    live = applied(live, {**box, "spec": {"doors": [{"side": "n", "width": 1}]}}, "amy")
    with pytest.raises(ApplyConflict) as caught:
        applied(
            live, {**box, "spec": {"size": 2, "tags": {"a": "y"}, "doors": [{"side": "n", "width": 2}]}}, force=False
        )
    assert caught.value.message == (
        'Apply failed with 3 conflicts: conflicts with "amy":\n- .spec.doors[number=1,side="n"].width\n'
        'conflicts with "zoe":\n- .spec.size\n- .spec.tags.a'
    )
    assert caught.value.details is not None
    assert caught.value.details["causes"][1] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "zoe"',
        "field": ".spec.size",
    }


def test_what_its_last_owner_takes_back_leaves_no_empty_object_behind() -> None:
    box = {"apiVersion": "patching.test/v1", "kind": "Box", "metadata": {"name": "x"}}
    live = applied(None, {**box, "spec": {"size": 1, "open": {"a": {"b": 1}}}})
    assert applied(live, box) == box
