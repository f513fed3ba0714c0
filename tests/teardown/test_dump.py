"""A world from files: every shape that kubectl prints is read, and any other input gets a clear message."""

import datetime as dt
import io
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane import Access
from pilotage.kube import Client, Discovery, GroupKind, Json, Resource, load_config
from pilotage.teardown.snapshot.dump import DumpError, load_dump, manifests
from pilotage.teardown.snapshot.gather import gather
from pilotage.teardown.snapshot.world import Name, State, World
from tests.support.kinds import CONFIG_MAPS, DEPLOYMENTS, SERVICES, config_map, definition, deployment

POD = GroupKind("", "Pod")
WIDGET = Resource("example.com", "v1", "widgetry", "Widget")


@pytest.fixture
async def client(cluster: Access) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as connected:
        yield connected


def pod(name: str, uid: str = "", **metadata: Any) -> Json:
    identity = {"uid": uid} if uid else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", **identity, **metadata}}


def write(folder: Path, text: str | bytes, name: str = "dump.yaml") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def world(folder: Path, text: str | bytes, name: str = "dump.yaml") -> World:
    return load_dump([write(folder, text, name)])


def names(loaded: World) -> list[str]:
    return sorted(item.meta.name for item in loaded)


# Formats that kubectl prints


async def test_what_kubectl_gets_is_the_world_that_is_gathered(
    client: Client, cluster: Access, namespace: str, tmp_path: Path
) -> None:
    await client.create(
        CONFIG_MAPS, config_map("a", {"time": "2026-01-02T03:04:05Z", "no": "off"}), namespace=namespace
    )
    await client.create(DEPLOYMENTS, deployment("web", replicas=0), namespace=namespace)
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    await client.create(SERVICES, service, namespace=namespace)
    kinds = {GroupKind("", "ConfigMap"), GroupKind("", "Service"), GroupKind("apps", "Deployment")}

    async def live() -> World:
        return await gather(client, Discovery(client), namespaces=[namespace], kinds=kinds, full=kinds)

    def content(some: World) -> dict[str, Json]:
        return {item.uid: item.read() for item in some}

    get = ("get", "configmap,service,deployment", "-n", namespace, "--show-managed-fields", "-o")
    for form in ("yaml", "json"):
        gathered = await live()
        while True:  # the controllers may still be at work
            dumped = world(tmp_path, cluster.kubectl(*get, form), f"dump.{form}")
            again = await live()
            if content(again) == content(gathered):
                break
            gathered = again
        assert content(dumped) == content(gathered)
        assert {kind: reading.resource for kind, reading in dumped.kinds.items()} == {
            kind: reading.resource for kind, reading in gathered.kinds.items()
        }
        assert dumped.namespaces == gathered.namespaces
        assert all(item.full for item in dumped)
        assert not dumped.live
        absent = Name("", "Service", namespace, "x")
        assert dumped.state(absent, "u") == gathered.state(absent, "u") == State.GONE


def test_a_folder_of_cluster_info_dump_is_read_but_for_its_logs(
    cluster: Access, namespace: str, tmp_path: Path
) -> None:
    cluster.request("POST", f"/api/v1/namespaces/{namespace}/services", {
        "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]},
    })  # fmt: skip
    for form in ("json", "yaml"):
        folder = tmp_path / form
        cluster.kubectl(
            "cluster-info", "dump", "-o", form, "--namespaces", namespace, "--output-directory", str(folder)
        )
        write(folder, "=== logs: not: an [object", "n/pod/logs.txt")
        loaded = load_dump([folder])
        assert "web" in [item.meta.name for item in loaded.of("", "Service")]
        assert loaded.of("", "Node")
        assert loaded.problem("", "Pod") == ""  # there are none: an empty list says so
        assert loaded.problem("", "Secret") == "it is not in the dump"


