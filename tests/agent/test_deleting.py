"""Deletion of a server: requests under way, servers that ignore SIGTERM, children, and objects of others."""

import asyncio
import os
import sys
import time

import psutil
import pytest

from pilotage.agent.health import Prober
from pilotage.agent.journal import LifecycleState
from pilotage.api.names import LABEL_HOST, LABEL_KEEP_ALIVE, LABEL_PROCESS_UID, PROCESSES
from pilotage.kube import ObjectKey, merge_patch
from pilotage.processes import identity
from pilotage.processes.census import PROCESS_UID
from pilotage.serving.resources import SERVICES, SLICES
from tests.agent.agent_host import NAMESPACE, process_body, python_server, refuse, service_body, streaming
from tests.agent.servers import DEAF, ESCAPING, FORKING, PLAIN
from tests.support.kinds import delete


async def test_a_stream_at_delete_goes_on_until_it_ends_and_no_longer_counts(host):
    """llama-server hangs if it gets SIGTERM now: so it does not."""
    await host.start()
    await host.serving(drainSeconds=20)
    pid = host.pid()
    with streaming(host.status()["port"]) as stream:
        await host.delete()
        await host.until(lambda: host.status()["phase"] == "Stopping" and host.status().get("inFlight") == 1)
        assert host.conditions() == {"ready": False, "serving": True, "terminating": True}
        for _ in range(50):
            assert (await asyncio.to_thread(stream.readline)) is not None
        assert host.processes() == [pid]
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()
    assert host.metric("pilotage_agent_killed_processes_total") == 0


async def test_a_clock_that_is_set_cuts_no_stream(host, monkeypatch):
    await host.start()
    await host.serving(drainSeconds=60)
    pid, looks, in_flight = host.pid(), [], Prober.in_flight
    with streaming(host.status()["port"]) as stream:
        await host.delete()
        await host.until(lambda: host.status()["phase"] == "Stopping" and host.status().get("inFlight") == 1)
        right = time.time
        monkeypatch.setattr(time, "time", lambda: right() + 2 * 86400)

        async def counted(*words):
            looks.append(await in_flight(*words))
            return looks[-1]

        monkeypatch.setattr(Prober, "in_flight", counted)
        await host.until(lambda: len(looks) >= 2)
        assert (await asyncio.to_thread(stream.readline)) is not None
        assert host.processes() == [pid]
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()


async def test_a_stream_that_does_not_end_is_cut_when_its_time_is_over(host):
    await host.start()
    await host.serving(drainSeconds=1)
    with streaming(host.status()["port"]):
        await host.delete()
        await host.until(lambda: host.find() is None)
    host.nothing_is_left()


async def test_a_server_that_ignores_sigterm_is_killed(host):
    await host.start()
    await host.serving(runtime=python_server(DEAF), drainSeconds=0)
    pid = host.pid()
    await host.delete()
    await host.until(lambda: host.find() is None)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert host.metric("pilotage_agent_killed_processes_total") == 1
    host.nothing_is_left()


async def test_a_server_that_has_no_metrics_gets_its_time_after_sigterm(host):
    """It has to finish its requests by itself, as in a pod."""
    late = "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.8), os._exit(0)))\n"
    script = PLAIN.removesuffix("serve()") + late + "serve()"
    await host.start()
    await host.serving(runtime=python_server(script), drainSeconds=10)
    await host.delete()
    await host.until(lambda: host.find() is None)
    assert host.metric("pilotage_agent_killed_processes_total") == 0, "grace is 0.4 s, and it took 0.8"
    host.nothing_is_left()


async def test_children_go_too_wherever_they_are(host):
    """Children in its group, in another group, in another session: all ignore SIGTERM."""
    await host.start()
    await host.serving(runtime=python_server(FORKING), drainSeconds=0)
    pid = host.pid()
    await host.until(lambda: len(host.processes()) == 4)
    children = [each for each in host.processes() if each != pid]
    assert {os.getsid(each) for each in children} - {pid}, "one has left the session"
    await host.delete()
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()
    assert host.metric("pilotage_agent_killed_processes_total") >= 3


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt its descendants")
async def test_one_that_leaves_session_parent_and_environment_goes_too(host):
    path = host.folder / "escaped"
    await host.start()
    await host.serving(runtime=python_server(ESCAPING) | {"args": [str(path)]}, drainSeconds=0)
    await host.until(lambda: path.exists() and path.read_text())
    escaped = identity.find(int(path.read_text()))
    try:
        assert escaped.session != host.pid()
        assert identity.environment(escaped.pid, (PROCESS_UID,)) == {}
        await host.delete()
        await host.until(lambda: host.find() is None)
        assert not identity.is_running(escaped.id)
    finally:
        if identity.is_running(escaped.id):
            os.kill(escaped.pid, 9)


