"""The transport over HTTP, on real connections: kept, cut, stalled, refused; and none left at the end."""

import asyncio
import contextlib
import functools
import os
import re
import ssl
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from controlplane import Cluster
from controlplane.certs import Authority
from pilotage.kube import (
    Absent,
    AlreadyExists,
    ApiError,
    Client,
    ClusterConfig,
    Object,
    ObjectKey,
    Propagation,
    Unauthorized,
    Unavailable,
    load_config,
    merge_patch,
)
from pilotage.kube.credentials import bearer
from pilotage.kube.http import CONNECTIONS_MIN, HttpTransport
from pilotage.kube.tls import TlsSettings
from pilotage.kube.transport import Request, Response, Transport
from tests.support.kinds import CONFIG_MAPS, config_map
from tests.support.raw_server import chunked, http, plain_config, raw_server
from tests.support.tcp_proxy import HttpProxy, TcpProxy
from tests.support.waiting import eventually
from tests.virtual_time import run_warp, warp


class Write(NamedTuple):
    """A write about an object, and how to see afterwards whether it was applied."""

    send: Callable[[Client, Object], Awaitable[object]]
    applied: Callable[[Object | None], bool]


def has_new_data(obj: Object | None) -> bool:
    return obj is not None and obj.get("data", "a") == "new"


WRITES = {
    "POST": Write(
        lambda client, obj: client.create(CONFIG_MAPS, config_map("created"), namespace=obj.meta.namespace),
        lambda obj: obj is not None,
    ),
    "PUT": Write(lambda client, obj: client.replace(CONFIG_MAPS, obj.to_dict() | {"data": {"a": "new"}}), has_new_data),
    "PATCH": Write(
        lambda client, obj: client.patch(CONFIG_MAPS, obj.key, merge_patch({"data": {"a": "new"}})), has_new_data
    ),
    "DELETE": Write(
        lambda client, obj: client.delete(CONFIG_MAPS, obj.key, uid=obj.meta.uid, propagation=Propagation.BACKGROUND),
        lambda obj: obj is None,
    ),
}


@pytest.mark.parametrize("verb", WRITES)
async def test_a_write_that_is_cut_off_is_uncertain_and_not_sent_again(
    verb: str, config: ClusterConfig, client: Client, namespace: str
) -> None:
    write = WRITES[verb]
    async with TcpProxy(config.server) as proxy, Client.connect(proxy.config(config)) as cut_off:
        for hold, applied in ((proxy.hold_requests, False), (proxy.hold_answers, True)):
            name = "applied" if applied else "lost"
            obj = await client.create(CONFIG_MAPS, config_map(name, {"a": "old"}), namespace=namespace)
            await cut_off.get(CONFIG_MAPS, obj.key)  # makes the connection that the write will go out on
            connections = proxy.connections
            hold()
            writing = asyncio.create_task(outcome(write.send(cut_off, obj)))
            await proxy.held()
            proxy.release()
            proxy.cut()
            assert re.match(f"Uncertain: {verb} .*: no answer, it may have been applied: ", await writing)
            assert proxy.connections == connections  # to send it again, another would have been needed
            key = ObjectKey(namespace, "created") if verb == "POST" else obj.key
            assert write.applied(await found(client, key)) is applied


def test_a_frozen_server_makes_a_write_uncertain_and_a_read_unavailable(own_cluster: Cluster, namespace: str) -> None:
    async def scenario() -> None:
        async with Client.connect(load_config(kubeconfig=str(own_cluster.kubeconfig))) as client:
            await asyncio.gather(*(client.get_path("/version") for _ in range(2)))  # a connection for each
            own_cluster.pause_apiserver()
            requests = [
                asyncio.create_task(outcome(client.create(CONFIG_MAPS, config_map("x"), namespace=namespace))),
                asyncio.create_task(outcome(client.list(CONFIG_MAPS, namespace))),
            ]
            await warp(29)
            assert not any(request.done() for request in requests)
            await warp(2)
            path = f"/api/v1/namespaces/{namespace}/configmaps"
            assert [await request for request in requests] == [
                f"Uncertain: POST {path}: no answer, it may have been applied: time is up",
                f"Unavailable: GET {path}: the API server did not answer: time is up",
            ]
            own_cluster.resume_apiserver()
            await client.list(CONFIG_MAPS, namespace)

    run_warp(scenario())


