"""Routing of requests, and the gateway's own answers."""

import asyncio
import contextlib
import json
import time

import pytest

from tests.gateway.gateway_host import code
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_model_in_the_body_leads_to_its_endpoint(gateway, ns):
    await gateway.server(ns, "a-1")
    await gateway.server(ns, "b-1")
    await gateway.route(ns, "a", {"a-1": 100}, models=["org/a", "a:latest"])
    await gateway.route(ns, "b", {"b-1": 100}, models=["b"])
    assert await gateway.ask("org/a") == (200, {"server": "a-1"})
    assert await gateway.ask("a:latest") == (200, {"server": "a-1"})
    assert await gateway.ask("b") == (200, {"server": "b-1"})
    # A deeper field is not the model of the request, and a charset does not hide it.
    assert await gateway.ask("b", tools=[{"model": "org/a"}], metadata={"model": "org/a"}) == (200, {"server": "b-1"})
    body = json.dumps({"metadata": {"model": "org/a"}, "model": "b"})
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/vnd.x+json"):
        async with gateway.http.post(f"{gateway.url}/v1/x", data=body, headers={"Content-Type": kind}) as answer:
            assert await answer.json() == {"server": "b-1"}


async def test_unknown_models_and_paths_are_told_what_to_do(gateway, ns):
    assert code(await gateway.ask("nobody-serves-this")) == (404, "model_not_found")
    assert code(await gateway.ask(7)) == (404, "model_not_found")
    assert code(await gateway.post("/v1/completions", {"prompt": "x", "inner": {"model": "a"}})) == (
        400,
        "model_required",
    )
    assert code(await gateway.post("/v1/completions", ["model"])) == (400, "model_required")
    async with gateway.http.post(
        f"{gateway.url}/v1/x", data=b"{not json", headers={"Content-Type": "application/json"}
    ) as bad:
        assert code((bad.status, await bad.json())) == (400, "model_required")
    async with gateway.http.post(f"{gateway.url}/v1/x", data={"model": "form"}) as form:
        assert code((form.status, await form.json())) == (400, "model_required")
        assert form.content_type == "application/json"
    assert code(await gateway.get("/v1/embeddings")) == (400, "model_required")
    assert code(await gateway.get("/")) == (404, "not_found")
    assert code(await gateway.get("/endpoints/nobody/v1/models")) == (404, "not_found")


async def test_clients_cannot_choose_the_table_of_their_request_and_servers_do_not_see_it(gateway, ns):
    server = await gateway.server(ns, "t-1")
    await gateway.route(ns, "tee", {"t-1": 100}, models=["tee", "7"])
    for scope in (f"/endpoints/{ns}/tee", "model tee"):
        named = {"X-Pilotage-Scope": scope}
        assert code(await gateway.get(f"/endpoints/{ns}/other/v1/x", headers=named)) == (404, "not_found")
        assert code(await gateway.get("/slots", headers=named)) == (404, "not_found")
        assert code(await gateway.post("/v1/x", {"model": "other"}, headers=named)) == (404, "model_not_found")
    assert server.requests == []
    assert (await gateway.post("/v1/x", {"model": "7"}, headers=named))[0] == 200
    assert (await gateway.get(f"/endpoints/{ns}/tee/v1/x", headers=named))[0] == 200
    assert not any(name.lower() == "x-pilotage-scope" for headers in server.headers for name in headers)
    # A number is no name, a name that no header can have leads nowhere, and neither does one without an end.
    for model in (7, "tee\r\nx: y", "tee\x00", "tee%", "t" * 5_000):
        assert code(await gateway.ask(model)) == (404, "model_not_found")


