"""Changes of routes under load: proven by Envoy, counted to the end, and refused in its own words."""

import asyncio
import json

import pytest

from pilotage.api.names import GATEWAY_ROUTES
from pilotage.gateway.claims import decide
from pilotage.gateway.inputs import ENDPOINT_SLICES, GatewayBackend, ProxiedRoute
from pilotage.gateway.snapshot import LDS, SRDS
from pilotage.kube import ObjectKey
from tests.gateway.gateway_host import GatewayHost, Server, code, holds
from tests.support.waiting import eventually, until

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Load:
    """Clients that never stop. A request after a change was proven must be answered by a holder of the share."""

    def __init__(self, gateway, path, clients=6):
        self.gateway, self.path = gateway, path
        self.expected = None
        self.epoch = 0
        self.answers = 0
        self.wrong = []
        self._tasks = [asyncio.create_task(self._client()) for _ in range(clients)]

    def expect(self, server):
        self.expected = server
        self.epoch += 1

    def change(self):
        """Note a change of the route: until the next `expect`, either may answer."""
        self.epoch += 1
        self.expected = None

    async def _client(self):
        while True:
            expected, epoch = self.expected, self.epoch
            status, body = await self.gateway.post(self.path, {"model": "loaded"})
            self.answers += 1
            if status != 200 or (expected and epoch == self.epoch and body["server"] != expected):
                self.wrong.append((status, body, expected))

    async def stop(self):
        for each in self._tasks:
            each.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        return [each for each in results if not isinstance(each, asyncio.CancelledError)]


async def test_no_request_goes_to_the_old_place_once_a_change_is_proven(gateway, ns):
    servers = [await gateway.server(ns, f"a-{number}") for number in range(3)]
    await gateway.route(ns, "loaded", {"a-0": 100}, models=["loaded"])
    load = Load(gateway, "/v1/chat/completions")
    load.expect("a-0")
    for number in range(40):
        old, new = f"a-{number % 3}", f"a-{(number + 1) % 3}"
        load.change()
        await gateway.route(ns, "loaded", {old: 100, new: 0}, models=["loaded"])  # warm
        await gateway.route(ns, "loaded", {old: 0, new: 100}, models=["loaded"])
        load.expect(new)
        answered = load.answers
        await holds(lambda seen=answered: load.answers >= seen + 6)
    assert await load.stop() == []
    assert load.wrong == []
    assert load.answers > 400
    assert all(each.requests for each in servers)
    stats = await gateway.stat("^listener_manager.listener_")
    assert stats["listener_manager.listener_modified"] == "0"
    assert stats["listener_manager.listener_added"] == "1"
    assert gateway.control.ads.sent[LDS] == 1


async def test_a_new_service_can_get_everything_at_once(gateway, ns):
    """Its cluster and its addresses are there before a route leads to it."""
    server = await gateway.server(ns, "new")
    await gateway.route(ns, "new", {"new": 100}, models=["loaded"])
    load = Load(gateway, f"/endpoints/{ns}/new/")
    for number in range(12):
        await gateway.slice(ns, f"new-{number}", server.port)
        await gateway.route(ns, "new", {f"new-{number}": 100})
    assert await load.stop() == []
    assert load.wrong == []


async def test_a_status_says_the_version_that_envoy_has_loaded(gateway, ns):
    await gateway.server(ns, "b-1")
    route = await gateway.route(ns, "bee", {"b-1": 100})
    loaded = await gateway.stat("^http.gateway.scoped_rds.main.version_text$")
    assert loaded["http.gateway.scoped_rds.main.version_text"].strip('"') == route.get("status", "version")


async def test_nothing_is_written_while_nothing_changes(gateway, ns):
    first, second = await gateway.server(ns, "c-1"), await gateway.server(ns, "c-2")
    await gateway.route(ns, "one", {"c-1": 100, "c-2": 0})
    before = await gateway.settled(ns, "one")
    writes = written(gateway, ns, "one")
    # It is reconciled again, as after a restart or a relist.
    gateway.control._controller.queue.add(ObjectKey(ns, "one"))
    # Other routes come and go, and servers are busy: that changes nothing for this route.
    await gateway.route(ns, "two", {"c-2": 100})
    await gateway.delete_route(ns, "two")
    await asyncio.gather(*(gateway.get(f"/endpoints/{ns}/one/") for _ in range(20)))
    await gateway.slice(ns, "c-1", first.port, conditions={"ready": False, "serving": True})
    await gateway.slice(ns, "c-1", first.port)
    await gateway.route(ns, "three", {"c-1": 100})
    after = await gateway.settled(ns, "one")
    assert written(gateway, ns, "one") == writes
    assert after.meta.resource_version == before.meta.resource_version
    assert second.requests == []