async def test_children_of_a_server_that_died_go_before_it_is_started_again(host):
    await host.start()
    await host.serving(runtime=python_server(FORKING), drainSeconds=0)
    await host.until(lambda: len(host.processes()) == 4)
    before = host.processes()
    os.kill(host.pid(), 9)
    await host.until(lambda: host.status()["restarts"] == 1 and host.is_ready())
    assert not {*before} & {*host.processes()}


async def test_names_that_look_alike_do_not_collide(host):
    """`a.b` and `a-b`."""
    await host.start()
    first = await host.serving("a.b")
    second = await host.serving("a-b")
    assert host.slice("a.b")["metadata"]["labels"][LABEL_PROCESS_UID] == first
    assert host.slice("a-b")["metadata"]["labels"][LABEL_PROCESS_UID] == second
    pid = host.pid("a-b")
    await host.delete("a.b")
    await host.until(lambda: host.find("a.b") is None)
    assert host.slice("a.b") is None
    assert host.is_ready("a-b")
    assert host.pid("a-b") == pid


async def test_a_slice_of_somebody_else_is_refused_said_and_left_alone(host):
    body = {"metadata": {"name": "chat-1-0"}, "addressType": "IPv4", "endpoints": [], "ports": []}
    theirs = await host.client.create(SLICES, body, namespace=NAMESPACE)
    await host.start()
    await host.place()
    await host.until(lambda: host.reason() == "NameTaken")
    assert "EndpointSlice chat-1-0 is there already, and it is not this server's" in host.status()["message"]
    assert not host.status()["ready"]
    await host.delete()
    await host.until(lambda: host.find() is None)
    assert host.slice()["metadata"]["uid"] == theirs.meta.uid
    assert host.processes() == []


async def test_a_service_of_somebody_else_is_refused_and_said(host):
    await host.client.create(SERVICES, service_body(app="theirs"), namespace=NAMESPACE)
    await host.start()
    await host.place()
    await host.until(lambda: host.reason() == "NameTaken")
    assert "Service chat-1 is there, and it is not a part of this endpoint" in host.status()["message"]
    assert host.slice() is None


async def test_a_service_that_comes_later_is_waited_for(host):
    await host.start()
    await host.client.create(PROCESSES, process_body("chat-1-0", host.model, host.name), namespace=NAMESPACE)
    await host.until(lambda: host.reason() == "NoService")
    pid = host.pid()
    service = (await host.client.create(SERVICES, service_body(), namespace=NAMESPACE)).to_dict()
    await host.until(lambda: host.is_ready())
    assert host.pid() == pid
    owner = host.slice()["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"]) == ("Service", service["metadata"]["uid"])


async def test_only_the_recorded_uid_is_deleted(host):
    """Another client deletes the slice, and creates one of its own under the name."""
    await host.start()
    await host.serving()
    await host.crash()
    found = await host.client.get(SLICES, ObjectKey(NAMESPACE, "chat-1-0"))
    await delete(host.client, SLICES, found)
    body = {"metadata": {"name": "chat-1-0"}, "addressType": "IPv4", "endpoints": [], "ports": []}
    theirs = await host.client.create(SLICES, body, namespace=NAMESPACE)
    await host.delete()
    await host.start()
    await host.until(lambda: host.find() is None)
    assert host.slice()["metadata"]["uid"] == theirs.meta.uid
    assert host.processes() == []


async def test_an_address_is_labelled_with_how_long_its_service_keeps_connections(host):
    await host.start()
    body = service_body("chat-1")
    body["metadata"]["labels"] |= {LABEL_KEEP_ALIVE: "5", "other": "label"}
    await host.client.create(SERVICES, body, namespace=NAMESPACE)
    await host.serving()
    labels = host.slice()["metadata"]["labels"]
    assert (labels[LABEL_KEEP_ALIVE], "other" in labels) == ("5", False)


