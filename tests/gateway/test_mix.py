"""Branches by headers, copies, keys and direct paths: where requests go, on a real Envoy."""

import asyncio
import collections

import pytest

from pilotage.api.names import GATEWAY_ROUTES
from pilotage.kube import ObjectKey
from tests.gateway.gateway_host import code
from tests.support.waiting import eventually, until

pytestmark = pytest.mark.asyncio(loop_scope="session")


def branch(headers, **weights):
    return {
        "headers": [{"name": name, "exact": value} for name, value in headers.items()],
        "backends": [{"service": service, "weight": weight} for service, weight in weights.items()],
    }


async def ways(gateway, ns, name):
    """Answers by each way in to an endpoint whose host is NAME.example.com, for headers."""

    async def ask(**headers):
        by_path = await gateway.get(f"/endpoints/{ns}/{name}/v1/x", headers=headers)
        by_host = await gateway.get("/v1/x", headers={"Host": f"{name}.example.com", **headers})
        by_model = await gateway.post("/v1/x", {"model": f"{ns}-{name}"}, headers=headers)
        assert by_path == by_host == by_model
        return by_path

    return ask


async def test_requests_with_certain_headers_have_a_branch_by_every_way_in(gateway, ns):
    for each in ("one", "two", "three"):
        await gateway.server(ns, each)
    branches = [
        branch({"x-group": "beta", "x-tier": "gold"}, three=100),
        branch({"x-group": "beta"}, two=100),
        branch({"x-odd": 'a "quoted" %REQ(x)% \\ value'}, two=100),
    ]
    names = {"models": [f"{ns}-branched"], "host": "branched.example.com"}
    await gateway.route(ns, "branched", {"one": 100}, branches=branches, **names)
    ask = await ways(gateway, ns, "branched")
    assert await ask() == (200, {"server": "one"})
    assert await ask(**{"X-Group": "beta"}) == (200, {"server": "two"})
    assert await ask(**{"X-Group": "beta", "X-Tier": "gold"}) == (200, {"server": "three"})
    assert await ask(**{"X-Group": "Beta"}) == await ask(**{"X-Tier": "gold"}) == (200, {"server": "one"})
    assert await ask(**{"X-Odd": 'a "quoted" %REQ(x)% \\ value'}) == (200, {"server": "two"})
    # Without a server, a branch says so, and does not fall back; without a weight, it is detached.
    await gateway.route(ns, "branched", {"one": 100}, branches=[branch({"x-group": "beta"}, none=100)], **names)
    assert code(await ask(**{"X-Group": "beta"})) == (503, "no_ready_backend")
    await gateway.route(ns, "branched", {"one": 100}, branches=[branch({"x-group": "beta"}, two=0)], **names)
    assert code(await ask(**{"X-Group": "beta"})) == (503, "endpoint_detached")
    assert await ask() == (200, {"server": "one"})


async def test_a_revision_has_a_path_of_its_own_whatever_the_weights(gateway, ns):
    old, new = await gateway.server(ns, "direct-7"), await gateway.server(ns, "direct-8")
    revisions = [{"number": 7, "service": "direct-7"}, {"number": 8, "service": "direct-8"}]
    await gateway.route(ns, "direct", {"direct-7": 100, "direct-8": 0}, revisions=revisions)
    base = f"/endpoints/{ns}/direct"
    assert await gateway.get(f"{base}@8/v1/x?q=1") == (200, {"server": "direct-8"})
    assert await gateway.get(f"{base}@7") == (200, {"server": "direct-7"})
    assert await gateway.get(f"{base}/v1/x") == (200, {"server": "direct-7"})
    assert [path for _, path in new.requests] == ["/v1/x?q=1"]
    assert [path for _, path in old.requests] == ["/", "/v1/x"]
    for path in ("@9/v1/x", "@/v1/x", "@78/v1/x", "@8x/v1/x", "@8/slots"):
        assert code(await gateway.get(f"{base}{path}")) == (404, "not_found"), path
    # They are references: the cluster outlives the weight, and what is under way is counted.
    await gateway.route(ns, "direct", {"direct-7": 100}, revisions=revisions)
    held = asyncio.create_task(gateway.post(f"{base}@8/v1/x", {"hold": True}))
    await counted(gateway, ns, "direct", {"direct-8": 1})
    await gateway.route(ns, "direct", {"direct-7": 100})
    assert code(await gateway.get(f"{base}@8/v1/x")) == (404, "not_found")
    await counted(gateway, ns, "direct", {"direct-8": 1})
    new.release.set()
    assert await held == (200, {"server": "direct-8"})
    await counted(gateway, ns, "direct", {"direct-8": 0})