async def test_requests_that_are_under_way_are_counted_until_they_end(gateway, ns):
    old = await gateway.server(ns, "d-1")
    await gateway.server(ns, "d-2")
    idle = await gateway.route(ns, "dee", {"d-1": 0, "d-2": 100})
    assert idle.get("status", "counts") == [{"service": "d-1", "inFlight": 0}]  # which is not its last word
    await gateway.route(ns, "dee", {"d-1": 100, "d-2": 0})
    held = [asyncio.create_task(gateway.post(f"/endpoints/{ns}/dee/", {"hold": True})) for _ in range(3)]
    await holds(lambda: len(old.requests) == 3)
    route = await gateway.route(ns, "dee", {"d-1": 0, "d-2": 100})
    assert route.get("status", "counts") == [{"service": "d-1", "inFlight": 3}]
    # Its addresses go, then its place in the route: its requests go on, and are counted still.
    await gateway.no_slice(ns, "d-1")
    route = await gateway.route(ns, "dee", {"d-2": 100})
    assert route.get("status", "counts") == [{"service": "d-1", "inFlight": 3}]
    assert not any(each.done() for each in held)
    old.release.set()
    assert await asyncio.gather(*held) == [(200, {"server": "d-1"})] * 3
    await counted(gateway, ns, "dee", {"d-1": 0})


async def test_requests_that_wait_for_a_connection_are_counted(gateway, ns):
    """A server that takes no connection: its backlog is full, so a request to it is neither active nor failed."""
    with full_socket() as port:
        await gateway.slice(ns, "e-1", port)
        await gateway.server(ns, "e-2")
        await gateway.route(ns, "eee", {"e-1": 100, "e-2": 0})
        asked = asyncio.create_task(gateway.get(f"/endpoints/{ns}/eee/"))

        async def waits():
            stats = await gateway.stat(f"^cluster.{ns}_e-1_80.upstream_rq")
            return stats[f"cluster.{ns}_e-1_80.upstream_rq_pending_active"] == "1"

        await eventually(waits)
        stats = await gateway.stat(f"^cluster.{ns}_e-1_80.upstream_rq_active")
        assert stats == {f"cluster.{ns}_e-1_80.upstream_rq_active": "0"}
        route = await gateway.route(ns, "eee", {"e-1": 0, "e-2": 100})
        assert route.get("status", "counts") == [{"service": "e-1", "inFlight": 1}]
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await counted(gateway, ns, "eee", {"e-1": 0})


async def test_a_slow_upload_is_counted_and_goes_where_its_model_is_when_it_has_arrived(gateway, ns):
    """Its model is in its body, and until that has arrived no cluster knows of it."""
    old = await gateway.server(ns, "f-1")
    await gateway.server(ns, "f-2")
    await gateway.route(ns, "eff", {"f-1": 100, "f-2": 0}, models=["eff"])
    body = json.dumps({"model": "eff", "pad": "x" * 100}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.settings.port)
    head = f"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body[:10])

    async def arrived():
        return (await gateway.stat("^http.gateway.downstream_rq_active$"))["http.gateway.downstream_rq_active"] != "0"

    await eventually(arrived)
    route = await gateway.route(ns, "eff", {"f-1": 0, "f-2": 100}, models=["eff"])
    (count,) = route.get("status", "counts")
    assert count["inFlight"] >= 1
    route = await gateway.route(ns, "eff", {"f-2": 100}, models=["eff"])  # nothing refers to it any more
    (count,) = route.get("status", "counts")
    assert (count["service"], count["inFlight"] >= 1) == ("f-1", True)
    writer.write(body[10:])
    answer = await reader.readuntil(b"}")
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"f-2"' in answer
    assert old.requests == []
    writer.close()
    await counted(gateway, ns, "eff", {"f-1": 0})


async def test_streams_survive_every_kind_of_change(gateway, ns):
    old = await gateway.server(ns, "g-1")
    new = await gateway.server(ns, "g-2")
    await gateway.route(ns, "gee", {"g-1": 100}, models=["gee"])

    async def stream():
        body = {"model": "gee", "stream": 6, "pause": True}
        async with gateway.http.post(f"{gateway.url}/v1/chat/completions", json=body) as answer:
            return await answer.text()

    streams = [asyncio.create_task(stream()) for _ in range(4)]
    await holds(lambda: len(old.requests) == 4)
    await gateway.route(ns, "gee", {"g-1": 100, "g-2": 0}, models=["gee"])
    await gateway.route(ns, "gee", {"g-1": 50, "g-2": 50}, models=["gee"])
    await gateway.route(ns, "gee", {"g-1": 0, "g-2": 100}, models=["gee"])
    await gateway.slice(ns, "g-1", old.port, conditions={"ready": False, "serving": True, "terminating": True})
    await gateway.no_slice(ns, "g-1")
    await gateway.route(ns, "gee", {"g-2": 100}, models=["other"])
    await gateway.delete_route(ns, "gee")
    assert not any(each.done() for each in streams)
    old.release.set()
    whole = "".join(f"data: g-1 {number}\n\n" for number in range(6))
    assert await asyncio.gather(*streams) == [whole] * 4
    assert new.requests == []


