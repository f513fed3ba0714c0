"""A real agent and the operator's controllers on one harbor: what each of them says must not contradict the other."""

import asyncio
import contextlib
import dataclasses

import pytest

from pilotage.agent import host as host_module
from pilotage.api.names import HOST_LEASES, HOSTS, LABEL_HOST, PROCESSES
from pilotage.controllers.wiring import NoProxyObserver, Options, add_endpoints
from pilotage.kube import AlreadyExists, ObjectKey
from pilotage.operator.crds import crds
from pilotage.runtime.manager import Manager
from tests.agent.agent_host import NAMESPACE, SHORT_INTERVALS, AgentHost, process_body, refuse
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
