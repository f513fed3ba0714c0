"""Routes of an endpoint that others change or refuse, or that no proxy shows: in a simulated cluster."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from pilotage.kube import Absent, ObjectKey, Resource, merge_patch
from pilotage.serving.resources import SERVICES
from pilotage.traffic.contract import ExpectedRoute, Programming, RouteStatus
from pilotage.traffic.routers.httpproxy import HTTP_PROXIES
from pilotage.traffic.routers.httproute import HTTP_ROUTES
from pilotage.traffic.routers.ingress import INGRESSES
from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import KEY, SimulatedCluster, simulated_cluster

PROXY = {"kind": "HTTPProxy", "host": "chat.example.com"}
ROUTE = {"kind": "HTTPRoute", "host": "chat.example.com", "gateway": {"name": "edge"}}
REDEPLOYED = {"args": ["--ctx-size", "4096"]}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
    """A CRD with a status of its own."""
    names = {"plural": resource.plural, "kind": resource.kind, "listKind": f"{resource.kind}List"}
    schema = {"type": "object", "properties": {"spec": spec, "status": ANYTHING}}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": names | {"singular": resource.kind.lower()},
            "versions": [version],
        },
    }


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
REFERENCE = {"type": "object", "properties": {"name": TEXT}}
BACKEND = {"type": "object", "properties": {"name": TEXT, "port": NUMBER, "weight": NUMBER}}
OLD_RULE = {"matches": {"type": "array", "items": ANYTHING}, "backendRefs": {"type": "array", "items": BACKEND}}
OLD_ROUTE = {
    "type": "object",
    "properties": {
        "hostnames": {"type": "array", "items": TEXT},
        "parentRefs": {"type": "array", "items": REFERENCE},
        "rules": {"type": "array", "items": {"type": "object", "properties": OLD_RULE}},
    },
}
"""Schema of HTTPRoute in a version of the Gateway API that has no time-outs."""
CRDS = (definition(HTTP_PROXIES, ANYTHING), definition(HTTP_ROUTES, OLD_ROUTE))


async def contour(place: SimulatedCluster) -> None:
    """Says about each HTTPProxy whether all of its Services are there, and accepts each HTTPRoute."""
    client = place.world.client("contour")
    while True:
        for resource, judge in ((HTTP_PROXIES, of_proxy), (HTTP_ROUTES, of_route)):
            for obj in place.world.objects(resource):
                status = judge(place, obj)
                if obj.get("status") != status:
                    with contextlib.suppress(Absent):
                        await client.patch(resource, KEY, merge_patch({"status": status}), subresource="status")
        await asyncio.sleep(0.5)


def of_proxy(place: SimulatedCluster, proxy: dict[str, Any]) -> dict[str, Any]:
    services = [each["name"] for each in proxy["spec"]["routes"][0]["services"]]
    lacking = [name for name in services if place.world.find(SERVICES, ObjectKey("default", name)) is None]
    words = f"Service {lacking[0]} not found" if lacking else "Valid HTTPProxy"
    valid = {"type": "Valid", "status": "False" if lacking else "True", "message": words}
    conditions = [valid | {"observedGeneration": proxy["metadata"]["generation"]}]
    return {"currentStatus": "invalid" if lacking else "valid", "conditions": conditions}


def of_route(_: SimulatedCluster, route: dict[str, Any]) -> dict[str, Any]:
    said = {"status": "True", "reason": "So", "observedGeneration": route["metadata"]["generation"]}
    conditions = [{"type": name, **said} for name in ("Accepted", "ResolvedRefs")]
    return {"parents": [{"controllerName": "edge", "conditions": conditions}]}


class Envoy:
    """A `ProxyObserver` on one Envoy that has everything at once, as long as it can be read."""

    readable = True
    in_flight: int | None = 0

    async def observe(self, expected: ExpectedRoute) -> RouteStatus:
        if self.readable:
            counts = {} if self.in_flight is None else dict.fromkeys(expected.counted, 0)
            if counts:
                counts[min(counts)] = self.in_flight or 0
            return RouteStatus(Programming.PROGRAMMED, counts, "programmed in 1 of 1 Envoys")
        return RouteStatus(
            Programming.PENDING, text="programmed in 0 of 1 Envoys: pod/envoy-1 cannot be read (no answer)"
        )


@contextlib.asynccontextmanager
async def edge(envoy: Envoy | None = None) -> AsyncIterator[SimulatedCluster]:
    async with simulated_cluster(observer=envoy, crd=CRDS) as place:
        place.world.live(contour(place), "contour")
        yield place


def weights(place: SimulatedCluster) -> dict[str, int]:
    proxy = place.world.find(HTTP_PROXIES, KEY)
    assert proxy
    return {each["name"]: each["weight"] for each in proxy["spec"]["routes"][0]["services"]}


async def edit(place: SimulatedCluster, *services: tuple[str, int]) -> None:
    """Change the services of an HTTPProxy, as another client."""
    named = [{"name": name, "port": 80, "weight": weight} for name, weight in services]
    rules = [{"conditions": [{"prefix": "/"}], "services": named}]
    await place.user.patch(HTTP_PROXIES, KEY, merge_patch({"spec": {"routes": rules}}))


@virtual
async def test_an_ingress_that_somebody_gave_two_backends_is_put_right():
    async with simulated_cluster() as place:
        await place.deploy(route={"kind": "Ingress", "host": "chat.example.com"})
        await place.serving()
        rules = place.world.find(INGRESSES, KEY)["spec"]["rules"]
        backend = {"service": {"name": "theirs", "port": {"number": 80}}}
        theirs = {"path": "/theirs", "pathType": "Prefix", "backend": backend}
        edited = [rules[0] | {"http": {"paths": [*rules[0]["http"]["paths"], theirs]}}]
        await place.user.patch(INGRESSES, KEY, merge_patch({"spec": {"rules": edited}}))
        await place.until(lambda: place.world.find(INGRESSES, KEY)["spec"]["rules"] == rules)
        await place.until(lambda: place.condition("RouteProgrammed")["status"] == "True")
        assert place.status()["phase"] == "Serving"


@virtual
async def test_weights_that_somebody_set_to_0_are_put_right():
    async with edge(Envoy()) as place:
        await place.deploy(route=PROXY)
        await place.serving()
        await edit(place, ("chat-1", 0))
        await place.until(lambda: weights(place) == {"chat-1": 100})
        await place.until(lambda: place.condition("RouteProgrammed")["status"] == "True")
        proxy = place.world.find(HTTP_PROXIES, KEY)
        assert proxy["spec"]["routes"][0]["timeoutPolicy"]["response"] == "infinity"


@virtual
async def test_a_service_that_does_not_exist_goes_from_the_route_though_the_router_refuses_it():
    async with edge(Envoy()) as place:
        await place.deploy(route=PROXY)
        await place.serving()
        await edit(place, ("chat-1", 50), ("not-there", 50))
        await place.until(lambda: weights(place) == {"chat-1": 100})
        await place.until(lambda: place.condition("RouteProgrammed")["status"] == "True")


@virtual
async def test_a_service_of_somebody_else_leaves_the_route_through_weight_0():
    async with edge(Envoy()) as place:
        await place.deploy(route=PROXY)
        await place.serving()
        body = {"metadata": {"namespace": "default", "name": "theirs"}, "spec": {"ports": [{"port": 80}]}}
        await place.user.create(SERVICES, body)
        await edit(place, ("chat-1", 50), ("theirs", 50))
        await place.until(lambda: weights(place) == {"chat-1": 100, "theirs": 0})
        await place.until(lambda: weights(place) == {"chat-1": 100})


@virtual
async def test_a_header_rule_and_a_mirror_of_somebody_else_leave_the_route_and_no_request_is_moved_unproven():
    async with edge(Envoy()) as place:
        await place.deploy(route=PROXY)
        await place.serving()
        for name in ("theirs", "shadow"):
            body = {"metadata": {"namespace": "default", "name": name}, "spec": {"ports": [{"port": 80}]}}
            await place.user.create(SERVICES, body)
        main = place.world.find(HTTP_PROXIES, KEY)["spec"]["routes"]
        ours, shadow = main[0]["services"], {"name": "shadow", "port": 80, "weight": 5, "mirror": True}
        team = {"header": {"name": "x-team", "exact": "theirs"}}
        theirs = {"conditions": [{"prefix": "/"}, team], "services": [{"name": "theirs", "port": 80, "weight": 100}]}
        routes = [theirs, main[0] | {"services": [*ours, shadow]}]
        await place.user.patch(HTTP_PROXIES, KEY, merge_patch({"spec": {"routes": routes}}))
        seen: list[list[dict[str, int]]] = []

        def is_ours() -> bool:
            rules = place.world.find(HTTP_PROXIES, KEY)["spec"]["routes"]
            now = [{each["name"]: each["weight"] for each in rule["services"]} for rule in rules]
            if not seen or seen[-1] != now:
                seen.append(now)
            return bool(rules == main)

        await place.until(is_ours)
        await place.until(lambda: place.condition("RouteProgrammed")["status"] == "True")
        chat = {"chat-1": 100}
        assert seen[-3:] == [[{"theirs": 100, "chat-1": 0}, chat], [{"theirs": 0, "chat-1": 100}, chat], [chat]]


@virtual
async def test_a_gateway_api_without_time_outs_gets_a_route_without_them():
    async with edge(Envoy()) as place:
        place.world.intercept(no_time_outs)
        await place.deploy(route=ROUTE)
        await place.serving()
        assert place.condition("RouteProgrammed")["reason"] == "ProvenByProxy"
        await place.change(runtime=REDEPLOYED)
        await place.serving("chat-2")
        await place.until(lambda: not any("chat-1" in part for part in place.parts()))
        assert refused(place) == 1
        place.managers[-1].stop()
        await asyncio.sleep(20.0)
        before = len(place.writes())
        place.operate()  # one that does not know yet how old the kind is
        await asyncio.sleep(100.0)
        assert not any("httproutes" in write for write in place.writes()[before:])
        assert refused(place) == 2
        assert place.condition("RouteProgrammed")["status"] == "True"


def no_time_outs(call: Call) -> ServerResponse | None:
    """An API server's answer to an apply with a field that the kind does not have."""
    if call.method != "PATCH" or "/httproutes/" not in call.path or b'"timeouts"' not in call.body:
        return None
    why = "failed to create typed patch object: .spec.rules[0].timeouts: field not declared in schema"
    return ServerResponse(
        500, msgspec.json.encode({"kind": "Status", "status": "Failure", "message": why, "code": 500})
    )


