"""Claims of Experiments on an endpoint: which are met, what their variants are, and what these get."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api.endpoint import EndpointSpec
from pilotage.api.endpoint_status import PastRevision
from pilotage.api.experiment import ExperimentSpec
from pilotage.controllers.endpoint.experiments import (
    TAKEN_MAX,
    EnteredVariant,
    ExperimentClaim,
    read_claims,
    refusals,
    variant_spec,
    with_variants,
)
from pilotage.kube import Object
from pilotage.traffic.contract import Backend, Branch, Copies, Header, Mix, Stickiness
from pilotage.traffic.routers import ROUTERS

SERVING = EndpointSpec.read(
    {"model": {"name": "qwen"}, "runtime": {"name": "vllm", "args": ["--seed", "1"]}, "replicas": 3}
)
SOURCE = {"name": "score", "kind": "Prometheus", "address": "http://prometheus.example.com", "query": "up"}
OTHER: dict[str, Any] = {"overrides": {"model": {"name": "qwen-q8"}}}
PAST = [PastRevision(number=4, created="", state="Previous", spec={"model": {"name": "older"}, "replicas": 9})]


def claim(*variants: dict[str, Any], name: str = "e", created: str = "1", active: bool = True, **spec: Any):
    given = {"endpoint": {"name": "chat"}, "variants": [{"name": "a", **OTHER, **each} for each in variants], **spec}
    return ExperimentClaim(name, f"uid-{name}", created, ExperimentSpec.read(given), active)


def refused(*claims: ExperimentClaim, route: str = "HTTPProxy") -> dict[str, str]:
    return {uid[4:]: why for uid, why in refusals(claims, SERVING, PAST, ROUTERS[route]).items()}


def test_what_fits_is_met():
    first, second = claim({"weight": 40}), claim({"weight": 59}, name="f")
    assert refused(first, second) == {}


def test_the_older_of_two_that_want_too_much_stays():
    why = refused(claim({"weight": 50}), claim({"weight": 50}, name="f"))
    assert list(why) == ["f"]
    assert "ask for 50 percent, and those of experiment/e have 50" in why["f"]
    assert refused(claim({"weight": 50}, active=False), claim({"weight": 50}, name="f")) == {}


@pytest.mark.parametrize(
    ("variant", "more", "route", "why"),
    [
        ({"weight": 100}, {}, "HTTPProxy", "the serving revision has to keep a share"),
        ({"mirror": {}}, {}, "Ingress", "A route of kind Ingress cannot"),
        ({"weight": 5}, {"assign": {"by": "Key", "key": [{"header": "x"}]}}, "HTTPProxy", "kind HTTPProxy cannot"),
        ({"weight": 5, "overrides": None, "revision": 9}, {}, "HTTPProxy", "revision 9 is not in the history"),
        ({"weight": 5, "overrides": {"replicas": 9}}, {}, "HTTPProxy", "overrides may have model"),
        ({"weight": 5, "overrides": {"runtime": {"port": 0}}}, {}, "HTTPProxy", "overrides.runtime.port"),
        ({"weight": 5, "overrides": {"runtime": {"name": "vllm"}}}, {}, "HTTPProxy", "is what serves already"),
        (
            {"weight": 5, "overrides": {"placement": {"kind": "Host", "host": "box"}}},
            {},
            "HTTPProxy",
            "and not placement",
        ),
        ({"weight": 5, "overrides": {"x" * 9999: 1}}, {}, "HTTPProxy", "and not xxx"),
        ({"weight": 5, "overrides": {"model": {}}}, {}, "HTTPProxy", "exactly one of name and source"),
        (
            {"mirror": {}},
            {"match": {"headers": [{"name": "x", "exact": "1"}]}},
            "HTTPProxy",
            "Copies are of all requests",
        ),
        ({"weight": 5}, {"analysis": {}}, "HTTPProxy", "does not measure requests"),
        (
            {"weight": 5},
            {"analysis": {"against": "nobody"}},
            "PilotageGateway",
            "there is no variant nobody: use Serving, a",
        ),
        (
            {"weight": 5},
            {"analysis": {"metrics": [{"name": "speed"}]}},
            "PilotageGateway",
            "speed: neither the gateway nor",
        ),
        ({"weight": 5}, {"analysis": {"sources": [SOURCE]}}, "PilotageGateway", "take analysis.sources out"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(variant, more, route, why):
    assert why in refused(claim(variant, **more), route=route)["e"]


@pytest.mark.parametrize(("allowed", "is_refused"), [(True, False), (False, True)])
def test_who_may_not_use_hosts_makes_no_variants_there(allowed, is_refused):
    on_host = EndpointSpec.read({"model": {"name": "qwen"}, "placement": {"kind": "Host", "host": "box"}})
    asked = claim({"weight": 5}, onHosts=allowed)
    found = refusals([asked], on_host, PAST, ROUTERS["PilotageGateway"])
    assert ("set onHosts" in found.get(asked.uid, "")) == is_refused


def test_two_that_take_the_same_requests_are_not_met_together():
    match = {"headers": [{"name": "x-team", "exact": "research"}]}
    why = refused(
        claim({"weight": 5}, match=match), claim({"weight": 5}, name="f", match=match), route="PilotageGateway"
    )
    assert "takes the same requests" in why["f"]


def test_a_refusal_is_short_whatever_it_quotes():
    assert len(refused(claim({"weight": 5, "overrides": {"x" * 10**6: 1}}))["e"]) <= 1000


def test_a_control_may_be_what_serves():
    assert refused(claim({"weight": 5, "overrides": None, "same": True})) == {}


def test_overrides_are_merged_and_the_model_is_replaced():
    changed = {"weight": 5, "overrides": {"model": {"source": "hf://a/b/c.gguf"}, "runtime": {"args": ["--seed", "2"]}}}
    made = variant_spec(SERVING, claim({**changed, "replicas": 2}).spec.variants[0], PAST)
    assert (made.model.name, made.model.source) == (None, "hf://a/b/c.gguf")
    assert (made.runtime.name, made.runtime.args, made.replicas) == ("vllm", ["--seed", "2"], 2)


def test_a_variant_may_be_a_former_revision():
    made = variant_spec(SERVING, claim({"weight": 5, "overrides": None, "revision": 4}).spec.variants[0], PAST)
    assert (made.model.name, made.runtime.name, made.replicas) == ("older", "llama.cpp", 1)


def entered(each: ExperimentClaim, *services: str) -> list[EnteredVariant]:
    return [EnteredVariant(each, spec, name, 80) for spec, name in zip(each.spec.variants, services, strict=True)]


def test_weights_come_from_the_serving_revision():
    both = claim({"weight": 10}, {"name": "b", "weight": 20}, {"name": "c", "mirror": {"percent": 5}})
    made = with_variants(Mix((Backend("s1", 80, 75), Backend("s2", 80, 25))), "s1", entered(both, "a", "b", "c"))
    assert made.backends == (
        Backend("s1", 80, 45),
        Backend("s2", 80, 25),
        Backend("a", 80, 10),
        Backend("b", 80, 20),
    )
    assert made.copies == (Copies("c", 80, 5),)


def test_with_a_match_everybody_else_goes_where_they_went_before():
    some = claim({"weight": 30}, match={"headers": [{"name": "x-team", "exact": "research"}]})
    main = (Backend("s1", 80, 100),)
    made = with_variants(Mix(main), "s1", entered(some, "a"))
    assert made.backends == main
    assert made.branches == (Branch((Header("x-team", "research"),), (Backend("s1", 80, 70), Backend("a", 80, 30))),)


def test_an_assignment_by_key_has_a_salt_of_its_own():
    by_key = claim({"weight": 30}, assign={"by": "Key", "key": [{"header": "x-user"}, {"body": "user"}]})
    made = with_variants(Mix((Backend("s1", 80),)), "s1", entered(by_key, "a"))
    assert made.sticky == Stickiness((("header", "x-user"), ("body", "user")), "uid-e")


def experiment(name: str, created: str, **more: Any) -> Object:
    meta = {"name": name, "namespace": "n", "uid": name, "creationTimestamp": created, **more.pop("metadata", {})}
    spec = {
        "endpoint": {"name": "chat"},
        "variants": [{"name": "a", "weight": 5, "same": True}],
        **more.pop("spec", {}),
    }
    return Object.from_dict({"metadata": meta, "spec": spec, **more})


def test_those_that_are_over_come_first_then_the_oldest_and_one_that_has_ended_claims_nothing():
    found = read_claims(
        [
            experiment("c", "2026-01-03T00:00:00Z", status={"reason": "Worse"}),
            experiment("b", "2026-01-02T00:00:00Z", spec={"terminate": True}),
            experiment("a", "2026-01-01T00:00:00Z"),
            experiment("d", "2026-01-04T00:00:00Z", metadata={"deletionTimestamp": "2026-01-05T00:00:00Z"}),
            experiment("e", "2026-01-05T00:00:00Z", spec={"variants": "none"}),
            experiment("f", "2026-01-01T00:00:00Z", status={"reason": "Worse", "ended": "2026-01-02T00:00:00Z"}),
        ]
    )
    assert [(each.name, each.active) for each in found] == [("b", False), ("c", False), ("d", False), ("a", True)]


def test_there_is_always_room_to_speak_of_one_that_is_to_go():
    taken = [experiment(f"taken-{number}", "2026-01-02T00:00:00Z") for number in range(TAKEN_MAX)]
    others = [experiment(f"other-{number}", "2026-01-01T00:00:00Z") for number in range(TAKEN_MAX)]
    over = experiment("over", "2026-01-03T00:00:00Z", spec={"terminate": True})
    found = read_claims([*others, *taken, over], {each.meta.uid for each in taken})
    assert [each.name for each in found] == [*(each.meta.name for each in taken), "over"]
    met = [claim({"weight": 5}, name=f"e{number}") for number in range(TAKEN_MAX + 1)]
    assert list(refused(*met)) == [met[-1].name]
    assert "has 6 experiments already" in refused(*met)[met[-1].name]


def test_a_claim_that_was_taken_up_comes_first_though_another_is_as_old():
    both = [experiment("b", "2026-01-01T00:00:00Z"), experiment("a", "2026-01-01T00:00:00Z")]
    assert [each.name for each in read_claims(both)] == ["a", "b"]
    assert [each.name for each in read_claims(both, {"b"})] == ["b", "a"]
