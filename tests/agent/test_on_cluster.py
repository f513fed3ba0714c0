"""The agent on a real API server, as a service account that has the agent's rules and nothing else."""

import asyncio
import os
import re
import shutil
import signal
import sys

import pytest

from pilotage.agent.health import Prober
from pilotage.agent.launch import process
from pilotage.api.names import HOST_LEASES, HOSTS, LABEL_HOST, LABEL_PROCESS_UID, PROCESSES
from pilotage.kube import EVENTS, LEASES, ObjectKey, merge_patch
from pilotage.processes.identity import ProcessInfo
from pilotage.processes.terminate import StillRunning
from pilotage.serving.resources import SERVICES, SLICES
from tests.agent.agent_host import ENDPOINT, process_body, service_body
from tests.agent.cluster_host import ADDRESS, LIGHT, SECONDS_MAX, clear, is_ready, message
from tests.agent.forked_agents import nursery
from tests.agent.test_crash_points import Story
from tests.agent.test_pressure import CALM, CRITICAL
from tests.support.kinds import delete
from tests.support.waiting import eventually, until


@pytest.fixture
def host(cluster_host):
    return cluster_host


async def test_a_life_with_the_powers_that_an_agent_has(host):
    """It comes, dies, comes again, is adopted by the next agent, is deleted, and leaves nothing."""
    served = await host.place()
    (made,) = await host.slices()
    assert made.get("endpoints")[0]["addresses"] == [ADDRESS]
    assert made.get("endpoints")[0]["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert made.get("ports")[0]["port"] == served.get("status", "port")
    service = await host.admin.get(SERVICES, ObjectKey(host.namespace, "chat-1"))
    assert [owner.uid for owner in made.meta.owner_references] == [service.meta.uid]
    assert made.meta.labels["pilotage.dev/endpoint-uid"] == ENDPOINT

    first = served.get("status", "pid")
    os.kill(first, signal.SIGKILL)
    again = await host.until(
        lambda obj: obj.get("status", "ready") and obj.get("status", "pid") != first and obj.get("status", "restarts")
    )
    second = again.get("status", "pid")
    await host.crash()
    assert host.refused() == []
    host.start()
    await asyncio.wait_for(host.running.manager.started.wait(), SECONDS_MAX)
    assert [entry.pid for entry in host.running.journal.entries()] == [second]
    await host.delete()
    await host.until(lambda obj: obj is None)
    assert await host.slices() == []
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)
    found = await host.admin.get(HOSTS, ObjectKey("", host.settings.name))
    assert found.get("status", "phase") == "Ready"
    assert found.get("status", "addresses") == [ADDRESS]
    host.running.stop()
    assert await host.task == 0
    assert host.refused() == []


async def test_shutdown_unregisters_there_too(host):
    await host.place()
    host.running.stop()
    assert await host.task == 0
    assert await host.slices() == []
    stopped = await host.admin.get(PROCESSES, host.key)
    assert stopped.get("status", "phase") == "Pending"
    assert not stopped.get("status", "ready")
    lease = await host.admin.get(LEASES, ObjectKey(HOST_LEASES, host.settings.name))
    assert not lease.get("spec", "holderIdentity")
    assert host.refused() == []


async def test_a_service_that_goes_takes_its_slice_and_a_foreign_name_is_refused(host):
    """The collector takes the slice of a Service that is gone; the one that comes under its name is not ours."""
    await host.place()
    await delete(host.admin, SERVICES, await host.admin.get(SERVICES, ObjectKey(host.namespace, "chat-1")))
    await host.admin.create(SERVICES, service_body(app="theirs"), namespace=host.namespace)
    said = await host.until(lambda obj: obj.get("status", "ready") is False)
    said = await host.until(lambda obj: "not a part of this endpoint" in message(obj))
    assert said.get("status", "phase") == "Failed"
    assert [each for each in await host.slices() if each.meta.labels.get("pilotage.dev/host")] == []


async def test_errors_of_several_steps_are_said_together_and_it_is_tried_until_it_is_proven(host, account, monkeypatch):
    """It does not end, and its slice may not be deleted; then may be, and does not go."""
    served = await host.place(**LIGHT)

    async def end(*_args, **_more):
        raise StillRunning([ProcessInfo(7, "", 1, 7)])

    monkeypatch.setattr(process, "end", end)
    await host.admin.patch(SLICES, host.key, merge_patch({"metadata": {"finalizers": ["example.com/mine"]}}))
    async with account.without(host.admin, "delete", "endpointslices"):
        await host.delete()
        said = await host.until(lambda obj: "does not end" in message(obj))
        assert 'cannot delete resource "endpointslices"' in message(said)
        assert host.processes() == [served.get("status", "pid")], "and it is not forgotten"
    monkeypatch.undo()
    said = await host.until(lambda obj: message(obj).startswith("EndpointSlice"))
    assert message(said) == f"EndpointSlice {host.key} is still there."
    assert host.processes() == []
    assert [each.meta.terminating for each in await host.slices()] == [True]
    await host.admin.patch(SLICES, host.key, merge_patch({"metadata": {"finalizers": None}}))
    await host.until(lambda obj: obj is None)
    assert await host.slices() == []