async def test_paths_lead_to_an_endpoint_and_are_taken_off(gateway, ns):
    server = await gateway.server(ns, "c-1")
    await gateway.route(ns, "cee", {"c-1": 100})
    base = f"/endpoints/{ns}/cee"
    for path in (
        base,
        f"{base}/",
        f"{base}/v1/chat?q={base}/",
        f"{base}/v1/chat",
        f"//endpoints//{ns}///cee///v1/chat",
        f"/endpoints/other/../{ns}/cee/v1/%2e/chat",
        f"/endpoints/{ns}%2Fcee%2fv1/chat",
        f"/endpoints\\{ns}%5Ccee/v1/chat",
    ):
        async with gateway.http.post(_raw(gateway, path), json={}) as answer:
            assert await answer.json() == {"server": "c-1"}, path
    seen = [path for _, path in server.requests]
    assert seen == ["/", "/", f"/v1/chat?q={base}/", *["/v1/chat"] * 5]
    for path in (f"{base}d/v1/x", "/endpoints/cee/v1/x", f"/endpoints/{ns.upper()}/cee/v1/x", f"/Endpoints/{ns}/cee"):
        assert code(await gateway.get(path)) == (404, "not_found"), path


async def test_hosts_lead_to_an_endpoint_with_the_path_as_it_is(gateway, ns):
    whole, part = await gateway.server(ns, "h-1"), await gateway.server(ns, "p-1")
    await gateway.route(ns, "whole", {"h-1": 100}, host="chat.example.com")
    await gateway.route(ns, "part", {"p-1": 100}, host="chat.example.com", path="/deep/er")
    named = {"Host": "chat.example.com:8080"}
    assert await gateway.get("/v1/x", headers=named) == (200, {"server": "h-1"})
    assert await gateway.get("/deep/er/y", headers=named) == (200, {"server": "p-1"})
    assert code(await gateway.get("/deep/erlang", headers=named)) == (404, "not_found")
    assert (whole.requests, part.requests) == ([("GET", "/v1/x")], [("GET", "/deep/er/y")])
    await gateway.delete_route(ns, "whole")
    assert code(await gateway.get("/elsewhere", headers=named)) == (404, "not_found")


async def test_of_a_server_only_what_is_for_clients_is_passed_on(gateway, ns):
    server = await gateway.server(ns, "s-1")
    host = "shown.example.com"
    await gateway.route(ns, "shown", {"s-1": 100}, models=["shown"], host=host)
    inference = ["/", "/v1/chat/completions", "/v1/models", "/health", "/tokenize?x=/slots", "/completion", "/v1/"]
    for path in inference:
        for asked, headers in ((f"/endpoints/{ns}/shown{path}", {}), (path, {"Host": host})):
            async with gateway.http.get(_raw(gateway, asked), headers=headers) as answer:
                assert (answer.status, await answer.json()) == (200, {"server": "s-1"}), asked
    passed = [path for path in inference for _ in range(2)]
    assert [path for _, path in server.requests] == passed
    administration = [
        *("/slots", "/slots/0?action=save", "/props", "/lora-adapters", "/metrics", "/models/load", "/tools"),
        *("/v1/load_lora_adapter", "/v1/unload_lora_adapter/", "/v1/internal/model/load", "/update_weights_from_disk"),
        *("/v1/%6coad_lora_adapter", "/v1/load%5flora_adapter", "/v1/%69nternal/model/load"),
        *(
            "/v1/../slots",
            "/v1/%2e%2e/slots",
            "/v1/..%2Fslots",
            "/v1%2F..%5Cslots",
            "//slots",
            "/%73lots",
            "/slots?/v1/",
        ),
        *("/healthz", "/health/slots", "/slots;/v1/x", "/SLOTS", "/v1"),
    ]
    for path in administration:
        for asked, headers in ((f"/endpoints/{ns}/shown{path}", {}), (path, {"Host": host})):
            async with gateway.http.post(_raw(gateway, asked), json={"model": "shown"}, headers=headers) as answer:
                assert code((answer.status, await answer.json())) == (404, "not_found"), asked
    for path in ("/v1/load_lora_adapter", "/v1/internal/model/load"):  # by model, too
        assert code(await gateway.post(path, {"model": "shown"})) == (404, "not_found")
    assert [path for _, path in server.requests] == passed
    # A route with a path of a host names its target.
    await gateway.route(ns, "shown", {"s-1": 100}, host=host, path="/slots")
    assert await gateway.get("/slots/0", headers={"Host": host}) == (200, {"server": "s-1"})


