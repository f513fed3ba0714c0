"""Routes that the operator writes, and its use of a real Envoy's acknowledgements."""

import asyncio
import contextlib

import pytest

from pilotage.api.names import ENDPOINTS
from pilotage.controllers.wiring import NoProxyObserver, Options, add_endpoints
from pilotage.kube import AlreadyExists, ObjectKey, merge_patch
from pilotage.runtime.conditions import find_condition
from pilotage.runtime.manager import Manager
from tests.api.objects import install
from tests.controllers.simulated_hosts import Agent
from tests.gateway.gateway_host import Server
from tests.support.kinds import NAMESPACES
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")
HOST = "operated.example.com"


class Near(Agent):
    """A stand-in for an agent, whose one server is here."""

    def __init__(self, gateway, server):
        super().__init__(gateway.world.client("agent-near"), "near")
        self.start_seconds = 0.0
        self._gateway, self._server = gateway, server

    async def _register(self, process, *, ready):
        conditions = {"ready": ready, "serving": True}
        service = process.get("spec", "service")
        await self._gateway.slice(process.meta.namespace, service, self._server.port, conditions=conditions)


@contextlib.asynccontextmanager
async def operated(gateway, ns):
    """An operator for one namespace, and a Host with a server on it."""
    await install(gateway.user)
    for name in ("pilotage-system", "pilotage-hosts"):
        with contextlib.suppress(AlreadyExists):
            await gateway.user.create(NAMESPACES, {"metadata": {"name": name}})
    server = await Server("near").start()
    manager = Manager(gateway.world.client("operator"), name="operator", seed=1)
    add_endpoints(manager, Options(NoProxyObserver(), server="sim", watched=ns, gateway_url=gateway.url))
    running = asyncio.create_task(manager.run())
    agent = asyncio.create_task(Near(gateway, server).run())
    try:
        yield
    finally:
        manager.stop()
        await running
        agent.cancel()
        await asyncio.gather(agent, return_exceptions=True)
        await server.stop()


async def test_the_operator_shows_in_envoys_own_words_why_a_route_is_refused(gateway, ns):
    key = ObjectKey(ns, "operated")
    spec = {
        "model": {"source": "hf://org/repo/model.gguf"},
        "placement": {"kind": "Host", "host": "near"},
        "route": {"kind": "PilotageGateway", "host": HOST, "path": "/good"},
    }

    async def programmed(reason):
        def so(obj):
            found = find_condition(obj.get("status", "conditions", default=[]), "RouteProgrammed")
            return found if found and found["reason"] == reason else None

        obj = await until(gateway.user, ENDPOINTS, key, so)
        assert obj is not None
        return so(obj)

    async with operated(gateway, ns):
        await gateway.user.create(ENDPOINTS, {"metadata": {"name": key.name}, "spec": spec}, namespace=ns)
        await programmed("ProvenByProxy")
        assert await gateway.get("/good", headers={"Host": HOST}) == (200, {"server": "near"})

        await gateway.user.patch(ENDPOINTS, key, merge_patch({"spec": {"route": {"path": "/bad?path"}}}))
        refused = await programmed("Rejected")
        assert refused["status"] == "False"
        assert "PathSeparatedPrefix: value does not match regex pattern" in refused["message"]
        assert await gateway.get("/good", headers={"Host": HOST}) == (200, {"server": "near"})  # the old one stays

        await gateway.user.patch(ENDPOINTS, key, merge_patch({"spec": {"route": {"path": "/better"}}}))
        await programmed("ProvenByProxy")
        assert await gateway.get("/better", headers={"Host": HOST}) == (200, {"server": "near"})


async def test_an_endpoint_whose_name_leads_elsewhere_is_degraded_and_says_so(gateway, ns):
    other = await gateway.namespace()
    await gateway.server(other, "first")
    await gateway.route(other, "first", {"first": 100}, models=["wanted"], host="wanted.example.com")
    key = ObjectKey(ns, "wanted")
    spec = {
        "model": {"source": "hf://org/repo/model.gguf"},
        "placement": {"kind": "Host", "host": "near"},
        "route": {"kind": "PilotageGateway", "host": "wanted.example.com"},
    }

    async def in_phase(phase):
        obj = await until(gateway.user, ENDPOINTS, key, lambda each: each.get("status", "phase") == phase)
        assert obj is not None
        return obj.get("status")

    async with operated(gateway, ns):
        await gateway.user.create(ENDPOINTS, {"metadata": {"name": key.name}, "spec": spec}, namespace=ns)
        status = await in_phase("Degraded")
        degraded = find_condition(status["conditions"], "Degraded")
        assert (degraded["status"], degraded["reason"]) == ("True", "NameConflict")
        assert "model wanted leads to an endpoint of another namespace" in degraded["message"]
        assert "host wanted.example.com/ leads to an endpoint of another namespace" in degraded["message"]
        assert other not in degraded["message"]  # that is not for this tenant to know
        assert find_condition(status["conditions"], "Available")["status"] == "True"
        # The URL that it prints leads here, and not to the holder of its host.
        assert status["url"] == f"{gateway.url}/endpoints/{ns}/wanted/v1"
        assert await gateway.get(f"/endpoints/{ns}/wanted/v1/models") == (200, {"server": "near"})
        assert await gateway.ask("wanted") == (200, {"server": "first"})

        await gateway.delete_route(other, "first")
        status = await in_phase("Serving")
        assert find_condition(status["conditions"], "Degraded")["status"] == "False"
        assert status["url"] == f"http://wanted.example.com:{gateway.settings.port}/v1"
        assert await gateway.ask("wanted") == (200, {"server": "near"})
