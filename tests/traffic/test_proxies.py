"""Addresses of Envoys, their combined proof, and how often they are asked."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from controlplane import Access
from pilotage.kube import Client, load_config
from pilotage.kube.transport import TransportError
from pilotage.traffic import proxies as module
from pilotage.traffic.contract import Backend, ExpectedRoute, Mix, Programming, RouteStatus
from pilotage.traffic.envoy import DUMP, STATS
from pilotage.traffic.proxies import EnvoyAdmin, Proxies, Unreadable, envoy_source, observe
from pilotage_sim.loop import virtual
from tests.support.transports import MemoryResponse, ScriptedTransport, answer
from tests.traffic.dumps import cluster, dump, listener, routes, stats, to

WANTED = ExpectedRoute("chat", "a.example.com", "/", Mix((Backend("new", 8080),)), counted=frozenset({"old"}))


def having(service: str) -> bytes:
    return dump(
        clusters=[cluster("old"), cluster("new")],
        listeners=[listener("http")],
        route_configs=[routes("http", a=[to((service, 1))])],
    )


class Fake:
    """An Envoy without a network, and the place with just that one. It takes a while to answer."""

    def __init__(self, name: str, has: str = "new", active: int = 0, seconds: float = 0.0, broken: str = "") -> None:
        self.name, self.has, self.active, self.seconds, self.broken = name, has, active, seconds, broken
        self.asked: list[str] = []

    async def admins(self) -> Sequence[EnvoyAdmin]:
        return [self]

    async def get(self, target: str) -> bytes:
        self.asked.append(target)
        answer = having(self.has) if target == DUMP else stats(chat_old_8080__upstream_rq_active=self.active)
        await asyncio.sleep(self.seconds)
        if self.broken:
            raise Unreadable(self.broken)
        return answer


async def test_every_envoy_must_have_it():
    assert await observe(Proxies([Fake("a", active=1), Fake("b", active=2)]), WANTED) == RouteStatus(
        Programming.PROGRAMMED, {"old": 3}, "programmed in 2 of 2 Envoys", effective={"new": 100.0}
    )
    assert await observe(Proxies([Fake("a"), Fake("b", has="old", active=2)]), WANTED) == RouteStatus(
        Programming.PENDING, {"old": 2}, "programmed in 1 of 2 Envoys: b sends a.example.com/ to chat/old:8080 1"
    )


async def test_one_that_cannot_be_read_has_nothing_and_the_count_is_unknown():
    assert await observe(Proxies([Fake("a"), Fake("b", broken="it is down")]), WANTED) == RouteStatus(
        Programming.PENDING, {}, "programmed in 1 of 2 Envoys: b cannot be read (it is down)"
    )


async def test_requests_are_counted_after_the_routes_were_read():
    envoy = Fake("a")
    await observe(Proxies([envoy]), WANTED)
    assert envoy.asked == [DUMP, STATS]


@virtual
async def test_many_who_ask_at_once_share_the_answers():
    envoy = Fake("a", seconds=0.02)
    proxies = Proxies([envoy])
    passages = await asyncio.gather(*(observe(proxies, WANTED) for _ in range(100)))
    assert {each.programming for each in passages} == {Programming.PROGRAMMED}
    assert envoy.asked == [DUMP, STATS]


@virtual
async def test_they_are_asked_ten_times_a_second_at_most():
    envoy = Fake("a", seconds=0.001)
    proxies = Proxies([envoy])
    loop = asyncio.get_running_loop()

    async def asking() -> None:
        while loop.time() < 10:
            await observe(proxies, WANTED)
            await asyncio.sleep(0.001)

    await asyncio.gather(*(asking() for _ in range(5)))
    assert 90 <= envoy.asked.count(DUMP) <= 101


@virtual
async def test_no_answer_is_older_than_the_question():
    envoy = Fake("a", has="old", seconds=1.0)
    proxies = Proxies([envoy])
    early = asyncio.ensure_future(observe(proxies, WANTED))
    await asyncio.sleep(0.5)
    envoy.has = "new"
    assert (await observe(proxies, WANTED)).programming is Programming.PROGRAMMED
    assert (await early).programming is Programming.PENDING


@virtual
async def test_one_who_leaves_does_not_take_the_answer_from_the_others():
    proxies = Proxies([Fake("a", seconds=0.5)])
    first, second = (asyncio.ensure_future(observe(proxies, WANTED)) for _ in range(2))
    await asyncio.sleep(0.1)
    first.cancel()
    assert (await second).programming is Programming.PROGRAMMED
    with pytest.raises(asyncio.CancelledError):
        await first


@virtual
async def test_closing_ends_what_is_under_way():
    proxies = Proxies([Fake("a", seconds=1e6)])
    asked = asyncio.ensure_future(observe(proxies, WANTED))
    await asyncio.sleep(0.1)
    await proxies.close()
    with pytest.raises(asyncio.CancelledError):
        await asked


@asynccontextmanager
async def envoy_at(path: Path | None = None, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """An admin interface over HTTP, on a unix socket or a port; its setting."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        body = {DUMP: having("new"), STATS: stats()}.get(target)
        status, body = ("200 OK", body) if body is not None else ("404 Not Found", b"invalid path")
        head = f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n"
        writer.write(head.encode() + body + b"\r\n0\r\n\r\n" if body else head.encode() + b"\r\n")
        await writer.drain()
        writer.close()

    if path:
        server, setting = await asyncio.start_unix_server(serve, path), f"unix://{path}"
    else:
        server = await asyncio.start_server(serve, host, 0)
        setting = f"http://{host}:{server.sockets[0].getsockname()[1]}"
    try:
        yield setting
    finally:
        server.close()