async def test_the_list_of_models_is_what_is_served_now(gateway, ns):
    def mine(answer):
        status, body = answer
        assert (status, body["object"]) == (200, "list")
        return [each["id"] for each in body["data"] if each["owned_by"] == ns]

    assert mine(await gateway.get("/v1/models")) == []
    # More than 4 KiB, at which Envoy would refuse the whole table unless it is told otherwise.
    many = {f"r{number}": [f"{ns}-{'m' * 60}-{number}-{each}" for each in range(16)] for number in range(4)}
    for name, models in many.items():
        await gateway.route(ns, name, {}, models=models)
    assert mine(await gateway.get("/v1/models")) == sorted(each for models in many.values() for each in models)
    await gateway.delete_route(ns, "r1")
    assert len(mine(await gateway.get("/v1/models"))) == 48


async def test_a_model_can_be_asked_for_by_its_name(gateway, ns):
    long = "long/" + "é:" * 500
    odd = ["plain.v1_x-2", "org/known:latest", "café & 50% (a+b)?", long]
    await gateway.route(ns, "asked", {}, models=odd)
    written = {
        "plain.v1_x-2": ["plain.v1_x-2", "pl%61in%2Ev1_x-2?limit=1"],
        "org/known:latest": ["org/known:latest", "org%2Fknown%3Alatest", "org%2Fknown:latest", "org/known%3Alatest"],
        "café & 50% (a+b)?": ["caf%C3%A9%20&%2050%25%20(a+b)%3F", "caf%C3%A9%20%26%2050%25%20(a%2Bb)%3F"],
        long: ["long/" + "%C3%A9:" * 500, "long%2F" + "%C3%A9%3A" * 500],
    }
    for model, paths in written.items():
        for path in paths:
            async with gateway.http.get(_raw(gateway, f"/v1/models/{path}")) as answer:
                assert answer.content_type == "application/json"
                said = answer.status, await answer.json()
            assert said == (200, {"id": model, "object": "model", "created": 0, "owned_by": ns}), path
    for path in ("plainXv1_x-2", "org/known", "org/known:latest/more", "PLAIN.v1_x-2", "", "caf%C3%A9"):
        async with gateway.http.get(_raw(gateway, f"/v1/models/{path}")) as answer:
            assert code((answer.status, await answer.json())) == (404, "model_not_found"), path
    # A request without a name is routed as before.
    assert code(await gateway.post("/v1/models/org/known:latest", {"model": "org/known:latest"})) == (
        503,
        "endpoint_detached",
    )
    await gateway.delete_route(ns, "asked")
    assert code(await gateway.get("/v1/models/plain.v1_x-2")) == (404, "model_not_found")


async def test_weights_divide_the_requests(gateway, ns):
    one, two = await gateway.server(ns, "w-1"), await gateway.server(ns, "w-2")
    await gateway.route(ns, "weighted", {"w-1": 75, "w-2": 25})
    for _ in range(200):
        await gateway.get(f"/endpoints/{ns}/weighted/")
    assert len(one.requests) + len(two.requests) == 200
    assert 20 <= len(two.requests) <= 85


async def test_a_route_without_weight_is_detached_and_says_so(gateway, ns):
    await gateway.server(ns, "d-1")
    await gateway.route(ns, "dee", {"d-1": 0}, models=["dee"])
    assert code(await gateway.ask("dee")) == (503, "endpoint_detached")
    assert code(await gateway.get(f"/endpoints/{ns}/dee/")) == (503, "endpoint_detached")
    await gateway.route(ns, "dee", {}, models=["dee"])
    assert code(await gateway.ask("dee")) == (503, "endpoint_detached")


async def test_a_route_that_is_taken_down_answers_as_if_it_were_gone(gateway, ns):
    await gateway.server(ns, "l-1")
    await gateway.route(ns, "lee", {"l-1": 0}, models=["lee"], leaving=True)
    assert code(await gateway.ask("lee")) == (404, "model_not_found")
    assert code(await gateway.get(f"/endpoints/{ns}/lee/")) == (404, "model_not_found")


async def test_without_a_ready_server_the_answer_is_503(gateway, ns):
    await gateway.route(ns, "eee", {"e-1": 100}, models=["eee"])
    status, body = await gateway.ask("eee")
    assert code((status, body)) == (503, "no_ready_backend")
    assert "eee" in body["error"]["message"]
    await gateway.server(ns, "e-1")
    await eventually(lambda: _is(gateway.ask("eee"), (200, {"server": "e-1"})))