async def test_the_time_for_a_request_can_be_set(config: ClusterConfig) -> None:
    async with TcpProxy(config.server) as proxy, Client.connect(proxy.config(config), timeout=0.2) as client:
        await client.get_path("/version")
        proxy.hold_answers()
        with pytest.raises(Unavailable, match="time is up"):
            await client.get_path("/version")


async def test_a_read_on_a_connection_that_the_server_has_dropped_succeeds_on_another(config: ClusterConfig) -> None:
    async with TcpProxy(config.server) as proxy, Client.connect(proxy.config(config)) as client:
        await client.get_path("/version")
        proxy.hold_answers()
        reading = asyncio.create_task(client.get_path("/version"))
        await proxy.held()
        proxy.release()
        proxy.cut()
        assert b"gitVersion" in await reading
        assert proxy.connections == 2


async def test_nobody_there_is_unavailable_also_for_a_write(config: ClusterConfig) -> None:
    async with TcpProxy(config.server) as proxy:
        nowhere = proxy.config(config)
    async with Client.connect(nowhere) as client:
        address = nowhere.server.removeprefix("https://")
        assert await outcome(client.create(CONFIG_MAPS, config_map("x"), namespace="default")) == (
            "Unavailable: POST /api/v1/namespaces/default/configmaps: "
            f"the API server was not reached: cannot connect to {address} (Connection refused)"
        )


async def test_a_server_that_cannot_be_trusted_is_unavailable_and_learns_nothing(
    config: ClusterConfig, namespace: str
) -> None:
    stranger = replace(config, tls=replace(config.tls, ca_data=None))
    async with Client.connect(stranger) as client:
        text = await outcome(client.create(CONFIG_MAPS, config_map("x"), namespace=namespace))
    assert text.startswith("Unavailable: ")
    assert "certificate of 127.0.0.1:" in text
    async with Client.connect(config) as client:
        assert await found(client, ObjectKey(namespace, "x")) is None


HALF = http("200 OK", b'{"kind": "ConfigMap"}')[:-5]
NONSENSE = {
    "cut in the body": (HALF, "Unavailable", "Uncertain"),
    "cut in a stream": (chunked(b'{"kind": '), "Unavailable", "Uncertain"),
    "cut in the headers": (HALF[:20], "Unavailable", "Uncertain"),
    "not HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", "Unavailable", "Uncertain"),
    "a login page": (http("302 Found", location="/login"), "Unavailable", "Unavailable"),
    "a page": (http("200 OK", b"<html>"), "Unavailable", "Uncertain"),
    "bad gateway": (http("502 Bad Gateway", b"<html>"), "Unavailable", "Uncertain"),
}


@pytest.mark.parametrize("what", NONSENSE)
async def test_an_answer_that_is_none_tells_nothing_about_the_object(what: str) -> None:
    raw, of_a_read, of_a_write = NONSENSE[what]
    async with raw_server(raw, raw, raw) as config, Client.connect(config) as client:
        write = client.patch(CONFIG_MAPS, ObjectKey("ns", "x"), merge_patch({}))
        assert (await outcome(write)).partition(":")[0] == of_a_write
        assert (await outcome(client.get(CONFIG_MAPS, ObjectKey("ns", "x")))).partition(":")[0] == of_a_read


async def test_a_body_without_a_length_that_is_reset_is_not_taken_for_whole() -> None:
    raw = b'HTTP/1.1 200 OK\r\n\r\n{"items": []}'
    async with raw_server(raw, raw, reset=True) as config, Client.connect(config) as client:
        assert (await outcome(client.list(CONFIG_MAPS))).startswith("Unavailable: ")
    async with raw_server(raw) as config, Client.connect(config) as client:
        assert (await client.list(CONFIG_MAPS)).items == []


@pytest.mark.parametrize("path", ["/version HTTP/1.1\r\nX-Other: x\r\n", "/a b", "/a\x00", "/ü"])
async def test_what_is_no_path_is_not_sent(path: str) -> None:
    async with raw_server() as config, Client.connect(config) as client:
        assert (await outcome(client.get_path(path))).endswith("has characters that a path cannot have")


# Connections


