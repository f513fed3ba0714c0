"""The life of an endpoint on a Host, with stand-ins for the agents and for the gateway, in virtual time."""

import asyncio
from typing import Any

import pytest

from pilotage.api.names import (
    ENDPOINTS,
    GATEWAY_ROUTES,
    HOSTS,
    LABEL_ENDPOINT_UID,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    MODELS,
    PROCESS_FINALIZER,
    PROCESSES,
)
from pilotage.kube import ObjectKey, Propagation, merge_patch
from pilotage.serving.resources import SERVICES, SLICES
from pilotage_sim.loop import virtual
from tests.api.objects import model, process
from tests.controllers.simulated_cluster import KEY, NAMESPACES
from tests.controllers.simulated_hosts import SimulatedHosts, simulated_hosts
from tests.controllers.test_endpoint import REDEPLOYED, order

HOST = {"kind": "Host", "host": "gpu-1"}
ANY_HOST = {"kind": "Host", "hostSelector": {"matchLabels": {"gpu": "a100"}}}
NONE = {"kind": "None"}
GATEWAY = {"kind": "PilotageGateway"}
RECREATE = {"type": "Recreate"}

STOPPED = "delete hostprocesses.pilotage.dev default/{}"
UNROUTED = "delete gatewayroutes.pilotage.dev default/chat"
REMOVED = "delete services default/{}"

both_routes = pytest.mark.parametrize("route", [NONE, GATEWAY], ids=["None", "PilotageGateway"])


async def deployed(place: SimulatedHosts, **spec: Any) -> None:
    await place.deploy(KEY, **{"placement": HOST, "route": GATEWAY, **spec})
    await place.serving()


@virtual
async def test_it_is_deployed_and_says_so():
    async with simulated_hosts() as place:
        await deployed(place)
        assert place.status()["url"] == "http://127.0.0.1:8080/endpoints/default/chat/v1"
        assert place.status()["replicas"] == {"ready": 1, "desired": 1}
        assert place.condition("RouteProgrammed")["reason"] == "ProvenByProxy"
        assert place.parts() == [
            "EndpointSlice/chat-1-0",
            "GatewayRoute/chat",
            "HostProcess/chat-1-0",
            "Service/chat-1",
        ]
        assert {(each["kind"], each["name"]) for each in place.status()["ledger"]} == {
            ("Service", "chat-1"),
            ("HostProcess", "chat-1-0"),
            ("GatewayRoute", "chat"),
        }
        assert place.process("chat-1-0")["spec"]["host"] == "gpu-1"
        assert place.routed() == {"chat-1": 100}


@virtual
async def test_with_a_host_of_its_own_its_url_has_it():
    async with simulated_hosts() as place:
        await deployed(place, route={"kind": "PilotageGateway", "host": "chat.example.com", "path": "/llm"})
        assert place.status()["url"] == "http://chat.example.com:8080/llm/v1"


@virtual
async def test_without_a_route_its_url_is_that_of_the_service():
    async with simulated_hosts() as place:
        await deployed(place, route=NONE)
        assert place.status()["url"] == "http://chat-1.default.svc/v1"
        assert place.condition("RouteProgrammed") == {}
        service = place.world.find(SERVICES, ObjectKey("default", "chat-1"))
        assert "selector" not in service["spec"]


@virtual
async def test_a_steady_endpoint_costs_no_writes():
    async with simulated_hosts() as place:
        await deployed(place)
        await asyncio.sleep(60.0)
        before = len(place.writes())
        await asyncio.sleep(900.0)
        assert place.writes()[before:] == []


@virtual
async def test_while_it_starts_it_says_what_its_agent_says():
    async with simulated_hosts() as place:
        place.agents["gpu-1"].start_seconds = 60.0
        await place.deploy(placement=HOST)
        await place.until(lambda: place.process("chat-1-0").get("status", {}).get("phase") == "Starting")
        await asyncio.sleep(5.0)
        assert place.status()["phase"] == "Deploying"
        assert place.condition("Progressing")["message"] == (
            "it loads its weights (hostprocess/chat-1-0 on host/gpu-1: Starting; 0 of 1 processes are ready)."
        )
        assert place.status()["waitingFor"] == place.condition("Progressing")["message"]
        await place.serving()


