"""Numbers of requests: what the gateway reports is what a test has sent, through a real Envoy."""

import asyncio
import contextlib
import json
import math

import pytest

from pilotage.api.gateway_route import GatewayRoute
from pilotage.api.measured import bin_of
from pilotage.api.names import GATEWAY_ROUTES
from pilotage.kube import ObjectKey
from tests.support.waiting import eventually, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

FIRST_AFTER = 0.3


class Speaker:
    """A server that sends headers at once, then what the body of the request wishes for."""

    def __init__(self):
        self.release = asyncio.Event()
        self.asked = 0
        self._server = None

    async def start(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def stop(self):
        self.release.set()
        self._server.close()

    async def _serve(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ValueError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
            wish = json.loads(await reader.readexactly(length))
            self.asked += 1
            status = wish.get("status", 200)
            writer.write(
                f"HTTP/1.1 {status} X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".encode()
            )
            await writer.drain()
            if wish.get("hang"):
                await self.release.wait()
            await asyncio.sleep(wish.get("after", 0))
            for piece in wish.get("pieces", ["data: x\n\n"]):
                writer.write(piece.encode())
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()


async def speaking(gateway, ns, *services):
    found = {}
    for each in services:
        found[each] = Speaker()
        gateway.servers.append(found[each])
        await gateway.slice(ns, each, await found[each].start())
    return found


async def measured(gateway, ns, name, wanted):
    """The strata, as soon as they are as wanted."""
    strata = []

    def told(obj):
        strata[:] = GatewayRoute.read({"spec": obj.get("spec"), "status": obj.get("status")}).status.measured
        return bool(strata) and wanted(strata)

    await until(gateway.user, GATEWAY_ROUTES, ObjectKey(ns, name), told)
    return strata


def side(stratum, service):
    return next(each for each in stratum.backends if each.service == service)


async def test_what_is_reported_is_what_was_sent(gateway, ns):
    await speaking(gateway, ns, "m-7", "m-8")
    revisions = [{"number": 7, "service": "m-7"}, {"number": 8, "service": "m-8"}]
    branches = [{"headers": [{"name": "x-to", "exact": "8"}], "backends": [{"service": "m-8"}]}]
    await gateway.route(ns, "em", {"m-7": 100, "m-8": 0}, measure=True, revisions=revisions, branches=branches)
    path = f"/endpoints/{ns}/em/v1/x"
    said = 'data: {"choices":[{"text":"\\"completion_tokens\\": 99, completion_tokens: 98 "}]}\n\n'
    usage = [
        said,
        said,
        'data: {"usage":{"prompt_tokens":3,"comp',
        'letion_tokens": 11}}\n\n',
        said,
        "data: [DONE]\n\n",
    ]
    for _ in range(4):
        assert (await gateway.post(path, {"after": FIRST_AFTER, "pieces": usage}))[0] == 200
    for _ in range(3):
        assert (await gateway.post(path, {"status": 500}, headers={"x-to": "8"}))[0] == 500
    assert (await gateway.post(path, {"status": 404}, headers={"x-to": "8"}))[0] == 404
    await gateway.post(f"/endpoints/{ns}/em@8/v1/x", {})  # asked for by name: no part of any comparison
    strata = await measured(
        gateway, ns, "em", lambda all_: sum(side.requests.n for each in all_ for side in each.backends) >= 8
    )
    main, branch = strata
    assert [(each.service, each.weight, each.requests.n) for each in main.backends] == [("m-7", 100, 4), ("m-8", 0, 0)]
    seven = side(main, "m-7").requests
    assert (seven.errors, seven.gave_up, seven.ttft.n, seven.tokens_per_second.n) == (0, 0, 4, 4)
    typical = math.exp(seven.ttft.sum / 4)
    assert FIRST_AFTER <= typical < FIRST_AFTER + 0.25  # the headers were there at once
    assert seven.first_token.n == 4
    assert seven.first_token.above(bin_of(FIRST_AFTER) - 2) == 4
    assert 10 / 5 < math.exp(seven.tokens_per_second.sum / 4) < 10 / 0.1  # 10 more tokens, in some tenths of a second
    assert [(each.service, each.weight) for each in branch.backends] == [("m-8", 100)]
    eight = side(branch, "m-8").requests
    assert (eight.n, eight.errors, eight.gave_up, eight.ttft.n) == (4, 4, 0, 0)
    found = await gateway.route(ns, "em", {"m-7": 100})  # nobody asks for it any more
    assert "measured" not in found.get("status")


async def test_a_server_that_hangs_is_seen_before_its_clients_leave_and_after(gateway, ns):
    speaker = (await speaking(gateway, ns, "h-1"))["h-1"]
    await gateway.route(ns, "aitch", {"h-1": 100}, measure=True)
    hanging = [asyncio.create_task(gateway.post(f"/endpoints/{ns}/aitch/v1/x", {"hang": True})) for _ in range(3)]
    seen = await measured(gateway, ns, "aitch", lambda all_: side(all_[0], "h-1").under_way == 3)
    waiting = side(seen[0], "h-1")
    assert waiting.requests.n == 0
    assert waiting.requests.no_token.n == 3
    for each in hanging[:2]:
        each.cancel()
    await asyncio.gather(*hanging[:2], return_exceptions=True)
    left = await measured(gateway, ns, "aitch", lambda all_: side(all_[0], "h-1").requests.n == 2)
    gone = side(left[0], "h-1")
    assert (gone.requests.gave_up, gone.requests.errors, gone.under_way) == (2, 0, 1)
    assert gone.requests.no_token.n == 3
    speaker.release.set()
    assert (await hanging[2])[0] == 200
    ended = await measured(gateway, ns, "aitch", lambda all_: side(all_[0], "h-1").requests.n == 3)
    over = side(ended[0], "h-1")
    assert (over.requests.gave_up, over.under_way, over.requests.no_token.n, over.requests.ttft.n) == (2, 0, 2, 1)


async def test_requests_belong_to_the_shares_under_which_they_began(gateway, ns):
    speakers = await speaking(gateway, ns, "b-1", "b-2")
    path = f"/endpoints/{ns}/bee/v1/x"
    await gateway.route(ns, "bee", {"b-1": 100, "b-2": 0}, measure=True)
    early = asyncio.create_task(gateway.post(path, {"hang": True}))
    await measured(gateway, ns, "bee", lambda all_: side(all_[0], "b-1").under_way == 1)
    await gateway.route(ns, "bee", {"b-1": 0, "b-2": 100}, measure=True)
    assert (await gateway.post(path, {}))[0] == 200
    speakers["b-1"].release.set()
    assert (await early)[0] == 200
    strata = await measured(
        gateway, ns, "bee", lambda all_: sum(each.requests.n for one in all_ for each in one.backends) == 2
    )
    numbers = [[(each.service, each.weight, each.requests.n) for each in one.backends] for one in strata]
    assert numbers == [[("b-1", 100, 1), ("b-2", 0, 0)], [("b-1", 0, 0), ("b-2", 100, 1)]]
    # A third stratum with the shares of the first one is another one.
    await gateway.route(ns, "bee", {"b-1": 100, "b-2": 0}, measure=True)
    assert (await gateway.post(path, {}))[0] == 200
    strata = await measured(gateway, ns, "bee", lambda all_: len(all_) == 3 and side(all_[2], "b-1").requests.n == 1)
    assert side(strata[0], "b-1").requests.n == 1
    assert len({each.version for each in strata}) == 3


async def test_with_keys_each_key_counts_once(gateway, ns):
    await speaking(gateway, ns, "k-1")
    assign = {"keys": [{"header": "x-user"}]}
    await gateway.route(ns, "kay", {"k-1": 100}, measure=True, assign=assign)
    path = f"/endpoints/{ns}/kay/v1/x"
    for user, times in (("ann", 6), ("bob", 2)):
        for number in range(times):
            wish = {"status": 500 if user == "bob" and number else 200}
            await gateway.post(path, wish, headers={"x-user": user})
    await gateway.post(path, {})  # without a key: no unit
    strata = await measured(gateway, ns, "kay", lambda all_: side(all_[0], "k-1").requests.n == 9)
    found = side(strata[0], "k-1")
    assert (found.requests.errors, found.requests.ttft.n) == (1, 0)
    assert (found.units.n, found.units.errors, found.units.ttft.n) == (2, 0.5, 2)
    assert found.units.first_token.n == pytest.approx(1.5, abs=0.01)


async def test_the_access_log_has_the_time_to_the_first_byte_of_the_body(gateway, ns):
    await speaking(gateway, ns, "l-1")
    await gateway.route(ns, "ell", {"l-1": 100})
    before = gateway.folder.measured_log.stat().st_size
    await gateway.post(f"/endpoints/{ns}/ell/v1/x", {"after": FIRST_AFTER})

    async def logged():
        lines = [json.loads(each) for each in gateway.folder.access_log.read_text().splitlines() if ns in each]
        return lines and lines[0]["ms_to_first_byte"] >= FIRST_AFTER * 1000 and len(lines) == 1

    await eventually(logged)
    lines = gateway.folder.measured_log.read_text()[before:]
    assert ns not in lines  # nobody measures it


async def test_a_copy_over_the_limit_is_no_error(gateway, ns):
    speakers = await speaking(gateway, ns, "c-1", "c-2")
    copies = [{"service": "c-2", "maxConcurrent": 2}]
    await gateway.route(ns, "cee", {"c-1": 100}, measure=True, copies=copies)
    speakers["c-1"].release.set()
    path = f"/endpoints/{ns}/cee/v1/x"
    assert (await gateway.post(path, {"status": 500}))[0] == 500  # of both

    async def settled():
        found = await gateway.stat(f"^cluster.{ns}_c-2_80_copies2.upstream_rq_(5xx|active)$")
        return {*found.values()} == {"1", "0"}

    await eventually(settled)
    asked = [gateway.post(path, {"hang": True}) for _ in range(10)]
    assert {status for status, _ in await asyncio.gather(*asked)} == {200}
    wanted = [{"service": "c-2", "sent": 3, "errors": 1, "overflow": 8}]
    await until(gateway.user, GATEWAY_ROUTES, ObjectKey(ns, "cee"), lambda obj: obj.get("status", "copies") == wanted)
    strata = await measured(gateway, ns, "cee", lambda all_: side(all_[0], "c-1").requests.n == 11)
    assert [each.service for each in strata[0].backends] == ["c-1"]  # nobody waits for a copy: it has no share
    assert (side(strata[0], "c-1").requests.errors, side(strata[0], "c-1").requests.ttft.n) == (1, 10)
