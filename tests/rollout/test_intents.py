"""Requests to a rollout in steps: what is written, and what is refused."""

from collections.abc import Callable

import pytest

from pilotage.api.endpoint import EndpointSpec
from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.kube import Json, Object
from pilotage.rollout import intents
from pilotage.rollout.intents import Intent
from pilotage.teardown.planning.arguments import TargetError
from tests.cli.serving import CANARY, OTHER, SOURCE, revision, rolling, serving

Decide = Callable[[StoredEndpoint], Intent]


def seen(status: Json, source: str = OTHER, **annotations: str) -> StoredEndpoint:
    named = {f"pilotage.dev/{name}": value for name, value in annotations.items()}
    meta = {"name": "a", "namespace": "chat", "uid": "u", "annotations": named}
    spec = EndpointSpec.read({"model": {"source": source}, "strategy": CANARY}).written()
    return StoredEndpoint.of(Object.from_dict({"metadata": meta, "spec": spec, "status": status}))


def one_step(endpoint: StoredEndpoint) -> Intent:
    return intents.promotion(endpoint, everything=False)


def all_steps(endpoint: StoredEndpoint) -> Intent:
    return intents.promotion(endpoint, everything=True)


ABORTED = serving("a") | {"history": [revision(1, "Current"), revision(2, "Aborted", OTHER)]}
PAUSING = rolling("a", "Pausing", 6)


@pytest.mark.parametrize(
    ("decide", "status", "written"),
    [
        (one_step, PAUSING, ("promote", "a-2/6")),
        (one_step, rolling("a", "Analysing", 3), ("promote", "a-2/3")),
        (all_steps, rolling("a", "Shifting", 1), ("promote", "a-2/all")),
        (all_steps, rolling("a", "Starting", 0), ("promote", "a-2/all")),
        (intents.abortion, PAUSING, ("abort", "a-2")),
        (intents.abortion, rolling("a", "Promoting", 6), ("abort", "a-2")),
        (intents.abortion, rolling("a", "Aborting", 3), ("abort", "a-2")),
        (intents.holding, PAUSING, ("hold", "a-2")),
        (intents.repetition, ABORTED, ("retry", "a-2")),
    ],
)
def test_a_request_is_bound_to_the_revision_and_the_step(decide: Decide, status: Json, written: tuple[str, str]):
    intent = decide(seen(status))
    assert (intent.annotation.removeprefix("pilotage.dev/"), intent.value) == written


@pytest.mark.parametrize(
    ("decide", "endpoint", "said"),
    [
        (
            one_step,
            seen(serving("a")),
            "nothing to promote: no rollout is under way: a-1 serves. See: pilotage rollout a",
        ),
        (one_step, seen(rolling("a", "Promoted", 6)), "no rollout is under way"),
        (one_step, seen(rolling("a", "Shifting", 4)), "step 4, setWeight 25, ends by itself once it is proven"),
        (one_step, seen(rolling("a", "Starting", 0)), "a-2 starts, which ends by itself"),
        (one_step, seen(rolling("a", "Aborting", 3)), "is going back already"),
        (one_step, seen(rolling("a", "Promoting", 6)), "is being promoted already"),
        (all_steps, seen(PAUSING, hold="a-2"), "held by request. Release it first: pilotage hold a -n chat --release"),
        (intents.abortion, seen(ABORTED), "nothing to abort"),
        (intents.holding, seen(rolling("a", "Aborting", 3)), "is going back already"),
        (intents.release, seen(PAUSING), "not held by request"),
        (intents.repetition, seen(PAUSING), "The rollout of a-2 has not ended"),
        (intents.repetition, seen(ABORTED, SOURCE), "no rollout of what its spec asks for was aborted"),
    ],
)
def test_where_there_is_nothing_to_do_a_sentence_says_so(decide: Decide, endpoint: StoredEndpoint, said: str):
    with pytest.raises(TargetError) as refused:
        decide(endpoint)
    assert said in str(refused.value)


def test_what_was_promoted_is_taken_back_by_a_rollback():
    rests = serving("a", 2, revision(1, "Resting"))
    with pytest.raises(TargetError, match="pilotage rollback a -n chat"):
        intents.abortion(seen(rests))


def test_a_hold_of_an_earlier_revision_holds_nothing():
    assert one_step(seen(PAUSING, hold="a-1")).value == "a-2/6"