async def test_what_envoy_refuses_is_reported_in_its_words_and_the_old_route_stays(gateway, ns):
    await gateway.server(ns, "h-1")
    await gateway.server(ns, "h-2")
    await gateway.route(ns, "aitch", {"h-1": 100}, host="aitch.example.com", path="/good")
    # Written together: that one of them is refused does not hold up the others.
    await asyncio.gather(
        gateway.write_route(ns, "aitch", {"h-2": 100}, host="aitch.example.com", path="/bad?path"),
        *(gateway.write_route(ns, f"fine{number}", {"h-2": 100}) for number in range(3)),
    )
    refused = await gateway.settled(ns, "aitch", "Rejected")
    message = refused.get("status", "message")
    assert "PathSeparatedPrefix: value does not match regex pattern" in message
    assert len(message) < 1100  # and not the whole table, which Envoy repeats
    for number in range(3):
        await gateway.settled(ns, f"fine{number}")
        assert await gateway.get(f"/endpoints/{ns}/fine{number}/") == (200, {"server": "h-2"})
    assert await gateway.get(f"/endpoints/{ns}/aitch/") == (200, {"server": "h-1"})
    assert await gateway.get("/good", headers={"Host": "aitch.example.com"}) == (200, {"server": "h-1"})
    mended = await gateway.route(ns, "aitch", {"h-2": 100}, host="aitch.example.com", path="/better")
    assert "message" not in mended.get("status")
    assert await gateway.get(f"/endpoints/{ns}/aitch/") == (200, {"server": "h-2"})


async def test_a_refused_route_that_is_deleted_leaves_nothing(gateway, ns):
    await gateway.write_route(ns, "bad", {"j-1": 100}, host="j.example.com", path="/x#y")
    await gateway.settled(ns, "bad", "Rejected")
    found = await gateway.user.get(GATEWAY_ROUTES, ObjectKey(ns, "bad"))
    await gateway.delete_route(ns, "bad")
    await holds(lambda: found.meta.uid not in gateway.control.program.rejected)
    assert code(await gateway.get(f"/endpoints/{ns}/bad/")) == (404, "not_found")


async def one_of_two_away(gateway: GatewayHost, ns: str, name: str) -> Server:
    """A route to two servers of which one refuses connections. Returns the other."""
    up, down = await gateway.server(ns, f"{name}-up"), await gateway.server(ns, f"{name}-down")
    for each in (up, down):
        await gateway.slice(ns, name, each.port, name=f"{each.name}-x")
    await down.stop()
    await gateway.route(ns, name, {name: 100})
    return up


async def test_where_one_server_refuses_connections_the_other_gets_the_request_once(gateway, ns):
    up = await one_of_two_away(gateway, ns, "kay")
    answers = [await gateway.post(f"/endpoints/{ns}/kay/", {"number": number}) for number in range(60)]
    assert {status for status, _ in answers} == {200}
    assert [json.loads(each)["number"] for each in up.bodies] == [*range(60)]


async def test_what_was_delivered_is_not_sent_again(gateway, ns):
    servers = [await gateway.server(ns, f"l-{number}") for number in range(2)]
    for each in servers:
        await gateway.slice(ns, "ell", each.port, name=each.name + "x")
    await gateway.route(ns, "ell", {"ell": 100})
    assert code(await gateway.post(f"/endpoints/{ns}/ell/", {"reset": True})) == (502, "upstream_broke_off")
    assert sum(len(each.requests) for each in servers) == 1
    assert (await gateway.post(f"/endpoints/{ns}/ell/", {"status": 503}))[0] == 503
    assert sum(len(each.requests) for each in servers) == 2


async def test_all_servers_away_is_said_in_words(gateway, ns):
    gone = await gateway.server(ns, "m-1")
    await gone.stop()
    await gateway.route(ns, "emm", {"m-1": 100})
    assert code(await gateway.get(f"/endpoints/{ns}/emm/")) == (503, "connection_failed")


async def test_many_requests_can_be_sent_again_at_a_time(gateway, ns):
    """Envoy's default is 3: a server that is unavailable would fail all the other requests that reach it then."""
    up = await one_of_two_away(gateway, ns, "enn")
    asked = [asyncio.create_task(gateway.post(f"/endpoints/{ns}/enn/", {"hold": True})) for _ in range(150)]
    await holds(lambda: len(up.requests) == 150 or any(each.done() for each in asked))
    up.release.set()
    assert {status for status, _ in await asyncio.gather(*asked)} == {200}
    again = await gateway.stat(f"^cluster.{ns}_enn_80.upstream_rq_retry$")
    assert int(again[f"cluster.{ns}_enn_80.upstream_rq_retry"]) > 3


