"""The spec that a change asks for: by arguments, and by an earlier revision."""

import pytest

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.kube import Json, Object
from pilotage.rollout.revisions import restored, revision_to_restore
from pilotage.rollout.spec import SpecArguments, with_arguments
from pilotage.teardown.planning.arguments import TargetError
from pilotage.teardown.session.request import RequestError
from tests.cli.serving import OTHER, SOURCE, revision

THIRD = "hf://acme/third/model.gguf"


@pytest.mark.parametrize(
    ("spec", "given", "words"),
    [
        ({}, SpecArguments(host="a.example.com"), "--host needs a route"),
        ({"route": {"kind": "Ingress"}}, SpecArguments(gateway="g"), "--gateway is an option of --route HTTPRoute"),
        ({"autoscaling": {"min": 1, "max": 8}}, SpecArguments(replicas=2), "between 1 and 8"),
        ({}, SpecArguments(env=("A",)), "write NAME=VALUE"),
        ({}, SpecArguments(canary="5,x"), "--canary 5,x: write rising percentages"),
        ({}, SpecArguments(canary="5,50,25,60"), "rising percentages"),
        ({}, SpecArguments(canary="5,100"), "between 1 and 99"),
        ({}, SpecArguments(canary=""), "rising percentages"),
    ],
)
def test_arguments_that_contradict_are_refused(spec: dict[str, object], given: SpecArguments, words: str):
    with pytest.raises(RequestError, match=words):
        with_arguments(spec, given)


def test_a_canary_by_flags_pauses_after_each_weight_and_keeps_its_other_settings():
    spec = {"strategy": {"type": "Canary", "canary": {"surge": 0, "steps": [{"setWeight": 1}]}}}
    steps = [{"setWeight": 5}, {"pause": {}}, {"setWeight": 50}, {"pause": {}}]
    wanted = {"type": "Canary", "canary": {"surge": 0, "steps": steps}}
    assert with_arguments(spec, SpecArguments(canary="5,50"))["strategy"] == wanted
    assert (
        with_arguments({"strategy": {"type": "BlueGreen"}}, SpecArguments(canary="5"))["strategy"]["type"] == "Canary"
    )


def test_another_runtime_begins_anew_and_the_same_one_stays():
    spec = {"runtime": {"name": "vllm", "image": "i", "args": ["x"]}, "route": {"kind": "Ingress", "host": "h"}}
    assert with_arguments(spec, SpecArguments(runtime="sglang"))["runtime"] == {"name": "sglang"}
    assert with_arguments(spec, SpecArguments(runtime="vllm", image="j"))["runtime"] == {
        "name": "vllm",
        "image": "j",
        "args": ["x"],
    }
    assert with_arguments(spec, SpecArguments(route="HTTPProxy"))["route"] == {"kind": "HTTPProxy", "host": "h"}
    assert with_arguments(spec, SpecArguments(route="None"))["route"] == {"kind": "None"}
    assert spec["runtime"]["args"] == ["x"]


def endpoint(source: str, *history: Json) -> StoredEndpoint:
    spec = {"model": {"source": source}, "runtime": {"name": "llama.cpp"}, "placement": {"kind": "Deployment"}}
    body = {"metadata": {"name": "a"}, "spec": spec, "status": {"history": list(history)}}
    return StoredEndpoint.of(Object.from_dict(body))


@pytest.mark.parametrize(
    ("wanted", "history", "number"),
    [
        (OTHER, [revision(1, "Previous"), revision(2, "Current", OTHER)], 1),
        (OTHER, [revision(1, "Current"), revision(2, "Starting", OTHER)], 1),
        (OTHER, [revision(1, "Current")], 1),
        (SOURCE, [revision(1, "Previous", OTHER), revision(2, "Previous"), revision(3, "Current")], 1),
        (OTHER, [revision(1, "Previous"), revision(2, "Failed", THIRD), revision(3, "Current", OTHER)], 1),
    ],
    ids=["the one before", "what serves", "a change that never began", "not the same again", "never one that failed"],
)
def test_without_a_number_it_is_the_newest_that_served_and_was_another(wanted: str, history: list[Json], number: int):
    assert revision_to_restore(endpoint(wanted, *history), None).number == number


@pytest.mark.parametrize(
    ("history", "number", "words"),
    [
        ([], None, "no earlier revision"),
        ([revision(1, "Current", OTHER)], None, "no earlier revision"),
        ([revision(1, "Previous"), revision(2, "Current", OTHER)], 3, "There is: 1, 2."),
    ],
)
def test_where_there_is_none_it_is_said(history: list[Json], number: int | None, words: str):
    with pytest.raises(TargetError, match=words):
        revision_to_restore(endpoint(OTHER, *history), number)


def test_what_changes_in_place_stays():
    now = {"model": {"source": OTHER}, "cache": {"size": "1Gi"}, "replicas": 8, "route": {"kind": "Ingress"}}
    old = {"model": {"source": SOURCE}, "replicas": 1, "route": {"kind": "None"}, "runtime": {"name": "vllm"}}
    assert restored(now, old) == {
        "model": {"source": SOURCE},
        "runtime": {"name": "vllm"},
        "replicas": 8,
        "route": {"kind": "Ingress"},
    }
