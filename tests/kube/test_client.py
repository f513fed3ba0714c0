"""Reading and writing on the real server: which state a read shows, and what a write changes."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from controlplane.certs import Authority
from pilotage.kube import (
    ANY,
    PODS,
    Absent,
    ApiError,
    Client,
    Conflict,
    Invalid,
    Object,
    ObjectKey,
    Propagation,
    Resource,
    Unavailable,
    exactly,
    json_patch,
    merge_patch,
    not_older_than,
)
from tests.support.kinds import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    config_map,
    deployment,
    existing,
    pod,
)
from tests.support.raw_server import http

KEY = ObjectKey("ns", "x")
BACKGROUND = Propagation.BACKGROUND


def names(objects: list[Object]) -> list[str]:
    return [obj.meta.name for obj in objects]


# Reading from the real server


async def test_a_list_in_chunks_is_of_one_version(client: Client, namespace: str) -> None:
    async def create(name: str) -> Object:
        return await client.create(CONFIG_MAPS, config_map(name, labels={"app": "x"}), namespace=namespace)

    for number in range(7):
        await create(f"x{number}")
        await client.create(CONFIG_MAPS, config_map(f"x{number}-not"), namespace=namespace)
    pages = []
    async for page in client.pages(CONFIG_MAPS, namespace, labels="app=x", chunk=3):
        pages.append(page)
        await create(f"x9{len(pages)}")  # in the middle of it
    assert [names(page.items) for page in pages] == [["x0", "x1", "x2"], ["x3", "x4", "x5"], ["x6"]]
    assert len({page.resource_version for page in pages}) == 1
    whole = await client.list(CONFIG_MAPS, namespace, labels="app=x", chunk=2)
    assert names(whole.items) == [*(f"x{number}" for number in range(7)), "x91", "x92", "x93"]
    assert {obj.kind for obj in whole.items} == {"ConfigMap"}
    assert {obj.api_version for obj in whole.items} == {"v1"}
    unlimited = await client.list(CONFIG_MAPS, namespace, labels="app=x", chunk=0)
    assert [obj.to_dict() for obj in unlimited.items] == [obj.to_dict() for obj in whole.items]


async def test_a_list_is_of_one_namespace_or_of_all_and_of_what_is_selected(client: Client, namespace: str) -> None:
    for name in ("a", "b"):
        await client.create(CONFIG_MAPS, config_map(name, labels={"app": name}), namespace=namespace)
    assert {"a", "b"} <= set(names((await client.list(CONFIG_MAPS, namespace)).items))
    assert names((await client.list(CONFIG_MAPS, namespace, labels="app in (b, c)")).items) == ["b"]
    assert names((await client.list(CONFIG_MAPS, namespace, fields="metadata.name=a")).items) == ["a"]
    assert {obj.meta.namespace for obj in (await client.list(CONFIG_MAPS, namespace)).items} == {namespace}
    assert {obj.meta.namespace for obj in (await client.list(CONFIG_MAPS)).items} >= {namespace, "kube-system"}


async def test_each_read_says_which_state_it_accepts(client: Client, namespace: str) -> None:
    first = await client.create(CONFIG_MAPS, config_map("x", {"a": "1"}), namespace=namespace)
    second = await client.patch(CONFIG_MAPS, first.key, merge_patch({"data": {"a": "2"}}))
    old, new = first.meta.resource_version, second.meta.resource_version

    async def listed(**options: object) -> tuple[str, str]:
        found = await client.list(CONFIG_MAPS, namespace, fields="metadata.name=x", **options)  # type: ignore[arg-type]
        return found.items[0].get("data", "a"), found.resource_version

    assert await listed(version=exactly(old)) == ("1", old)
    assert await listed(version=exactly(new)) == ("2", new)
    value, version = await listed(version=not_older_than(new))
    assert value == "2"
    assert int(version) >= int(new)
    assert (await listed())[0] == "2"
    assert (await listed(version=ANY))[0] in ("1", "2")
    assert (await client.get(CONFIG_MAPS, first.key)).get("data", "a") == "2"
    assert (await client.get(CONFIG_MAPS, first.key, version=not_older_than(new))).get("data", "a") == "2"
    assert (await client.get(CONFIG_MAPS, first.key, version=ANY)).meta.uid == first.meta.uid


async def test_metadata_can_be_had_alone_and_is_never_written_back(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map("x", {"a": "1"}, labels={"app": "x"}), namespace=namespace)
    got = await client.get(CONFIG_MAPS, created.key, metadata_only=True)
    listed = await client.list(CONFIG_MAPS, namespace, labels="app=x", metadata_only=True, chunk=1)
    for partial in (got, *listed.items):
        assert partial.meta == created.meta
        assert set(partial.to_dict()) == {"apiVersion", "kind", "metadata"}
        with pytest.raises(ValueError, match="only its metadata was read"):
            await client.replace(CONFIG_MAPS, partial.to_dict())
    assert (await client.get(CONFIG_MAPS, created.key)).to_dict() == created.to_dict()


async def test_any_path_can_be_read(client: Client) -> None:
    assert await client.get_path("/readyz") == b"ok"
    assert b'"gitVersion"' in await client.get_path("/version")


# Writing to the real server


async def test_a_create_goes_to_the_namespace_that_is_given_or_written(client: Client, namespace: str) -> None:
    given = await client.create(CONFIG_MAPS, config_map("given"), namespace=namespace)
    written = await client.create(CONFIG_MAPS, config_map("written", namespace=namespace))
    assert [obj.key for obj in (given, written)] == [ObjectKey(namespace, "given"), ObjectKey(namespace, "written")]
    generated = await client.create(CONFIG_MAPS, {"metadata": {"generateName": "some-"}}, namespace=namespace)
    assert generated.meta.name.startswith("some-")
    assert generated.meta.uid


async def test_a_replace_is_refused_when_somebody_was_faster(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map("x", {"a": "1"}), namespace=namespace)
    body = created.to_dict()
    body["data"] = {"b": "2"}
    replaced = await client.replace(CONFIG_MAPS, body)
    assert replaced.get("data") == {"b": "2"}
    with pytest.raises(Conflict):
        await client.replace(CONFIG_MAPS, body)


async def test_a_dry_run_is_checked_and_changes_nothing(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map("x", {"a": "1"}), namespace=namespace)
    body = created.to_dict() | {"data": {"a": "2"}}
    answers = [
        await client.create(CONFIG_MAPS, config_map("y"), namespace=namespace, dry_run=True),
        await client.replace(CONFIG_MAPS, body, dry_run=True),
        await client.patch(CONFIG_MAPS, created.key, merge_patch({"data": {"a": "2"}}), dry_run=True),
        await client.patch(
            CONFIG_MAPS, created.key, json_patch([{"op": "replace", "path": "/data/a", "value": "2"}]), dry_run=True
        ),
        await client.apply(CONFIG_MAPS, config_map("x", {"a": "2"}, namespace=namespace), force=True, dry_run=True),
        await client.delete(CONFIG_MAPS, created.key, uid=created.meta.uid, propagation=BACKGROUND, dry_run=True),
    ]
    await client.delete_collection(CONFIG_MAPS, namespace, propagation=BACKGROUND, dry_run=True)
    assert [obj and obj.get("data", default={}).get("a") for obj in answers] == [None, "2", "2", "2", "2", None]
    assert (await client.get(CONFIG_MAPS, created.key)).to_dict() == created.to_dict()
    with pytest.raises(Absent):
        await client.get(CONFIG_MAPS, ObjectKey(namespace, "y"))
    with pytest.raises(Invalid):
        await client.create(CONFIG_MAPS, config_map("Not A Name"), namespace=namespace, dry_run=True)


async def test_the_status_is_written_by_itself(client: Client, namespace: str, widgets: Resource) -> None:
    body = {"metadata": {"name": "x"}, "spec": {"a": 1}, "status": {"ignored": True}}
    created = await client.create(widgets, body, namespace=namespace)
    assert created.get("status") is None
    change = {"spec": {"a": 2}, "status": {"b": 1}}
    patched = await client.patch(widgets, created.key, merge_patch(change), subresource="status")
    assert (patched.get("spec"), patched.get("status")) == ({"a": 1}, {"b": 1})
    replaced = await client.replace(
        widgets, patched.to_dict() | {"spec": {"a": 3}, "status": {"b": 2}}, subresource="status"
    )
    assert (replaced.get("spec"), replaced.get("status")) == ({"a": 1}, {"b": 2})
    replaced = await client.replace(widgets, replaced.to_dict() | {"spec": {"a": 4}, "status": {}})
    assert (replaced.get("spec"), replaced.get("status")) == ({"a": 4}, {"b": 2})
    assert replaced.meta.generation == 2
    applied = await client.apply(
        widgets,
        {"metadata": {"name": "x", "namespace": namespace}, "status": {"c": 3}},
        subresource="status",
        force=True,
    )
    assert applied.get("status") == {"b": 2, "c": 3}
    assert (await client.get(widgets, created.key, subresource="status")).to_dict() == applied.to_dict()


async def test_scaling_changes_the_replicas_and_nothing_else(client: Client, namespace: str) -> None:
    created = await client.create(DEPLOYMENTS, deployment("x", replicas=0), namespace=namespace)
    scale = await client.get(DEPLOYMENTS, created.key, subresource="scale")
    assert (scale.kind, scale.get("spec")) == ("Scale", {})
    await client.scale(DEPLOYMENTS, created.key, 2)
    scaled = await client.get(DEPLOYMENTS, created.key)
    assert scaled.get("spec") == created.get("spec") | {"replicas": 2}


@pytest.mark.usefixtures("own_cluster")
async def test_names_are_quoted(client: Client) -> None:
    name = "pilotage:test ü?#&+"
    async with existing(client, CLUSTER_ROLES, {"metadata": {"name": name}, "rules": []}) as created:
        assert (await client.get(CLUSTER_ROLES, ObjectKey("", name))).meta.uid == created.meta.uid
        patched = await client.patch(CLUSTER_ROLES, created.key, merge_patch({"metadata": {"labels": {"a": "b"}}}))
        assert patched.meta.name == name
        assert names((await client.list(CLUSTER_ROLES, fields=f"metadata.name={name}")).items) == [name]
        async with client.watch(
            CLUSTER_ROLES, resource_version=created.meta.resource_version, fields=f"metadata.name={name}"
        ) as watch:
            assert (await anext(watch)).object.meta.name == name


async def test_an_object_may_be_as_large_as_etcd_takes_it(client: Client, namespace: str, widgets: Resource) -> None:
    data = {str(number): "x" * 100_000 for number in range(12)}
    created = await client.create(widgets, config_map("big", data), namespace=namespace)
    assert len(created.raw) > 1_200_000
    replaced = await client.replace(widgets, created.to_dict() | {"data": data | {"0": "y"}})
    assert replaced.get("data") == data | {"0": "y"}
    with pytest.raises(ApiError):
        await client.create(widgets, config_map("bigger", data | {"a": "x" * 1_900_000}), namespace=namespace)


# Logs: a kubelet of our own, since nothing runs here


@asynccontextmanager
async def kubelet(client: Client, folder: Path, said: bytes) -> AsyncIterator[tuple[str, list[str]]]:
    """A node whose kubelet answers everything with the same words; its name, and the requests it got."""
    requests: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        requests.append(head.decode().splitlines()[0])
        writer.write(http("200 OK", said, content_type="text/plain", connection="close"))
        writer.close()
        await writer.wait_closed()

    pair = Authority.create(folder, "ca").server(folder, "kubelet")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    node = {
        "metadata": {"generateName": "pilotage-test-"},
        "spec": {"unschedulable": True},
        "status": {
            "addresses": [{"type": "Hostname", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": server.sockets[0].getsockname()[1]}},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    async with existing(client, NODES, node) as created:
        yield created.meta.name, requests
    server.close()
    await server.wait_closed()


@pytest.mark.usefixtures("own_cluster")
async def test_logs_are_what_the_kubelet_says(client: Client, namespace_for_pods: str, tmp_path: Path) -> None:
    namespace = namespace_for_pods
    async with kubelet(client, tmp_path, b"hello\nworld\n") as (node, requests):
        body = pod("x")
        body["spec"] |= {"nodeName": node, "containers": [{"name": name, "image": "none"} for name in ("a", "b")]}
        created = await client.create(PODS, body, namespace=namespace)
        assert await client.logs(created.key, container="b") == b"hello\nworld\n"
        assert await client.logs(created.key, container="a", tail_lines=0, previous=True) == b"hello\nworld\n"
        with pytest.raises(Invalid, match="a container name must be specified"):
            await client.logs(created.key)
    with pytest.raises(Unavailable, match=f'"{node}" not found'):  # the node is gone; the pod is not
        await client.logs(created.key, container="a")
    path = f"GET /containerLogs/{namespace}/x"
    assert requests == [f"{path}/b HTTP/1.1", f"{path}/a?previous=true&tailLines=0 HTTP/1.1"]


async def test_a_pod_without_a_node_has_an_empty_log(client: Client, namespace_for_pods: str) -> None:
    namespace = namespace_for_pods
    body = pod("x")
    body["spec"]["schedulingGates"] = [{"name": "example.com/never"}]
    created = await client.create(PODS, body, namespace=namespace)
    assert await client.logs(created.key) == b""