@virtual
async def test_without_a_host_it_says_what_it_waits_for_and_comes_when_there_is_one():
    async with simulated_hosts("other") as place:
        await place.deploy(placement=HOST)
        await place.until(lambda: place.process("chat-1-0").get("status", {}).get("message"))
        assert place.process("chat-1-0")["status"]["message"] == "host/gpu-1 does not exist; is its agent installed?"
        await asyncio.sleep(120.0)
        before = len(place.writes())
        await asyncio.sleep(600.0)
        assert place.writes()[before:] == []
        place.add_host("gpu-1")
        await place.serving()


@both_routes
@virtual
async def test_a_redeploy_brings_the_new_one_up_before_the_old_one_goes(route):
    async with simulated_hosts() as place:
        await deployed(place, route=route)
        before = len(place.writes())
        await place.change(runtime=REDEPLOYED)
        await place.serving("chat-2")
        await place.until(lambda: not any("chat-1" in part for part in place.parts()))
        writes = place.writes()[before:]
        made, stopped, removed = order(
            writes,
            "create hostprocesses.pilotage.dev default/chat-2-0",
            STOPPED.format("chat-1-0"),
            REMOVED.format("chat-1"),
        )
        assert made < stopped < removed
        if route is GATEWAY:
            moves = [
                index for index, each in enumerate(writes) if each == "patch gatewayroutes.pilotage.dev default/chat"
            ]
            assert made < moves[0]
            assert moves[-1] < stopped
            assert place.gateway.seen == [
                {"chat-1": 100},
                {"chat-1": 100, "chat-2": 0},
                {"chat-1": 0, "chat-2": 100},
                {"chat-2": 100},
            ]


@virtual
async def test_the_old_one_is_not_stopped_while_requests_to_it_are_under_way():
    async with simulated_hosts() as place:
        await deployed(place, deletion={"drainSeconds": 300})
        place.gateway.in_flight["chat-1"] = 3
        await place.change(runtime=REDEPLOYED)
        await place.until(lambda: place.routed() == {"chat-1": 0, "chat-2": 100})
        await asyncio.sleep(60.0)
        assert place.process("chat-1-0")["status"]["ready"]
        assert "3 requests are still under way" in place.condition("RouteProgrammed")["message"]
        place.gateway.in_flight.clear()
        await place.serving("chat-2")
        await place.until(lambda: place.processes() == ["chat-2-0"])


@both_routes
@virtual
async def test_with_recreate_the_old_one_is_proven_gone_first(route):
    async with simulated_hosts() as place:
        await deployed(place, route=route, strategy=RECREATE)
        before = len(place.writes())
        await place.change(runtime=REDEPLOYED)
        await place.serving("chat-2")
        writes = place.writes()[before:]
        stopped, removed, made = order(
            writes,
            STOPPED.format("chat-1-0"),
            REMOVED.format("chat-1"),
            "create hostprocesses.pilotage.dev default/chat-2-0",
        )
        assert stopped < removed < made
        if route is GATEWAY:
            (unrouted,) = order(writes, UNROUTED)
            assert unrouted < stopped
            assert place.gateway.seen == [{"chat-1": 100}, {"chat-1": 0}, {"chat-2": 100}]


@virtual
async def test_a_redeploy_that_fails_on_its_host_leaves_the_old_one_serving_and_can_be_taken_back():
    async with simulated_hosts() as place:
        await deployed(place)
        place.agents["gpu-1"].failing = lambda name: "its checksum is wrong" if name.startswith("chat-2") else ""
        await place.change(runtime=REDEPLOYED)
        await place.until(lambda: place.condition("Degraded").get("status") == "True")
        said = place.condition("Degraded")
        assert said["reason"] == "ProcessFailed"
        assert said["message"].startswith("its checksum is wrong (hostprocess/chat-2-0 on host/gpu-1: Failed; ")
        assert said["message"].endswith("Revision 1 continues to serve.")
        await asyncio.sleep(300.0)
        status = place.status()
        assert (status["phase"], status["revision"]) == ("Degraded", "chat-1")
        assert [(past["state"], past["message"][:21]) for past in status["history"]] == [
            ("Current", ""),
            ("Failed", "its checksum is wrong"),
        ]
        assert place.condition("Available")["status"] == "True"
        assert place.routed() == {"chat-1": 100}
        await place.change(runtime=None)
        await place.serving("chat-1")
        await place.until(lambda: place.processes() == ["chat-1-0"])
        assert [past["state"] for past in place.status()["history"]] == ["Current", "Abandoned"]