async def test_the_share_of_a_service_without_servers_goes_to_the_others(gateway, ns):
    await gateway.server(ns, "f-1")
    await gateway.server(ns, "f-3")
    await gateway.route(ns, "eff", {"f-1": 50, "f-2": 50, "f-3": 0})
    assert {str(await gateway.get(f"/endpoints/{ns}/eff/")) for _ in range(20)} == {str((200, {"server": "f-1"}))}
    await gateway.no_slice(ns, "f-1")
    # A server with weight 0 gets nothing, though it could serve.
    await eventually(lambda: _status(gateway.get(f"/endpoints/{ns}/eff/"), 503))


async def test_servers_that_drain_get_nothing_new_not_even_as_the_last(gateway, ns):
    leaving, staying = await gateway.server(ns, "g-1"), await gateway.server(ns, "g-2")
    await gateway.slice(ns, "gee", leaving.port, name="gee-1")
    await gateway.slice(ns, "gee", staying.port, name="gee-2")
    await gateway.route(ns, "gee", {"gee": 100})
    held = asyncio.create_task(gateway.post(f"/endpoints/{ns}/gee/", {"hold": True}))
    await eventually(lambda: _any(leaving.requests + staying.requests))
    busy, other = (leaving, staying) if leaving.requests else (staying, leaving)
    name = "gee-1" if busy is leaving else "gee-2"
    draining = {"ready": False, "serving": True, "terminating": True}
    await gateway.slice(ns, "gee", busy.port, name=name, conditions=draining)
    await eventually(lambda: _stat(gateway, f"cluster.{ns}_gee_80.membership_healthy", "1"))
    for _ in range(20):
        assert await gateway.get(f"/endpoints/{ns}/gee/") == (200, {"server": other.name})
    await gateway.slice(ns, "gee", other.port, name="gee-2" if busy is leaving else "gee-1", conditions=draining)
    await eventually(lambda: _stat(gateway, f"cluster.{ns}_gee_80.membership_healthy", "0"))
    assert code(await gateway.get(f"/endpoints/{ns}/gee/")) == (503, "no_ready_backend")
    busy.release.set()
    assert await held == (200, {"server": busy.name})


async def test_a_server_that_was_removed_gets_nothing_more(gateway, ns):
    gone, stays = await gateway.server(ns, "i-1"), await gateway.server(ns, "i-2")
    await gateway.slice(ns, "eye", gone.port, name="eye-1")
    await gateway.slice(ns, "eye", stays.port, name="eye-2")
    await gateway.slice(ns, "eye", stays.port, name="eye-3", conditions={"ready": False})  # the better word counts
    await gateway.route(ns, "eye", {"eye": 100})
    while not gone.requests:
        await gateway.get(f"/endpoints/{ns}/eye/")
    await gateway.no_slice(ns, "eye-1")
    await eventually(lambda: _stat(gateway, f"cluster.{ns}_eye_80.membership_total", "1"))
    before = len(gone.requests)
    assert {(await gateway.get(f"/endpoints/{ns}/eye/"))[0] for _ in range(20)} == {200}
    assert len(gone.requests) == before


async def test_large_bodies_get_a_clear_answer_and_another_way(gateway, ns):
    server = await gateway.server(ns, "l-1")
    await gateway.route(ns, "ell", {"l-1": 100}, models=["ell"])
    assert (await gateway.ask("ell", pad="x" * 3_000_000))[0] == 200
    assert code(await gateway.ask("ell", pad="x" * 5_000_000)) == (413, "body_too_large")
    assert (await gateway.post(f"/endpoints/{ns}/ell/v1/chat", {"model": "ell", "pad": "x" * 5_000_000}))[0] == 200
    assert [len(each) > 4_200_000 for each in server.bodies] == [False, True]


async def test_headers_of_more_than_sixty_kilobytes_are_refused_in_words(gateway, ns):
    server = await gateway.server(ns, "k-1")
    await gateway.route(ns, "kay", {"k-1": 100})
    assert (await gateway.get(f"/endpoints/{ns}/kay/", headers={"X-Long": "x" * 7000, "X-Longer": "x" * 7000}))[
        0
    ] == 200
    many = {f"X-{number}": "x" * 8000 for number in range(9)}
    assert code(await gateway.get(f"/endpoints/{ns}/kay/", headers=many)) == (431, "headers_too_large")
    assert len(server.requests) == 1