async def test_the_answer_to_a_request_that_was_given_up_goes_to_no_other(
    config: ClusterConfig, client: Client, namespace: str
) -> None:
    for name in ("a", "b"):
        await client.create(CONFIG_MAPS, config_map(name), namespace=namespace)
    async with TcpProxy(config.server) as proxy, Client.connect(proxy.config(config), timeout=0.2) as impatient:
        for give_up in ("cancel", "time out"):
            await impatient.get(CONFIG_MAPS, ObjectKey(namespace, "a"))
            proxy.hold_answers()
            asking = asyncio.create_task(outcome(impatient.get(CONFIG_MAPS, ObjectKey(namespace, "a"))))
            await proxy.held()
            if give_up == "cancel":
                asking.cancel()
            await asyncio.wait([asking])
            proxy.release()
            for name in ("b", "a", "b"):
                assert (await impatient.get(CONFIG_MAPS, ObjectKey(namespace, name))).meta.name == name


async def test_the_rest_of_an_answer_that_nobody_reads_goes_to_no_other(config: ClusterConfig, namespace: str) -> None:
    async with TcpProxy(config.server) as proxy, Client.connect(proxy.config(config), timeout=2) as client:
        version = (await client.list(CONFIG_MAPS, namespace)).resource_version
        async with client.watch(CONFIG_MAPS, namespace, resource_version=version):
            pass
        created = await client.create(CONFIG_MAPS, config_map("x"), namespace=namespace)
        assert (await client.get(CONFIG_MAPS, created.key)).meta.name == "x"
        assert proxy.connections == 2  # the watch has cost its own