ONE = yaml.safe_dump(pod("a", "1"))
LIST: Json = {"apiVersion": "v1", "kind": "List", "items": [pod("a", "1"), pod("b", "2")]}
TYPED_ITEMS = [{"metadata": {"name": name, "namespace": "shop", "uid": name}} for name in "ab"]
TYPED = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "5"}, "items": TYPED_ITEMS}
SHAPES: dict[str, tuple[str | bytes, list[str]]] = {
    "one object": (ONE, ["a"]),
    "one object as JSON": (json.dumps(pod("a", "1"), indent=4), ["a"]),
    "a List": (yaml.safe_dump(LIST), ["a", "b"]),
    "a List as JSON": (json.dumps(LIST), ["a", "b"]),
    "a typed list": (yaml.safe_dump(TYPED), ["a", "b"]),
    "a typed list as JSON": (json.dumps(TYPED), ["a", "b"]),
    "a List in a List": (json.dumps({"apiVersion": "v1", "kind": "List", "items": [TYPED]}), ["a", "b"]),
    "an array, as jq makes it": (json.dumps(LIST["items"]), ["a", "b"]),
    "several documents": (f"# comment\n---\n{ONE}---\n---\n{yaml.safe_dump(pod('b', '2'))}...\n", ["a", "b"]),
    "several JSON documents": (json.dumps(pod("a", "1")) + "\n" + json.dumps(pod("b", "2"), indent=1), ["a", "b"]),
    "YAML that begins with a brace": ("{apiVersion: v1, kind: Pod, metadata: {name: a}}", ["a"]),
    "with a byte order mark": (b"\xef\xbb\xbf" + ONE.encode(), ["a"]),
    "from PowerShell": (ONE.encode("utf-16"), ["a"]),
    "with Windows' line ends": (ONE.replace("\n", "\r\n"), ["a"]),
    "with anchors": (f"{ONE}  labels: &l {{x: z}}\n  annotations:\n    <<: *l\n", ["a"]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_read(shape: str, tmp_path: Path) -> None:
    text, expected = SHAPES[shape]
    loaded = world(tmp_path, text)
    assert names(loaded) == expected
    assert set(loaded.kinds) == {POD}
    for item in loaded:
        assert item.read()["kind"] == "Pod"
        assert item.read()["apiVersion"] == "v1"


def test_several_files_and_stdin_make_one_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path, yaml.safe_dump(pod("a", "1")), "a.yaml")
    write(tmp_path, json.dumps(pod("b", "2")), "folder/deep/b.json")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(yaml.safe_dump(pod("c", "3")).encode())))
    assert names(load_dump([first, tmp_path / "folder", "-"])) == ["a", "b", "c"]


def test_values_mean_what_they_mean_to_kubectl(tmp_path: Path) -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  creationTimestamp: 2026-01-02T03:04:05Z\nspec:\n"
        "  time: 2026-01-02T03:04:05Z\n  date: 2026-01-02\n  yes: yes\n  text: 'yes'\n  octal: 0644\n  hex: 0x1F\n"
        "  ratio: 0.5\n  exp: 1e3\n  clock: 12:30\n  none: ~\n  empty:\n  version: 1.2.3\n"
        "  block: |\n    on\n  7: seven\n"
        "  tagged: !!str 5\n  huge: 123456789012345678901234567890\n  nan: .nan\n"
    )
    [item] = world(tmp_path, text)
    assert item.meta.creation_timestamp == "2026-01-02T03:04:05Z"
    assert item.read()["spec"] == {
        "time": "2026-01-02T03:04:05Z",
        "date": "2026-01-02",
        "true": True,
        "text": "yes",
        "octal": 0o644,
        "hex": 31,
        "ratio": 0.5,
        "exp": 1000,
        "clock": "12:30",
        "empty": None,
        "version": "1.2.3",
        "block": "on\n",
        "7": "seven",
        "tagged": "5",
        "huge": float("123456789012345678901234567890"),
        "nan": ".nan",
        "none": None,
    }


def test_objects_without_a_uid_get_one_that_shows_it(tmp_path: Path) -> None:
    loaded = world(tmp_path, yaml.safe_dump_all([pod("a"), pod("b"), pod("a")]))
    assert sorted(item.uid for item in loaded) == ["?Pod/shop/a", "?Pod/shop/b"]
    assert all(item.read()["metadata"]["uid"] == item.uid for item in loaded)


def test_of_two_readings_the_newer_counts(tmp_path: Path) -> None:
    old, new = pod("a", "1", resourceVersion="9"), pod("a", "1", resourceVersion="10", labels={"new": "yes"})
    for documents in ([old, new], [new, old]):
        [item] = world(tmp_path, yaml.safe_dump_all(documents))
        assert item.meta.labels == {"new": "yes"}


def test_kinds_are_known_by_their_definition_or_guessed(tmp_path: Path) -> None:
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"} | definition(WIDGET)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    others = [
        {"apiVersion": api, "kind": kind, "metadata": {"name": "x"} | ({"namespace": "shop"} if namespaced else {})}
        for api, kind, namespaced in (
            ("networking.k8s.io/v1", "NetworkPolicy", True),
            ("networking.k8s.io/v1", "Ingress", True),
            ("gateway.networking.k8s.io/v1", "Gateway", True),
            ("v1", "Endpoints", True),
            ("v1", "Node", False),
        )
    ]
    loaded = world(tmp_path, yaml.safe_dump_all([widget, crd, *others]))
    resources = {str(reading.resource): reading.resource.namespaced for reading in loaded.kinds.values()}
    assert resources == {
        "widgetry.example.com": True,
        "customresourcedefinitions.apiextensions.k8s.io": False,
        "networkpolicies.networking.k8s.io": True,
        "ingresses.networking.k8s.io": True,
        "gateways.gateway.networking.k8s.io": True,
        "endpoints": True,
        "nodes": False,
    }


