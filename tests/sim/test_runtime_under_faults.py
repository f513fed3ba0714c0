"""`pilotage.runtime` under every single fault, and under pairs of them.

Pairs are played in full where that takes less than about a minute of CPU; else a sample is, always the same one.
"""

import pytest

from pilotage.sim.explore import explore
from pilotage.sim.scenarios import ControllerScenario, InformerScenario, LeaderScenario


@pytest.mark.parametrize(
    ("scenario", "seed"),
    [
        (InformerScenario, 0),
        (InformerScenario, 1),
        (LeaderScenario, 0),
        (ControllerScenario, 0),
        (ControllerScenario, 1),
    ],
)
def test_every_single_fault_is_survived(scenario, seed):
    report = explore(scenario, seed=seed)
    assert report.played == report.possible > 50, str(report)
    assert report.failures == [], str(report)


@pytest.mark.timeout(600)
def test_the_informer_survives_every_pair_of_faults():
    report = explore(InformerScenario, with_pairs=True)
    assert report.played == report.possible > 1500, str(report)
    assert report.failures == [], str(report)


@pytest.mark.timeout(600)
def test_leader_election_survives_pairs_of_faults():
    """Of some 35,000 pairs, a sample; `python -m pilotage.sim explore leader --pairs` plays them all."""
    report = explore(LeaderScenario, with_pairs=True, plans_max=150)
    assert report.played == 150, str(report)
    assert report.failures == [], str(report)


@pytest.mark.timeout(600)
def test_a_controller_survives_pairs_of_faults():
    report = explore(ControllerScenario, with_pairs=True, plans_max=100)
    assert report.played == 100, str(report)
    assert report.failures == [], str(report)
