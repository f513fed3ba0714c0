"""Endpoints behind a real Contour and a real Envoy, under load: no request fails, whatever is done to them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pilotage.controllers.wiring import Options, add_endpoints
from pilotage.runtime.manager import Manager
from pilotage.traffic.contract import WHOLE, ExpectedRoute, Programming, RouteStatus
from tests.controllers.behind_contour import ROUTES, ContourCluster, Endpoint
from tests.controllers.operating import DELETES
from tests.support.edge import Place
from tests.support.waiting import eventually

HELD_SECONDS = 2.0


@pytest.fixture
async def contour(edge: Place) -> AsyncIterator[ContourCluster]:
    async with ContourCluster.at(edge) as contour:
        yield contour


async def held(contour: ContourCluster, endpoints: list[Endpoint], text: str) -> None:
    """The feed of the Envoy has been held: for at least 2 s, and until each endpoint says what it waits for."""

    async def said(endpoint: Endpoint) -> None:
        status = await endpoint.until(lambda status: text in status.get("waitingFor", ""))
        assert "programmed in 0 of 1 Envoys" in status["waitingFor"]
        assert contour.edge.admin.name in status["waitingFor"]

    await asyncio.gather(asyncio.sleep(HELD_SECONDS), *map(said, endpoints))


async def moved(endpoint: Endpoint) -> bool:
    return (await endpoint.weights()).get(f"{endpoint.name}-3") == WHOLE


async def redeployed(contour: ContourCluster, endpoints: list[Endpoint], revision: int) -> None:
    await asyncio.gather(*(each.serves(revision) for each in endpoints))
    for each in endpoints:
        contour.edge.mark(each.host)
    await asyncio.gather(*(each.answers(revision) for each in endpoints))
    for each in endpoints:
        report = each.report()
        assert report["after"].keys() == {f"{each.name}-{revision}"}
        assert (report["failed"], report["cut"], report["errors"]) == (0, 0, [])


async def test_no_request_fails_in_all_of_an_endpoints_life(contour: ContourCluster, tmp_path: Path):
    mark = contour.place.cluster.audit_mark()
    with contour.operate(tmp_path):
        endpoints = [await contour.deploy(kind) for kind in ROUTES]
        await asyncio.gather(*(each.serves(1) for each in endpoints))
        for each in endpoints:
            each.load()
        await asyncio.gather(*(each.answers(1) for each in endpoints))

        for each in endpoints:
            await each.redeploy("second")
        await redeployed(contour, endpoints, 2)

        # Envoy does not hear of the new revision's addresses, nor that the route names it.
        contour.edge.hold()
        for each in endpoints:
            await each.redeploy("third")
        await held(contour, endpoints, "sends ")
        for each in endpoints:
            assert (await each.weights()) == {f"{each.name}-2": 100, f"{each.name}-3": 0}
        contour.edge.release()
        # Contour knows that nothing is routed to the old revision any more; Envoy may not have heard of it.
        await eventually(partial(moved, endpoints[0]), 30.0)
        contour.edge.hold()
        await held(contour, endpoints, "sends ")
        contour.edge.release()
        await redeployed(contour, endpoints, 3)

        contour.edge.hold()
        for each in endpoints:
            await each.delete()
        await held(contour, endpoints, "still has a route")
        assert [each.report()["failed"] for each in endpoints] == [0, 0]
        for each in endpoints:  # nothing behind the route has been touched
            assert deletes(contour, mark, each)[-1] == f"{ROUTES[each.kind].plural} {each.name}"
        contour.edge.release()
        await asyncio.gather(*(each.until(lambda status: not status) for each in endpoints))
    for each in endpoints:
        check_end(contour, mark, each)
    await check_receipts(contour, endpoints)


def deletes(contour: ContourCluster, mark: int, endpoint: Endpoint) -> list[str]:
    """Deletes of an endpoint's parts by teardowns, in order."""
    kinds = {"deployments", "services", *(each.plural for each in ROUTES.values())}
    return [
        f"{record.resource} {record.name}"
        for record in contour.place.cluster.audit(
            since=mark, namespace=contour.namespace, verb="delete", user_agent=DELETES
        )
        if record.code < 300 and record.resource in kinds and record.name.startswith(endpoint.name)
    ]


def check_end(contour: ContourCluster, mark: int, endpoint: Endpoint) -> None:
    """Check that clients got answers until the route was gone, and never an error of a server that was."""
    report = contour.edge.stop_load(endpoint.host)
    total = sum(report["answers"].values()) + sum(report["streams"].values())
    sys.stdout.write(f"{endpoint.kind}: {total} answered, {report['cut']} cut, after the end {report['failures']}\n")
    assert report["cut"] == 0
    # No route, or for a moment no cluster for it: an unreachable server would be named behind the 503.
    assert report["failures"].keys() <= {"404", "stream: 404", "503", "stream: 503"}
    assert report["failures"].get("503", 0) + report["failures"].get("stream: 503", 0) < report["failures"]["404"]
    revisions = [f"{endpoint.name}-{number}" for number in (1, 2, 3)]
    assert report["answers"].keys() == report["streams"].keys() == set(revisions)
    wanted = [f"{kind} {name}" for name in revisions for kind in ("deployments", "services")]
    wanted.insert(4, f"{ROUTES[endpoint.kind].plural} {endpoint.name}")
    assert deletes(contour, mark, endpoint) == wanted


async def check_receipts(contour: ContourCluster, endpoints: list[Endpoint]) -> None:
    for endpoint in endpoints:
        found = [each for each in await contour.records() if each["spec"]["target"]["name"] == endpoint.name]
        receipts = {each["spec"]["reason"]: each["status"]["receipt"] for each in found}
        assert [each["result"] for each in receipts.values()] == ["complete"] * len(receipts)
        route = next(each for each in receipts["Deleted"]["objects"] if each["kind"] == endpoint.kind)
        assert route["state"] == "gone"
        assert "unverified" not in route


def unreachable(report: dict[str, Any]) -> int:
    """Number of requests that failed because the server was gone that Envoy sent them to."""
    return sum(count for what, count in report["failures"].items() if what.startswith("503 upstream connect error"))


class Believes:
    """A `ProxyObserver` that takes everything for programmed."""

    async def observe(self, expected: ExpectedRoute) -> RouteStatus:
        return RouteStatus(Programming.PROGRAMMED, dict.fromkeys(expected.counted, 0), "believed")


async def test_an_operator_that_believes_its_router_loses_requests(contour: ContourCluster):
    manager = Manager(contour.client, name="operator")
    add_endpoints(manager, Options(Believes(), fetch_image="pilotage:test"))
    running = asyncio.create_task(manager.run())
    try:
        endpoint = await contour.deploy("HTTPProxy")
        await endpoint.serves(1)
        endpoint.load()
        await endpoint.reports(lambda report: report["answers"])  # a moment later it has it, this time
        contour.edge.hold()
        await endpoint.redeploy("second")
        await endpoint.serves(2)
        await endpoint.reports(lambda report: unreachable(report) >= 10)
        contour.edge.release()
        report: dict[str, Any] = contour.edge.stop_load(endpoint.host)
        assert report["cut"] >= 1
        sys.stdout.write(f"by belief: {report['failures']}, {report['cut']} cut\n")
    finally:
        manager.stop()
        await running
