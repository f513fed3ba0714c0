"""Watches: whole events in order, whatever the network does to the bytes; and every end of one has its own meaning."""

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane import Cluster
from pilotage.kube import (
    ApiError,
    Client,
    ClusterConfig,
    Expired,
    Forbidden,
    Resource,
    Throttled,
    Unavailable,
    Watch,
    load_config,
    merge_patch,
)
from pilotage.kube.transport import TransportError
from pilotage_sim.loop import VirtualTimeLoop, virtual
from tests.support.kinds import CONFIG_MAPS, config_map, delete
from tests.support.raw_server import chunked, raw_server
from tests.support.tcp_proxy import TcpProxy
from tests.support.transports import MemoryResponse, ScriptedTransport, answer
from tests.virtual_time import run_warp, warp


def line(type_: str, body: Any) -> bytes:
    return msgspec.json.encode({"type": type_, "object": body}) + b"\n"


def added(name: str, version: int = 1) -> bytes:
    return line("ADDED", {"metadata": {"name": name, "resourceVersion": str(version)}})


def watch_of(response: MemoryResponse | TransportError | None, **options: Any) -> Watch:
    return Client(ScriptedTransport(response)).watch(CONFIG_MAPS, "ns", resource_version="1", **options)


async def names_and_end(watch: Watch) -> tuple[list[str], ApiError | None]:
    """Names in the events that came, and how the watch ended."""
    came: list[str] = []
    try:
        async with watch:
            async for event in watch:
                came.append(event.object.meta.name)
    except ApiError as error:
        return came, error
    return came, None