@both_routes
@virtual
async def test_it_is_scaled_up_and_down_to_nothing_and_back(route):
    async with simulated_hosts() as place:
        await deployed(place, route=route)
        kept = place.process("chat-1-0")["metadata"]["uid"]
        await place.change(replicas=3)
        await place.until(lambda: place.status()["replicas"] == {"ready": 3, "desired": 3})
        await place.change(replicas=1)
        await place.until(lambda: place.processes() == ["chat-1-0"])
        assert place.process("chat-1-0")["metadata"]["uid"] == kept
        assert {each["spec"]["reason"] for each in place.records()} == {"Replaced"}
        await place.change(replicas=0)
        await place.until(lambda: place.processes() == [] and place.condition("Available")["reason"] == "ScaledToZero")
        assert place.in_traffic() == []
        await place.change(replicas=1)
        await place.until(lambda: place.condition("Available")["status"] == "True")
        assert place.status()["revision"] == "chat-1"


@virtual
async def test_a_process_that_somebody_deletes_is_stopped_in_order_and_made_again():
    async with simulated_hosts() as place:
        await deployed(place, replicas=2)
        old = place.process("chat-1-1")["metadata"]["uid"]
        await place.user.delete(
            PROCESSES, ObjectKey("default", "chat-1-1"), uid=old, propagation=Propagation.BACKGROUND
        )
        await place.until(lambda: place.status()["replicas"]["ready"] == 1)
        await place.until(lambda: place.status()["replicas"]["ready"] == 2)
        assert place.process("chat-1-1")["metadata"]["uid"] != old


@virtual
async def test_the_spec_of_a_running_process_is_never_changed():
    async with simulated_hosts() as place:
        await deployed(place)
        await place.change(deletion={"drainSeconds": 120})
        await asyncio.sleep(60.0)
        assert place.process("chat-1-0")["spec"]["drainSeconds"] == 30
        assert place.process("chat-1-0")["metadata"]["generation"] == 2  # it was made, and it was placed


@both_routes
@virtual
async def test_when_it_is_deleted_everything_goes_in_order_and_is_proven_gone(route):
    async with simulated_hosts() as place:
        await deployed(place, route=route, replicas=2)
        before = len(place.writes())
        await place.delete()
        await place.gone()
        writes = place.writes()[before:]
        stopped = order(writes, STOPPED.format("chat-1-0"), STOPPED.format("chat-1-1"))
        (removed,) = order(writes, REMOVED.format("chat-1"))
        assert max(stopped) < removed
        if route is GATEWAY:
            detached, unrouted = order(writes, "patch gatewayroutes.pilotage.dev default/chat", UNROUTED)
            assert detached < unrouted < min(stopped)
        assert place.parts() == []
        (record,) = place.records()
        receipt = record["status"]["receipt"]
        assert {each["state"] for each in receipt["objects"]} == {"gone"}
        assert {each["kind"] for each in receipt["objects"]} >= {"HostProcess", "Service", "EndpointSlice"}
        assert not any(each.get("unverified") for each in receipt["objects"])


@virtual
async def test_a_delete_waits_for_requests_that_are_under_way_and_says_so():
    async with simulated_hosts() as place:
        await deployed(place, deletion={"drainSeconds": 300})
        place.gateway.in_flight["chat-1"] = 2
        await place.delete()
        await place.until(lambda: "2 requests are still under way" in (place.status().get("waitingFor") or ""))
        await asyncio.sleep(60.0)
        assert place.status()["teardown"]["phase"] == "drain"
        assert place.routed() == {"chat-1": 0}
        assert place.process("chat-1-0")["status"]["ready"]
        place.gateway.in_flight.clear()
        await place.gone()


