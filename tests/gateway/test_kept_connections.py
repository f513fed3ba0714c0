"""Connections to servers that keep them are used again, and no request is lost: around time-outs, drains, restarts."""

import asyncio

import pytest

from pilotage.api.names import LABEL_KEEP_ALIVE
from pilotage.gateway.inputs import ENDPOINT_SLICES
from pilotage.kube import ObjectKey
from pilotage.serving.runtimes import RUNTIMES
from tests.gateway.gateway_host import holds
from tests.gateway.keepalive_servers import HYPER_SECONDS, UVICORN_SECONDS, WINDOW_SECONDS, KeepingServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

SERVERS = {"vllm": UVICORN_SECONDS, "sglang": UVICORN_SECONDS, "tgi": HYPER_SECONDS}
"""Settings of the stand-in for each runtime that keeps connections."""


async def placed(gateway, namespace, runtime, server, name="", **conditions):
    """Say where a server is, in a slice with the label that the Service of this runtime has."""
    seconds = RUNTIMES[runtime].keep_alive_seconds
    body = {
        "metadata": {
            "name": name or runtime,
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": runtime, LABEL_KEEP_ALIVE: str(seconds)},
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": server.port, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True, **conditions}}],
    }
    return await gateway.user.apply(ENDPOINT_SLICES, body, force=True)


async def ask(gateway, path, **body):
    async with gateway.http.post(f"{gateway.url}{path}", json=body) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("runtime", SERVERS)
async def test_connections_are_used_again_and_none_at_the_end_of_its_time(gateway, ns, runtime):
    """Clients that pause for as long as the server waits: their next requests are not sent as it closes."""
    server = await KeepingServer(SERVERS[runtime]).start()
    await placed(gateway, ns, runtime, server)
    await gateway.route(ns, runtime, {runtime: 100})
    path = f"/endpoints/{ns}/{runtime}/v1/x"
    for _ in range(20):
        assert (await ask(gateway, path))[0] == 200
        assert (await ask(gateway, path, stream=True)) == (200, "xy")
    assert server.accepted == 1
    seconds = SERVERS[runtime] or 1.0
    for pause in (0.0, seconds / 2, seconds, seconds + WINDOW_SECONDS / 2):
        await asyncio.sleep(pause)  # what this is about
        answers = await asyncio.gather(*(ask(gateway, path) for _ in range(30)))
        assert {status for status, _ in answers} == {200}
    assert server.lost == 0
    await server.stop()


@pytest.mark.parametrize("runtime", SERVERS)
async def test_no_request_is_lost_while_servers_are_drained_and_restarted_in_turn(gateway, ns, runtime):
    servers = [await KeepingServer(SERVERS[runtime]).start() for _ in range(2)]
    for number, each in enumerate(servers):
        await placed(gateway, ns, runtime, each, f"{runtime}-{number}")
    await gateway.route(ns, runtime, {runtime: 100})
    path, statuses, ended = f"/endpoints/{ns}/{runtime}/v1/x", [], asyncio.Event()

    async def keep_asking(number):
        while not ended.is_set():
            statuses.append((await ask(gateway, path, stream=bool(number % 2)))[0])

    clients = [asyncio.create_task(keep_asking(number)) for number in range(8)]
    for number in (0, 1, 0):
        server, healthy = servers[number], f"cluster.{ns}_{runtime}_80.membership_healthy"
        asked = len(statuses)
        await placed(gateway, ns, runtime, server, f"{runtime}-{number}", ready=False, serving=True)
        await eventually(lambda name=healthy: _stat(gateway, name, "1"))
        await holds(lambda seen=asked: len(statuses) > seen + 50)
        await server.stop()
        await server.start()
        await placed(gateway, ns, runtime, server, f"{runtime}-{number}")
        await eventually(lambda name=healthy: _stat(gateway, name, "2"))
    ended.set()
    await asyncio.gather(*clients)
    assert {*statuses} == {200}
    assert [each.lost for each in servers] == [0, 0]
    assert sum(each.accepted for each in servers) < len(statuses) / 2
    for each in servers:
        await each.stop()


async def test_a_stream_survives_when_its_service_begins_to_keep_connections(gateway, ns):
    server = await gateway.server(ns, "v-1")
    await gateway.route(ns, "vee", {"v-1": 100})
    path = f"/endpoints/{ns}/vee/v1/x"
    stream = asyncio.create_task(ask(gateway, path, stream=4, pause=True))
    await holds(lambda: bool(server.requests))
    assert await connections(gateway, ns, 3, path) == 3
    found = await gateway.user.get(ENDPOINT_SLICES, ObjectKey(ns, "v-1"))
    body = {
        "metadata": {"name": "v-1", "namespace": ns, "labels": {**found.meta.labels, LABEL_KEEP_ALIVE: "5"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": server.port, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
    }
    await gateway.user.apply(ENDPOINT_SLICES, body, force=True)

    async def kept():
        return await connections(gateway, ns, 5, path) == 0

    await eventually(kept)
    # Other routes still get there, too, and the stream goes on.
    assert not stream.done()
    server.release.set()
    assert (await stream)[0] == 200


async def connections(gateway, ns, requests, path):
    """Number of connections that so many requests needed, one after the other."""
    name = f"cluster.{ns}_v-1_80.upstream_cx_total"
    before = int((await gateway.stat(f"^{name}$")).get(name, 0))
    for _ in range(requests):
        assert (await ask(gateway, path))[0] == 200
    return int((await gateway.stat(f"^{name}$")).get(name, 0)) - before


async def _stat(gateway, name, value):
    return (await gateway.stat(f"^{name}$")).get(name) == value