@pytest.mark.parametrize("unix", [True, False], ids=["unix", "http"])
async def test_an_envoy_is_read_at_its_address(tmp_path, unix):
    async with envoy_at(tmp_path / "admin.sock" if unix else None) as setting:
        assert (await observe(Proxies([envoy_source(setting, client())]), WANTED)).programming is Programming.PROGRAMMED


async def test_an_address_where_nobody_is_is_said(tmp_path):
    status = await observe(Proxies([envoy_source(f"unix://{tmp_path}/none.sock", client())]), WANTED)
    assert status.programming is Programming.PENDING
    assert f"unix://{tmp_path}/none.sock cannot be read (" in status.text
    assert "No such file" in status.text


async def test_what_is_no_envoy_is_said():
    async with envoy_at() as setting:
        wrong = envoy_source(setting, client())
        with pytest.raises(Unreadable, match="it answered 404: invalid path"):
            await (await wrong.admins())[0].get("/other")


async def test_an_envoy_that_never_answers_is_given_up(monkeypatch):
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    monkeypatch.setattr(module, "ANSWER_SECONDS_MAX", 0.05)
    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    setting = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    status = await observe(Proxies([envoy_source(setting, client())]), WANTED)
    server.close()
    assert status == RouteStatus(
        Programming.PENDING, {}, f"programmed in 0 of 1 Envoys: {setting} cannot be read (no answer within 0.05 s)"
    )


def client(*answers: MemoryResponse | TransportError) -> Client:
    return Client(ScriptedTransport(*answers))


def pods(**states: str) -> MemoryResponse:
    return answer(
        {
            "kind": "PodList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "1"},
            "items": [
                {
                    "metadata": {"name": name, "namespace": "projectcontour"},
                    "status": {"containerStatuses": [{"state": {state: {}}}]},
                }
                for name, state in states.items()
            ],
        }
    )