async def test_clients_cannot_set_time_outs_or_retries_by_headers(gateway, ns):
    server = await gateway.server(ns, "m-1")
    await gateway.route(ns, "emm", {"m-1": 100})
    wishes = {"x-envoy-upstream-rq-timeout-ms": "20", "x-envoy-retry-on": "5xx", "x-envoy-max-retries": "5"}
    asked = asyncio.create_task(gateway.post(f"/endpoints/{ns}/emm/", {"hold": True, "status": 500}, headers=wishes))
    await eventually(lambda: _any(server.requests))
    done, _ = await asyncio.wait([asked], timeout=0.2)
    assert not done
    server.release.set()
    assert await asked == (500, {"server": "m-1"})
    assert len(server.requests) == 1
    assert not wishes.keys() & {name.lower() for name in server.headers[0]}


async def test_the_first_route_has_a_name_and_the_other_says_so(gateway):
    first, second = sorted([await gateway.namespace(), await gateway.namespace()])
    await gateway.server(first, "n-1")
    await gateway.server(second, "n-2")
    await gateway.route(first, "same", {"n-1": 100}, models=["contested"], host="contested.example.com")
    later = await gateway.route(second, "same", {"n-2": 100}, models=["contested", "own"], host="contested.example.com")
    (condition,) = later.get("status", "conditions")
    assert (condition["type"], condition["status"]) == ("Conflicted", "True")
    assert condition["message"] == (
        "model contested leads to an endpoint of another namespace, which has it; "
        "host contested.example.com/ leads to an endpoint of another namespace, which has it"
    )
    assert await gateway.ask("contested") == (200, {"server": "n-1"})
    assert await gateway.ask("own") == (200, {"server": "n-2"})
    assert await gateway.get(f"/endpoints/{first}/same/") == (200, {"server": "n-1"})
    assert await gateway.get(f"/endpoints/{second}/same/") == (200, {"server": "n-2"})
    await gateway.delete_route(first, "same")
    assert await gateway.ask("contested") == (200, {"server": "n-2"})

    async def resolved():
        found = await gateway.settled(second, "same")
        return found.get("status", "conditions")[0]["status"] == "False"

    await eventually(resolved)


async def test_a_stream_of_more_than_fifteen_seconds_is_not_cut(gateway, long_stream):
    """Envoy's default for a route. The test waits for the rest of that time, which is what it is about."""
    await asyncio.sleep(max(0.0, long_stream.began + 15.5 - time.monotonic()))
    assert not long_stream.answer.done()
    long_stream.server.release.set()
    text = await long_stream.answer
    assert text.split("\n\n")[:-1] == [f"data: long-1 {number}" for number in range(4)]


def _raw(gateway, path):
    from yarl import URL

    return URL(f"{gateway.url}{path}", encoded=True)


async def _is(asked, wanted):
    return await asked == wanted


async def _status(asked, wanted):
    return (await asked)[0] == wanted


async def _any(things):
    return bool(things)


async def _stat(gateway, name, value):
    return (await gateway.stat(f"^{name}$")).get(name) == value


async def closes_after_each_answer(reader, writer):
    """Close as llama-server does after a stream: without announcing it, and a moment later."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        await reader.readexactly(length)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.002)
    writer.close()


async def test_a_server_that_closes_its_connection_without_a_word_loses_no_request(gateway):
    ns = await gateway.namespace()
    server = await asyncio.start_server(closes_after_each_answer, "127.0.0.1", 0)
    async with server:
        await gateway.slice(ns, "closing", server.sockets[0].getsockname()[1])
        await gateway.route(ns, "closing", {"closing": 100})

        async def ask_on():
            answers = []
            for _ in range(20):
                body = {"headers": {"Content-Type": "application/json"}, "data": b"{}"}
                async with gateway.http.post(f"{gateway.url}/endpoints/{ns}/closing/v1/x", **body) as answer:
                    await answer.read()
                    answers.append(answer.status)
            return answers

        assert {each for answers in await asyncio.gather(*(ask_on() for _ in range(4))) for each in answers} == {200}