async def test_a_table_that_leads_to_a_cluster_which_is_not_there_is_refused(gateway, ns):
    """Our own mistake, if it were one: it would answer with 503 and be taken for proven."""
    program = gateway.control.program
    stray = ProxiedRoute(
        ObjectKey(ns, "stray"), "uid", 1, "2026", "stray", backends=(GatewayBackend("nowhere", 80, 100),)
    )
    (claim,) = decide([stray], {}).claims
    made = program.snapshot.change({"uid": claim}, program.hosts)
    tables = {SRDS: made.resources[SRDS]}
    verdict = await gateway.control.ads.offer(tables)
    assert (verdict.taken, verdict.type_url) == (False, SRDS)
    assert f"unknown weighted cluster '{ns}_nowhere_80'" in verdict.text
    assert gateway.control.ads.types[SRDS].version == program.snapshot.version


async def test_what_was_refused_together_with_something_else_is_taken_alone(gateway, ns):
    """Envoy keeps a part of what it refuses, and would not notice that it is sent again: it would acknowledge it."""
    await gateway.server(ns, "r-1")
    await gateway.server(ns, "r-2")
    await gateway.route(ns, "are", {"r-1": 100, "r-2": 0})
    ads, snapshot = gateway.control.ads, gateway.control.program.snapshot
    (route,) = (each for each in gateway.control.program.accepted.values() if each.key == ObjectKey(ns, "are"))
    moved = route._replace(backends=tuple(each._replace(weight=100 - each.weight) for each in route.backends))
    stray = route._replace(uid="uid", endpoint="zed", backends=(GatewayBackend("nowhere", 80, 100),))
    good, bad = decide([moved, stray], {}).claims
    tables = snapshot.change({route.uid: good}, gateway.control.program.hosts).resources[SRDS]
    strays = snapshot.change({"uid": bad}, gateway.control.program.hosts).resources[SRDS]
    assert not (await ads.offer({SRDS: {**tables, **strays}})).taken
    assert await gateway.get(f"/endpoints/{ns}/are/") == (200, {"server": "r-1"})
    assert (await ads.offer({SRDS: tables})).taken
    assert await gateway.get(f"/endpoints/{ns}/are/") == (200, {"server": "r-2"})
    back = {name: snapshot.types[SRDS].by_name[name] for name in tables}
    assert (await ads.offer({SRDS: back})).taken


async def test_a_thousand_requests_at_a_time_are_not_too_many(gateway, ns):
    server = await gateway.server(ns, "o-1")
    await gateway.route(ns, "oh", {"o-1": 100})
    held = [asyncio.create_task(gateway.post(f"/endpoints/{ns}/oh/", {"hold": True})) for _ in range(1100)]
    await holds(lambda: len(server.requests) == 1100 or any(each.done() for each in held), 30)
    server.release.set()
    assert {status for status, _ in await asyncio.gather(*held)} == {200}


async def test_slices_of_a_real_cluster_are_understood(gateway, ns):
    """Several ports: the one called http; and unset conditions."""
    server = await gateway.server(ns, "p-1")
    body = {
        "metadata": {"name": "pee", "namespace": ns, "labels": {"kubernetes.io/service-name": "pee"}},
        "addressType": "IPv4",
        "ports": [{"name": "metrics", "port": 1}, {"name": "http", "port": server.port}],
        "endpoints": [{"addresses": ["127.0.0.1"]}],
    }
    await gateway.user.create(ENDPOINT_SLICES, body)
    await gateway.route(ns, "pee", {"pee": 100})
    assert await gateway.get(f"/endpoints/{ns}/pee/") == (200, {"server": "p-1"})


def written(gateway, namespace, name):
    key = f"{namespace}/{name}"
    return len([each for each in gateway.world.trace.writes if each.who == "gateway" and each.key == key])


async def counted(gateway, namespace, name, wanted):
    def done(obj):
        return {each["service"]: each["inFlight"] for each in obj.get("status", "counts", default=())} == wanted

    return await until(gateway.user, GATEWAY_ROUTES, ObjectKey(namespace, name), done)


def full_socket():
    """A port whose connections wait: something listens, and its backlog is full."""
    import contextlib
    import socket

    @contextlib.contextmanager
    def full():
        with contextlib.ExitStack() as stack:
            listener = stack.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            for _ in range(2):
                client = stack.enter_context(socket.socket())
                client.setblocking(False)
                client.connect_ex(listener.getsockname())
            yield listener.getsockname()[1]

    return full()