def moment(place: SimulatedHosts, who: str, write: str) -> float:
    """Time of the last such write."""
    writes = place.world.trace.writes
    return max(each.at for each in writes if each.who == who and f"{each.verb} {each.resource} {each.key}" == write)


@virtual
async def test_a_route_stays_for_a_moment_after_the_gateway_has_let_go_of_it():
    """A request whose head came just before is counted only when its body continues."""
    async with simulated_hosts() as place:
        await deployed(place, deletion={"drainSeconds": 300})
        await place.delete()
        await place.gone()
        let_go = moment(place, "gateway", "patch gatewayroutes.pilotage.dev/status default/chat")
        unrouted = moment(place, "operator", UNROUTED)
        assert 1.0 <= unrouted - let_go < 1.5  # and no longer: each word of the gateway is acted on at once


@virtual
async def test_requests_that_the_gateway_does_not_count_have_the_whole_time():
    async with simulated_hosts() as place:
        await deployed(place, deletion={"drainSeconds": 20})
        place.gateway.counts = False
        await place.delete()
        await place.until(lambda: "requests under way are not counted" in (place.status().get("waitingFor") or ""))
        await place.gone()
        let_go = moment(place, "gateway", "patch gatewayroutes.pilotage.dev/status default/chat")
        assert 20.0 <= moment(place, "operator", UNROUTED) - let_go < 25.0


@virtual
async def test_requests_that_do_not_end_have_their_time_and_the_receipt_says_so():
    async with simulated_hosts() as place:
        await deployed(place, deletion={"drainSeconds": 20})
        place.gateway.in_flight["chat-1"] = 2
        begun = asyncio.get_running_loop().time()
        await place.delete()
        await place.gone()
        assert 20 <= asyncio.get_running_loop().time() - begun < 30
        receipt = place.records()[0]["status"]["receipt"]
        assert "2 requests were still under way when the time to drain was over" in receipt["notes"]


@virtual
async def test_an_agent_that_is_dead_when_it_is_deleted_is_named_and_nothing_is_forced():
    async with simulated_hosts() as place:
        await deployed(place, deletion={"timeouts": {"stop": 60}})
        place.agents["gpu-1"].alive = False
        await place.delete()
        await asyncio.sleep(180.0)
        assert "the agent of host/gpu-1" in place.status()["waitingFor"]
        assert "hostprocess/chat-1-0" in place.status()["waitingFor"]
        assert place.condition("Degraded")["reason"] == "DeletionBlocked"
        assert place.process("chat-1-0")["metadata"]["finalizers"] == [PROCESS_FINALIZER]
        assert place.world.find(SERVICES, ObjectKey("default", "chat-1")) is not None
        place.agents["gpu-1"].alive = True
        await place.gone()
        assert place.parts() == []


@virtual
async def test_a_gateway_that_is_dead_when_it_is_deleted_is_waited_for():
    async with simulated_hosts() as place:
        await deployed(place)
        place.gateway.alive = False
        await place.delete()
        await asyncio.sleep(300.0)
        assert "`pilotage gateway` has not accepted the last change yet" in place.status()["waitingFor"]
        assert place.process("chat-1-0")["status"]["ready"]
        place.gateway.alive = True
        await place.gone()
        assert place.parts() == []


@virtual
async def test_where_there_never_was_a_gateway_a_delete_does_not_wait_for_one():
    async with simulated_hosts() as place:
        place.gateway.alive = False
        await place.deploy(placement=HOST, route=GATEWAY)
        await place.until(
            lambda: (
                "`pilotage gateway` has not accepted the route yet"
                in place.condition("RouteProgrammed").get("message", "")
            )
        )
        await place.delete()
        await place.until(lambda: place.endpoint() is None, 120.0)
        assert place.parts() == []


