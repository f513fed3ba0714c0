"""GatewayRoute: what is written, and what the status that the gateway writes proves."""

from typing import Any

import pytest

from pilotage.api.endpoint import Route
from pilotage.api.gateway_route import GatewayRoute
from pilotage.kube import Json
from pilotage.traffic.contract import Backend, Mix, Programming, RouteStatus
from pilotage.traffic.routers import RouteRequest
from pilotage.traffic.routers.pilotage_gateway import ROUTER

OLD, NEW = Backend("old", 80, 100), Backend("new", 80, 0)


def body(*backends: Backend, **route: Any) -> Json:
    wanted = Route(kind="PilotageGateway", **route)
    request = RouteRequest("chat", "assistant", {"a": "b"}, wanted, Mix(backends), ["qwen", "assistant"])
    return ROUTER.manifest(request)


def said(state: str | None, *, observed: int = 3, counts: dict[str, int] | None = None, **more: Any) -> Json:
    status = {"state": state, "observedGeneration": observed, **more}
    status["counts"] = [{"service": name, "inFlight": number} for name, number in (counts or {}).items()]
    return body(OLD, NEW) | {"metadata": {"generation": 3}, "status": status}


def test_what_is_written():
    assert body(OLD, NEW, host="a.example.com", path="/v1") == {
        "apiVersion": "pilotage.dev/v1alpha1",
        "kind": "GatewayRoute",
        "metadata": {"namespace": "chat", "name": "assistant", "labels": {"a": "b"}},
        "spec": {
            "endpoint": "assistant",
            "models": ["assistant", "qwen"],
            "host": "a.example.com",
            "path": "/v1",
            "backends": [
                {"service": "old", "port": 80, "weight": 100},
                {"service": "new", "port": 80, "weight": 0},
            ],
        },
    }


def test_its_kind_takes_what_is_written_and_it_reads_the_same_back():
    written = body(OLD, NEW)
    assert GatewayRoute.read(written).spec.written().items() >= written["spec"].items()
    assert ROUTER.mix(written) == Mix((OLD, NEW))
    assert ROUTER.mix({"spec": {"backends": [{"service": "old"}, {"weight": 1}, 7]}}) == Mix((OLD,))


def test_weights_that_mean_nothing_are_not_written():
    with pytest.raises(ValueError, match="no backend has a weight"):
        body(NEW)


@pytest.mark.parametrize(
    ("obj", "proof", "text"),
    [
        (body(OLD) | {"metadata": {"generation": 1}}, Programming.PENDING, "has not accepted the route yet"),
        (said("Programmed", observed=2), Programming.PENDING, "has not accepted the last change yet"),
        (said("Rejected", observed=2, message="old"), Programming.PENDING, "has not accepted the last change yet"),
        (said("Pending"), Programming.PENDING, "Envoy has not acknowledged it yet"),
        (said("Rejected", message="unknown cluster"), Programming.REJECTED, "unknown cluster"),
        (said("Programmed", version="17"), Programming.PROGRAMMED, "acknowledged by Envoy as version 17"),
    ],
)
def test_it_is_proven_at_its_generation_only(obj, proof, text):
    found = ROUTER.status(obj)
    assert found.programming is proof
    assert text in found.text


def test_requests_under_way_are_counted_for_those_that_are_asked_about():
    obj = said("Programmed", counts={"new": 2, "gone": 3, "other": 9})
    assert ROUTER.status(obj, ["new"]).in_flight == {"new": 2}
    assert ROUTER.status(obj, ["new", "gone"]).in_flight == {"new": 2, "gone": 3}
    assert ROUTER.status(obj, ["left long ago"]).in_flight == {"left long ago": 0}


def test_a_service_that_the_route_names_and_nobody_counts_is_not_idle():
    assert ROUTER.status(said("Programmed"), ["new"]).in_flight_to(["new"]) is None


def test_nothing_is_counted_for_a_route_that_is_not_in_place():
    assert ROUTER.status(said("Pending", counts={"new": 0}), ["new"]) == RouteStatus(
        Programming.PENDING, text="Envoy has not acknowledged it yet"
    )