async def test_a_slice_that_somebody_else_takes_away_meanwhile_is_unregistered(host, own_cluster):
    """The slice changes between our list and our delete: once it is gone then, once its name is another's."""
    for name in ("gone", "taken"):
        await host.place(name, **LIGHT)
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{host.namespace}/endpointslices"
    left = ["gone", "taken"]

    def take(point):
        if point == "before the slice is deleted":
            own_cluster.request("DELETE", f"{slices}/{left[0]}")
            if left.pop(0) == "taken":
                body = {"metadata": {"name": "taken"}, "addressType": "IPv4", "endpoints": [], "ports": []}
                own_cluster.request("POST", slices, body)

    host.at = take
    for name in ("gone", "taken"):
        await host.delete(name)
        await host.until(lambda obj: obj is None, name)
    assert left == []
    for code in (404, 409):
        assert host.metric(f'rest_client_requests_total{{code="{code}",method="DELETE"}}') == 1
    assert host.metric("pilotage_agent_takedown_failures_total") == 0
    assert [(each.meta.name, LABEL_PROCESS_UID in each.meta.labels) for each in await host.slices()] == [
        ("taken", False)
    ]
    assert host.processes() == []


async def test_names_that_look_alike_do_not_collide_and_one_that_is_taken_is_refused(host):
    """`a.b` and `a-b`; and a slice of another owner, which is reported and left alone."""
    made = {name: await host.place(name, **LIGHT) for name in ("a.b", "a-b")}
    owners = {each.meta.name: each.meta.labels[LABEL_PROCESS_UID] for each in await host.slices()}
    assert owners == {name: each.meta.uid for name, each in made.items()}
    await host.delete("a.b")
    await host.until(lambda obj: obj is None, "a.b")
    assert [each.meta.name for each in await host.slices()] == ["a-b"]
    assert host.processes() == [made["a-b"].get("status", "pid")]

    theirs = await host.theirs("a.b")
    body = process_body("a.b", host.model, host.settings.name, **LIGHT)
    await host.admin.create(PROCESSES, body, namespace=host.namespace)
    said = await host.until(lambda obj: obj.get("status", "phase") == "Failed", "a.b")
    assert "EndpointSlice a.b is there already, and it is not this server's" in message(said)
    await host.delete("a.b")
    await host.until(lambda obj: obj is None, "a.b")
    found = await host.admin.get(SLICES, theirs.key)
    assert (found.meta.uid, found.meta.resource_version) == (theirs.meta.uid, theirs.meta.resource_version)
    assert host.refused() == []


async def test_memory_pressure_takes_the_lowest_priority_away_and_it_comes_back(host):
    await host.place("low", priority=1, **LIGHT)
    high = await host.place("high", priority=5, **LIGHT)
    host.strains.strain = CRITICAL
    gone = await host.until(lambda obj: obj.get("status", "phase") == "Evicted", "low")
    assert "short of memory" in message(gone)
    assert [each.meta.name for each in await host.slices()] == ["high"]
    assert host.processes() == [high.get("status", "pid")]
    found = await until(
        host.admin, HOSTS, ObjectKey("", host.settings.name), lambda obj: obj.get("status", "phase") == "Pressed"
    )
    assert [each["status"] for each in found.get("status", "conditions") if each["type"] == "MemoryPressure"] == [
        "True"
    ]
    host.strains.strain = CALM
    back = await host.until(is_ready, "low")
    assert back.get("status", "restarts") == 0

    expected = {("Warning", "MemoryPressureLevelChanged"), ("Normal", "MemoryPressureLevelChanged")}
    expected |= {("Warning", "Evicted"), ("Warning", "RespawnBlocked")}

    async def are_noted():
        found = [each for where in ("default", host.namespace) for each in (await host.admin.list(EVENTS, where)).items]
        names = (host.settings.name, "low")
        noted = {(each.get("type"), each.get("reason")) for each in found if each.get("regarding", "name") in names}
        return expected <= noted

    await eventually(are_noted)
    conditions = {each.meta.name: each.get("endpoints")[0]["conditions"]["ready"] for each in await host.slices()}
    assert conditions == {"low": True, "high": True}
    assert host.refused() == []


async def test_death_of_the_agent_leaves_no_orphan_and_no_stale_slice(account, admin, namespace, tmp_path, tiny):
    """A server that is not noted, a slice that is not noted, and a slice whose server is gone."""
    points = ["before noting its process", "before noting the slice", "before the slice is deleted"]
    here = {"namespace": namespace, "address": ADDRESS} | LIGHT
    with nursery(account.kubeconfig) as made:
        stories = [Story(admin, made, tmp_path, tiny, point, **here) for point in points]
        try:
            await asyncio.gather(*(story.run() for story in stories))
        finally:
            await clear(admin, namespace, *(story.settings.name for story in stories))
    assert [story.died for story in stories] == points
    assert [story.adopted for story in stories] == [True, True, False]


