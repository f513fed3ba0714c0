"""A real agent and the operator's controllers on one harbor: what each of them says must not contradict the other."""

import asyncio
import contextlib
import dataclasses

import pytest

from pilotage.agent import host as host_module
from pilotage.api.names import HOST_LEASES, HOSTS, LABEL_HOST, LABEL_PROCESS_UID, PROCESSES
from pilotage.controllers.wiring import NoProxyObserver, Options, add_endpoints
from pilotage.kube import EVENTS, AlreadyExists, ObjectKey, merge_patch
from pilotage.operator.crds import crds
from pilotage.runtime.manager import Manager
from pilotage.serving.resources import SLICES
from tests.agent.agent_host import NAMESPACE, SHORT_INTERVALS, AgentHost, process_body, python_server, refuse
from tests.agent.servers import PLAIN
from tests.api.objects import install
from tests.support.kinds import NAMESPACES


@contextlib.asynccontextmanager
async def operating(host: AgentHost):
    """The operator's controllers, for the time of the block."""
    await install(host.client, crds())
    for name in (HOST_LEASES, "pilotage-system"):
        with contextlib.suppress(AlreadyExists):
            await host.client.create(NAMESPACES, {"metadata": {"name": name}})
    manager = Manager(host.world.client("operator"), name="operator")
    add_endpoints(manager, Options(NoProxyObserver()))
    task = asyncio.create_task(manager.run())
    try:
        yield
    finally:
        manager.stop()
        await task


@pytest.fixture
def short_lease(monkeypatch):
    for name, seconds in (("LEASE_SECONDS", 1.0), ("RENEW_SECONDS", 0.6), ("RETRY_SECONDS", 0.1)):
        monkeypatch.setattr(host_module, name, seconds)


def said(host):
    """The phase of the Host, and what its conditions say."""
    status = host.world.find(HOSTS, ObjectKey("", host.name)).get("status", {})
    return status.get("phase"), {each["type"]: each["status"] for each in status.get("conditions", [])}


async def test_an_agent_that_cannot_renew_its_lease_claims_nothing_until_it_can(host, short_lease):
    """They would contradict each other again and again: one says Lost, the other Ready."""
    await host.start()
    async with operating(host):
        await host.serving()
        pid = host.pid()
        answer, left = refuse(403, "Forbidden", method="PUT", resource="leases")
        allow = host.world.intercept(answer)
        await host.until(lambda: said(host)[0] == "Lost")
        before = host.world.find(HOSTS, ObjectKey("", host.name))["metadata"]["resourceVersion"]
        tried = left[0]
        await host.until(lambda: left[0] < tried - 8)
        assert host.world.find(HOSTS, ObjectKey("", host.name))["metadata"]["resourceVersion"] == before
        assert host.conditions()["ready"] is False
        assert host.status()["ready"] is False
        allow()
        await host.until(host.is_ready)
        await host.until(lambda: said(host)[0] == "Ready" and said(host)[1]["AgentAlive"] == "True")
        assert host.pid() == pid


async def test_what_a_process_was_promised_is_not_promised_again(host):
    """Though the Host says only now and then what it has free."""
    host.intervals = dataclasses.replace(SHORT_INTERVALS, host=60.0)
    await host.start()
    async with operating(host):
        await host.until(lambda: said(host)[0] == "Ready")
        await host.serving("chat-1-0", memoryBytes=40 << 30)
        body = process_body("next-1-0", host.model, host.name, memoryBytes=40 << 30)
        del body["spec"]["host"], body["metadata"]["labels"][LABEL_HOST]
        await host.client.create(PROCESSES, body, namespace=NAMESPACE)
        await host.until(lambda: "free, and 40.0 GiB are needed" in host.status("next-1-0").get("message", ""))
        assert "host" not in host.find("next-1-0")["spec"]
        await host.delete()
        await host.until(lambda: host.find("next-1-0")["spec"].get("host") == host.name)
        await host.delete("next-1-0")
        await host.until(lambda: host.find("next-1-0") is None)


async def test_a_slice_that_has_lost_its_labels_is_withdrawn_with_its_host(host, short_lease):
    """No label leads to it, and the status of its process does."""
    await host.start()
    async with operating(host):
        await host.serving(runtime=python_server(PLAIN), drainSeconds=0)
        await host.crash()
        labels = merge_patch({"metadata": {"labels": {LABEL_HOST: None, LABEL_PROCESS_UID: None}}})
        await host.client.patch(SLICES, ObjectKey(NAMESPACE, "chat-1-0"), labels)
        await host.until(lambda: said(host)[0] == "Lost")
        assert host.conditions()["ready"] is False


async def test_an_agent_that_is_stopped_is_no_failure(host):
    """Whoever stops it on purpose is not told that something is lost."""
    await host.start()
    async with operating(host):
        await host.serving(runtime=python_server(PLAIN), drainSeconds=0)
        assert await host.stop() == 0
        await host.until(lambda: said(host)[0] == "Stopped")
        assert said(host)[1]["AgentAlive"] == "False"
        assert host.status()["phase"] == "Pending"
        assert "agent of its host has stopped" in host.status()["message"]
        await host.until(lambda: "HostStopped" in reasons(host))
        assert reasons(host, "Warning") == []
        await host.start()
        await host.until(host.is_ready)
        await host.until(lambda: said(host) == ("Ready", said(host)[1] | {"AgentAlive": "True", "Ready": "True"}))


def reasons(host, type_="Normal"):
    return [each["reason"] for each in host.world.objects(EVENTS) if each["type"] == type_]
