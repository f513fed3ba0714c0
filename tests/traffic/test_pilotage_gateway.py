"""GatewayRoute: what is written, and what the status that the gateway writes proves."""

from typing import Any

import pytest

from pilotage.api.endpoint import Route
from pilotage.api.gateway_route import GatewayRoute
from pilotage.kube import Json
from pilotage.traffic.contract import Backend, Branch, Copies, Header, Mix, Programming, RouteStatus, Stickiness
from pilotage.traffic.routers import RouteRequest
from pilotage.traffic.routers.pilotage_gateway import ROUTER, written_mix

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


def test_a_mix_is_written_and_read_back():
    mix = Mix(
        (Backend("assistant-7", 80, 90), Backend("assistant-8", 80, 10)),
        (Branch((Header("x-group", "beta"), Header("x-tier", "gold")), (Backend("assistant-8", 81, 100),)),),
        (Copies("assistant-9", 80, 25, 4), Copies("assistant-10", 80)),
        Stickiness((("header", "x-user"), ("body", "user")), "salt"),
    )
    spec = {"endpoint": "assistant", **written_mix(mix)}
    GatewayRoute.read({"spec": spec})
    assert ROUTER.mix({"spec": spec}) == mix
    assert ROUTER.mix({"spec": written_mix(Mix((OLD,)))}) == Mix((OLD,))


@pytest.mark.parametrize(
    "spec",
    [
        {"branches": 7, "copies": [None, {"service": 7}], "assign": []},
        {"branches": [{"headers": [{"name": 1, "exact": []}, 5], "backends": [{"weight": 3}]}], "assign": {"keys": 1}},
        {"assign": {"keys": [{"header": 3}], "salt": 9}, "copies": {"a": 1}},
    ],
)
def test_what_somebody_else_wrote_is_read_as_far_as_it_can_be(spec):
    found = ROUTER.mix({"spec": spec})
    assert (found.services, found.sticky) == (frozenset(), None)


def test_each_revision_in_the_route_has_a_path_of_its_own():
    written = body(Backend("assistant-7", 80, 100), Backend("assistant-8", 81, 0), Backend("assistant-8x", 80, 0))
    assert written["spec"]["revisions"] == [
        {"number": 7, "service": "assistant-7", "port": 80},
        {"number": 8, "service": "assistant-8", "port": 81},
    ]
    assert "revisions" not in body(Backend("assistant-07", 80), Backend("other-7", 80))["spec"]


def test_a_service_that_gets_copies_and_is_not_counted_is_not_idle():
    obj = said("Programmed", counts={"new": 0})
    obj["spec"]["copies"] = [{"service": "shadow"}]
    assert ROUTER.status(obj, ["new", "shadow"]).in_flight == {"new": 0}
    obj["status"]["counts"].append({"service": "shadow", "inFlight": 3})
    assert ROUTER.status(obj, ["new", "shadow"]).in_flight == {"new": 0, "shadow": 3}


def test_a_service_that_only_a_direct_path_leads_to_is_in_the_mix():
    spec = {"backends": [{"service": "old"}], "revisions": [{"number": 1, "service": "old"}, {"service": "odd"}]}
    assert ROUTER.mix({"spec": spec}) == Mix((OLD, Backend("odd", 80, 0)))


def test_the_shares_in_effect_are_those_that_the_gateway_says():
    assert ROUTER.status(said("Programmed")).effective is None
    shares = [{"service": "old", "percent": 0}, {"service": "new", "percent": 99.5}, {"percent": 1}, {"service": "x"}]
    assert ROUTER.status(said("Programmed", effective=shares)).effective == {"old": 0.0, "new": 99.5}
