"""The two sides of a rollout: sizes with autoscalers and without resources, the mix of a route, and verdicts."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from pilotage.api.endpoint import EndpointSpec
from pilotage.controllers.endpoint.revisions import RequestedRevision, RevisionHistory
from pilotage.controllers.endpoint.rolling import Rolling, RolloutInputs, first_state
from pilotage.controllers.routing import Routed
from pilotage.kube.wire import format_time
from pilotage.serving.parts import Capabilities, EndpointRef, Readiness, ResolvedModel
from pilotage.serving.resources import AUTOSCALERS, DEPLOYMENTS
from pilotage.traffic.contract import Backend, Branch, Header, Mix, Stickiness

NOW = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)
CAPABILITIES = Capabilities(fetch_image="pilotage:test")
MODEL = ResolvedModel("chat", "hf://org/repo/model.gguf")
OLD, NEW = Backend("chat-1", 80), Backend("chat-2", 80)
ALONE = Mix((OLD,))
SHORT = Readiness(0, 1, False, "Unschedulable", "0/3 nodes: 3 Insufficient nvidia.com/gpu.", troubled=True)


def endpoint(canary: dict[str, Any], **spec: Any) -> EndpointRef:
    given = {"model": {"source": MODEL.source}, "replicas": 3, "route": {"kind": "PilotageGateway"}} | spec
    strategy = {"type": "Canary", "canary": {"steps": [{"setWeight": 25}, {"pause": {}}]} | canary}
    return EndpointRef("default", "chat", "u1", EndpointSpec.read(given | {"strategy": strategy}))


def served(of: EndpointRef) -> RevisionHistory:
    past = {"number": 1, "created": format_time(NOW), "state": "Current", "fingerprint": "a"}
    past |= {"spec": of.spec.written(), "model": {"name": "chat", "source": MODEL.source}}
    return RevisionHistory.read([past], of, CAPABILITIES)


def rolling(of: EndpointRef, now: dt.datetime = NOW, **inputs: Any) -> Rolling:
    history = served(of)
    seen = RolloutInputs(mix=ALONE)._replace(**inputs)
    state = first_state(history, of, seen, NOW)
    begun = history.begin(of, RequestedRevision(MODEL, "b"), CAPABILITIES, NOW, state)
    again = RevisionHistory.read(begun.written()["history"], of, CAPABILITIES, begun.written().get("rollout"))
    return Rolling(again, of.spec, seen, now)


def up(ready: int, desired: int | None = None) -> Readiness:
    return Readiness(ready, desired or ready, ready >= (desired or ready), "ReplicasReady", "")


def replicas(each: Any) -> int:
    return int(next(part.body["spec"]["replicas"] for part in each.parts if part.resource == DEPLOYMENTS))


def bounds(each: Any) -> tuple[int, int]:
    spec = next(part.body["spec"] for part in each.parts if part.resource == AUTOSCALERS)
    return spec["minReplicas"], spec["maxReplicas"]


SETTLED = Routed(True, True, "Done", "", None, mix=ALONE, proven=True)


def test_the_candidate_begins_small():
    found = rolling(endpoint({}))
    assert (replicas(found.history.serving), replicas(found.history.wanted)) == (3, 1)
    assert replicas(rolling(endpoint({"surge": 0})).history.wanted) == 0


def test_an_autoscaler_does_not_shrink_what_serves_while_a_candidate_has_weight():
    scaled = endpoint({}, autoscaling={"min": 1, "max": 8}, resources={"requests": {"cpu": "1"}})
    found = rolling(scaled, existing={1: 5})
    assert bounds(found.history.serving) == (5, 8), "as many as it had"
    assert bounds(found.history.wanted) == (1, 8)
    exact = rolling(endpoint({"surge": 0}, autoscaling={"min": 2, "max": 8}, resources={"requests": {"cpu": "1"}}))
    assert bounds(exact.history.serving) == (2, 2), "with surge 0 it has to make room"


def test_a_surge_that_finds_no_resources_is_given_up_after_a_minute():
    late = NOW + dt.timedelta(seconds=61)
    ready = {1: up(3), 2: SHORT}
    for now, surge, serving in ((NOW, 1, 3), (late, 0, 2)):
        found = rolling(endpoint({}), now, readiness=ready, existing={1: 3, 2: 1}).after(SETTLED).rollout
        assert found is not None
        assert found.sizes is not None
        assert (found.sizes.surge, found.sizes.serving, found.sizes.candidate) == (surge, serving, 1)
        assert [each.what for each in found.decisions] == ["Starting", *["CapacityShort"] * (not surge)]
    assert found is not None
    assert found.decisions[-1].text == (
        "chat-2: 0/3 nodes: 3 Insufficient nvidia.com/gpu. One replica of chat-1 makes room (2 of 3 serve meanwhile)."
    )
    for stays in (endpoint({"surge": 1}), endpoint({}, replicas=1)):
        found = rolling(stays, late, readiness={1: up(3), 2: SHORT}, existing={1: 3, 2: 1}).after(SETTLED).rollout
        assert found is not None
        assert found.sizes is not None
        assert found.sizes.surge == 1, "nobody allowed it, or there would be no server left"


def at_step_one(of: EndpointRef, ready: int = 1) -> Rolling:
    found = rolling(of, readiness={1: up(3), 2: up(ready, 1)}, existing={1: 3, 2: ready})
    return found._replace(history=found.after(SETTLED))


def test_the_mix_has_the_weight_that_the_replicas_can_carry():
    assert rolling(endpoint({}), readiness={1: up(3), 2: up(1)}).mix() == ALONE, "before its first step"
    step = at_step_one(endpoint({}))
    assert step.mix() == Mix((OLD._replace(weight=75), NEW._replace(weight=25)))
    lost = step._replace(inputs=step.inputs._replace(readiness={1: up(3), 2: up(0, 1)}))
    assert lost.mix() == ALONE, "it never had a weight"


def test_a_match_and_keys_are_in_the_mix():
    match = {"match": {"headers": [{"name": "x-canary", "exact": "yes"}]}}
    keys = {"assign": {"by": "Key", "key": [{"header": "x-user"}, {"body": "user"}]}}
    found = at_step_one(endpoint(match | keys)).mix()
    assert found.branches == (Branch((Header("x-canary", "yes"),), (NEW,)),)
    assert found.sticky == Stickiness((("header", "x-user"), ("body", "user")), "chat-2")


def test_a_candidate_that_fails_is_aborted():
    failed = Readiness(0, 1, False, "ImagePullBackOff", "no such tag.", failed=True)
    found = rolling(endpoint({}), readiness={1: up(3), 2: failed}, existing={1: 3}).after(SETTLED)
    assert found.rollout is not None
    assert (found.rollout.phase, found.states) == ("Aborted", {1: "Current", 2: "Aborted"})
    assert found.rollout.message == "The candidate failed: no such tag."
    assert found.past[1].message == "The candidate failed: no such tag."


@pytest.mark.parametrize("measured", [None, [], "x", [{"version": 3}], {"a": 1}])
def test_numbers_that_cannot_be_read_are_no_verdict(measured: object):
    step = at_step_one(endpoint({"analysis": {}}))
    assert step.verdict(SETTLED._replace(measured=measured)) is None


def test_numbers_become_a_verdict():
    tally = {"count": 5000, "errors": 4000}
    good = {"count": 5000, "errors": 0}
    stratum = {
        "version": "7",
        "since": format_time(NOW - dt.timedelta(hours=1)),
        "until": format_time(NOW),
        "backends": [
            {"service": "chat-1", "weight": 50, "requests": good},
            {"service": "chat-2", "weight": 50, "requests": tally},
        ],
    }
    step = at_step_one(endpoint({"analysis": {"metrics": [{"name": "errors", "worseBy": "2pp"}]}}))
    found = step.after(SETTLED._replace(measured=[stratum])).rollout
    assert found is not None
    assert (found.phase, found.verdict.result if found.verdict else "") == ("Aborted", "Worse")


def test_a_rollout_whose_total_is_edited_follows_the_spec():
    step = at_step_one(endpoint({}))
    more = step._replace(spec=endpoint({}, replicas=6).spec)
    assert more.sizes.total == 6
