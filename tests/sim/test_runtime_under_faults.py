"""`pilotage.runtime` under every single fault, and under a sample of the pairs of them, always the same one.

`make simulate` plays every pair of the informer; `python -m pilotage_sim explore leader --pairs` those of the others.
"""

import pytest

from pilotage_sim.explore import explore
from pilotage_sim.scenarios import ControllerScenario, InformerScenario, LeaderScenario


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
@pytest.mark.parametrize(
    ("scenario", "pairs", "played"),
    [(InformerScenario, 1_500, 300), (LeaderScenario, 30_000, 120), (ControllerScenario, 5_000, 100)],
)
def test_pairs_of_faults_are_survived(scenario, pairs, played):
    report = explore(scenario, with_pairs=True, plans_max=played)
    assert report.possible > pairs, str(report)
    assert report.played == played, str(report)
    assert report.failures == [], str(report)
