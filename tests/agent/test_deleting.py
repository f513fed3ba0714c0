"""How a server goes: requests under way, servers that do not listen, children, and objects of other people."""

import asyncio
import os
import sys
import time

import psutil

from pilotage.agent.health import Prober
from pilotage.agent.journal import State
from pilotage.api.names import LABEL_PROCESS_UID, PROCESSES
from pilotage.kube import ObjectKey, merge_patch
from pilotage.serving.resources import SERVICES, SLICES
from tests.agent.servers import DEAF, FORKING, PLAIN
from tests.agent.town import NAMESPACE, process_body, python_server, refuse, service_body, streaming
from tests.support.kinds import delete


async def test_a_stream_at_delete_goes_on_until_it_ends_and_no_longer_counts(town):
    """llama-server hangs if it gets SIGTERM now: so it does not."""
    await town.start()
    await town.serving(drainSeconds=20)
    pid = town.pid()
    with streaming(town.status()["port"]) as stream:
        await town.delete()
        await town.until(lambda: town.status()["phase"] == "Stopping" and town.status().get("inFlight") == 1)
        assert town.conditions() == {"ready": False, "serving": True, "terminating": True}
        for _ in range(50):
            assert (await asyncio.to_thread(stream.readline)) is not None
        assert town.processes() == [pid]
    await town.until(lambda: town.find() is None)
    town.nothing_is_left()
    assert town.metric("pilotage_agent_killed_processes_total") == 0


async def test_a_clock_that_is_set_cuts_no_stream(town, monkeypatch):
    await town.start()
    await town.serving(drainSeconds=60)
    pid, looks, in_flight = town.pid(), [], Prober.in_flight
    with streaming(town.status()["port"]) as stream:
        await town.delete()
        await town.until(lambda: town.status()["phase"] == "Stopping" and town.status().get("inFlight") == 1)
        right = time.time
        monkeypatch.setattr(time, "time", lambda: right() + 2 * 86400)

        async def counted(*words):
            looks.append(await in_flight(*words))
            return looks[-1]

        monkeypatch.setattr(Prober, "in_flight", counted)
        await town.until(lambda: len(looks) >= 2)
        assert (await asyncio.to_thread(stream.readline)) is not None
        assert town.processes() == [pid]
    await town.until(lambda: town.find() is None)
    town.nothing_is_left()


async def test_a_stream_that_does_not_end_is_cut_when_its_time_is_over(town):
    await town.start()
    await town.serving(drainSeconds=1)
    with streaming(town.status()["port"]):
        await town.delete()
        await town.until(lambda: town.find() is None)
    town.nothing_is_left()


async def test_a_server_that_ignores_sigterm_is_killed(town):
    await town.start()
    await town.serving(runtime=python_server(DEAF), drainSeconds=0)
    pid = town.pid()
    await town.delete()
    await town.until(lambda: town.find() is None)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert town.metric("pilotage_agent_killed_processes_total") == 1
    town.nothing_is_left()


async def test_a_server_that_has_no_metrics_gets_its_time_after_sigterm(town):
    """It has to finish its requests by itself, as in a pod."""
    late = "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.8), os._exit(0)))\n"
    script = PLAIN.removesuffix("serve()") + late + "serve()"
    await town.start()
    await town.serving(runtime=python_server(script), drainSeconds=10)
    await town.delete()
    await town.until(lambda: town.find() is None)
    assert town.metric("pilotage_agent_killed_processes_total") == 0, "grace is 0.4 s, and it took 0.8"
    town.nothing_is_left()


async def test_children_go_too_wherever_they_are(town):
    """In its group, in another group, in another session: all deaf to SIGTERM."""
    await town.start()
    await town.serving(runtime=python_server(FORKING), drainSeconds=0)
    pid = town.pid()
    await town.until(lambda: len(town.processes()) == 4)
    children = [each for each in town.processes() if each != pid]
    assert {os.getsid(each) for each in children} - {pid}, "one has left the session"
    await town.delete()
    await town.until(lambda: town.find() is None)
    town.nothing_is_left()
    assert town.metric("pilotage_agent_killed_processes_total") >= 3


async def test_children_of_a_server_that_died_go_before_it_is_started_again(town):
    await town.start()
    await town.serving(runtime=python_server(FORKING), drainSeconds=0)
    await town.until(lambda: len(town.processes()) == 4)
    before = town.processes()
    os.kill(town.pid(), 9)
    await town.until(lambda: town.status()["restarts"] == 1 and town.is_ready())
    assert not {*before} & {*town.processes()}


async def test_names_that_look_alike_do_not_collide(town):
    """`a.b` and `a-b`."""
    await town.start()
    first = await town.serving("a.b")
    second = await town.serving("a-b")
    assert town.slice("a.b")["metadata"]["labels"][LABEL_PROCESS_UID] == first
    assert town.slice("a-b")["metadata"]["labels"][LABEL_PROCESS_UID] == second
    pid = town.pid("a-b")
    await town.delete("a.b")
    await town.until(lambda: town.find("a.b") is None)
    assert town.slice("a.b") is None
    assert town.is_ready("a-b")
    assert town.pid("a-b") == pid


