"""Field ownership after a write, beyond the recorded answers: any object, and the corner cases."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotage_harbor.patching import keep_times, manager_name, track_update
from pilotage_harbor.patching.fieldset import paths
from pilotage_harbor.schema.builtin import builtin
from pilotage_harbor.schema.node import SchemaNode

ANY = SchemaNode(type="object", preserve_unknown=True)
DEPLOYMENT = builtin("apps", "v1", "Deployment")
FIRST, SECOND = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def tracked(
    obj: Any, old: Any = None, manager: str = "a", now: str = FIRST, schema: SchemaNode = ANY, **more: Any
) -> Any:
    obj = copy.deepcopy(obj)
    obj.setdefault("metadata", {})
    track_update(obj, old, schema=schema, manager=manager, api_version="v1", now=now, **more)
    return obj


def owned(obj: Any) -> dict[str, set[tuple[str, ...]]]:
    entries = obj["metadata"].get("managedFields", [])
    return {entry["manager"]: set(paths(entry["fieldsV1"])) for entry in entries}


SCALARS = st.booleans() | st.text("xyz", max_size=2) | st.lists(st.text("xyz", max_size=1), max_size=2)
TREES = st.recursive(SCALARS, lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8)
OBJECTS = st.fixed_dictionaries({"spec": st.dictionaries(st.sampled_from("abc"), TREES, max_size=3)})


def leaves(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """All fields with their values; an object with members is a field, too, but has no value of its own."""
    found: dict[tuple[str, ...], Any] = {path: value}
    if isinstance(value, dict) and value:
        found = {path: "members"}
        for name, item in value.items():
            found |= leaves(item, (*path, f"f:{name}"))
    return found


def fields(obj: Any) -> dict[tuple[str, ...], Any]:
    return leaves(obj["spec"], ("f:spec",))


def is_map(value: Any) -> bool:
    return bool(value in ("members", {}))


@given(OBJECTS)
def test_who_creates_owns_everything(obj: Any) -> None:
    assert owned(tracked(obj)) == {"a": set(fields(obj))}


@given(OBJECTS, OBJECTS)
def test_who_updates_owns_what_is_new_or_different_and_what_is_gone_is_nobodys(old: Any, new: Any) -> None:
    created = tracked(old)
    updated = tracked(new, created, "b", SECOND)
    before, after = fields(old), fields(new)
    changed = {
        path
        for path, value in after.items()
        # An object that gains or loses members is still the same field.
        if path not in before or (before[path] != value and not (is_map(before[path]) and is_map(value)))
    }
    want = {"a": set(before) & set(after) - changed, "b": changed}
    assert owned(updated) == {name: found for name, found in want.items() if found}


@given(OBJECTS, OBJECTS)
def test_an_update_by_the_same_manager_keeps_one_entry(old: Any, new: Any) -> None:
    created = tracked(old)
    updated = tracked(new, created, "a", SECOND)
    assert owned(updated) == {"a": set(fields(new))}
    # To take something away is not something that one owns.
    did_something = "b" in owned(tracked(new, created, "b"))
    assert updated["metadata"]["managedFields"][0]["time"] == (SECOND if did_something else FIRST)


def test_an_update_that_changes_nothing_keeps_the_entries_and_their_times() -> None:
    created = tracked({"spec": {"a": 1}})
    again = tracked({"spec": {"a": 1}}, created, "b", SECOND)
    assert again["metadata"]["managedFields"] == created["metadata"]["managedFields"]


def test_one_manager_has_an_entry_for_each_subresource_and_version() -> None:
    created = tracked({"spec": {"a": 1}})
    status = tracked(
        {"spec": {"a": 1}, "status": {"x": 1}}, created, "a", SECOND, subresource="status", reset=("spec",)
    )
    other = copy.deepcopy(status)
    other["spec"]["b"] = 2
    track_update(other, status, schema=ANY, manager="a", api_version="v2", now=SECOND)
    entries = [(e["manager"], e["apiVersion"], e.get("subresource")) for e in other["metadata"]["managedFields"]]
    assert entries == [("a", "v1", None), ("a", "v1", "status"), ("a", "v2", None)]


def test_fields_that_a_write_has_no_effect_on_are_not_tracked() -> None:
    obj = {"metadata": {"labels": {"a": "b"}, "name": "x"}, "spec": {"a": 1}, "status": {"b": 1}}
    assert owned(tracked(obj, reset=("status",)))["a"] == {
        ("f:metadata", "f:labels"),
        ("f:metadata", "f:labels", "f:a"),
        ("f:spec",),
        ("f:spec", "f:a"),
    }
    assert owned(tracked(obj, reset=("spec", "metadata.labels")))["a"] == {("f:status",), ("f:status", "f:b")}
    assert owned(tracked(obj, reset=("spec", "metadata", "status"))) == {}


def test_an_object_without_managed_fields_does_not_get_them_by_an_update() -> None:
    assert "managedFields" not in tracked({"spec": {"a": 2}}, {"metadata": {"uid": "1"}, "spec": {"a": 1}})["metadata"]


def test_elements_that_share_a_key_are_owned_together() -> None:
    one = {"name": "A", "value": "1"}

    def pod(*env: Any) -> Any:
        return {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": list(env), "resources": {}}]}}}}

    created = tracked(pod(one), schema=DEPLOYMENT)
    twice = tracked(pod(one, {**one, "value": "2"}), created, "b", schema=DEPLOYMENT)
    assert ('k:{"name":"A"}', "f:value") not in {path[-2:] for path in owned(twice)["a"]}
    assert {path[-1] for path in owned(twice)["b"]} == {'k:{"name":"A"}'}
    again = tracked(pod(one), twice, "c", schema=DEPLOYMENT)
    assert {path[-1] for path in owned(again)["c"]} == {'k:{"name":"A"}', "f:name", "f:value"}
    assert "b" not in owned(again)


def test_a_struct_of_go_is_always_there_and_an_empty_list_is_none() -> None:
    old = tracked({"spec": {"paused": True}}, schema=DEPLOYMENT)
    new = tracked(
        {"spec": {"paused": True, "strategy": {}, "template": {"spec": {"containers": [], "volumes": []}}}},
        old,
        "b",
        schema=DEPLOYMENT,
    )
    assert "b" not in owned(new)


def test_times_alone_are_no_change() -> None:
    old = tracked({"spec": {"a": 1}})
    new = copy.deepcopy(old)
    new["metadata"]["managedFields"][0]["time"] = SECOND
    other = copy.deepcopy(new)
    other["spec"]["a"] = 2
    keep_times(new, old)
    keep_times(other, old)
    assert new == old
    assert other["metadata"]["managedFields"][0]["time"] == SECOND


def test_the_name_of_a_manager() -> None:
    assert manager_name("me", "kubectl/1.36") == "me"
    assert manager_name("", "kubectl/1.36 (linux)") == "kubectl"
    assert manager_name("", "a\x00b") == "ab"
    assert manager_name("", "é" * 100) == "é" * 64
    assert tracked({"spec": {"a": 1}}, manager="")["metadata"]["managedFields"][0]["manager"] == "unknown"