async def counted(gateway, ns, name, wanted):
    def told(obj):
        counts = (obj.get("status", default={}) or {}).get("counts") or []
        return {each["service"]: each["inFlight"] for each in counts} == wanted

    return await until(gateway.user, GATEWAY_ROUTES, ObjectKey(ns, name), told)


async def test_copies_are_sent_by_percent_and_nobody_waits_for_their_answer(gateway, ns):
    serving, shadow = await gateway.server(ns, "m-1"), await gateway.server(ns, "m-2")
    spec = {"models": [f"{ns}-copied"], "host": "copied.example.com"}
    await gateway.route(ns, "copied", {"m-1": 100}, copies=[{"service": "m-2"}], **spec)
    ask = await ways(gateway, ns, "copied")
    assert await ask() == (200, {"server": "m-1"})
    await eventually(lambda: same(shadow.requests, serving.requests))
    assert {each["Host"] for each in shadow.headers} == {each["Host"] for each in serving.headers}
    body = {"status": 500, "pad": "x" * 3_000_000}
    assert (await gateway.post(f"/endpoints/{ns}/copied/v1/x", body))[0] == 500
    await eventually(lambda: same(shadow.bodies, serving.bodies))
    await gateway.route(ns, "copied", {"m-1": 100}, copies=[{"service": "m-2", "percent": 25}], **spec)
    before = len(shadow.requests)
    for _ in range(200):
        assert await gateway.get(f"/endpoints/{ns}/copied/v1/x") == (200, {"server": "m-1"})
    await copies_done(gateway, f"{ns}_m-2_80_copies0")
    assert 20 <= len(shadow.requests) - before <= 85


async def same(one, other):
    return sorted(one) == sorted(other)


async def copies_done(gateway, cluster):
    async def idle():
        return set((await gateway.stat(f"^cluster.{cluster}.upstream_rq.*active$")).values()) == {"0"}

    await eventually(idle)


async def test_copies_over_their_limit_are_not_sent_and_those_under_way_are_waited_for(gateway, ns):
    serving, shadow = await gateway.server(ns, "n-1"), await gateway.server(ns, "n-2")
    copies = [{"service": "n-2", "maxConcurrent": 2}]
    await gateway.route(ns, "limited", {"n-1": 100}, copies=copies)
    serving.release.set()  # the same wish: the shadow alone holds it
    asked = [gateway.post(f"/endpoints/{ns}/limited/v1/x", {"hold": True}) for _ in range(20)]
    assert await asyncio.gather(*asked) == [(200, {"server": "n-1"})] * 20
    await eventually(lambda: _stat(gateway, f"cluster.{ns}_n-2_80_copies2.upstream_rq_5xx", "18"))
    assert len(shadow.requests) == 2
    await counted(gateway, ns, "limited", {"n-2": 2})
    await gateway.route(ns, "limited", {"n-1": 100})  # it has left: what it has is waited for
    await counted(gateway, ns, "limited", {"n-2": 2})
    shadow.release.set()
    await counted(gateway, ns, "limited", {"n-2": 0})


async def _stat(gateway, name, value):
    return (await gateway.stat(f"^{name}$")).get(name) == value