async def test_a_slice_of_somebody_else_is_refused_said_and_left_alone(town):
    body = {"metadata": {"name": "chat-1-0"}, "addressType": "IPv4", "endpoints": [], "ports": []}
    theirs = await town.client.create(SLICES, body, namespace=NAMESPACE)
    await town.start()
    await town.place()
    await town.until(lambda: town.reason() == "NameTaken")
    assert "EndpointSlice chat-1-0 is there already, and it is not this server's" in town.status()["message"]
    assert not town.status()["ready"]
    await town.delete()
    await town.until(lambda: town.find() is None)
    assert town.slice()["metadata"]["uid"] == theirs.meta.uid
    assert town.processes() == []


async def test_a_service_of_somebody_else_is_refused_and_said(town):
    await town.client.create(SERVICES, service_body(app="theirs"), namespace=NAMESPACE)
    await town.start()
    await town.place()
    await town.until(lambda: town.reason() == "NameTaken")
    assert "Service chat-1 is there, and it is not a part of this endpoint" in town.status()["message"]
    assert town.slice() is None


async def test_a_service_that_comes_later_is_waited_for(town):
    await town.start()
    await town.client.create(PROCESSES, process_body("chat-1-0", town.model, town.host), namespace=NAMESPACE)
    await town.until(lambda: town.reason() == "NoService")
    pid = town.pid()
    service = (await town.client.create(SERVICES, service_body(), namespace=NAMESPACE)).to_dict()
    await town.until(lambda: town.is_ready())
    assert town.pid() == pid
    owner = town.slice()["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"]) == ("Service", service["metadata"]["uid"])


async def test_only_the_recorded_uid_is_deleted(town):
    """Somebody takes the slice away, and puts one of his own under its name."""
    await town.start()
    await town.serving()
    await town.crash()
    found = await town.client.get(SLICES, ObjectKey(NAMESPACE, "chat-1-0"))
    await delete(town.client, SLICES, found)
    body = {"metadata": {"name": "chat-1-0"}, "addressType": "IPv4", "endpoints": [], "ports": []}
    theirs = await town.client.create(SLICES, body, namespace=NAMESPACE)
    await town.delete()
    await town.start()
    await town.until(lambda: town.find() is None)
    assert town.slice()["metadata"]["uid"] == theirs.meta.uid
    assert town.processes() == []


async def test_a_copy_with_our_labels_is_somebody_elses(town):
    await town.start()
    await town.serving()
    labels = {LABEL_PROCESS_UID: town.slice()["metadata"]["labels"][LABEL_PROCESS_UID]}
    body = {"metadata": {"name": "copy", "labels": labels}, "addressType": "IPv4", "endpoints": [], "ports": []}
    await town.client.create(SLICES, body, namespace=NAMESPACE)
    await town.delete()
    await town.until(lambda: town.find() is None)
    assert town.slice() is None
    assert town.slice("copy") is not None


async def test_a_delete_goes_on_after_the_agent_was_killed(town):
    await town.start()
    await town.serving()
    answer, _ = refuse(503, "ServiceUnavailable", method="DELETE", resource="endpointslices")
    stop = town.world.intercept(answer)
    await town.delete()
    await town.until(lambda: town.processes() == [])
    await town.crash()
    stop()
    assert town.slice() is not None
    await town.start()
    await town.until(lambda: town.find() is None)
    town.nothing_is_left()


async def test_a_finalizer_that_somebody_took_off_leaves_nothing_behind(town):
    await town.start()
    await town.serving()
    key = ObjectKey(NAMESPACE, "chat-1-0")
    await town.client.patch(PROCESSES, key, merge_patch({"metadata": {"finalizers": None}}))
    await town.until(lambda: town.find()["metadata"].get("finalizers"), 5)  # it is put back while it is wanted
    await town.crash()
    await town.client.patch(PROCESSES, key, merge_patch({"metadata": {"finalizers": None}}))
    await town.delete()
    assert town.find() is None
    await town.start()
    await town.until(lambda: town.running.journal.entries() == [])
    town.nothing_is_left()


async def test_one_that_was_made_again_under_its_name_is_another(town):
    await town.start()
    await town.serving()
    first = town.pid()
    await town.crash()
    key = ObjectKey(NAMESPACE, "chat-1-0")
    await town.client.patch(PROCESSES, key, merge_patch({"metadata": {"finalizers": None}}))
    await town.delete()
    uid = await town.place()
    await town.start()
    await town.until(lambda: town.is_ready() and town.slice()["metadata"]["labels"][LABEL_PROCESS_UID] == uid)
    assert town.pid() != first
    assert town.processes() == [town.pid()]


async def test_what_has_not_started_yet_goes_at_once(town):
    town.memory.reading = town.memory.reading._replace(available=1)
    await town.start()
    await town.place()
    await town.until(lambda: town.reason() == "NoMemory")
    await town.delete()
    await town.until(lambda: town.find() is None)
    town.nothing_is_left()


async def test_one_that_starts_is_not_drained(town):
    """Nobody has sent it anything."""
    never = {"name": "llama.cpp", "command": [sys.executable, "-c", "import time; time.sleep(1000)"]}
    await town.start()
    await town.place(runtime=never, drainSeconds=60)
    await town.until(lambda: town.status().get("phase") == "Starting" and town.processes())
    assert town.running.journal.entries()[0].state is State.STARTING
    await town.delete()
    await town.until(lambda: town.find() is None, 5)
    town.nothing_is_left()