async def test_pods_are_found_by_label_and_read_through_the_api_server():
    running = pods(a="running", b="running", c="waiting")
    told = [MemoryResponse(each) for each in (having("new"), stats(), having("new"), stats())]
    transport = ScriptedTransport(running, *told)
    found = envoy_source("pods://projectcontour/app=envoy,tier in (edge):9001", Client(transport))
    assert await observe(Proxies([found]), WANTED) == RouteStatus(
        Programming.PROGRAMMED, {"old": 0}, "programmed in 2 of 2 Envoys", effective={"new": 100.0}
    )
    first, *others = [each.target for each in transport.requests]
    assert first.startswith("/api/v1/namespaces/projectcontour/pods?labelSelector=app%3Denvoy%2Ctier+in+%28edge%29")
    assert others == [
        f"/api/v1/namespaces/projectcontour/pods/{pod}:9001/proxy{target}" for pod in "ab" for target in (DUMP, STATS)
    ]


async def test_without_any_pod_that_runs_nothing_is_proven():
    found = envoy_source("pods://projectcontour/app=envoy:9001", client(pods(a="waiting")))
    assert await observe(Proxies([found]), WANTED) == RouteStatus(
        Programming.PENDING,
        {},
        "programmed in 0 of 1 Envoys: pods://projectcontour/app=envoy:9001 has no pod that runs",
    )


async def test_pods_that_may_not_be_listed_or_read_are_said():
    forbidden = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "no", "code": 403}
    found = envoy_source("pods://projectcontour/app=envoy:9001", client(answer(forbidden, status=403)))
    status = await observe(Proxies([found]), WANTED)
    assert status.programming is Programming.PENDING
    assert "pods://projectcontour/app=envoy:9001 cannot be listed (" in status.text
    found = envoy_source("pods://x/y:1", client(pods(a="running"), answer(forbidden, status=403)))
    assert "pod/a -n x cannot be read (" in (await observe(Proxies([found]), WANTED)).text


async def test_a_real_api_server_leads_to_a_pod(cluster: Access, namespace_for_pods: str):
    try:
        address = own_address()
    except OSError:
        pytest.skip("this machine has no address but loopback, which an API server does not lead to")
    async with envoy_at(host=address) as setting:
        port = setting.rpartition(":")[2]
        path = f"/api/v1/namespaces/{namespace_for_pods}/pods"
        # On a node without a kubelet: the test writes its status.
        spec = {"nodeName": "nowhere", "containers": [{"name": "envoy", "image": "envoy"}]}
        pod = cluster.request("POST", path, {"metadata": {"name": "envoy", "labels": {"app": "envoy"}}, "spec": spec})
        running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        state = {"name": "envoy", "image": "envoy", "imageID": "", "ready": True, "restartCount": 0, "state": running}
        pod["status"] = {
            "phase": "Running",
            "podIPs": [{"ip": address}],
            "podIP": address,
            "containerStatuses": [state],
        }
        cluster.request("PUT", f"{path}/envoy/status", pod)
        async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
            found = envoy_source(f"pods://{namespace_for_pods}/app=envoy:{port}", client)
            assert await observe(Proxies([found]), WANTED) == RouteStatus(
                Programming.PROGRAMMED, {"old": 0}, "programmed in 1 of 1 Envoys", effective={"new": 100.0}
            )
        cluster.request("DELETE", f"{path}/envoy", {"gracePeriodSeconds": 0})


def own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("198.51.100.1", 9))  # nothing is sent
        address: str = probe.getsockname()[0]
        return address


@pytest.mark.parametrize(
    "setting",
    [
        "",
        "envoy:9901",
        "https://envoy:9901",
        "unix://admin.sock",
        "pods://projectcontour",
        "pods://a/b",
        "pods://a/b:c",
    ],
)
def test_a_setting_that_names_no_envoy_says_how_it_is_done(setting):
    with pytest.raises(ValueError, match=r"names no Envoy: use http://HOST:PORT, unix:///PATH or pods://"):
        envoy_source(setting, client())


async def test_no_envoy_at_all_proves_nothing():
    assert await observe(Proxies([]), WANTED) == RouteStatus(Programming.PENDING, text="no Envoy was found")


def test_whether_there_is_anything_to_ask():
    assert not Proxies([])
    assert Proxies([Fake("a")])