def refused(place: SimulatedCluster) -> int:
    """Number of HTTPRoutes that the API server refused."""
    return sum(not write.applied and "httproutes" in write.resource for write in place.world.trace.writes)


@virtual
async def test_an_envoy_that_cannot_be_read_is_named_and_nothing_goes_meanwhile():
    envoy = Envoy()
    async with edge(envoy) as place:
        envoy.readable = False
        await place.deploy(route=PROXY)
        await place.until(lambda: "pod/envoy-1 cannot be read" in place.status().get("waitingFor", ""))
        assert place.status()["phase"] == "Deploying"
        route = place.condition("RouteProgrammed")
        assert (route["status"], route["reason"]) == ("False", "Waiting")
        assert "pod/envoy-1 cannot be read (no answer)" in route["message"]
        envoy.readable = True
        await place.serving()
        assert place.condition("RouteProgrammed")["reason"] == "ProvenByProxy"
        assert "waitingFor" not in place.status()

        envoy.readable = False
        await place.change(runtime=REDEPLOYED)
        await place.until(lambda: weights(place) == {"chat-1": 100, "chat-2": 0})
        await asyncio.sleep(30.0)
        assert "pod/envoy-1 cannot be read" in place.status()["waitingFor"]
        assert weights(place) == {"chat-1": 100, "chat-2": 0}
        assert "Deployment/chat-1" in place.parts()
        envoy.readable = True
        await place.serving("chat-2")


