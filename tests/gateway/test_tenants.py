"""Two tenants at one gateway: neither gets a request that is meant for the other, whatever it asks for."""

import pytest

from pilotage.api.names import ENDPOINTS, GATEWAY_ROUTES
from pilotage.kube import Invalid, ObjectKey, merge_patch
from pilotage.runtime.conditions import find_condition
from tests.api.objects import endpoint, install
from tests.gateway.gateway_host import code, running_gateway
from tests.support.waiting import eventually, until

pytestmark = pytest.mark.asyncio(loop_scope="session")
SERVED_BY_B = (200, {"server": "b-1"})


async def conflicts(gateway, namespace, name):
    found = await gateway.settled(namespace, name)
    condition = find_condition(found.get("status", "conditions", default=[]), "Conflicted")
    return condition["message"] if condition and condition["status"] == "True" else ""


async def test_a_model_name_stays_with_its_holder_through_claims_and_restarts(tmp_path):
    async with running_gateway(tmp_path / "gw") as gateway:
        a, b = await gateway.namespace(), await gateway.namespace()
        await gateway.server(a, "a-1")
        await gateway.server(b, "b-1")
        await gateway.route(a, "old", {"a-1": 100})  # older than the holder of the names
        await gateway.route(b, "gpt", {"b-1": 100}, models=["gpt"], host="chat.example.com")
        assert await gateway.ask("gpt") == SERVED_BY_B

        await gateway.route(a, "old", {"a-1": 100}, models=["gpt"], host="chat.example.com", path="/v1")
        named = {"Host": "chat.example.com"}
        assert await gateway.ask("gpt") == SERVED_BY_B
        assert await gateway.get("/v1/x", headers=named) == SERVED_BY_B
        said = await conflicts(gateway, a, "old")
        assert "model gpt leads to an endpoint of another namespace" in said
        assert "host chat.example.com/v1 leads to" in said
        assert await conflicts(gateway, b, "gpt") == ""

        async def written():
            found = await gateway.settled(a, "old")
            claims = {each["name"]: each["held"] for each in found.get("status", "claims")}
            return claims == {"gpt": False, "chat.example.com": False, f"/endpoints/{a}/old": True}

        await eventually(written)
        # A new control plane, and a new Envoy, know no more than the statuses.
        for restart in range(2):
            await gateway.stop_control()
            await gateway.user.patch(
                GATEWAY_ROUTES, ObjectKey(a, "old"), merge_patch({"spec": {"path": f"/v{restart}"}})
            )
            await gateway.start_control()
            await gateway.settled(a, "old")
            assert await gateway.ask("gpt") == SERVED_BY_B
            assert await gateway.get("/v1/x", headers=named) == SERVED_BY_B

        # The holder's status is wiped by another client: it is written again.
        key = ObjectKey(b, "gpt")
        before = (await gateway.settled(b, "gpt")).get("status", "claims")
        await gateway.user.patch(GATEWAY_ROUTES, key, merge_patch({"status": None}), subresource="status")
        await until(gateway.user, GATEWAY_ROUTES, key, lambda obj: obj.get("status", "claims", default=[]) == before)

        # The holder releases the names, and the one that waits gets them; the former holder waits now.
        await gateway.route(b, "gpt", {"b-1": 100}, models=[])
        assert await gateway.ask("gpt") == (200, {"server": "a-1"})
        await gateway.route(b, "gpt", {"b-1": 100}, models=["gpt"])
        assert await gateway.ask("gpt") == (200, {"server": "a-1"})
        assert "model gpt" in await conflicts(gateway, b, "gpt")


async def test_who_waits_for_a_name_does_not_get_it_while_its_holder_is_deployed_anew(tmp_path):
    async with running_gateway(tmp_path / "gw", reserve_seconds=60) as gateway:
        a, b = await gateway.namespace(), await gateway.namespace()
        greedy = await gateway.server(a, "a-1")
        await gateway.server(b, "b-1")
        mine = {"models": ["gpt"], "host": "chat.example.com"}
        await gateway.route(b, "gpt", {"b-1": 100}, **mine)
        await gateway.route(a, "old", {"a-1": 100}, **mine)
        await gateway.delete_route(b, "gpt")
        named = {"Host": "chat.example.com"}
        assert code(await gateway.ask("gpt")) == (404, "model_not_found")
        assert code(await gateway.get("/v1/x", headers=named)) == (400, "model_required")  # no host of any route

        async def told():
            return "reserved" in await conflicts(gateway, a, "old")

        await eventually(told)
        await gateway.route(b, "again", {"b-1": 100}, **mine)  # another one of that namespace may have it
        assert await gateway.ask("gpt") == SERVED_BY_B
        assert await gateway.get("/v1/x", headers=named) == SERVED_BY_B
        assert greedy.requests == []