def test_what_is_not_in_a_dump_is_unknown(tmp_path: Path) -> None:
    loaded = world(tmp_path, json.dumps(TYPED))
    assert loaded.kinds[POD].resource_version == "5"
    assert loaded.state(Name("", "Pod", "shop", "c"), "u") == State.GONE
    assert loaded.state(Name("", "Pod", "elsewhere", "c"), "u") == State.UNKNOWN
    assert loaded.state(Name("", "Secret", "shop", "c"), "u") == State.UNKNOWN


# When it was taken


def lease(renewed: str) -> Json:
    body = pod("l", "9")
    return body | {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"renewTime": renewed}}


CREATED = "2026-03-01T10:00:00Z"


@pytest.mark.parametrize(
    ("renewed", "file_time", "taken"),
    [
        (None, "2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z"),  # all was quiet for two hours
        ("2026-03-01T11:59:50.000000Z", "2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z"),
        ("2026-03-01T11:59:50.000000Z", "2026-03-04T12:00:00Z", "2026-03-01T11:59:50Z"),  # a copy, made later
        ("2026-03-01T12:00:20.000000Z", "2026-03-01T12:00:00Z", "2026-03-01T12:00:20Z"),  # clocks differ a little
        ("2099-03-01T12:00:20.000000Z", "2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z"),  # a time in the future
    ],
)
def test_time_is_when_the_dump_was_taken(renewed: str | None, file_time: str, taken: str, tmp_path: Path) -> None:
    objects = [pod("a", "1", creationTimestamp=CREATED, deletionTimestamp="2026-03-01T13:00:00Z")]
    file = write(tmp_path, yaml.safe_dump_all(objects + ([lease(renewed)] if renewed else [])))
    stamp = dt.datetime.fromisoformat(file_time).timestamp()
    os.utime(file, (stamp, stamp))
    assert load_dump([file]).now == dt.datetime.fromisoformat(taken)
    given = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    assert load_dump([file], now=given).now == given


# Invalid input

BROKEN: dict[str, tuple[str | bytes, str]] = {
    "nothing": (b"", "dump.yaml: it is empty. Give one with at least one object."),
    "blanks": ("\n  \n", "dump.yaml: it is empty. Give one with at least one object."),
    "comments alone": ("# nothing\n---\n", "dump.yaml: there is no object in it."),
    "binary": (b"\x1f\x8b\x08\x00\xff\xfe\x00", "dump.yaml: this is not text; objects are wanted as YAML or JSON."),
    "a table": (
        "NAME   READY   STATUS    RESTARTS   AGE\nweb    1/1     Running   0          3d\n",
        "dump.yaml: this is a table of kubectl; get the objects with -o yaml.",
    ),
    "a wide table": (
        "NAMESPACE     NAME    READY   UP-TO-DATE   AVAILABLE\nx y 1 2 3\n",
        "dump.yaml: this is a table of kubectl; get the objects with -o yaml.",
    ),
    "a description": (
        "Name:         web\nNamespace:    default\n",
        "dump.yaml: this is what kubectl describe prints; get the objects with `kubectl get -o yaml`.",
    ),
    "a complaint": (
        'Error from server (NotFound): pods "x" not found\n',
        'dump.yaml: this is a message of kubectl, and no object: Error from server (NotFound): pods "x" not found',
    ),
    "no mapping": ("- 1\n- 2\n", "dump.yaml, item 1: this is not an object, but 1."),
    "a word": ("hello\n", 'dump.yaml: this is not an object, but "hello".'),
    "no kind": (
        "apiVersion: v1\nmetadata: {name: a}\n",
        "dump.yaml: there is no kind; objects are wanted as `kubectl get -o yaml` prints them.",
    ),
    "no apiVersion": (f"{ONE}---\nkind: Pod\nmetadata: {{name: a}}\n", "dump.yaml, line 7: the Pod has no apiVersion."),
    "no name": ("apiVersion: v1\nkind: Pod\n", "dump.yaml: the Pod has no metadata.name."),
    "a bad item": (
        yaml.safe_dump({"kind": "List", "apiVersion": "v1", "items": [pod("a"), {"kind": "Pod"}]}),
        "dump.yaml, item 2: the Pod has no apiVersion.",
    ),
    "an error of the server": (
        json.dumps({"kind": "Status", "apiVersion": "v1", "message": "no"}),
        'dump.yaml: this is an error of the API server, and no object: "no".',
    ),
    "a table of the API": (
        json.dumps({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "rows": []}),
        "dump.yaml: this is a table; get the objects with -o yaml.",
    ),
    "metadata of what?": (
        json.dumps({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": [{}]}),
        "dump.yaml: this is the metadata of objects of an unknown kind; get them with -o yaml.",
    ),
    "no YAML": ("apiVersion: v1\nkind: [Pod\nmetadata: {}\n", "dump.yaml, line 3: this is not YAML ("),
    "a tab": ("apiVersion: v1\n\tkind: Pod\n", "dump.yaml, line 2: this is not YAML ("),
    "wrong types": ("apiVersion: v1\nkind: 7\n", "dump.yaml: this is not an object of Kubernetes (Expected `str"),
    "wrong metadata": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: [b]}\n",
        "dump.yaml: the metadata of the Pod is not as Kubernetes has it (Expected `object`, got `array`",
    ),
    "too deep": ("a: " + "[" * 5000, "dump.yaml, line 1: it is nested too deeply."),
    "too deep as JSON": ("[" * 100_000, "dump.yaml: this JSON cannot be read ("),
    "aliases that explode": (
        "l0: &l0 {x: 1}\n" + "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 30)),
        "dump.yaml, line 7: its aliases stand for too much.",
    ),
    "aliases of a long text": (
        f"apiVersion: v1\nkind: Pod\nl0: &l0 {'x' * 100_000}\nl1:\n" + "- *l0\n" * 200,
        "dump.yaml, line 172: its aliases stand for too much.",
    ),
    "an alias of itself": ("a: &a [*a]\n", "dump.yaml, line 1: *a stands for nothing that was complete before it."),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_cannot_be_read_is_said_in_one_sentence(broken: str, tmp_path: Path) -> None:
    text, expected = BROKEN[broken]
    file = write(tmp_path, text)
    for read in (load_dump, manifests):
        with pytest.raises(DumpError) as raised:
            read([file])
        message = str(raised.value).removeprefix(f"{tmp_path}/")
        assert message.startswith(expected)
        assert "\n" not in message


def test_json_that_is_none_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"dump\.json, line 3: this is not JSON \(Expecting ',' delimiter\)\.$"):
        world(tmp_path, '{"kind": "Pod",\n "apiVersion": "v1"\n "metadata": {}}', "dump.json")


