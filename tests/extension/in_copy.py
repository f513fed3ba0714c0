"""Program of `test_one_file`, for a copy of the package with two more files: a dummy runtime and a dummy router."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pilotage.agent.permission import LaunchRules, refusal
from pilotage.api.host import ProcessSpec
from pilotage.cli.commands.deploy import deploy
from pilotage.controllers.caches import MADE_BY_US_WHERE_SERVED
from pilotage.kube import Invalid, ObjectKey, Resource, merge_patch
from pilotage.operator.rbac import EVERYWHERE
from pilotage.serving.resources import DEPLOYMENTS
from pilotage.serving.runtimes import RUNTIMES
from pilotage_sim.loop import virtual
from tests.agent.agent_host import AgentHost
from tests.controllers.simulated_cluster import KEY, SimulatedCluster, simulated_cluster

DUMMY_ROUTES = Resource("dummy.example.com", "v1", "dummyroutes", "DummyRoute")
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD = {
    "metadata": {"name": str(DUMMY_ROUTES)},
    "spec": {
        "group": DUMMY_ROUTES.group,
        "scope": "Namespaced",
        "names": {"plural": DUMMY_ROUTES.plural, "kind": DUMMY_ROUTES.kind},
        "versions": [
            {
                "name": DUMMY_ROUTES.version,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}},
                "subresources": {"status": {}},
            }
        ],
    },
}
ROUTE = {"kind": "DummyRoute", "host": "chat.example.com"}


async def accept_routes(place: SimulatedCluster) -> None:
    client = place.world.client("dummy")
    while True:
        for obj in place.world.objects(DUMMY_ROUTES):
            generation = obj["metadata"]["generation"]
            if obj.get("status") != {"seen": generation}:
                await client.patch(
                    DUMMY_ROUTES, KEY, merge_patch({"status": {"seen": generation}}), subresource="status"
                )
        await asyncio.sleep(0.5)


def shares(place: SimulatedCluster) -> dict[str, int]:
    route = place.world.find(DUMMY_ROUTES, KEY)
    return {each["name"]: each["weight"] for each in route["spec"]["to"]} if route else {}


@virtual
async def test_an_endpoint_is_served_moved_and_deleted_with_the_router_and_the_runtime_in_pods():
    async with simulated_cluster(crd=(CRD,)) as place:
        place.world.live(accept_routes(place), "dummy")
        await place.deploy(route=ROUTE, runtime={"name": "dummy"})
        await place.serving()
        assert shares(place) == {"chat-1": 100}
        assert place.status()["url"] == "http://chat.example.com/v1"
        assert place.condition("RouteProgrammed")["message"] == "accepted by the dummy"
        deployment = place.world.find(DEPLOYMENTS, ObjectKey("default", "chat-1"))
        pod = deployment["spec"]["template"]
        [server] = pod["spec"]["containers"]
        assert (server["image"], server["command"], server["args"][1:]) == ("dummy:1", ["dummy"], ["chat", "7777"])
        assert server["readinessProbe"]["httpGet"]["path"] == "/ready"
        assert pod["metadata"]["annotations"]["prometheus.io/path"] == "/metrics"
        assert "'^(dummy_active|dummy_queued) 0$'" in server["lifecycle"]["preStop"]["exec"]["command"][2]
        await place.change(runtime={"name": "dummy", "args": ["--other"]})
        await place.serving("chat-2")
        assert shares(place) == {"chat-2": 100}
        await place.delete()
        await place.gone()
        assert place.parts() == []
        assert place.world.objects(DUMMY_ROUTES) == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"route": {"kind": "DummyRoute"}}, "route.kind DummyRoute needs route.host"),
        ({"route": ROUTE | {"tls": {"name": "t"}}}, "tls is for route.kind"),
        ({"route": {"kind": "DummyRoute", "host": "taken.example.com"}}, "this host is taken"),
        (
            {"route": ROUTE, "placement": {"kind": "Host", "host": "h"}},
            "on a Host, route.kind is None or PilotageGateway",
        ),
        ({"route": ROUTE | {"kind": "OtherRoute"}}, "spec.route.kind"),
    ],
)
@virtual
async def test_the_api_server_checks_the_fields_of_the_route(spec: dict[str, Any], message: str):
    async with simulated_cluster() as place:
        with pytest.raises(Invalid, match=message):
            await place.deploy(**spec)


def test_the_operator_may_write_the_routes_and_caches_them_once_they_are_served():
    [rule] = [each for each in EVERYWHERE if each.resources == ("dummyroutes",)]
    assert (rule.group, rule.use) == ("dummy.example.com", "routes of kind DummyRoute")
    assert {"get", "list", "watch", "create", "patch", "delete"} == set(rule.verbs)
    assert DUMMY_ROUTES in MADE_BY_US_WHERE_SERVED


def test_the_command_line_offers_both():
    said = CliRunner().invoke(deploy, ["--help"]).output
    assert "DummyRoute" in said
    assert "dummy|llama.cpp" in said


async def test_the_runtime_serves_on_a_host_and_stops_when_it_is_idle(tmp_path: Path):
    weights = tmp_path / "weights"
    weights.write_bytes(b"any")
    async with AgentHost(tmp_path, weights) as host:
        await host.start()
        await host.serving(runtime={"name": "dummy", "args": []})
        assert host.status()["port"] > 0
        await host.delete()
        await host.until(lambda: host.find() is None)
        host.nothing_but_logs_is_left()


def test_a_host_accepts_no_arguments_without_a_table():
    rules = LaunchRules(commands=False, namespaces=(), host_namespaces=(), reserved_ports=())
    spec = {"endpoint": "a", "service": "a-1", "model": {"name": "m", "source": "file:///m"}}
    assert RUNTIMES["dummy"].allowed.options == {}
    assert refusal(rules, "team", ProcessSpec.read(spec | {"runtime": {"name": "dummy"}})) is None
    refused = refusal(rules, "team", ProcessSpec.read(spec | {"runtime": {"name": "dummy", "args": ["--x"]}}))
    assert refused is not None
    assert "the argument --x" in str(refused)