async def test_a_name_that_nobody_comes_back_for_is_free_after_its_time(tmp_path):
    async with running_gateway(tmp_path / "gw", reserve_seconds=0.5) as gateway:
        a, b = await gateway.namespace(), await gateway.namespace()
        await gateway.server(a, "a-1")
        await gateway.route(b, "gpt", {}, models=["gpt"])
        await gateway.route(a, "old", {"a-1": 100}, models=["gpt"])
        await gateway.delete_route(b, "gpt")

        async def free():
            return await gateway.ask("gpt") == (200, {"server": "a-1"})

        await eventually(free)


async def test_an_endpoint_called_like_a_namespace_gets_nothing_of_it(gateway):
    a, b = await gateway.namespace(), await gateway.namespace()
    greedy = await gateway.server(a, "a-1")
    await gateway.server(b, "b-1")
    await gateway.route(a, b, {"a-1": 100})  # an endpoint of team a with the name of the namespace b
    paths = [f"/endpoints/{b}/next/v1/x", f"/endpoints/{b}", f"/endpoints/{b}/", f"/endpoints/{b}//next/v1/x"]
    for path in paths:
        assert code(await gateway.get(path)) == (404, "not_found"), path
    await gateway.route(b, "next", {"b-1": 100})
    assert await gateway.get(f"/endpoints/{b}/next/v1/x") == SERVED_BY_B
    assert greedy.requests == []
    assert await gateway.get(f"/endpoints/{a}/{b}/v1/x") == (200, {"server": "a-1"})


async def test_a_host_that_is_the_gateways_own_takes_nothing(tmp_path):
    async with running_gateway(tmp_path / "gw", names=("models.example.com",)) as gateway:
        a, b = await gateway.namespace(), await gateway.namespace()
        greedy = await gateway.server(a, "a-1")
        await gateway.server(b, "b-1")
        await gateway.route(b, "gpt", {"b-1": 100}, models=["gpt"])
        for host in (
            "127.0.0.1",
            "127.1",
            "0x7f.1",
            "*.0.0.1",
            "localhost",
            "a.localhost",
            "*.localhost",
            "*.com",
            "box",
        ):
            with pytest.raises(Invalid):
                await gateway.write_route(a, "greedy", {"a-1": 100}, host=host)
        await gateway.route(a, "greedy", {"a-1": 100}, host="models.example.com")
        assert "host models.example.com is refused" in await conflicts(gateway, a, "greedy")
        await gateway.route(a, "wild", {"a-1": 100}, host="*.example.com")  # an exact name wins over a wildcard
        for host in ("127.0.0.1", "localhost", "models.example.com", "MODELS.example.com", "[::1]"):
            for named in (host, f"{host}:{gateway.settings.port}"):
                headers = {"Host": named}
                body = {"model": "gpt"}
                assert await gateway.post("/v1/chat/completions", body, headers=headers) == SERVED_BY_B, named
                assert await gateway.get(f"/endpoints/{b}/gpt/v1/x", headers=headers) == SERVED_BY_B, named
        assert greedy.requests == []
        assert (await gateway.get("/v1/x", headers={"Host": "chat.example.com"}))[1] == {"server": "a-1"}


async def test_what_the_kinds_say_to_an_address_as_host(gateway, ns):
    await install(gateway.user)
    for host in ("127.0.0.1", "0x7f.1", "localhost", "x.localhost", "*.org"):
        route = {"kind": "PilotageGateway", "host": host}
        with pytest.raises(Invalid, match="host"):
            await gateway.user.create(ENDPOINTS, endpoint("greedy", {"route": route}), namespace=ns)