@virtual
async def test_an_envoy_that_cannot_be_read_holds_a_deletion_up_and_is_named():
    envoy = Envoy()
    async with edge(envoy) as place:
        await place.deploy(route=PROXY)
        await place.serving()
        envoy.readable = False
        await place.delete()
        await place.until(lambda: "pod/envoy-1 cannot be read" in place.status().get("waitingFor", ""))
        await asyncio.sleep(30.0)
        assert "Deployment/chat-1" in place.parts()
        assert place.world.find(HTTP_PROXIES, KEY) is None
        place.managers[-1].stop()
        await asyncio.sleep(10.0)
        envoy.readable = True
        place.operate()
        await place.gone()
        assert place.parts() == []
        assert "unverified" not in receipt_of_route(place)


@virtual
async def test_without_an_envoy_to_ask_the_receipt_calls_the_route_unverified():
    async with edge() as place:
        await place.deploy(route=PROXY, deletion={"drainSeconds": 0})
        await place.serving()
        await place.delete()
        await place.gone()
        assert "no proxy was asked" in receipt_of_route(place)["unverified"]


@virtual
async def test_a_deletion_waits_for_requests_that_are_under_way():
    envoy = Envoy()
    async with edge(envoy) as place:
        await place.deploy(route=PROXY, deletion={"drainSeconds": 600})
        await place.serving()
        envoy.in_flight = 2
        await place.delete()
        await place.until(lambda: "2 requests are still under way" in place.status().get("waitingFor", ""))
        await asyncio.sleep(60.0)
        assert "Deployment/chat-1" in place.parts()
        envoy.in_flight = 0
        await place.gone()
        assert place.records()[-1]["status"]["receipt"]["notes"] == []


@virtual
async def test_requests_that_take_too_long_are_cut_and_the_receipt_says_so():
    envoy = Envoy()
    async with edge(envoy) as place:
        await place.deploy(route=PROXY, deletion={"drainSeconds": 30})
        await place.serving()
        envoy.in_flight = 2
        start = asyncio.get_running_loop().time()
        await place.delete()
        await place.until(lambda: not any(part.startswith("Deployment/") for part in place.parts()))
        assert 30.0 <= asyncio.get_running_loop().time() - start < 35.0
        await place.gone()
        notes = place.records()[-1]["status"]["receipt"]["notes"]
        assert notes == ["2 requests were still under way when the time to drain was over"]


@virtual
async def test_requests_that_no_envoy_counts_are_not_taken_for_none():
    envoy = Envoy()
    async with edge(envoy) as place:
        await place.deploy(route=PROXY, deletion={"drainSeconds": 30})
        await place.serving()
        envoy.in_flight = None
        start = asyncio.get_running_loop().time()
        await place.delete()
        await place.until(lambda: "requests under way are not counted" in place.status().get("waitingFor", ""))
        await place.until(lambda: not any(part.startswith("Deployment/") for part in place.parts()))
        assert 30.0 <= asyncio.get_running_loop().time() - start < 35.0
        await place.gone()


def receipt_of_route(place: SimulatedCluster) -> dict[str, Any]:
    objects = place.records()[-1]["status"]["receipt"]["objects"]
    return next(each for each in objects if each["kind"] == "HTTPProxy")
