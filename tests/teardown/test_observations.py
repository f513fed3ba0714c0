"""Observations only move forward."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotage.kube import Object
from pilotage.teardown.engine.decision import Observation
from pilotage.teardown.engine.observations import Observations
from pilotage.teardown.snapshot.world import State
from tests.teardown.building import NOW, ago, seconds

RANK = {State.UNKNOWN: 0, State.PRESENT: 1, State.TERMINATING: 2, State.GONE: 3, State.FOREIGN: 3}


def seen(version: int, *, deleted: bool = False, finalizers: tuple[str, ...] = (), uid: str = "u") -> Object:
    metadata: dict[str, Any] = {"name": "x", "uid": uid, "resourceVersion": str(version), "finalizers": [*finalizers]}
    if deleted:
        metadata |= {"deletionTimestamp": ago(1), "deletionGracePeriodSeconds": 30}
    return Object.from_dict({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


def test_what_was_not_read_is_unknown():
    assert Observations().get("u") == Observation(State.UNKNOWN, problem="it was not read")


def test_an_object_is_seen_with_what_keeps_it():
    observations = Observations()
    assert observations.see(seen(1, finalizers=("a",)))
    assert observations.get("u") == Observation(State.PRESENT, ("a",))
    assert observations.see(seen(2, finalizers=("a",), deleted=True))
    assert observations.get("u") == Observation(State.TERMINATING, ("a",), (), ago(1), 30)


def test_the_same_again_is_no_news():
    observations = Observations()
    observations.see(seen(1))
    assert not observations.see(seen(1))
    assert not observations.see(seen(2))


def test_an_answer_that_comes_late_changes_nothing():
    observations = Observations()
    observations.see(seen(5, deleted=True))
    assert not observations.see(seen(4))
    assert observations.get("u").state is State.TERMINATING
    observations.gone("u", NOW)
    assert not observations.see(seen(6))
    assert observations.get("u") == Observation(State.GONE, gone_at=NOW)


def test_what_cannot_be_read_any_more_is_still_known():
    observations = Observations()
    observations.see(seen(1))
    assert not observations.unknown("u", "no answer")
    assert observations.get("u").state is State.PRESENT


def test_it_goes_once():
    observations = Observations()
    assert observations.gone("u", NOW, foreign=True)
    assert not observations.gone("u", NOW + seconds(1))
    assert observations.get("u") == Observation(State.FOREIGN, gone_at=NOW)


def test_a_proof_brings_back_what_was_taken_for_gone():
    observations = Observations()
    observations.see(seen(1))
    observations.gone("u", NOW)
    observations.contradict(seen(2))
    assert observations.get("u").state is State.PRESENT


events = st.one_of(
    st.builds(lambda version, deleted: ("see", version, deleted), st.integers(1, 9), st.booleans()),
    st.builds(lambda foreign: ("gone", foreign), st.booleans()),
    st.just(("unknown",)),
)


@given(st.lists(events, max_size=12))
def test_nothing_but_a_proof_goes_back(happened):
    observations = Observations()
    version, rank = 0, 0
    for what, *rest in happened:
        if what == "see":
            number, deleted = rest
            if deleted or number >= version:  # a server that says "not deleted" later than "deleted" does not exist
                deleted = deleted or rank == RANK[State.TERMINATING]
                version = max(version, number)
                observations.see(seen(number, deleted=deleted))
        elif what == "gone":
            observations.gone("u", NOW, foreign=rest[0])
        else:
            observations.unknown("u", "no answer")
        assert RANK[observations.get("u").state] >= rank
        rank = RANK[observations.get("u").state]
