"""Objects over the wire: nothing is lost between what was read and what is sent back."""

import datetime as dt
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.kube import Client, ClusterConfig, Json, Object, ObjectKey, ObjectRef, OwnerReference, Resource
from pilotage.kube.wire import decode_event, decode_list, encode, format_micro_time, format_time, parse_time
from tests.support.kinds import CONFIG_MAPS, config_map

# As JSON has it: a surrogate alone is no character, and no number is infinite.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
anything = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
labels = st.dictionaries(texts, texts, max_size=3)
owners = st.fixed_dictionaries(
    {"apiVersion": texts, "kind": texts, "name": texts, "uid": texts},
    optional={"controller": st.booleans(), "blockOwnerDeletion": st.booleans()},
)
metadata = st.builds(
    lambda known, unknown: unknown | known,
    st.fixed_dictionaries(
        {},
        optional={
            "name": texts,
            "namespace": texts,
            "uid": texts,
            "resourceVersion": texts,
            "generation": st.integers(0, 2**63 - 1),
            "labels": labels,
            "annotations": labels,
            "finalizers": st.lists(texts, max_size=3),
            "ownerReferences": st.lists(owners, max_size=2),
            "deletionTimestamp": texts,
            "managedFields": anything,
        },
    ),
    st.dictionaries(texts, anything, max_size=2),
)
objects = st.builds(
    lambda known, unknown: unknown | known,
    st.fixed_dictionaries({}, optional={"apiVersion": texts, "kind": texts, "metadata": metadata}),
    st.dictionaries(texts, anything, max_size=4),
)


@given(objects)
def test_an_object_is_as_it_was_after_reading_it(body: Json) -> None:
    obj = Object.decode(encode(body))
    assert obj.to_dict() == body
    assert obj.api_version == body.get("apiVersion", "")
    meta = body.get("metadata", {})
    assert obj.key == ObjectKey(meta.get("namespace", ""), meta.get("name", ""))
    assert list(obj.meta.finalizers) == meta.get("finalizers", [])
    assert obj.meta.labels == meta.get("labels", {})


@given(st.lists(objects, max_size=3))
def test_a_list_gives_its_kind_to_items_that_have_none(bodies: list[Json]) -> None:
    listed = decode_list(encode({"apiVersion": "v1", "kind": "ThingList", "metadata": {}, "items": bodies}))
    own = [{"apiVersion": "v1", "kind": "Thing"} | body for body in bodies]
    assert [obj.to_dict() for obj in listed.items] == own


@given(objects, texts)
def test_an_event_carries_its_object_untouched(body: Json, type_: str) -> None:
    decoded, obj = decode_event(encode({"type": type_, "object": body}))
    assert decoded == type_
    assert obj.to_dict() == body


POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "x",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "deletionTimestamp": "2026-01-02T03:05:05Z",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "b", "uid": "2", "controller": True},
        ],
    },
    "spec": {"containers": [{"name": "main"}], "nodeName": None},
}


def test_metadata_is_typed_and_the_rest_is_there_when_asked_for() -> None:
    pod = Object.from_dict(POD)
    assert pod.ref == ObjectRef("v1", "Pod", "ns", "x", "u")
    assert pod.meta.terminating
    assert pod.meta.controller == OwnerReference("apps/v1", "ReplicaSet", "b", "2", controller=True)
    assert pod.get("spec", "containers") == [{"name": "main"}]
    assert pod.get("spec", "nodeName") is None
    assert pod.get("spec", "hostname", default="none") == "none"
    assert pod.get("spec", "containers", "name", default="none") == "none"
    assert repr(pod) == "<pod/x -n ns uid=u rv=7>"


def test_an_object_that_owns_itself_has_no_controller() -> None:
    obj = Object.from_dict({"metadata": {"name": "x"}})
    assert obj.meta.controller is None
    assert not obj.meta.terminating


def test_what_was_read_cannot_be_changed_in_place() -> None:
    pod = Object.from_dict(POD)
    with pytest.raises(AttributeError):
        pod.meta.name = "y"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        pod.kind = "Y"  # type: ignore[misc]
    pod.to_dict()["spec"].clear()
    assert pod.to_dict() == POD


def test_a_type_of_ones_own_names_only_what_it_needs() -> None:
    class Spec(msgspec.Struct):
        containers: list[dict[str, str]]

    class JustSpec(msgspec.Struct):
        spec: Spec

    assert Object.from_dict(POD).decode_as(JustSpec).spec.containers == [{"name": "main"}]


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"name": "x", "labels": None, "finalizers": None, "generation": None}},
        {"apiVersion": None, "kind": None, "metadata": {"name": "x"}},
        {"metadata": {"name": "x", "creationTimestamp": None, "ownerReferences": None}},
    ],
    ids=str,
)
def test_null_is_as_good_as_absent(body: Json) -> None:
    obj = Object.decode(encode(body), "v1", "Pod")
    assert (obj.key, obj.kind, obj.meta.labels, obj.meta.finalizers) == (ObjectKey("", "x"), "Pod", {}, ())
    assert obj.to_dict() == {"apiVersion": "v1", "kind": "Pod"} | body


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b'"x"', b'{"metadata": {"name": 5}}', b'{"kind": "\xff"}'])
def test_what_is_no_object_is_an_error(raw: bytes) -> None:
    with pytest.raises(ValueError):
        Object.decode(raw)