def test_files_that_are_not_there_and_folders_without_any(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"nowhere\.yaml: it cannot be read \(No such file or directory\)\. Correct"):
        load_dump([tmp_path / "nowhere.yaml"])
    with pytest.raises(DumpError, match=r"the folder has no files that end in \.json, \.yaml, \.yml\.$"):
        load_dump([tmp_path])
    with pytest.raises(DumpError, match="No file was given"):
        load_dump([])


def test_manifests_are_documents_with_lists_taken_apart(tmp_path: Path) -> None:
    file = write(tmp_path, yaml.safe_dump_all([LIST, {**pod("x"), "metadata": {"generateName": "x-"}}]))
    documents = manifests([file])
    assert documents == [*LIST["items"], {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}}]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
metadata = st.fixed_dictionaries(
    {},
    optional={
        name: st.text(max_size=4) | anything
        for name in ("name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences", "finalizers")
    },
)
object_like = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from(["v1", "apps/v1", "a/b/c", ""]) | anything,
        "kind": st.sampled_from(["Pod", "PodList", "List", "CustomResourceDefinition", "Table"]) | anything,
        "metadata": metadata | anything,
        "spec": anything,
    },
)
with_items = st.builds(lambda outer, items: outer | {"items": items}, object_like, st.lists(object_like | anything))
texts = (
    st.binary(max_size=200)
    | st.text(alphabet="{}[]:,-'\"&*!|>#%@`? \n\tab01<", max_size=60).map(str.encode)
    | (object_like | with_items | anything).map(lambda value: yaml.safe_dump(value, allow_unicode=True).encode())
    | (object_like | with_items | anything).map(lambda value: json.dumps(value).encode())
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(texts, min_size=1, max_size=2))
def test_any_bytes_are_a_world_or_a_clear_error(tmp_path: Path, contents: list[bytes]) -> None:
    files = [write(tmp_path, content, f"{n}.yaml") for n, content in enumerate(contents)]
    try:
        loaded = load_dump(files)
    except DumpError as error:
        message = str(error)
    else:
        message = f"{tmp_path}: it is fine"
        check(loaded)
    assert message.startswith(str(tmp_path))


def check(loaded: World) -> None:
    for item in loaded:
        assert item.uid
        assert loaded.body(item) == item.read()
        assert loaded.get(item.uid) is item
        assert item.group_kind in loaded.kinds