async def test_a_connection_on_which_something_comes_unasked_is_not_used_again() -> None:
    unasked, served = asyncio.Event(), 0
    handlers: list[asyncio.Task[object] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        handlers.append(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        served += 1
        writer.write(http("200 OK", b"%d" % served))
        if served == 1:
            await unasked.wait()
            writer.write(http("408 Request Timeout"))
        with contextlib.suppress(ConnectionError):
            await reader.read()  # until the client has closed it
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Client.connect(plain_config(f"http://127.0.0.1:{port}")) as client:
        assert await client.get_path("/") == b"1"
        sockets = open_sockets()
        unasked.set()
        await eventually(lambda: fewer_than(sockets))
        assert await client.get_path("/") == b"2"
    await asyncio.gather(*filter(None, handlers))
    server.close()


def test_the_time_of_one_request_does_not_run_out_in_the_next(own_cluster: Cluster) -> None:
    async def scenario() -> None:
        config = load_config(kubeconfig=str(own_cluster.kubeconfig))
        async with TcpProxy(config.server) as proxy, Client.connect(proxy.config(config), timeout=30) as client:
            await client.get_path("/version")
            await warp(25)
            proxy.hold_answers()
            asking = asyncio.create_task(outcome(client.get_path("/version")))
            await proxy.held()
            await warp(10)
            proxy.release()
            assert "gitVersion" in await asking
            assert proxy.connections == 1

    run_warp(scenario())


async def test_an_answer_is_whole_also_when_its_reader_is_slower_than_its_sender() -> None:
    sent = b"x" * 5_000_000
    async with raw_server(chunked(sent) + b"0\r\n\r\n") as config:
        transport = HttpTransport(config)
        response = await transport.send(Request("GET", "/"))
        for _ in range(100):  # turns of the loop, in which it takes in as much as it will
            await asyncio.sleep(0)
        assert await response.read() == sent
        response.close()
        await transport.close()


async def test_a_connection_that_was_being_made_when_the_client_was_closed_is_not_left(config: ClusterConfig) -> None:
    async with TcpProxy(config.server) as proxy:
        sockets = open_sockets()
        client = Client.connect(proxy.config(config))
        proxy.hold_answers()
        asking = asyncio.create_task(outcome(client.get_path("/version")))
        await proxy.held()
        await client.close()
        proxy.release()
        assert (await asking).startswith("Unavailable: ")
        proxy.cut()
        await eventually(lambda: none_but(sockets))


async def test_requests_one_after_another_share_one_connection(config: ClusterConfig, namespace: str) -> None:
    async with TcpProxy(config.server) as proxy, Client.connect(proxy.config(config)) as client:
        created = await client.create(CONFIG_MAPS, config_map("x"), namespace=namespace)
        for _ in range(10):
            await client.get(CONFIG_MAPS, created.key)
            await client.list(CONFIG_MAPS, namespace, chunk=1)
            await client.patch(CONFIG_MAPS, created.key, merge_patch({}))
            with pytest.raises(Absent):
                await client.get(CONFIG_MAPS, ObjectKey(namespace, "none"))
            with pytest.raises(AlreadyExists):
                await client.create(CONFIG_MAPS, config_map("x"), namespace=namespace)
        assert proxy.connections == 1


async def test_reads_at_the_same_time_share_a_few_connections(config: ClusterConfig) -> None:
    async with TcpProxy(config.server) as proxy, Client.connect(proxy.config(config)) as client:
        for _ in range(3):
            await asyncio.gather(*(client.get_path("/version") for _ in range(CONNECTIONS_MIN + 1)))
        assert proxy.connections in (CONNECTIONS_MIN, CONNECTIONS_MIN + 1)  # the last waits for another, not for long


async def test_after_close_no_socket_and_no_task_is_left(config: ClusterConfig, namespace: str) -> None:
    sockets, tasks = open_sockets(), asyncio.all_tasks()
    client = Client.connect(config)
    listed = await client.list(CONFIG_MAPS, namespace)
    await asyncio.gather(*(client.get_path("/version") for _ in range(5)))
    await outcome(client.get(CONFIG_MAPS, ObjectKey(namespace, "none")))
    watch = client.watch(CONFIG_MAPS, namespace, resource_version=listed.resource_version)
    async with watch:
        assert len(open_sockets() - sockets) >= CONNECTIONS_MIN
    async with client.watch(CONFIG_MAPS, namespace, resource_version=listed.resource_version):
        await client.close()  # in the middle of it
    assert open_sockets() == sockets
    assert asyncio.all_tasks() == tasks


async def test_a_server_that_says_nothing_any_more_leaves_no_socket_behind(
    own_cluster: Cluster, config: ClusterConfig
) -> None:
    sockets = open_sockets()
    async with Client.connect(config) as client, client.watch(CONFIG_MAPS, resource_version="0"):
        own_cluster.pause_apiserver()
    assert open_sockets() == sockets


async def test_a_request_under_way_ends_when_the_client_is_closed(config: ClusterConfig, namespace: str) -> None:
    async with TcpProxy(config.server) as proxy:
        client = Client.connect(proxy.config(config))
        await client.get_path("/version")
        proxy.hold_answers()
        patch = client.patch(CONFIG_MAPS, ObjectKey(namespace, "x"), merge_patch({}))
        writing = asyncio.create_task(outcome(patch))
        await proxy.held()
        await client.close()
        assert (await writing).startswith("Uncertain: ")


async def test_a_read_under_way_ends_when_the_client_is_closed_and_connects_no_more(config: ClusterConfig) -> None:
    async with TcpProxy(config.server) as proxy:
        client = Client.connect(proxy.config(config))
        await client.get_path("/version")
        proxy.hold_answers()
        reading = asyncio.create_task(outcome(client.get_path("/version")))
        await proxy.held()
        await client.close()
        assert (await reading).startswith("Unavailable: ")
        assert proxy.connections == 1


class Hesitant:
    """A transport whose answers are read late, when all of it may have arrived."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        response = await self._inner.send(request)
        await asyncio.sleep(0.1)
        return response

    async def close(self) -> None:
        await self._inner.close()


async def test_a_large_answer_can_be_read_late(config: ClusterConfig, namespace: str) -> None:
    async with Client.connect(config) as client:
        big = config_map("big", {"a": "x" * 1_000_000})
        created = await client.through(Hesitant).create(CONFIG_MAPS, big, namespace=namespace)
        assert created.get("data") == big["data"]


async def test_a_closed_client_can_be_used_again(config: ClusterConfig) -> None:
    async with Client.connect(config) as client:
        await client.get_path("/version")
        await client.close()
        assert b"gitVersion" in await client.get_path("/version")


# Through a proxy


async def test_a_proxy_is_asked_for_the_server_and_sees_no_more(config: ClusterConfig) -> None:
    async with HttpProxy(config.server, login="jane:pässword") as proxy:
        way = replace(config, proxy_url=f"http://jane:p%C3%A4ssword@{proxy.address}")
        async with Client.connect(way) as client:
            for _ in range(3):
                assert b"gitVersion" in await client.get_path("/version")
        assert proxy.asked == [f"CONNECT {config.server.removeprefix('https://')} HTTP/1.1"]


async def test_a_proxy_can_have_tls_of_its_own_and_is_not_trusted_blindly(
    config: ClusterConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority.create(tmp_path, "ca")
    pair = authority.server(tmp_path, "proxy")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    async with HttpProxy(config.server, tls=tls) as proxy:
        way = replace(config, proxy_url=f"https://{proxy.address}")
        async with Client.connect(way) as client:
            assert await outcome(client.get_path("/version")) == (
                "Unavailable: GET /version: the API server was not reached: the certificate of the proxy "
                f"{proxy.address} is not trusted (unable to get local issuer certificate)"
            )
        assert proxy.asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.pair.certificate))
        async with Client.connect(way) as client:
            for _ in range(3):
                assert b"gitVersion" in await client.get_path("/version")
        assert proxy.asked == [f"CONNECT {config.server.removeprefix('https://')} HTTP/1.1"]
    async with Client.connect(way) as client:
        assert f"cannot connect to the proxy {proxy.address} (Connection refused)" in await outcome(
            client.get_path("/version")
        )


async def test_a_proxy_that_refuses_has_sent_nothing(config: ClusterConfig) -> None:
    create = functools.partial(Client.create, resource=CONFIG_MAPS, body=config_map("x"), namespace="default")
    async with (
        HttpProxy(config.server, login="jane:password") as proxy,
        Client.connect(replace(config, proxy_url=f"http://{proxy.address}")) as client,
    ):
        assert await outcome(create(client)) == (
            "Unavailable: POST /api/v1/namespaces/default/configmaps: the API server was not reached: "
            f"the proxy {proxy.address} refused: 407"
        )
    for raw in (b"", b"HTTP/1.1 200", b"nonsense\r\n\r\n"):
        async with raw_server(raw) as nobody, Client.connect(replace(config, proxy_url=nobody.server)) as client:
            assert (await outcome(create(client))).startswith("Unavailable: ")


async def test_a_server_without_tls_can_be_behind_a_proxy() -> None:
    async with (
        raw_server(http("200 OK", b"{}")) as config,
        HttpProxy(config.server) as proxy,
        Client.connect(replace(config, proxy_url=f"http://{proxy.address}")) as client,
    ):
        assert await client.get_path("/version") == b"{}"
        assert len(proxy.asked) == 1


# Credentials


class Tokens:
    """Credentials that hand out another token after each rejection, the last one for ever."""

    def __init__(self, *tokens: str) -> None:
        self._tokens = list(tokens)
        self.rejections: list[Mapping[str, str] | None] = []

    async def headers(self) -> Mapping[str, str]:
        return bearer(self._tokens[0])

    async def client_certificate(self) -> None: ...

    def rejected(self, used: Mapping[str, str] | None = None) -> None:
        self.rejections.append(used)
        if len(self._tokens) > 1:
            self._tokens.pop(0)


async def test_a_401_makes_the_credentials_start_afresh_once(own_cluster: Cluster, config: ClusterConfig) -> None:
    def with_tokens(tokens: Tokens) -> ClusterConfig:
        return replace(config, credentials=tokens, tls=TlsSettings(ca_data=config.tls.ca_data))

    good = Tokens("expired", own_cluster.tokens["tok-a"])
    async with Client.connect(with_tokens(good)) as client:
        await client.list(CONFIG_MAPS, "default")
        await client.list(CONFIG_MAPS, "default")
    assert good.rejections == [bearer("expired")]
    bad = Tokens("expired", "wrong", own_cluster.tokens["tok-a"])
    async with Client.connect(with_tokens(bad)) as client:
        with pytest.raises(Unauthorized):
            await client.list(CONFIG_MAPS, "default")
    assert bad.rejections == [bearer("expired")]


async def outcome(request: Awaitable[object]) -> str:
    """The error's class and text, or what came back."""
    try:
        return str(await request)
    except ApiError as error:
        return f"{type(error).__name__}: {error}"


async def found(client: Client, key: ObjectKey) -> Object | None:
    try:
        return await client.get(CONFIG_MAPS, key)
    except Absent:
        return None


def open_sockets() -> set[int]:
    """The sockets of this process, by inode."""
    found = set()
    for descriptor in Path("/dev/fd").iterdir():
        with contextlib.suppress(OSError):  # the one that listed the folder
            status = os.fstat(int(descriptor.name))
            if stat.S_ISSOCK(status.st_mode):
                found.add(status.st_ino)
    return found


async def fewer_than(sockets: set[int]) -> bool:
    return open_sockets() < sockets


async def none_but(sockets: set[int]) -> bool:
    return open_sockets() <= sockets
