"""The simulator finds bugs: controllers that are broken on purpose are caught, each by the fault it cannot bear."""

import gc

import pytest
from click.testing import CliRunner

from pilotage_sim import world
from pilotage_sim.__main__ import main
from pilotage_sim.explore import explore, run_plan, shrink
from pilotage_sim.plan import parse_plan
from pilotage_sim.scenarios import ControllerScenario, InformerScenario, LeaderScenario
from tests.sim.broken import (
    ForgetsFirstScenario,
    GivesUpScenario,
    LonelyQuitterScenario,
    OnlyEventsScenario,
    RestlessScenario,
    TakesUnknownForGoneScenario,
    TakesWhatIsThereScenario,
    UsurperScenario,
)


@pytest.fixture(scope="module")
def forgetful():
    """Report of an exploration of `ForgetsFirstScenario`."""
    return explore(ForgetsFirstScenario)


@pytest.mark.parametrize("scenario", [ControllerScenario, InformerScenario, LeaderScenario])
def test_the_same_seed_gives_the_same_trace(scenario):
    plan = parse_plan("partition:3:10,b/partition:3:10")
    first, second = run_plan(scenario, plan, seed=7), run_plan(scenario, plan, seed=7)
    assert first.trace == second.trace
    assert first.trace != run_plan(scenario, plan, seed=8).trace


def test_the_collector_of_python_is_afterwards_as_it_was_before():
    assert gc.isenabled()
    threshold = gc.get_threshold()
    explore(ControllerScenario, plans_max=2)  # its managers would tune it for themselves
    assert (gc.isenabled(), gc.get_threshold()) == (True, threshold)


def test_a_crash_between_two_writes_is_found(forgetful):
    (found,) = forgetful.failures
    assert [fault.kind for fault in found.plan] in (["crash-after-write"], ["crash-before-write"], ["partition"])
    assert "configmaps default/b-copy" in found.problems[0]
    assert forgetful.baseline.problems == []


def test_taking_unknown_for_gone_is_found():
    (found,) = explore(TakesUnknownForGoneScenario).failures
    assert len(found.plan) == 1
    assert "configmaps default/b-copy" in found.problems[0]


def test_giving_up_after_an_error_is_found():
    (found,) = explore(GivesUpScenario).failures
    assert [fault.kind for fault in found.plan] in (["fail-call"], ["partition"])


def test_touching_what_belongs_to_others_is_found_without_any_fault():
    (found,) = explore(TakesWhatIsThereScenario).failures
    assert found.plan == ()
    assert "an object of somebody else" in found.problems[0]


def test_a_controller_that_never_rests_is_found_without_any_fault(monkeypatch):
    monkeypatch.setattr(world, "WRITES_MAX", 300)  # it would write any number of times
    (found,) = explore(RestlessScenario).failures
    assert found.plan == ()
    assert "somebody still writes" in found.problems[0]


def test_a_lost_delete_is_found():
    (found,) = explore(OnlyEventsScenario).failures
    assert any("nobody was told" in problem for problem in found.problems)


def test_two_writers_at_once_are_found():
    (found,) = explore(UsurperScenario, seed=2).failures  # with this one, `a` leads: its plans come first
    assert [fault.kind for fault in found.plan] == ["partition"]
    assert "wrote" in found.problems[0]


def test_nobody_leading_is_found():
    (found,) = explore(LonelyQuitterScenario).failures
    assert [fault.kind for fault in found.plan] == ["partition"]
    assert "NotSettled" in found.problems[0]


def test_a_failing_plan_is_shrunk_to_the_fault_that_matters(forgetful):
    guilty = forgetful.failures[0].plan
    baseline = run_plan(ForgetsFirstScenario)
    many = (*guilty, *parse_plan("delay-event:12,cut-watches:13"))
    failing = run_plan(ForgetsFirstScenario, many, baseline=baseline)
    assert failing.problems
    assert shrink(failing, baseline).plan == guilty


def test_a_failure_says_how_to_see_it_again(forgetful):
    (found,) = forgetful.failures
    text = str(found)
    plan = ",".join(map(str, found.plan))
    assert f"python -m pilotage_sim replay tests.sim.broken:ForgetsFirstScenario --seed 0 --plan '{plan}'" in text
    assert f"run_plan(ForgetsFirstScenario, parse_plan('{plan}'), seed=0)" in text


def test_too_many_plans_are_sampled_always_alike():
    report = explore(InformerScenario, with_pairs=True, plans_max=5)
    assert (report.played, report.failures) == (5, [])
    assert report.possible > 1000
    assert f"5 of {report.possible} plans" in str(report)


def test_several_stories_are_explored_by_one_command():
    done = CliRunner().invoke(main, ["explore", "informer", "controller", "--plans", "2"])
    assert done.exit_code == 0, done.output
    reports = [line for line in done.output.splitlines() if "0 failed" in line]
    assert [each.partition(" of ")[0] for each in reports] == ["InformerScenario: 2", "ControllerScenario: 2"]


def test_no_story_is_played_where_one_of_them_is_not_known():
    done = CliRunner().invoke(main, ["explore", "informer", "no-such-story"])
    assert done.exit_code == 2
    assert "no-such-story is none of" in done.output
    assert "plans" not in done.output
