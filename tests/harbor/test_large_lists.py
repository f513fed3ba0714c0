"""Large lists: others are answered in between, and the answer is consistent all the same."""

import asyncio
import json

import pytest
import yaml

from pilotage_harbor.apimachinery.calls import Call, ServerResponse, whole
from pilotage_harbor.apimachinery.users import LOOPBACK
from pilotage_harbor.verbs.lists import PIECE_ENTRIES
from tests.harbor.test_by_passes import ask, harbor

__all__ = ["harbor"]

SECRETS = "/api/v1/namespaces/x/secrets"
COUNT = 2 * PIECE_ENTRIES + 200
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@pytest.fixture
async def full(harbor):
    """Harbor with many Secrets, every other one with a label."""
    kind = harbor.core.registry.storage("secrets")
    for at in range(COUNT):
        meta = {"name": f"s{at:05}", "namespace": "x", "uid": harbor.core.uid(), "creationTimestamp": None}
        meta["labels"] = {"odd": str(at % 2)}
        harbor.core.put(kind, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque"})
    return harbor


def call(path=SECRETS, method="GET", accept="application/json", **query):
    options = {name: [value] for name, value in query.items()}
    return Call(method, path, options, {"accept": accept}, b"", LOOPBACK)


async def everything(harbor, asked):
    return await whole(await harbor.handle(asked))


ASKED = {
    "list": call(),
    "table": call(accept=TABLE),
    "metadata": call(accept=METADATA),
    "yaml": call(accept="application/yaml"),
    "labels": call(labelSelector="odd=2"),
    "fields": call(fieldSelector="type=Other"),
    "limit": call(labelSelector="odd=2", limit="5"),
    "deletion": call(method="DELETE"),
}


@pytest.mark.parametrize("asked", ASKED)
async def test_others_are_answered_in_between(full, asked):
    large = asyncio.create_task(everything(full, ASKED[asked]))
    other = asyncio.create_task(ask(full, "GET", "/api/v1/namespaces/x"))
    ended = []
    for task in (large, other):
        task.add_done_callback(ended.append)
    assert [answer.status for answer in await asyncio.gather(large, other)] == [200, 200]
    assert ended == [other, large]


async def test_a_list_is_of_the_moment_when_it_began(full):
    listing = await full.handle(call())
    first = await listing.chunks()
    for at in range(COUNT):
        if at % 3 == 0:
            assert (await ask(full, "DELETE", f"{SECRETS}/s{at:05}")).status == 200
    await ask(full, "POST", SECRETS, {"metadata": {"name": "s99999"}})
    rest = await whole(listing)
    body = json.loads(b"".join(first) + rest.body)
    assert [item["metadata"]["name"] for item in body["items"]] == [f"s{at:05}" for at in range(COUNT)]
    assert all(
        int(item["metadata"]["resourceVersion"]) <= int(body["metadata"]["resourceVersion"]) for item in body["items"]
    )


@pytest.mark.parametrize("accept", ["application/json", TABLE, METADATA, "application/yaml"])
async def test_a_list_in_pieces_says_what_one_in_chunks_does(full, accept):
    assert not isinstance(await full.handle(call(accept=accept)), ServerResponse)
    at_once = yaml.safe_load if accept.endswith("yaml") else json.loads
    large = at_once((await everything(full, call(accept=accept))).body)
    items, token = [], ""
    while True:
        chunk = at_once(
            (await everything(full, call(accept=accept, limit="100", **({"continue": token} if token else {})))).body
        )
        items += chunk.get("rows", chunk.get("items"))
        token = chunk["metadata"].get("continue", "")
        if not token:
            break
    assert large.get("rows", large.get("items")) == items
    assert {name: large[name] for name in ("kind", "apiVersion")} == {
        name: chunk[name] for name in ("kind", "apiVersion")
    }
    assert large.get("columnDefinitions") == chunk.get("columnDefinitions")


async def test_a_watch_begins_in_pieces_and_then_says_what_happened_meanwhile(full):
    watch = await full.handle(call(watch="true", resourceVersion="0"))
    lines = await watch.chunks()
    assert len(lines) < COUNT
    await ask(full, "DELETE", f"{SECRETS}/s00000")
    await ask(full, "DELETE", f"{SECRETS}/s{COUNT - 1:05}")
    while len(lines) < COUNT + 2:
        lines += await watch.chunks()
    seen = [(event["type"], event["object"]["metadata"]["name"]) for event in map(json.loads, lines)]
    assert seen[:COUNT] == [("ADDED", f"s{at:05}") for at in range(COUNT)]
    assert seen[COUNT:] == [("DELETED", "s00000"), ("DELETED", f"s{COUNT - 1:05}")]
    watch.close()


async def test_the_mark_at_the_end_of_what_is_there_has_the_version_of_its_beginning(full):
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    watch = await full.handle(call(watch="true", **options))
    version = full.core.store.version
    await ask(full, "DELETE", f"{SECRETS}/s00000")
    lines = []
    while len(lines) < COUNT + 2:
        lines += await watch.chunks()
    mark, after = map(json.loads, lines[-2:])
    assert (mark["type"], mark["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", str(version))
    assert after["type"] == "DELETED"
    watch.close()


async def turns_until_gone(harbor, path):
    """Number of turns that other requests got until the object was gone."""
    turns = 0
    async with asyncio.timeout(60):
        while (await ask(harbor, "GET", path)).status != 404:
            turns += 1
            await asyncio.sleep(0)
    return turns


async def test_others_are_answered_while_a_namespace_is_emptied(full):
    await ask(full, "DELETE", "/api/v1/namespaces/x")
    assert await turns_until_gone(full, "/api/v1/namespaces/x") > COUNT / 100
    assert full.core.store.count("secrets") == 0


async def test_others_are_answered_while_what_an_owner_leaves_is_collected(full):
    owner = json.loads((await ask(full, "POST", "/api/v1/namespaces/x/configmaps", {"metadata": {"name": "o"}})).body)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": owner["metadata"]["uid"]}
    kind = full.core.registry.storage("secrets")
    for entry in full.core.store.entries("secrets").first():
        secret = full.core.get("secrets", entry.namespace, entry.name)
        secret["metadata"]["ownerReferences"] = [reference]
        full.core.put(kind, secret)
    await ask(full, "DELETE", "/api/v1/namespaces/x/configmaps/o")
    assert await turns_until_gone(full, f"{SECRETS}/s{COUNT - 1:05}") > COUNT / 100