# Without a network


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[str], list[bytes]]:
    """Names of objects, and their events as bytes in pieces: cut anywhere, within characters and line ends, too."""
    sent = draw(st.lists(st.text(max_size=20), max_size=8))
    empty_lines = draw(st.lists(st.booleans(), min_size=len(sent), max_size=len(sent)))
    raw = b"".join(added(name) + b"\n" * empty for name, empty in zip(sent, empty_lines, strict=True))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(raw) - 1)), max_size=30)))
    edges = [0, *cuts, len(raw)]
    pieces = [raw[start:end] for start, end in itertools.pairwise(edges)]
    return sent, [piece for piece in pieces if piece]


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """One virtual loop for all examples: most of an example's time would go into making it."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        yield runner


@given(stream=streams())
def test_events_are_whole_and_in_order_wherever_the_bytes_are_cut(
    loop: asyncio.Runner, stream: tuple[list[str], list[bytes]]
) -> None:
    sent, pieces = stream
    came, error = loop.run(names_and_end(watch_of(MemoryResponse(pieces))))
    assert came == sent
    assert error is None


@given(stream=streams(), cut_at=st.integers(0, 10_000), politely=st.booleans())
def test_a_stream_that_is_cut_anywhere_gives_only_whole_events(
    loop: asyncio.Runner, stream: tuple[list[str], list[bytes]], cut_at: int, politely: bool
) -> None:
    sent, pieces = stream
    raw = b"".join(pieces)
    raw = raw[: cut_at % (len(raw) + 1)]
    broken = None if politely else TransportError("reset", sent=True)
    came, error = loop.run(names_and_end(watch_of(MemoryResponse([raw] if raw else [], then=broken))))
    assert came == sent[: raw.count(b"}\n")]
    # A server that ends a stream between two events ends it well. Anything else is a break.
    assert (error is None) is (politely and raw[-1:] in (b"", b"\n"))


def ending(body: dict[str, Any]) -> MemoryResponse:
    return MemoryResponse([added("a") + line("ERROR", body)])


def failure(code: int, reason: str, message: str) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


RESET = TransportError("reset", sent=True)
WATCH = "WATCH /api/v1/namespaces/ns/configmaps"

ENDS = {
    "too old": (ending(failure(410, "Expired", "too old")), Expired, f"{WATCH}: too old"),
    "server error": (ending(failure(500, "InternalError", "oh")), Unavailable, f"{WATCH}: oh"),
    "error without a code": (ending({"kind": "Status"}), Unavailable, f"{WATCH}: HTTP 500"),
    "too slow": (ending(failure(429, "TooManyRequests", "slow")), Throttled, f"{WATCH}: slow"),
    "broken off": (MemoryResponse([added("a")], then=RESET), Unavailable, f"{WATCH}: the watch broke off: reset"),
    "broken off in an event": (
        MemoryResponse([added("a"), added("b")[:-4]], then=RESET),
        Unavailable,
        f"{WATCH}: the watch broke off: reset",
    ),
    "ended in an event": (
        MemoryResponse([added("a"), added("b")[:-4]]),
        Unavailable,
        f"{WATCH}: the watch broke off in the middle of an event",
    ),
    "not JSON": (
        MemoryResponse([added("a"), b"<html>\n"]),
        Unavailable,
        f"{WATCH}: not a watch event: JSON is malformed: invalid character (byte 0)",
    ),
    "not UTF-8": (
        MemoryResponse([added("a"), b'{"type": "ADDED", "object": {"kind": "\xff"}}\n']),
        Unavailable,
        f"{WATCH}: not a watch event: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
    ),
    "not an event": (
        MemoryResponse([added("a"), b'{"type": "ADDED"}\n']),
        Unavailable,
        f"{WATCH}: not a watch event: Object missing required field `object`",
    ),
    "silence": (
        MemoryResponse([added("a")], silent=True),
        Unavailable,
        f"{WATCH}: nothing came for 90 s, not even a bookmark",
    ),
}


@pytest.mark.parametrize("how", ENDS)
@virtual
async def test_a_watch_that_does_not_end_well_says_why(how: str) -> None:
    response, error, text = ENDS[how]
    came, ended = await names_and_end(watch_of(response))
    assert came == ["a"]
    assert type(ended) is error
    assert str(ended) == text
    assert response.closed


GET = "GET /api/v1/namespaces/ns/configmaps"
REFUSALS: dict[str, tuple[MemoryResponse | TransportError | None, type[ApiError], str]] = {
    "forbidden": (answer(failure(403, "Forbidden", "no"), status=403), Forbidden, f"{GET}: no"),
    "too old": (answer(failure(410, "Expired", "old"), status=410), Expired, f"{GET}: old"),
    "not reached": (
        TransportError("refused", sent=False),
        Unavailable,
        f"{GET}: the API server was not reached: refused",
    ),
    "no answer": (None, Unavailable, f"{WATCH}: the API server did not answer for 90 s"),
}


@pytest.mark.parametrize("how", REFUSALS)
@virtual
async def test_a_watch_that_is_refused_says_why(how: str) -> None:
    response, error, text = REFUSALS[how]
    _, ended = await names_and_end(watch_of(response))
    assert type(ended) is error
    assert str(ended) == text


@virtual
async def test_only_silence_counts_and_every_byte_ends_it() -> None:
    class Slow(MemoryResponse):
        async def chunks(self) -> list[bytes]:
            await asyncio.sleep(89)
            return await super().chunks()

    async with watch_of(Slow([added("a"), added("b")[:10], added("b")[10:]])) as watch:
        assert [event.object.meta.name async for event in watch] == ["a", "b"]
    assert asyncio.get_running_loop().time() == 4 * 89


@virtual
async def test_how_long_silence_may_last_can_be_set() -> None:
    watch = watch_of(MemoryResponse([], silent=True), idle_seconds_max=5)
    with pytest.raises(Unavailable):
        async with watch:
            await anext(watch)
    assert asyncio.get_running_loop().time() == 5


@virtual
async def test_what_has_arrived_can_be_had_without_waiting() -> None:
    async with watch_of(MemoryResponse([added("a") + added("b") + added("c")[:5], added("c")[5:]])) as watch:
        assert not watch.buffered()
        buffered = []
        async for _ in watch:
            buffered.append(watch.buffered())
        assert buffered == [True, False, False]


@virtual
async def test_what_is_asked_for() -> None:
    transport = ScriptedTransport(MemoryResponse([]), MemoryResponse([]))
    client = Client(transport)
    async with client.watch(CONFIG_MAPS, resource_version="7"):
        pass
    async with client.watch(
        CONFIG_MAPS, "ns", resource_version="8", labels="a in (b,c)", fields="x=y", metadata_only=True, seconds=9
    ):
        pass
    selectors = "labelSelector=a+in+%28b%2Cc%29&fieldSelector=x%3Dy"
    base = "watch=1&allowWatchBookmarks=true&resourceVersion="
    assert [(request.target, request.accept, request.timeout) for request in transport.requests] == [
        (f"/api/v1/configmaps?{base}7&timeoutSeconds=300", "application/json", None),
        (
            f"/api/v1/namespaces/ns/configmaps?{base}8&{selectors}&timeoutSeconds=9",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            None,
        ),
    ]


async def test_a_connection_that_is_cut_in_the_middle_of_a_line_gives_no_half_event() -> None:
    async with raw_server(chunked(added("a") + added("b")[:20])) as config, Client.connect(config) as client:
        came, error = await names_and_end(client.watch(CONFIG_MAPS, resource_version="1"))
    assert came == ["a"]
    assert type(error) is Unavailable


# On the real server


async def test_changes_come_in_their_order_from_the_version_on(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("before"), namespace=namespace)
    version = (await client.list(CONFIG_MAPS, namespace)).resource_version
    expected = []
    for name in ("a", "b"):
        created = await client.create(CONFIG_MAPS, config_map(name, labels={"app": name}), namespace=namespace)
        changed = await client.patch(CONFIG_MAPS, created.key, merge_patch({"metadata": {"labels": {"app": "x"}}}))
        expected += [("ADDED", name, created), ("MODIFIED", name, changed)]
        await delete(client, CONFIG_MAPS, changed)
        expected.append(("DELETED", name, changed))
    ours = "app"  # the cluster puts a ConfigMap of its own into every namespace, at any time
    async with client.watch(CONFIG_MAPS, namespace, resource_version=version, labels=ours) as watch:
        events = [await anext(watch) for _ in expected]
    assert [(event.type, event.object.meta.name) for event in events] == [(type_, name) for type_, name, _ in expected]
    assert [event.object.to_dict() for event in events if event.type != "DELETED"] == [
        written.to_dict() for type_, _, written in expected if type_ != "DELETED"
    ]
    versions = [int(event.object.meta.resource_version) for event in events]
    assert versions == sorted(set(versions))
    # An object that leaves a selector is reported as deleted.
    async with client.watch(CONFIG_MAPS, namespace, resource_version=version, labels="app=b") as watch:
        assert [(await anext(watch)).type for _ in range(2)] == ["ADDED", "DELETED"]
    async with client.watch(CONFIG_MAPS, namespace, resource_version=version, labels=ours, metadata_only=True) as watch:
        event = await anext(watch)
        assert event.object.kind == "PartialObjectMetadata"
        assert event.object.meta == expected[0][2].meta
        assert "data" not in event.object.to_dict()


async def test_bookmarks_move_the_version_on_until_the_server_ends_the_watch(client: Client, namespace: str) -> None:
    version = (await client.list(CONFIG_MAPS, namespace)).resource_version
    async with client.watch(CONFIG_MAPS, namespace, resource_version=version, labels="app=x", seconds=3) as watch:
        unseen = await client.create(CONFIG_MAPS, config_map("y"), namespace=namespace)
        events = [event async for event in watch]
    assert {event.type for event in events} == {"BOOKMARK"}
    assert int(events[-1].object.meta.resource_version) >= int(unseen.meta.resource_version) > int(version)


async def test_an_event_may_be_larger_than_any_chunk(client: Client, namespace: str, widgets: Resource) -> None:
    version = (await client.list(widgets, namespace)).resource_version
    created = await client.create(widgets, config_map("big", {"a": "x" * 1_200_000}), namespace=namespace)
    async with client.watch(widgets, namespace, resource_version=version) as watch:
        event = await anext(watch)
    assert event.object.to_dict() == created.to_dict()
    assert len(event.object.raw) > 1_200_000


MINE = "metadata.name=a"
"""A new namespace is given a ConfigMap by others, too, at some time."""


async def test_a_cut_connection_is_noticed(config: ClusterConfig, namespace: str) -> None:
    async with TcpProxy(config.server) as proxy, Client.connect(proxy.config(config)) as client:
        version = (await client.list(CONFIG_MAPS, namespace)).resource_version
        async with client.watch(CONFIG_MAPS, namespace, resource_version=version, fields=MINE) as watch:
            await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
            assert (await anext(watch)).object.meta.name == "a"
            proxy.cut()
            with pytest.raises(Unavailable, match="the watch broke off: "):
                await anext(watch)


def test_a_server_that_falls_silent_is_noticed(own_cluster: Cluster, namespace: str) -> None:
    async def scenario() -> None:
        async with Client.connect(load_config(kubeconfig=str(own_cluster.kubeconfig))) as client:
            version = (await client.list(CONFIG_MAPS, namespace)).resource_version
            async with client.watch(CONFIG_MAPS, namespace, resource_version=version, fields=MINE) as watch:
                await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
                assert (await anext(watch)).object.meta.name == "a"
                own_cluster.pause_apiserver()
                waiting = asyncio.create_task(anext(watch))
                await warp(89)
                assert not waiting.done()
                await warp(2)
                with pytest.raises(Unavailable, match="nothing came for 90 s"):
                    await waiting

    run_warp(scenario())
