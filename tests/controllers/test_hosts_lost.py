"""Hosts whose agent falls silent, comes back, or never does; and Hosts that are deleted."""

import asyncio

import msgspec
import pytest

from pilotage.api.names import HOST_FINALIZER, HOST_LEASES, HOSTS, PROCESS_FINALIZER, PROCESSES
from pilotage.kube import EVENTS, LEASES, ObjectKey, Propagation, merge_patch
from pilotage.serving.resources import SLICES
from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_sim.loop import virtual
from tests.controllers.simulated_hosts import SimulatedHosts, simulated_hosts
from tests.controllers.test_hosts import ANY_HOST, GATEWAY, HOST, deployed

BOUND_SECONDS = 15 + 5
"""The duration of a Lease, and a few seconds."""
GPU_1 = ObjectKey("", "gpu-1")
GPU = {"gpu": "a100"}


def events(place: SimulatedHosts, reason: str) -> list[str]:
    return [each["note"] for each in place.world.objects(EVENTS) if each["reason"] == reason]


async def lose(place: SimulatedHosts, name: str = "gpu-1") -> None:
    place.agents[name].alive = False
    await place.until(lambda: place.host(name).get("status", {}).get("phase") == "Lost", 60.0)


async def delete_host(place: SimulatedHosts, name: str = "gpu-1") -> None:
    uid = place.host(name)["metadata"]["uid"]
    await place.user.delete(HOSTS, ObjectKey("", name), uid=uid, propagation=Propagation.BACKGROUND)


@virtual
async def test_the_addresses_of_a_host_that_falls_silent_are_out_of_traffic_within_a_bound():
    async with simulated_hosts() as place:
        await deployed(place, replicas=2)
        assert place.in_traffic() == ["chat-1-0", "chat-1-1"]
        begun = asyncio.get_running_loop().time()
        place.agents["gpu-1"].alive = False
        await place.until(lambda: place.in_traffic() == [], 60.0)
        assert asyncio.get_running_loop().time() - begun <= BOUND_SECONDS
        await place.until(lambda: place.host("gpu-1")["status"]["phase"] == "Lost", 5.0)
        status = place.process("chat-1-0")["status"]
        assert (status["phase"], status["ready"]) == ("Lost", False)
        assert status["message"].startswith("host/gpu-1 is lost: its agent has not renewed its Lease of 15 s since ")
        await place.until(lambda: events(place, "HostLost"), 5.0)
        (said,) = events(place, "HostLost")
        assert "2 addresses taken out of traffic." in said
        await place.until(lambda: place.condition("Available")["reason"] == "HostLost", 5.0)
        assert "(hostprocess/chat-1-0 on host/gpu-1: Lost; " in place.condition("Available")["message"]
        assert (place.status()["phase"], place.condition("Degraded")["status"]) == ("Unknown", "True")


@virtual
async def test_after_a_reboot_nothing_is_said_to_serve_before_its_agent_was_heard_of():
    """The Host is lost only after the whole duration of a Lease: the last words of its agent may be old."""
    async with simulated_hosts() as place:
        await deployed(place)
        place.managers[0].stop()
        place.agents["gpu-1"].alive = False
        await asyncio.sleep(60.0)
        assert place.status()["phase"] == "Serving"
        place.operate()
        await place.until(lambda: place.status()["phase"] == "Unknown", 5.0)
        assert place.host("gpu-1")["status"]["phase"] == "Ready", "it is not lost yet"
        said = place.condition("Available")
        assert (said["status"], said["reason"]) == ("Unknown", "HostSilent")
        assert said["message"].startswith("the agent of host/gpu-1 has not been heard of (hostprocess/chat-1-0 ")
        assert place.in_traffic() == ["chat-1-0"]
        place.agents["gpu-1"].alive = True
        await place.until(lambda: place.status()["phase"] == "Serving", 10.0)


@virtual
async def test_an_operator_that_starts_beside_living_agents_writes_nothing():
    async with simulated_hosts() as place:
        await deployed(place)
        place.managers[0].stop()
        await asyncio.sleep(60.0)
        before = len(place.writes())
        place.operate()
        await asyncio.sleep(60.0)
        assert [write for write in place.writes()[before:] if "servingendpoints" in write] == []


