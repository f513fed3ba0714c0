"""Teardowns under faults. All stories, through both observers, under a sample of single faults; the smallest under all.

The samples are always the same. ``python -m pilotage_sim explore teardown-owner`` plays every single fault of a story,
``python -m pilotage_sim explore teardown --pairs`` every pair on the smallest.
"""

import sys

import pytest

from pilotage_sim.explore import Report, explore, run_plan
from pilotage_sim.plan import parse_plan
from pilotage_sim.scenarios import TEARDOWNS, TEARDOWNS_BY_OPERATOR
from pilotage_sim.scenarios.teardown import SmallestTeardown
from pilotage_sim.scenarios.teardown_owners import OwnerTeardown

SAMPLE = 25
PAIRS = 40
SAMPLE_BY_OPERATOR = 8


def show(report: Report) -> None:
    """Print the number of plans that were played, for runs with ``-rP``."""
    sys.stdout.write(f"{report}\n")


def test_the_smallest_survives_every_single_fault():
    report = explore(SmallestTeardown)
    show(report)
    assert report.played == report.possible > 150, str(report)
    assert report.failures == [], str(report)


@pytest.mark.parametrize("name", [name for name in TEARDOWNS if name != "teardown"])
def test_single_faults_are_survived(name):
    report = explore(TEARDOWNS[name], plans_max=SAMPLE)
    show(report)
    assert report.played == SAMPLE < report.possible, str(report)
    assert report.failures == [], str(report)


@pytest.mark.parametrize("name", TEARDOWNS_BY_OPERATOR)
def test_single_faults_are_survived_by_the_operators_observer(name):
    report = explore(TEARDOWNS_BY_OPERATOR[name], plans_max=SAMPLE_BY_OPERATOR)
    show(report)
    assert report.played == SAMPLE_BY_OPERATOR < report.possible, str(report)
    assert report.failures == [], str(report)


def test_the_smallest_survives_pairs_of_faults():
    report = explore(SmallestTeardown, with_pairs=True, plans_max=PAIRS)
    show(report)
    assert report.played == PAIRS, str(report)
    assert report.failures == [], str(report)


def test_a_controller_that_would_make_its_parts_again_has_time_to_notice_that_their_owner_goes():
    outcome = run_plan(OwnerTeardown)
    assert outcome.problems == []
    writes = [line for line in outcome.trace.splitlines() if " subject " in line]
    assert sum("delete  ingresses" in line for line in writes) == 1, outcome.trace
    assert "patch   apps.sim.pilotage.dev" in writes[-1], outcome.trace


@pytest.mark.parametrize("plan", ["crash-after-write:2", "crash-after-write:3", "crash-before-write:3"])
def test_an_owner_that_was_held_before_a_crash_is_let_go_after_it(plan):
    """A crash between the hold and the mark, and one between the mark and the first part."""
    outcome = run_plan(OwnerTeardown, parse_plan(plan), baseline=run_plan(OwnerTeardown))
    assert outcome.problems == []