async def test_the_status_says_which_share_each_service_really_has(gateway, ns):
    await gateway.server(ns, "e-1")
    two = await gateway.server(ns, "e-2")
    await gateway.route(ns, "eff", {"e-1": 95, "e-2": 5, "e-3": 0})
    await effective(gateway, ns, "eff", {"e-1": 95, "e-2": 5, "e-3": 0})
    await gateway.no_slice(ns, "e-1")
    await effective(gateway, ns, "eff", {"e-1": 0, "e-2": 100, "e-3": 0})
    await gateway.slice(ns, "e-1", two.port)
    await effective(gateway, ns, "eff", {"e-1": 95, "e-2": 5, "e-3": 0})


async def effective(gateway, ns, name, wanted):
    def told(obj):
        said = (obj.get("status", default={}) or {}).get("effective") or []
        return {each["service"]: each["percent"] for each in said} == wanted

    return await until(gateway.user, GATEWAY_ROUTES, ObjectKey(ns, name), told)


USERS = [f"user-{number}" for number in range(150)]


async def sides(gateway, ns, name, *, times=1, key="x-user"):
    """The servers of each user."""
    found = collections.defaultdict(set)
    for _ in range(times):
        for user in USERS:
            status, body = await gateway.get(f"/endpoints/{ns}/{name}/v1/x", headers={key: user})
            assert status == 200
            found[user].add(body["server"])
    return found


async def test_a_user_stays_on_one_side_and_growth_moves_no_one_else(gateway, ns):
    for each in ("s-1", "s-2", "s-3"):
        await gateway.server(ns, each)
    assign = {"keys": [{"header": "x-user"}], "salt": "first"}
    await gateway.route(ns, "sticky", {"s-1": 80, "s-2": 10, "s-3": 10}, assign=assign)
    before = await sides(gateway, ns, "sticky", times=2)
    assert {len(each) for each in before.values()} == {1}
    on = collections.Counter(server for each in before.values() for server in each)
    assert on["s-1"] > 90
    assert min(on["s-2"], on["s-3"]) > 2
    await gateway.route(ns, "sticky", {"s-1": 60, "s-2": 10, "s-3": 30}, assign=assign)
    after = await sides(gateway, ns, "sticky")
    moved = collections.Counter((*before[each], *after[each]) for each in USERS if before[each] != after[each])
    assert set(moved) == {("s-1", "s-3")}
    # Without a server its users are lent to others, who keep their own; then it has them back.
    await gateway.no_slice(ns, "s-2")
    await effective(gateway, ns, "sticky", {"s-1": 67, "s-2": 0, "s-3": 33})
    lent = await sides(gateway, ns, "sticky")
    assert {(*after[each],) for each in USERS if after[each] != lent[each]} == {("s-2",)}
    await gateway.slice(ns, "s-2", gateway.servers[-2].port)
    await effective(gateway, ns, "sticky", {"s-1": 60, "s-2": 10, "s-3": 30})
    assert await sides(gateway, ns, "sticky") == after
    # Another salt is another draw.
    await gateway.route(ns, "sticky", {"s-1": 60, "s-2": 10, "s-3": 30}, assign={**assign, "salt": "second"})
    assert await sides(gateway, ns, "sticky") != after


async def test_the_header_of_the_key_is_ours_alone(gateway, ns):
    servers = [await gateway.server(ns, each) for each in ("k-1", "k-2")]
    assign = {"keys": [{"header": "x-user"}]}
    await gateway.route(ns, "keyed", {"k-1": 50, "k-2": 50}, assign=assign, copies=[{"service": "k-1"}])
    path = f"/endpoints/{ns}/keyed/v1/x"
    found = {str(await gateway.get(path, headers={"x-user": "me", "x-pilotage-key": str(n)})) for n in range(20)}
    assert len(found) == 1
    # Without the key, each request is assigned at random, whatever a client says of it.
    free = {str(await gateway.get(path, headers={"x-pilotage-key": "same"})) for _ in range(40)}
    assert len(free) == 2
    await copies_done(gateway, f"{ns}_k-1_80_copies0")
    seen = {name.lower() for each in servers for headers in each.headers for name in headers}
    assert "x-user" in seen
    assert not {each for each in seen if "pilotage" in each}


