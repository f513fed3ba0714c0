"""A server that is stopped leaves nothing in the cluster, whatever fails on the way."""

import asyncio
import os

import pytest
import structlog

from pilotage.agent.launch import process
from pilotage.agent.registration import RegistrationRefused
from pilotage.api.names import HOST_LEASES, HOSTS
from pilotage.catalogue.phase import Phase
from pilotage.kube import LEASES, Forbidden, ObjectKey, Unavailable, merge_patch
from pilotage.processes import identity
from pilotage.processes.identity import ProcessInfo
from pilotage.processes.terminate import StillRunning
from pilotage.serving.resources import SLICES
from tests.agent.agent_host import ask, python_server, refuse
from tests.agent.servers import PLAIN


async def test_delete_stops_the_process_and_unregisters_it(host):
    await host.start()
    await host.serving()
    pid, port = host.pid(), host.status()["port"]
    assert (await asyncio.to_thread(ask, port))["model"] == "tiny"
    assert host.slice()["endpoints"][0]["addresses"] == ["127.0.0.1"]
    assert host.slice()["ports"][0]["port"] == port
    await host.delete()
    await host.until(lambda: host.find() is None)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    host.nothing_is_left()
    assert host.metric('pilotage_agent_stops_total{reason="Deleted"}') == 1


async def test_a_stop_that_fails_does_not_keep_it_registered_and_is_tried_again(host, monkeypatch):
    await host.start()
    await host.serving()
    pid, fails = host.pid(), [True]
    real = process.end

    async def end(*args, **more):
        if fails[0]:
            raise StillRunning([identity.find(pid)])
        return await real(*args, **more)

    monkeypatch.setattr(process, "end", end)
    await host.delete()
    await host.until(lambda: host.slice() is None)
    await host.until(lambda: "does not end" in host.status().get("message", ""))
    assert host.processes() == [pid], "and it is not forgotten"
    assert host.running.journal.entries()
    assert host.metric("pilotage_agent_takedown_failures_total") >= 1
    fails[0] = False
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()


async def test_all_errors_are_reported_together(host, monkeypatch):
    await host.start()
    await host.serving()

    async def end(*_args, **_more):
        raise StillRunning([ProcessInfo(7, "", 1, 7)])

    monkeypatch.setattr(process, "end", end)
    answer, _ = refuse(403, "Forbidden", method="DELETE", resource="endpointslices")
    stop = host.world.intercept(answer)
    await host.delete()
    await host.until(lambda: "no DELETE of endpointslices" in host.status().get("message", ""))
    assert "Process 7 does not end" in host.status()["message"]
    assert host.reason() == "Deleted"
    monkeypatch.undo()
    stop()
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()


async def unregistered(host, **more):
    """A registrar, and the entry of a server that is registered."""
    await host.start()
    await host.serving()
    entry = host.running.journal.entries()[0]
    agent = host.running.agent
    return agent._registrar, entry


async def test_what_is_gone_already_is_unregistered_and_said_in_a_debug_line(host):
    registrar, entry = await unregistered(host)
    found = await host.client.get(SLICES, entry.key)
    read, test = registrar._find, asyncio.current_task()

    async def stale(asked):  # as if another client had deleted it between our read and our delete
        if asyncio.current_task() is not test:  # the agent rechecks now and then, too
            return await read(asked)
        registrar._find = read
        await registrar.unregister(entry)
        return found

    registrar._find = stale
    with structlog.testing.capture_logs() as logs:
        await registrar.unregister(entry)
        await registrar.unregister(entry)
    gone = [each for each in logs if each["event"] == "the slice is gone already"]
    assert [each["log_level"] for each in gone] == ["debug"]


@pytest.mark.parametrize(
    ("code", "reason", "error"), [(403, "Forbidden", Forbidden), (503, "ServiceUnavailable", Unavailable)]
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_any_other_answer_of_the_api_is_an_error(host, code, reason, error, method):
    registrar, entry = await unregistered(host)
    answer, _ = refuse(code, reason, method=method, resource="endpointslices")
    stop = host.world.intercept(answer)
    with pytest.raises(error):
        await registrar.unregister(entry)
    stop()


async def test_a_delete_that_is_refused_is_tried_until_it_is_done(host):
    await host.start()
    await host.serving()
    answer, left = refuse(503, "ServiceUnavailable", method="DELETE", resource="endpointslices", times=3)
    host.world.intercept(answer)
    await host.delete()
    await host.until(lambda: host.find() is None)
    assert left == [0]
    host.nothing_is_left()


async def test_a_slice_that_does_not_go_is_not_taken_for_gone(host):
    registrar, entry = await unregistered(host)
    body = {"metadata": {"finalizers": ["example.com/mine"]}}
    await host.client.patch(SLICES, entry.key, merge_patch(body))
    with pytest.raises(RegistrationRefused, match="still there"):
        await registrar.unregister(entry)
    await host.delete()
    await host.until(lambda: "still there" in host.status().get("message", ""))
    assert host.find() is not None
    await host.client.patch(SLICES, entry.key, merge_patch({"metadata": {"finalizers": None}}))
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()


async def test_shutdown_unregisters_and_stops_everything(host):
    await host.start()
    await host.serving("chat-1-0")
    await host.serving("chat-1-1", runtime=python_server(PLAIN), drainSeconds=0)
    assert await host.stop() == 0
    host.nothing_but_logs_is_left()
    found = host.world.find(HOSTS, ObjectKey("", host.name))
    assert found["status"]["phase"] == "Stopping"
    assert host.world.find(LEASES, ObjectKey(HOST_LEASES, host.name))["spec"]["holderIdentity"] == ""
    for name in ("chat-1-0", "chat-1-1"):
        assert host.status(name)["phase"] == "Pending"
        assert not host.status(name)["ready"]
        assert "agent of its host has stopped" in host.status(name)["message"]
        assert host.find(name)["metadata"]["finalizers"], "it is still held: the next agent starts it"
    await host.start()
    await host.until(lambda: host.is_ready("chat-1-0") and host.is_ready("chat-1-1"))


async def test_the_steps_go_by_the_phases_of_every_teardown(host):
    """Withdrawn before it is stopped, stopped before it is unregistered, unregistered before it is released."""
    steps = []
    await host.start(at=steps.append)
    await host.serving()
    began = len(steps)
    await host.delete()
    await host.until(lambda: host.find() is None)
    await host.until(lambda: "after forgetting" in steps)
    steps = steps[: steps.index("after forgetting")]
    order = [
        "after noting that it leaves",
        "after the slice is leaving",
        "before SIGTERM",
        "before the slice is deleted",
        "before the finalizer goes",
        "before forgetting",
    ]
    assert [each for each in steps[began:] if each in order] == order
    assert Phase.DETACH < Phase.DRAIN < Phase.STOP < Phase.REMOVE < Phase.RELEASE < Phase.PROVE