@virtual
async def test_a_route_that_the_gateway_rejects_is_shown_and_the_old_one_serves_on():
    async with simulated_hosts() as place:
        await deployed(place)
        place.gateway.rejects = lambda route: "bad cluster" if len(route["spec"]["backends"]) > 1 else ""
        await place.change(runtime=REDEPLOYED)
        await place.until(lambda: place.condition("RouteProgrammed").get("reason") == "Rejected")
        assert place.condition("RouteProgrammed")["message"] == "rejected: bad cluster"
        await asyncio.sleep(300.0)
        assert place.status()["revision"] == "chat-1"
        assert place.process("chat-1-0")["status"]["ready"]
        assert place.routed()["chat-1"] == 100
        place.gateway.rejects = lambda _: ""
        await place.serving("chat-2")


@virtual
async def test_a_route_that_somebody_deletes_is_made_again():
    async with simulated_hosts() as place:
        await deployed(place)
        found = place.world.find(GATEWAY_ROUTES, KEY)
        await place.user.delete(GATEWAY_ROUTES, KEY, uid=found["metadata"]["uid"], propagation=Propagation.BACKGROUND)
        await place.until(
            lambda: (place.world.find(GATEWAY_ROUTES, KEY) or found)["metadata"]["uid"] != found["metadata"]["uid"]
        )
        await place.until(lambda: place.condition("RouteProgrammed")["status"] == "True")


@virtual
@pytest.mark.parametrize(
    ("runtime", "between", "names"),
    [("llama.cpp", [["chat", "llama", "qwen"]], ["chat", "qwen"]), ("vllm", [], ["chat", "qwen"])],
)
async def test_while_one_model_follows_another_clients_may_call_it_as_all_servers_do(runtime, between, names):
    async with simulated_hosts() as place:
        for name in ("qwen", "llama"):
            made = await place.user.create(MODELS, model(name, namespace="default"))
            ready = merge_patch({"status": {"phase": "Ready"}})
            await place.user.patch(MODELS, made.key, ready, subresource="status")
        called: list[list[str]] = []

        def remember() -> bool:
            route = place.world.find(GATEWAY_ROUTES, KEY)
            if route is not None and (not called or called[-1] != route["spec"]["models"]):
                called.append(route["spec"]["models"])
            return False

        await deployed(place, model={"name": "qwen"}, runtime={"name": runtime})
        await place.change(model={"name": "llama"})
        await place.until(lambda: remember() or place.status().get("revision") == "chat-2")
        await place.until(lambda: remember() or called[-1] == ["chat", "llama"])
        assert called == [["chat", "qwen"], *between, ["chat", "llama"]]
        assert place.process("chat-2-0")["spec"]["model"]["otherNames"] == names


@virtual
async def test_the_route_goes_when_it_is_not_wanted_any_more():
    async with simulated_hosts() as place:
        await deployed(place)
        await place.change(route=NONE)
        await place.until(lambda: "GatewayRoute/chat" not in place.parts())
        assert place.gateway.seen == [{"chat-1": 100}, {"chat-1": 0}]
        assert place.process("chat-1-0")["status"]["ready"]


@virtual
async def test_a_namespace_that_is_deleted_takes_it_along_and_the_agent_stops_it():
    async with simulated_hosts() as place:
        key = ObjectKey("team", "chat")
        space = await place.user.create(NAMESPACES, {"metadata": {"name": "team"}})
        await place.deploy(key, placement=HOST, route=GATEWAY)
        await place.serving(key=key)
        await place.user.delete(NAMESPACES, space.key, uid=space.meta.uid, propagation=Propagation.BACKGROUND)
        await place.until(lambda: place.world.find(NAMESPACES, space.key) is None)
        assert place.parts() == []
        (record,) = place.records()
        assert record["metadata"]["namespace"] == "pilotage-system"


@virtual
async def test_an_operator_that_is_restarted_in_the_middle_of_a_delete_goes_on():
    async with simulated_hosts() as place:
        await deployed(place, deletion={"drainSeconds": 300})
        place.gateway.in_flight["chat-1"] = 2
        await place.delete()
        await place.until(lambda: place.routed() == {"chat-1": 0})
        place.managers[-1].stop()
        await asyncio.sleep(30.0)
        place.operate()
        await asyncio.sleep(30.0)
        assert place.process("chat-1-0")["status"]["ready"]
        place.gateway.in_flight.clear()
        await place.gone()
        assert place.parts() == []
        (record,) = place.records()
        assert not any(each.get("unverified") for each in record["status"]["receipt"]["objects"])