async def test_a_key_in_the_body_is_found_by_every_way_in(gateway, ns):
    servers = [await gateway.server(ns, each) for each in ("b-1", "b-2")]
    names = {"models": [f"{ns}-body"], "host": "body.example.com"}
    assign = {"keys": [{"body": "user"}, {"header": "x-user"}]}
    spec = {"assign": assign, "branches": [branch({"x-tier": "gold"}, **{"b-1": 50, "b-2": 50})], **names}
    await gateway.route(ns, "body", {"b-1": 50, "b-2": 50}, **spec)

    async def asked(user, **headers):
        body = {"model": f"{ns}-body", "user": user, "nested": {"user": "other"}}
        by_host = {"Host": "body.example.com"}
        answers = [
            await gateway.post("/v1/x", body, headers=headers),
            await gateway.post(f"/endpoints/{ns}/body/v1/x", body, headers=headers),
            await gateway.post("/v1/x", body, headers=headers | by_host),
        ]
        return {(status, answer["server"]) for status, answer in answers}

    odd = ["a\r\nx-pilotage-key: 1", "é" * 300, 'quote "', 7, *(f"user-{number}" for number in range(20))]
    sides = [await asked(user) for user in odd]
    assert {len(each) for each in sides} == {1}
    assert set.union(*sides) == {(200, "b-1"), (200, "b-2")}
    assert [await asked(user, **{"x-tier": "gold"}) for user in odd] == sides
    for user, side in zip(odd, sides, strict=True):  # the first place that has one counts
        assert await asked(user, **{"x-user": "somebody else"}) == side
    # Another place of the same key is another way to the same side, and the body reaches the server as it was.
    for user in ("user-1", "user-2"):
        status, answer = await gateway.get(f"/endpoints/{ns}/body/v1/x", headers={"x-user": user})
        assert {(status, answer["server"])} == await asked(user)
    assert all(b'"nested"' in each for server in servers for each in server.bodies if each)
    # Without a key, too large to be searched, or no JSON: at random, and served all the same.
    path = f"/endpoints/{ns}/body/v1/x"
    large = {"user": "user-1", "pad": "x" * 5_000_000}
    assert {(await gateway.post(path, large))[0] for _ in range(3)} == {200}
    for body, kind in (("user=me", "text/plain"), ("{not json", "application/json"), ("", "application/json")):
        sent = {"data": body, "headers": {"Content-Type": kind}}
        answers = [await gateway.http.post(f"{gateway.url}{path}", **sent) for _ in range(20)]
        assert {each.status for each in answers} == {200}
        for each in answers:
            each.release()
    free = {str(await gateway.post(path, {"user": None})) for _ in range(40)}
    assert len(free) == 2


async def test_names_that_no_service_can_have_lead_nowhere_and_harm_nobody(gateway, ns):
    await gateway.server(ns, "o-1")
    await gateway.route(ns, "good", {"o-1": 100})
    odd = ["a_b", "a_80_copies3", "_", "o-1_80", "A b", "x" * 300, "é\n", "%s", "{}"]
    for number, each in enumerate(odd):
        spec = {
            "branches": [branch({"x-a": "\n\u0001", "host": "b", "content-length": "3"}, **{each: 50, "o-1": 50})],
            "copies": [{"service": each, "percent": 1, "maxConcurrent": 10000}],
            "revisions": [{"number": 2147483647, "service": each}],
            "assign": {"keys": [{"body": "model"}, {"header": "host"}, {"header": "x-pilotage-key"}], "salt": "s"},
        }
        await gateway.write_route(ns, f"odd{number}", {each: 50, "o-1": 50}, measure=True, **spec)
        await gateway.route(ns, "good", {"o-1": 100}, models=[f"{ns}-{number}"])
        assert await gateway.ask(f"{ns}-{number}") == (200, {"server": "o-1"})
    for number in range(len(odd)):
        found = await gateway.user.get(GATEWAY_ROUTES, ObjectKey(ns, f"odd{number}"))
        if found.get("status", "state") != "Rejected":
            await gateway.settled(ns, f"odd{number}")
            assert (await gateway.get(f"/endpoints/{ns}/odd{number}/v1/x"))[0] == 200