async def test_a_copy_with_our_labels_is_somebody_elses(host):
    await host.start()
    await host.serving()
    labels = {LABEL_PROCESS_UID: host.slice()["metadata"]["labels"][LABEL_PROCESS_UID]}
    body = {"metadata": {"name": "copy", "labels": labels}, "addressType": "IPv4", "endpoints": [], "ports": []}
    await host.client.create(SLICES, body, namespace=NAMESPACE)
    await host.delete()
    await host.until(lambda: host.find() is None)
    assert host.slice() is None
    assert host.slice("copy") is not None


async def test_a_delete_goes_on_after_the_agent_was_killed(host):
    await host.start()
    await host.serving()
    answer, _ = refuse(503, "ServiceUnavailable", method="DELETE", resource="endpointslices")
    stop = host.world.intercept(answer)
    await host.delete()
    await host.until(lambda: host.processes() == [])
    await host.crash()
    stop()
    assert host.slice() is not None
    await host.start()
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()


async def test_a_finalizer_that_somebody_took_off_leaves_nothing_behind(host):
    await host.start()
    await host.serving()
    key = ObjectKey(NAMESPACE, "chat-1-0")
    await host.client.patch(PROCESSES, key, merge_patch({"metadata": {"finalizers": None}}))
    await host.until(lambda: host.find()["metadata"].get("finalizers"), 5)  # it is put back while it is wanted
    await host.crash()
    await host.client.patch(PROCESSES, key, merge_patch({"metadata": {"finalizers": None}}))
    await host.delete()
    assert host.find() is None
    await host.start()
    await host.until(lambda: host.running.journal.entries() == [])
    host.nothing_is_left()


async def test_one_that_was_made_again_under_its_name_is_another(host):
    await host.start()
    await host.serving()
    first = host.pid()
    await host.crash()
    key = ObjectKey(NAMESPACE, "chat-1-0")
    await host.client.patch(PROCESSES, key, merge_patch({"metadata": {"finalizers": None}}))
    await host.delete()
    uid = await host.place()
    await host.start()
    await host.until(lambda: host.is_ready() and host.slice()["metadata"]["labels"][LABEL_PROCESS_UID] == uid)
    assert host.pid() != first
    assert host.processes() == [host.pid()]


async def test_what_has_not_started_yet_goes_at_once(host):
    host.memory.reading = host.memory.reading._replace(available=1)
    await host.start()
    await host.place()
    await host.until(lambda: host.reason() == "NoMemory")
    await host.delete()
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()


async def test_one_that_starts_is_not_drained(host):
    """It has not received any request."""
    never = {"name": "llama.cpp", "command": [sys.executable, "-c", "import time; time.sleep(1000)"]}
    await host.start()
    await host.place(runtime=never, drainSeconds=60)
    await host.until(lambda: host.status().get("phase") == "Starting" and host.processes())
    assert host.running.journal.entries()[0].state is LifecycleState.STARTING
    await host.delete()
    await host.until(lambda: host.find() is None, 5)
    host.nothing_is_left()


async def strip(host, *labels, name="chat-1-0"):
    patch = merge_patch({"metadata": {"labels": dict.fromkeys(labels)}})
    await host.client.patch(SLICES, ObjectKey(NAMESPACE, name), patch)


@pytest.mark.parametrize("labels", [(LABEL_PROCESS_UID,), (LABEL_PROCESS_UID, LABEL_HOST)], ids=["one", "both"])
async def test_a_slice_that_loses_its_labels_is_known_by_its_uid_and_gets_them_back(host, labels):
    await host.start()
    await host.serving(runtime=python_server(PLAIN), drainSeconds=0)
    before, pid = host.slice()["metadata"], host.pid()
    await strip(host, *labels)
    await host.until(lambda: host.slice()["metadata"]["labels"] == before["labels"])
    assert host.slice()["metadata"]["uid"] == before["uid"]
    assert host.pid() == pid
    assert host.is_ready()


async def test_a_slice_without_its_labels_goes_with_its_process(host):
    """They are lost while no agent could put them back, and nothing of it is in the cache of the next one."""
    await host.start()
    await host.serving(runtime=python_server(PLAIN), drainSeconds=0)
    await host.crash()
    await strip(host, LABEL_PROCESS_UID, LABEL_HOST)
    await host.delete()
    await host.start()
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()