async def test_a_slice_without_its_labels_gets_them_back_or_goes_with_its_process(host):
    """No selector finds it, and it routes: as long as that is so, nothing is proven."""
    await host.place(**LIGHT)
    stripped = merge_patch({"metadata": {"labels": {LABEL_PROCESS_UID: None, LABEL_HOST: None}}})
    (before,) = await host.slices()
    await host.admin.patch(SLICES, host.key, stripped)
    again = await until(host.admin, SLICES, host.key, lambda obj: obj.meta.labels == before.meta.labels)
    assert again.meta.uid == before.meta.uid
    await host.crash()
    await host.admin.patch(SLICES, host.key, stripped)
    await host.delete()
    host.start()
    await host.until(lambda obj: obj is None)
    assert await host.slices() == []


async def test_an_agent_with_a_copy_of_the_folder_is_refused_and_touches_nothing(host, own_cluster, account, tmp_path):
    """As on a machine that was made from an image of the first one. Restarted, the first one is itself again."""
    lease = ObjectKey(HOST_LEASES, host.settings.name)
    served = await host.place(**LIGHT)
    (before,) = await host.slices()
    shutil.copytree(host.settings.data, tmp_path / "copy")
    flags = {"--name": host.settings.name, "--address": "198.18.0.2", "--data": tmp_path / "copy"}
    flags |= {"--kubeconfig": account.kubeconfig, "--cache-root": tmp_path / "cache", "--metrics-address": ""}
    mark = own_cluster.audit_mark()
    command = [sys.executable, "-m", "pilotage", "agent", *(str(each) for pair in flags.items() for each in pair)]
    second = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, said = await asyncio.wait_for(second.communicate(), SECONDS_MAX)
    assert second.returncode == 1
    name = re.escape(host.settings.name)
    assert re.search(rf"Error: Another agent is called {name}.*has a copy of this --data", said.decode())
    asked = own_cluster.audit(since=mark, user=account.user)
    written = [each for each in asked if each.verb not in ("get", "list", "watch")]
    assert len(written) < 20, "of both together"
    assert {each.resource for each in written} <= {"namespaces", "leases", "hosts"}
    assert "198.18.0.2" not in str([each.body for each in written])
    (after,) = await host.slices()
    assert (after.meta.uid, after.meta.resource_version) == (before.meta.uid, before.meta.resource_version)
    assert host.processes() == [served.get("status", "pid")]
    held = await host.admin.get(LEASES, lease)

    await host.crash()
    host.start()
    await asyncio.wait_for(host.running.manager.started.wait(), SECONDS_MAX)
    again = await host.admin.get(LEASES, lease)
    fields = ("holderIdentity", "leaseTransitions", "acquireTime")
    assert [again.get("spec", name) for name in fields] == [held.get("spec", name) for name in fields]


async def test_a_server_that_hangs_is_withdrawn_and_then_replaced(host):
    """It keeps its port and its process, and answers nothing."""
    await host.crash()
    host.prober = Prober("127.0.0.1", seconds_max=1.0)
    host.start()
    served = await host.place(**LIGHT)
    pid = served.get("status", "pid")
    os.kill(pid, signal.SIGSTOP)

    def is_withdrawn(obj):
        return obj is not None and not obj.get("endpoints")[0]["conditions"]["ready"]

    await until(host.admin, SLICES, host.key, is_withdrawn, SECONDS_MAX)
    again = await host.until(lambda obj: is_ready(obj) and obj.get("status", "pid") != pid)
    assert again.get("status", "restarts") == 1
    assert host.processes() == [again.get("status", "pid")]
    (ready,) = await host.slices()
    assert ready.get("endpoints")[0]["conditions"]["ready"]
    assert ready.get("ports")[0]["port"] == again.get("status", "port")


async def test_servers_of_a_journal_that_was_lost_are_found_stopped_and_started_again(host):
    served = await host.place(**LIGHT)
    (before,) = await host.slices()
    await host.crash()
    for path in host.settings.data.glob("agent.sqlite*"):
        path.unlink()
    # An agent without its journal is another one, and waits until the Lease has run out.
    await delete(host.admin, LEASES, await host.admin.get(LEASES, ObjectKey(HOST_LEASES, host.settings.name)))
    host.start()
    pid = served.get("status", "pid")
    again = await host.until(lambda obj: is_ready(obj) and obj.get("status", "pid") != pid)
    assert host.processes() == [again.get("status", "pid")]
    (after,) = await host.slices()
    assert (after.meta.uid, after.get("endpoints")[0]["conditions"]["ready"]) == (before.meta.uid, True)
    assert after.get("ports")[0]["port"] == again.get("status", "port")
    await host.delete()
    await host.until(lambda obj: obj is None)
    assert await host.slices() == []
