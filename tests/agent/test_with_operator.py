"""A real agent and the operator's controllers on one harbor: what each of them says must not contradict the other."""

import asyncio
import contextlib
import dataclasses

import pytest

from pilotage.agent import host as host_module
from pilotage.api.names import HOST_LEASES, HOSTS, LABEL_HOST, PROCESSES
from pilotage.controllers.wiring import NobodyLooks, Options, add_endpoints
from pilotage.kube import AlreadyExists, ObjectKey
from pilotage.operator.crds import crds
from pilotage.runtime import Manager
from tests.agent.town import HASTY, NAMESPACE, Town, process_body, refuse
from tests.api.objects import install
from tests.support.kinds import NAMESPACES


@contextlib.asynccontextmanager
async def operating(town: Town):
    """The operator's controllers, for the time of the block."""
    await install(town.client, crds())
    for name in (HOST_LEASES, "pilotage-system"):
        with contextlib.suppress(AlreadyExists):
            await town.client.create(NAMESPACES, {"metadata": {"name": name}})
    manager = Manager(town.world.client("operator"), name="operator")
    add_endpoints(manager, Options(NobodyLooks()))
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


def said(town):
    """The phase of the Host, and what its conditions say."""
    status = town.world.find(HOSTS, ObjectKey("", town.host)).get("status", {})
    return status.get("phase"), {each["type"]: each["status"] for each in status.get("conditions", [])}


async def test_an_agent_that_cannot_renew_its_lease_claims_nothing_until_it_can(town, short_lease):
    """They would contradict each other again and again: one says Lost, the other Ready."""
    await town.start()
    async with operating(town):
        await town.serving()
        pid = town.pid()
        answer, left = refuse(403, "Forbidden", method="PUT", resource="leases")
        allow = town.world.intercept(answer)
        await town.until(lambda: said(town)[0] == "Lost")
        before = town.world.find(HOSTS, ObjectKey("", town.host))["metadata"]["resourceVersion"]
        tried = left[0]
        await town.until(lambda: left[0] < tried - 8)
        assert town.world.find(HOSTS, ObjectKey("", town.host))["metadata"]["resourceVersion"] == before
        assert town.conditions()["ready"] is False
        assert town.status()["ready"] is False
        allow()
        await town.until(town.is_ready)
        await town.until(lambda: said(town)[0] == "Ready" and said(town)[1]["AgentAlive"] == "True")
        assert town.pid() == pid


async def test_what_a_process_was_promised_is_not_promised_again(town):
    """Though the Host says only now and then what it has free."""
    town.pace = dataclasses.replace(HASTY, host=60.0)
    await town.start()
    async with operating(town):
        await town.until(lambda: said(town)[0] == "Ready")
        await town.serving("chat-1-0", memoryBytes=40 << 30)
        body = process_body("next-1-0", town.model, town.host, memoryBytes=40 << 30)
        del body["spec"]["host"], body["metadata"]["labels"][LABEL_HOST]
        await town.client.create(PROCESSES, body, namespace=NAMESPACE)
        await town.until(lambda: "free, and 40.0 GiB are needed" in town.status("next-1-0").get("message", ""))
        assert "host" not in town.find("next-1-0")["spec"]
        await town.delete()
        await town.until(lambda: town.find("next-1-0")["spec"].get("host") == town.host)
        await town.delete("next-1-0")
        await town.until(lambda: town.find("next-1-0") is None)
