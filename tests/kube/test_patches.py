"""Patches as they are sent, and their effect on the real server."""

import msgspec
import pytest

from pilotage.kube import (
    Absent,
    Client,
    ClusterConfig,
    Conflict,
    Invalid,
    Json,
    Object,
    ObjectKey,
    apply_patch,
    json_patch,
    merge_patch,
    without_finalizer,
)
from tests.support.kinds import CONFIG_MAPS, config_map, delete

MINE, OTHERS = "example.com/mine", "example.com/others"


def body(patch: tuple[str, bytes]) -> object:
    return msgspec.json.decode(patch[1])


def test_each_kind_of_patch_has_its_content_type() -> None:
    assert merge_patch({"a": None}) == ("application/merge-patch+json", b'{"a":null}')
    assert json_patch([{"op": "remove", "path": "/a"}]) == (
        "application/json-patch+json",
        b'[{"op":"remove","path":"/a"}]',
    )
    assert apply_patch({"kind": "X"}) == ("application/apply-patch+yaml", b'{"kind":"X"}')


def test_a_version_is_put_into_the_metadata_of_a_copy() -> None:
    changes: Json = {"metadata": {"labels": {"a": "b"}}, "spec": {}}
    patch = merge_patch(changes, resource_version="7")
    assert body(patch) == {"metadata": {"labels": {"a": "b"}, "resourceVersion": "7"}, "spec": {}}
    assert changes == {"metadata": {"labels": {"a": "b"}}, "spec": {}}
    assert body(merge_patch({"spec": {}}, resource_version="7")) == {"spec": {}, "metadata": {"resourceVersion": "7"}}


def test_a_finalizer_is_removed_from_exactly_what_was_read() -> None:
    meta = {"name": "x", "uid": "u", "resourceVersion": "7", "finalizers": [MINE, OTHERS, MINE]}
    obj = Object.from_dict({"metadata": meta})
    patch = without_finalizer(obj, MINE)
    assert patch is not None
    assert patch.content_type == "application/merge-patch+json"
    assert body(patch) == {"metadata": {"finalizers": [OTHERS], "uid": "u", "resourceVersion": "7"}}
    assert without_finalizer(obj, "example.com/none") is None


# On the real server


async def test_a_merge_patch_changes_what_it_names(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map("x", {"a": "1", "b": "2"}), namespace=namespace)
    patched = await client.patch(CONFIG_MAPS, created.key, merge_patch({"data": {"a": None, "c": "3"}}))
    assert patched.get("data") == {"b": "2", "c": "3"}
    version = patched.meta.resource_version
    patched = await client.patch(CONFIG_MAPS, created.key, merge_patch({"data": {"d": "4"}}, resource_version=version))
    assert patched.get("data") == {"b": "2", "c": "3", "d": "4"}
    with pytest.raises(Conflict):
        await client.patch(CONFIG_MAPS, created.key, merge_patch({"data": {"d": "5"}}, resource_version=version))


async def test_a_json_patch_is_done_as_a_whole_or_not_at_all(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map("x", {"a": "1"}), namespace=namespace)
    add = {"op": "add", "path": "/data/b", "value": "2"}
    with pytest.raises(Invalid):
        await client.patch(
            CONFIG_MAPS, created.key, json_patch([add, {"op": "test", "path": "/data/a", "value": "other"}])
        )
    assert (await client.get(CONFIG_MAPS, created.key)).get("data") == {"a": "1"}
    patched = await client.patch(
        CONFIG_MAPS, created.key, json_patch([{"op": "test", "path": "/data/a", "value": "1"}, add])
    )
    assert patched.get("data") == {"a": "1", "b": "2"}


async def test_removing_a_finalizer_never_overwrites_what_somebody_else_has_changed(
    client: Client, namespace: str
) -> None:
    read = await client.create(CONFIG_MAPS, config_map("x", finalizers=[MINE]), namespace=namespace)
    await client.patch(CONFIG_MAPS, read.key, merge_patch({"metadata": {"finalizers": [MINE, OTHERS]}}))
    with pytest.raises(Conflict):
        await client.patch(CONFIG_MAPS, read.key, without_finalizer(read, MINE) or merge_patch({}))
    again = await client.get(CONFIG_MAPS, read.key)
    assert again.meta.finalizers == (MINE, OTHERS)
    patched = await client.patch(CONFIG_MAPS, read.key, without_finalizer(again, MINE) or merge_patch({}))
    assert patched.meta.finalizers == (OTHERS,)
    await delete(client, CONFIG_MAPS, patched)
    leaving = await client.get(CONFIG_MAPS, read.key)
    await client.patch(CONFIG_MAPS, read.key, without_finalizer(leaving, OTHERS) or merge_patch({}))
    with pytest.raises(Absent):
        await client.get(CONFIG_MAPS, read.key)


async def test_a_finalizer_is_not_removed_from_the_next_object_of_that_name(client: Client, namespace: str) -> None:
    first = await client.create(CONFIG_MAPS, config_map("x", finalizers=[MINE]), namespace=namespace)
    patch = without_finalizer(first, MINE)
    assert patch is not None
    await delete(client, CONFIG_MAPS, await client.patch(CONFIG_MAPS, first.key, patch))
    second = await client.create(CONFIG_MAPS, config_map("x", finalizers=[MINE]), namespace=namespace)
    with pytest.raises(Conflict):
        await client.patch(CONFIG_MAPS, first.key, patch)
    found = await client.get(CONFIG_MAPS, first.key)
    assert found.to_dict() == second.to_dict()
    await client.patch(CONFIG_MAPS, first.key, without_finalizer(found, MINE) or merge_patch({}))


async def test_server_side_apply_takes_no_field_from_others_unless_forced(
    config: ClusterConfig, client: Client, namespace: str
) -> None:
    def wanted(**data: str) -> Json:
        return {"metadata": {"name": "x", "namespace": namespace}, "data": data}

    async with Client.connect(config, name="other") as other:
        created = await client.apply(CONFIG_MAPS, wanted(a="1", b="1"))
        assert created.get("data") == {"a": "1", "b": "1"}
        with pytest.raises(Conflict) as conflict:
            await other.apply(CONFIG_MAPS, wanted(a="2", c="2"))
        assert conflict.value.reason == "Conflict"
        assert [(cause.reason, cause.message, cause.field) for cause in conflict.value.causes] == [
            ("FieldManagerConflict", 'conflict with "pilotage"', ".data.a")
        ]
        assert str(conflict.value) == (
            f"PATCH /api/v1/namespaces/{namespace}/configmaps/x: "
            'Apply failed with 1 conflict: conflict with "pilotage": .data.a'
        )
        forced = await other.apply(CONFIG_MAPS, wanted(a="2", c="2"), force=True)
        assert forced.get("data") == {"a": "2", "b": "1", "c": "2"}
        # A field that a manager no longer names is removed, unless another still owns it.
        assert (await other.apply(CONFIG_MAPS, wanted(a="2"))).get("data") == {"a": "2", "b": "1"}
        assert (await client.apply(CONFIG_MAPS, wanted(a="2"))).get("data") == {"a": "2"}
    fields = (await client.get(CONFIG_MAPS, ObjectKey(namespace, "x"))).get("metadata", "managedFields")
    assert {each["manager"]: each["operation"] for each in fields} == {"pilotage": "Apply", "other": "Apply"}