@virtual
async def test_a_lost_host_costs_no_more_writes():
    async with simulated_hosts() as place:
        await deployed(place)
        await lose(place)
        await asyncio.sleep(60.0)
        before = len(place.writes())
        await asyncio.sleep(900.0)
        assert place.writes()[before:] == []


@virtual
async def test_a_last_write_of_a_lost_agent_that_comes_late_does_not_keep_its_address_in_traffic():
    async with simulated_hosts() as place:
        await deployed(place)
        await lose(place)
        assert place.in_traffic() == []
        late = {"endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}]}
        await place.user.patch(SLICES, ObjectKey("default", "chat-1-0"), merge_patch(late))
        assert place.in_traffic() == ["chat-1-0"]
        await place.until(lambda: place.in_traffic() == [], 90.0)


@virtual
async def test_when_its_agent_is_back_it_serves_again_and_nothing_was_moved():
    async with simulated_hosts() as place:
        await deployed(place)
        uid = place.process("chat-1-0")["metadata"]["uid"]
        await lose(place)
        await place.until(lambda: place.status()["phase"] == "Unknown")
        place.agents["gpu-1"].alive = True
        await place.until(lambda: place.host("gpu-1")["status"]["phase"] == "Ready", 60.0)
        await place.until(lambda: place.status()["phase"] == "Serving")
        assert place.in_traffic() == ["chat-1-0"]
        assert place.process("chat-1-0")["metadata"]["uid"] == uid
        assert events(place, "HostReturned") == ["The agent is back."]
        alive = next(each for each in place.host("gpu-1")["status"]["conditions"] if each["type"] == "AgentAlive")
        assert alive["status"] == "True"


@virtual
async def test_an_agent_that_was_back_before_the_operator_is_called_alive_and_keeps_its_phase():
    async with simulated_hosts() as place:
        await deployed(place)
        await lose(place)
        place.managers[-1].stop()
        place.agents["gpu-1"].alive = True
        await place.user.patch(HOSTS, GPU_1, merge_patch({"status": {"phase": "Pressed"}}), subresource="status")
        place.operate()

        def alive() -> str:
            conditions = place.host("gpu-1")["status"]["conditions"]
            return str(next(each["status"] for each in conditions if each["type"] == "AgentAlive"))

        await place.until(lambda: alive() == "True", 60.0)
        assert place.host("gpu-1")["status"]["phase"] == "Pressed"


@virtual
async def test_a_lease_that_cannot_be_read_is_not_a_lost_host():
    async with simulated_hosts() as place:
        await deployed(place)

        def refuse(call: Call) -> ServerResponse | None:
            read = call.method == "GET" and call.path.endswith("/leases/gpu-1") and call.user.name == "operator"
            body = {"kind": "Status", "status": "Failure", "reason": "InternalError", "message": "no", "code": 500}
            return ServerResponse(500, msgspec.json.encode(body)) if read else None

        readable = place.world.intercept(refuse)
        place.agents["gpu-1"].alive = False
        await asyncio.sleep(300.0)
        assert place.host("gpu-1")["status"]["phase"] == "Ready"
        assert place.in_traffic() == ["chat-1-0"]
        readable()
        await place.until(lambda: place.in_traffic() == [], 10.0)


@virtual
async def test_an_operator_that_was_started_anew_gives_every_host_the_whole_time():
    async with simulated_hosts() as place:
        await deployed(place)
        place.managers[-1].stop()
        place.agents["gpu-1"].alive = False
        await asyncio.sleep(120.0)
        begun = asyncio.get_running_loop().time()
        place.operate()
        await asyncio.sleep(12.0)
        assert place.in_traffic() == ["chat-1-0"]
        await place.until(lambda: place.in_traffic() == [], 30.0)
        assert asyncio.get_running_loop().time() - begun <= BOUND_SECONDS


@virtual
async def test_an_operator_that_dies_in_the_middle_of_losing_a_host_is_followed_by_one_that_ends_it():
    async with simulated_hosts() as place:
        await deployed(place, replicas=2)
        place.agents["gpu-1"].alive = False
        await place.until(lambda: len(place.in_traffic()) == 1, 60.0)  # the first of two
        place.managers[-1].stop()
        place.managers[-1].stop()
        await asyncio.sleep(30.0)
        place.operate()
        await place.until(lambda: place.in_traffic() == [], 60.0)
        await place.until(lambda: place.host("gpu-1")["status"]["phase"] == "Lost", 60.0)


@virtual
async def test_a_clock_that_is_wrong_by_an_hour_loses_nobody():
    async with simulated_hosts() as place:
        agent = place.agents["gpu-1"]
        agent.clock_error = -3600.0
        await deployed(place)
        await asyncio.sleep(120.0)
        assert place.host("gpu-1")["status"]["phase"] == "Ready"
        assert place.in_traffic() == ["chat-1-0"]


@virtual
async def test_an_agent_that_has_stopped_in_order_is_not_waited_for():
    async with simulated_hosts() as place:
        await deployed(place)
        place.agents["gpu-1"].alive = False
        patch = merge_patch({"spec": {"holderIdentity": ""}})
        await place.user.patch(LEASES, ObjectKey(HOST_LEASES, "gpu-1"), patch)
        await place.until(lambda: place.host("gpu-1")["status"]["phase"] == "Stopped", 2.0)
        await place.until(lambda: place.in_traffic() == [], 2.0)
        assert place.process("chat-1-0")["status"]["phase"] == "Pending"
        await place.until(lambda: events(place, "HostStopped"), 5.0)
        assert [each["reason"] for each in place.world.objects(EVENTS) if each["type"] == "Warning"] == []
        place.agents["gpu-1"].alive = True
        await place.until(lambda: place.in_traffic() == ["chat-1-0"], 30.0)
        assert place.host("gpu-1")["status"]["phase"] == "Ready"


@virtual
async def test_nothing_is_placed_on_a_lost_host_and_another_with_the_labels_takes_it():
    async with simulated_hosts() as place:
        place.add_host("gpu-2", labels=GPU, free=2**40)
        place.add_host("gpu-3", labels=GPU)
        await asyncio.sleep(10.0)
        await lose(place, "gpu-2")
        await deployed(place, placement=ANY_HOST)
        assert place.process("chat-1-0")["spec"]["host"] == "gpu-3"


@virtual
async def test_a_host_that_was_dead_all_along_gets_nothing_from_an_operator_that_just_began():
    async with simulated_hosts() as place:
        await asyncio.sleep(10.0)
        place.managers[-1].stop()
        place.agents["gpu-1"].alive = False
        await asyncio.sleep(120.0)
        place.operate()
        await place.deploy(placement=HOST, route=GATEWAY)
        await asyncio.sleep(60.0)
        assert "host" not in place.process("chat-1-0")["spec"]
        assert "host/gpu-1 is lost" in place.process("chat-1-0")["status"]["message"]


# Deleted


@virtual
async def test_a_host_is_held_until_its_agent_has_stopped_what_runs_there():
    async with simulated_hosts() as place:
        await deployed(place)
        assert place.host("gpu-1")["metadata"]["finalizers"] == [HOST_FINALIZER]
        place.agents["gpu-1"].stop_seconds = 20.0
        place.agents["gpu-1"].re_registers = False
        await delete_host(place)
        await asyncio.sleep(10.0)
        assert place.host("gpu-1")["metadata"]["deletionTimestamp"]
        emptying = next(each for each in place.host("gpu-1")["status"]["conditions"] if each["type"] == "Emptying")
        assert "Waiting for 1 process to stop" in emptying["message"]
        await place.until(lambda: place.host("gpu-1") == {}, 60.0)
        assert place.in_traffic() == []
        assert place.world.find(LEASES, ObjectKey(HOST_LEASES, "gpu-1")) is None
        said = "not placed: host/gpu-1 does not exist; is its agent installed? (hostprocess/chat-1-0;"
        await place.until(lambda: said in place.condition("Available")["message"])


@virtual
async def test_what_ran_on_a_deleted_host_comes_up_on_another_with_the_labels():
    async with simulated_hosts() as place:
        place.add_host("gpu-2", labels=GPU, free=2**40)
        place.add_host("gpu-3", labels=GPU)
        await asyncio.sleep(10.0)
        await deployed(place, placement=ANY_HOST)
        assert place.process("chat-1-0")["spec"]["host"] == "gpu-2"
        place.agents["gpu-2"].re_registers = False
        await delete_host(place, "gpu-2")
        await place.until(lambda: place.process("chat-1-0").get("spec", {}).get("host") == "gpu-3", 120.0)
        await place.serving()


@virtual
async def test_deleting_a_host_that_is_lost_removes_what_its_processes_left():
    async with simulated_hosts() as place:
        await deployed(place)
        await lose(place)
        old = place.process("chat-1-0")["metadata"]["uid"]
        await delete_host(place)
        await place.until(lambda: place.host("gpu-1") == {}, 30.0)
        assert not [each for each in place.world.objects(SLICES) if each["metadata"]["name"] == "chat-1-0"]
        assert place.world.find(LEASES, ObjectKey(HOST_LEASES, "gpu-1")) is None
        assert place.process("chat-1-0").get("metadata", {}).get("uid") != old
        (said,) = events(place, "HostSwept")
        assert said == "The agent is gone: 1 address and 1 process removed without it."


@virtual
async def test_a_delete_that_waits_for_a_dead_agent_ends_when_its_host_is_deleted():
    async with simulated_hosts("gpu-1", "gpu-2") as place:
        await deployed(place)
        await place.deploy(ObjectKey("default", "other"), placement={"kind": "Host", "host": "gpu-2"})
        await place.serving("other-1", ObjectKey("default", "other"))
        await lose(place)
        await place.delete()
        await asyncio.sleep(120.0)
        assert place.process("chat-1-0")["metadata"]["finalizers"] == [PROCESS_FINALIZER]
        await delete_host(place)
        await place.gone()
        assert [each for each in place.parts() if "chat" in each] == []
        assert place.process("other-1-0")["status"]["ready"]
        (record,) = [each for each in place.records() if each["spec"]["target"]["name"] == "chat"]
        assert {each["state"] for each in record["status"]["receipt"]["objects"]} == {"gone"}


@virtual
async def test_an_operator_that_dies_in_the_middle_of_a_sweep_is_followed_by_one_that_ends_it():
    async with simulated_hosts() as place:
        await deployed(place, replicas=2)
        await lose(place)
        await delete_host(place)
        await place.until(lambda: len([each for each in place.world.objects(SLICES) if "chat" in str(each)]) == 1, 30.0)
        place.managers[-1].stop()
        place.managers[-1].stop()
        await asyncio.sleep(30.0)
        assert place.host("gpu-1") != {}
        place.operate()
        await place.until(lambda: place.host("gpu-1") == {}, 60.0)
        assert [each for each in place.world.objects(SLICES) if "chat" in str(each)] == []


@virtual
async def test_a_process_that_was_never_placed_goes_without_an_agent():
    async with simulated_hosts("other") as place:
        await place.deploy(placement=HOST)
        await place.until(lambda: place.process("chat-1-0"))
        await place.delete()
        await place.gone()
        assert place.parts() == []


@pytest.mark.parametrize("deleted", [True, False])
@virtual
async def test_of_a_host_that_has_vanished_nothing_stays_in_traffic(deleted):
    async with simulated_hosts() as place:
        await deployed(place)
        place.agents["gpu-1"].alive = False
        place.managers[-1].stop()
        await asyncio.sleep(1.0)
        await place.user.patch(HOSTS, GPU_1, merge_patch({"metadata": {"finalizers": None}}))
        await delete_host(place)
        assert place.host("gpu-1") == {}
        if deleted:
            await place.delete()
        place.operate()
        if deleted:
            await place.gone()
            assert place.parts() == []
        else:
            await place.until(lambda: place.in_traffic() == [], 30.0)
            await place.until(lambda: place.process("chat-1-0")["status"]["phase"] == "Lost", 5.0)
            assert place.process("chat-1-0")["status"]["message"] == "host/gpu-1 no longer exists"
            assert place.world.objects(PROCESSES)[0]["metadata"]["finalizers"] == [PROCESS_FINALIZER]