@virtual
async def test_what_an_endpoint_that_vanished_has_left_on_hosts_is_taken_down():
    async with simulated_hosts() as place:
        await deployed(place)
        await place.delete_behind_the_operators_back()
        await place.until(lambda: place.parts() == [])
        assert place.world.objects(ENDPOINTS) == []
        assert place.world.objects(SLICES) == []


@virtual
async def test_a_command_alone_is_for_hosts():
    async with simulated_hosts() as place:
        await place.deploy(runtime={"name": "custom", "command": ["serve"]})
        await place.until(lambda: place.condition("Degraded").get("reason") == "InvalidSpec")
        assert "needs an image" in place.condition("Degraded")["message"]
        await place.change(placement=HOST)
        await place.serving()
        assert place.process("chat-1-0")["spec"]["runtime"]["command"] == ["serve"]


@virtual
async def test_by_labels_it_is_placed_where_the_most_memory_is_free():
    async with simulated_hosts() as place:
        place.add_host("gpu-2", labels={"gpu": "a100"}, free=2**33)
        place.add_host("gpu-3", labels={"gpu": "a100"}, free=2**34)
        await asyncio.sleep(10.0)
        await place.deploy(placement=ANY_HOST, replicas=3, resources={"requests": {"memory": "6Gi"}})
        await place.serving()
        assert [place.process(f"chat-1-{number}")["spec"]["host"] for number in range(3)] == ["gpu-3", "gpu-3", "gpu-2"]


@virtual
async def test_memory_is_promised_once_also_while_weights_are_still_fetched():
    async with simulated_hosts() as place:
        agent = place.agents["gpu-1"]
        await asyncio.sleep(5.0)
        agent.alive = False  # it says what is said here
        await place.deploy(placement=HOST, resources={"requests": {"memory": "12Gi"}})
        await place.until(lambda: place.process("chat-1-0").get("spec", {}).get("host") == "gpu-1", 5.0)
        patch = merge_patch({"status": {"phase": "Fetching"}})
        await place.user.patch(PROCESSES, ObjectKey("default", "chat-1-0"), patch, subresource="status")
        labels = {LABEL_ENDPOINT_UID: "another", LABEL_MANAGED_BY: MANAGED_BY}
        body = process("next-1-0", {"memoryBytes": 12 << 30}, labels=labels)
        await place.user.create(PROCESSES, body, namespace="default")
        await place.until(lambda: place.process("next-1-0").get("status", {}).get("message"), 5.0)
        assert place.process("next-1-0")["status"]["message"] == (
            "host/gpu-1 has 4.0 GiB free, and 12.0 GiB are needed"
        )


@virtual
async def test_nothing_is_placed_on_a_host_that_does_not_take_the_namespace():
    async with simulated_hosts() as place:
        await asyncio.sleep(5.0)
        await place.user.patch(HOSTS, ObjectKey("", "gpu-1"), merge_patch({"spec": {"allowedNamespaces": ["team-a"]}}))
        await place.deploy(placement=HOST)
        why = "host/gpu-1 runs nothing of namespace default, which its spec.allowedNamespaces does not name"
        await place.until(lambda: place.process("chat-1-0").get("status", {}).get("message") == why)
        await place.until(lambda: why in place.condition("Progressing").get("message", ""))
        await place.user.patch(HOSTS, ObjectKey("", "gpu-1"), merge_patch({"spec": {"allowedNamespaces": ["default"]}}))
        await place.serving()


@virtual
async def test_nothing_is_placed_on_a_host_that_is_cordoned():
    async with simulated_hosts() as place:
        await asyncio.sleep(5.0)
        await place.user.patch(HOSTS, ObjectKey("", "gpu-1"), merge_patch({"spec": {"unschedulable": True}}))
        await place.deploy(placement=HOST)
        await place.until(
            lambda: place.process("chat-1-0").get("status", {}).get("message") == "host/gpu-1 is unschedulable"
        )
        await place.user.patch(HOSTS, ObjectKey("", "gpu-1"), merge_patch({"spec": {"unschedulable": False}}))
        await place.serving()