def test_a_list_may_be_empty_and_say_so_with_null() -> None:
    assert decode_list(b'{"kind": "PodList", "metadata": {"resourceVersion": "3"}, "items": null}').items == []
    listed = decode_list(
        b'{"metadata": {"resourceVersion": "3", "continue": "next", "remainingItemCount": 5}, "items": []}'
    )
    assert (listed.resource_version, listed.continue_token, listed.remaining) == ("3", "next", 5)


def test_an_item_does_not_keep_the_whole_answer_alive() -> None:
    listed = decode_list(encode({"items": [{"metadata": {"name": "x"}}, {"metadata": {"name": "y" * 1000}}]}))
    assert isinstance(listed.items[0].raw, bytes)
    assert len(listed.items[0].raw) < 100


offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
moments = st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2200, 1, 1), timezones=offsets)


@given(moments)
def test_times_are_utc_and_lose_no_more_than_their_format(moment: dt.datetime) -> None:
    assert parse_time(format_micro_time(moment)) == moment
    assert parse_time(format_time(moment)) == moment.replace(microsecond=0)
    assert format_time(moment).endswith("Z")


def test_times_of_the_api_are_read() -> None:
    noon = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)
    for text in ("2026-01-02T12:00:00Z", "2026-01-02T12:00:00.000000Z", "2026-01-02T13:00:00+01:00"):
        assert parse_time(text) == noon
    assert parse_time("2026-01-02T12:00:00.123456789Z") == noon.replace(microsecond=123456)


# On the real server: the fields that it keeps, a replace by us keeps as well.

STRANGE: dict[str, Any] = {
    "null": None,
    "nulls": [None, {"inner": None}, []],
    "empty": {},
    "": "no name",
    "number": 1.5,
    "large": 2**53 + 1,
    "text": 'quotes " and \\ and \u2028 and 🚢',
    "deep": {"a": {"b": {"c": [[[{"d": None}]]]}}},
}


async def test_a_replace_of_what_was_read_loses_nothing(
    config: ClusterConfig, client: Client, namespace: str, widgets: Resource
) -> None:
    key = ObjectKey(namespace, "x")
    await client.create(widgets, {"metadata": {"name": "x"}, "spec": STRANGE}, namespace=namespace)
    async with Client.connect(config, name="other") as other:
        await other.apply(widgets, {"metadata": {"name": "x", "namespace": namespace, "annotations": {"a": "b"}}})
    read = await client.get(widgets, key)
    body = read.to_dict()
    assert body["spec"] == STRANGE
    assert len(body["metadata"]["managedFields"]) == 2
    replaced = await client.replace(widgets, body)
    assert replaced.to_dict() == body  # not even the version: nothing has changed
    body["spec"]["more"] = 1
    replaced = await client.replace(widgets, body)
    listed = (await client.list(widgets, namespace)).items[0]
    assert replaced.to_dict()["spec"] == STRANGE | {"more": 1}
    assert listed.to_dict() == replaced.to_dict()
    managers = {entry["manager"] for entry in replaced.to_dict()["metadata"]["managedFields"]}
    assert managers == {"pilotage", "other"}


async def test_fields_that_a_builtin_kind_does_not_know_are_dropped_by_the_server_not_by_us(
    client: Client, namespace: str
) -> None:
    created = await client.create(CONFIG_MAPS, config_map("x") | {"unknown": {"a": 1}}, namespace=namespace)
    assert "unknown" not in created.to_dict()


OBJECT = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"7"},"data":{"b":"}}"}}'
LINES = {
    "as the API server writes it": b'{"type":"MODIFIED","object":%s}' % OBJECT,
    "in another order": b'{"object":%s,"type":"MODIFIED"}' % OBJECT,
    "with spaces": b'{ "type": "MODIFIED", "object": %s }' % OBJECT,
    "with more fields": b'{"type":"MODIFIED","object":%s,"more":{}}' % OBJECT,
}


@pytest.mark.parametrize("how", LINES)
def test_an_event_is_the_same_however_it_is_written(how):
    type_, obj = decode_event(LINES[how])
    assert (type_, obj.key.name, obj.meta.resource_version, obj.kind) == ("MODIFIED", "a", "7", "ConfigMap")
    assert obj.raw == OBJECT


def test_an_event_with_nulls_where_the_api_server_leaves_fields_out():
    _, obj = decode_event(b'{"type":"ADDED","object":{"kind":"X","metadata":{"name":"a","labels":null}}}')
    assert (obj.key.name, obj.meta.labels) == ("a", {})
