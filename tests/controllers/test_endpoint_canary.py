"""One transition at a time: the steps of a rollout, for each thing that can be the case."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from pilotage.api.analysis import Verdict
from pilotage.api.endpoint_status import RolloutSizes, RolloutState
from pilotage.api.strategy import Canary
from pilotage.controllers.endpoint.canary import (
    Intents,
    RolloutFacts,
    StepAnswer,
    aborting,
    advanced,
    begun,
    pause_seconds,
    scale_of,
    target_of,
)
from pilotage.kube.wire import format_time, parse_time

NOW = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)
STEPS: list[dict[str, Any]] = [
    {"setWeight": 5},
    {"pause": {"duration": "10m"}},
    {"analysis": {"atMost": "30m"}},
    {"setWeight": 25},
    {"setScale": {"replicas": 2}},
    {"job": {"image": "eval"}},
    {"pause": {}},
]
NAME = "chat-2"
NOTHING = Intents()


def canary(steps: list[dict[str, Any]] = STEPS, **more: Any) -> Canary:
    return Canary.read({"steps": steps, **more})


CANARY = canary()
PAUSING = canary(onFailure="Pause")
AT_5 = RolloutFacts(5, True, total=4, ready=1)
AT_25 = AT_5._replace(weight=25)


def verdict(result: str) -> Verdict:
    return Verdict(result=result, text=f"It is {result}.", at=format_time(NOW), candidate=NAME, against="chat-1")


def started(canary: Canary = CANARY) -> RolloutState:
    return begun(NAME, canary, RolloutSizes(4, 0, 4, 1), NOW)


def at(step: int, facts: RolloutFacts = AT_5, of: Canary = CANARY, now: dt.datetime = NOW) -> RolloutState:
    """The state in a step, by way of all before it, each of which is promoted or satisfied."""
    state = started(of)
    while state.step < step:
        intents = Intents(f"{NAME}/{state.step}")
        done = facts._replace(weight=state.weight.wanted, is_proven=True, ready=1)
        following = advanced(state, of, done, intents, now)
        state = following if following.step > state.step else advanced(state, of, done._replace(ready=2), intents, now)
    assert state.step == step
    return state


@dataclass(frozen=True)
class Case:
    name: str
    state: RolloutState
    facts: RolloutFacts
    want: tuple[str, int, int]
    """Phase, step and wanted weight."""
    intents: Intents = NOTHING
    of: Canary = CANARY
    seconds: float = 0
    message: str = ""


# fmt: off
CASES = [
    Case("it starts with replicas", started(), RolloutFacts(), ("Starting", 0, 0)),
    Case("the first step begins when one is ready", started(), RolloutFacts(ready=1), ("Shifting", 1, 5)),
    Case("without steps it is promoted then", started(canary([])), RolloutFacts(ready=1), ("Promoting", 0, 100),
         of=canary([])),
    Case("a weight that is written is no proof", at(1), AT_5._replace(is_proven=False), ("Shifting", 1, 5)),
    Case("nor is the proof of another weight", at(1), AT_5._replace(weight=0), ("Shifting", 1, 5)),
    Case("a proven weight is", at(1), AT_5, ("Pausing", 2, 5)),
    Case("a pause lasts", at(2), AT_5, ("Pausing", 2, 5), seconds=599),
    Case("and ends", at(2), AT_5, ("Analysing", 3, 5), seconds=600),
    Case("promotion ends it early", at(2), AT_5, ("Analysing", 3, 5), Intents(f"{NAME}/2")),
    Case("promotion of another step does not", at(2), AT_5, ("Pausing", 2, 5), Intents(f"{NAME}/1")),
    Case("nor that of another revision", at(2), AT_5, ("Pausing", 2, 5), Intents("chat-1/2")),
    Case("nor does a weight that is not proven yet end", at(1), AT_5._replace(is_proven=False), ("Shifting", 1, 5),
         Intents(f"{NAME}/1")),
    Case("no verdict is no verdict", at(3), AT_5, ("Analysing", 3, 5), message="There are no measured numbers yet."),
    Case("an undecided one is waited for", at(3), AT_5._replace(verdict=verdict("Undecided")), ("Analysing", 3, 5),
         message="It is Undecided."),
    Case("a good one ends the step", at(3), AT_5._replace(verdict=verdict("NoWorse")), ("Shifting", 4, 25)),
    Case("time alone never does", at(3), AT_5._replace(verdict=verdict("Undecided")), ("Pausing", 3, 5), seconds=1800,
         message="The time for the analysis is over. It is Undecided. Promote or abort."),
    Case("nor without numbers", at(3), AT_5, ("Pausing", 3, 5), seconds=9999),
    Case("nor if it is invalid", at(3), AT_5._replace(verdict=verdict("Invalid")), ("Pausing", 3, 5), seconds=1800),
    Case("a person may", at(3), AT_5, ("Shifting", 4, 25), Intents(f"{NAME}/3"), seconds=1800),
    Case("a candidate that is worse is aborted", at(3), AT_5._replace(verdict=verdict("Worse")), ("Aborting", 3, 0),
         message="The candidate is worse: It is Worse."),
    Case("in any step", at(4), AT_5._replace(verdict=verdict("Worse")), ("Aborting", 4, 0)),
    Case("or held", at(3, of=PAUSING), AT_5._replace(verdict=verdict("Worse")), ("Held", 3, 5), of=PAUSING),
    Case("the next weight is not that of before", at(4), AT_5, ("Shifting", 4, 25)),
    Case("a size is waited for", at(5), AT_25, ("Shifting", 5, 25)),
    Case("then the step ends", at(5), AT_25._replace(ready=2), ("Judging", 6, 25)),
    Case("a Job is waited for", at(6), AT_25, ("Judging", 6, 25), message="The Job has not ended."),
    Case("a Job may pass", at(6), AT_25._replace(answer=StepAnswer(6, "Passed", "0")), ("Pausing", 7, 25)),
    Case("a Job of another step says nothing", at(6), AT_25._replace(answer=StepAnswer(5, "Passed", "0")),
         ("Judging", 6, 25)),
    Case("a Job may abort", at(6), AT_25._replace(answer=StepAnswer(6, "Worse", "exit 1")), ("Aborting", 6, 0),
         message="exit 1"),
    Case("or hold", at(6), AT_25._replace(answer=StepAnswer(6, "Held", "exit 2")), ("Held", 6, 25), message="exit 2"),
    Case("and be passed over", at(6), AT_25._replace(answer=StepAnswer(6, "Held", "exit 2")), ("Pausing", 7, 25),
         Intents(f"{NAME}/6")),
    Case("a pause without an end waits for a person", at(7), AT_25, ("Pausing", 7, 25), seconds=10**6,
         message="Until step 7 is promoted."),
    Case("after the last step comes the promotion", at(7), AT_25, ("Promoting", 7, 100), Intents(f"{NAME}/7")),
    Case("all at once", at(2), AT_5, ("Promoting", 7, 100), Intents(f"{NAME}/all")),
    Case("abort", at(2), AT_5, ("Aborting", 2, 0), Intents(abort=NAME), message="Aborted by request."),
    Case("that of another revision is nothing", at(2), AT_5, ("Pausing", 2, 5), Intents(abort="chat-1")),
    Case("abort comes before promote", at(2), AT_5, ("Aborting", 2, 0), Intents(f"{NAME}/all", NAME)),
    Case("and before hold", at(2), AT_5, ("Aborting", 2, 0), Intents(abort=NAME, hold=NAME)),
    Case("hold", at(2), AT_5, ("Held", 2, 5), Intents(hold=NAME), seconds=9999),
    Case("a candidate that fails is aborted", at(4), AT_5._replace(failure="no such image"), ("Aborting", 4, 0),
         message="The candidate failed: no such image"),
    Case("or held where it is", at(4, of=PAUSING), AT_5._replace(failure="no such image"), ("Held", 4, 25),
         of=PAUSING),
    Case("a route that is refused holds it", at(4), AT_5._replace(refusal="no"), ("Held", 4, 25)),
    Case("it can be aborted then", at(4), AT_5._replace(refusal="no"), ("Aborting", 4, 0), Intents(abort=NAME)),
]
# fmt: on


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_transition(case: Case):
    found = advanced(case.state, case.of, case.facts, case.intents, NOW + dt.timedelta(seconds=case.seconds))
    assert (found.phase, found.step, found.weight.wanted) == case.want
    assert not case.message or found.message == case.message


def test_a_rollout_is_promoted_once_the_other_revision_is_out():
    state = advanced(at(2), CANARY, AT_5, Intents(f"{NAME}/all"), NOW)
    for facts, phase in (
        (AT_5._replace(weight=100), "Promoting"),
        (AT_5._replace(weight=100, alone="chat-1"), "Promoting"),
        (AT_5._replace(weight=100, alone=NAME), "Promoted"),
    ):
        assert advanced(state, CANARY, facts, Intents(), NOW).phase == phase


def test_an_abort_ends_once_the_candidate_is_out_and_nothing_stops_it():
    state = aborting(at(4), "No.", NOW)
    assert aborting(state, "Once more.", NOW) == state
    for intents in (Intents(), Intents(f"{NAME}/all"), Intents(hold=NAME)):
        assert advanced(state, CANARY, AT_5, intents, NOW).phase == "Aborting"
        assert advanced(state, CANARY, AT_5._replace(alone=NAME), intents, NOW).phase == "Aborting"
        assert advanced(state, CANARY, AT_5._replace(alone="chat-1"), intents, NOW).phase == "Aborted"


def test_what_was_held_goes_on_in_the_same_step_and_time():
    pause = at(2)
    held = advanced(pause, CANARY, AT_5, Intents(hold=NAME), NOW + dt.timedelta(seconds=60))
    assert (target_of(held, 3), target_of(pause, 3)) == (3, 5)
    on = advanced(held, CANARY, AT_5, Intents(), NOW + dt.timedelta(seconds=120))
    assert on == replace(pause, message="")
    promoting = advanced(pause, CANARY, AT_5, Intents(f"{NAME}/all"), NOW)
    held = advanced(promoting, CANARY, AT_5, Intents(hold=NAME), NOW)
    assert (held.phase, target_of(held, 40)) == ("Held", 40)
    assert advanced(held, CANARY, AT_5, Intents(), NOW).phase == "Promoting"


def test_the_end_of_a_pause_is_in_the_status_and_never_early():
    state = at(2, now=NOW + dt.timedelta(milliseconds=900))
    assert state.until is not None
    assert parse_time(state.until) - NOW == dt.timedelta(seconds=601)
    assert pause_seconds(CANARY, state, NOW) == 601
    assert pause_seconds(CANARY, at(7), NOW) is None


# Weight now, the step that it is in, the new steps, and where it goes on with which weight.
EDITS = [
    ("a pause gets longer", 2, AT_5, [STEPS[0], {"pause": {"duration": "20m"}}, *STEPS[2:]], ("Pausing", 2, 5)),
    ("steps after it change", 2, AT_5, [*STEPS[:2], {"setWeight": 50}], ("Pausing", 2, 5)),
    ("one comes before it", 2, AT_5, [{"setWeight": 1}, *STEPS], ("Pausing", 3, 5)),
    (
        "the weights are others",
        7,
        AT_25,
        [{"setWeight": 10}, {"pause": {}}, {"setWeight": 30}, {"pause": {}}],
        ("Pausing", 2, 25),
    ),
    ("all weights are lower", 7, AT_25, [{"setWeight": 10}], ("Promoting", 1, 100)),
    ("its own weight is lower", 4, AT_25, [*STEPS[:3], {"setWeight": 10}, {"pause": {}}], ("Pausing", 5, 25)),
    ("its own weight is higher", 4, AT_5, [*STEPS[:3], {"setWeight": 40}, {"pause": {}}], ("Shifting", 4, 40)),
    ("a higher weight comes first", 7, AT_25, [{"setWeight": 50}, {"setWeight": 10}], ("Shifting", 1, 50)),
    ("its steps are fewer", 7, AT_25, STEPS[:3], ("Pausing", 2, 25)),
]


@pytest.mark.parametrize(("name", "step", "facts", "steps", "want"), EDITS, ids=lambda each: each)
def test_edited_steps_never_lower_a_weight(name, step, facts, steps, want):
    found = advanced(at(step), canary(steps), facts, Intents(), NOW)
    assert (found.phase, found.step, found.weight.wanted) == want
    assert found.of == len(steps)


def test_a_weight_on_its_way_down_stays_once_the_steps_are_edited():
    down = canary([{"setWeight": 25}, {"setWeight": 10}, {"pause": {}}])
    edited = canary([{"setWeight": 20}, {"pause": {}}])
    found = advanced(at(2, of=down), edited, AT_25, Intents(), NOW)
    assert (found.phase, found.step, found.weight.wanted) == ("Pausing", 2, 25)


def test_a_pause_that_is_edited_began_when_it_began():
    longer = canary([STEPS[0], {"pause": {"duration": "20m"}}])
    found = advanced(at(2), longer, AT_5, Intents(), NOW + dt.timedelta(seconds=300))
    assert found.until == format_time(NOW + dt.timedelta(minutes=20))


def test_the_size_is_that_of_the_last_step_that_sets_one():
    of = canary([{"setScale": {"percent": 30}}, {"setScale": {"replicas": 3}}, {"setScale": {"follow": "Weight"}}])
    sizes = [scale_of(of, replace(started(), step=step), 5) for step in range(4)]
    assert sizes == [0, 2, 3, 0]


def test_transitions_are_noted_and_bounded():
    many = canary([{"setScale": {"replicas": 1}}] * 50)
    found = advanced(started(many), many, AT_5, Intents(), NOW)
    assert (found.phase, len(found.decisions), found.decisions[-1].what) == ("Promoting", 20, "Promoting")
    assert [each.what for each in at(2).decisions] == ["Starting", "Shifting", "Pausing"]


def test_a_return_takes_no_steps():
    state = begun("chat-1", CANARY, RolloutSizes(4, 4, 4, 4), NOW, is_return=True)
    assert (state.phase, state.weight.wanted) == ("Promoting", 100)
    assert advanced(state, CANARY, RolloutFacts(), Intents(), NOW).phase == "Promoting"


def test_whatever_people_write_into_annotations_is_read():
    assert Intents.read({"pilotage.dev/abort": "x" * 9999}).abort
    assert advanced(at(2), CANARY, AT_5, Intents(*["/" * 4] * 4), NOW).phase == "Pausing"
