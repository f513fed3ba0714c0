"""The rate at which plans are played: how many faults one can afford to try."""

from __future__ import annotations

from typing import NamedTuple

from pilotage_sim.explore import explore
from pilotage_sim.scenarios import SCENARIOS

PLANS = 150


class Rate(NamedTuple):
    """Plans per second of one scenario."""

    scenario: str
    plans: int
    seconds: float

    @property
    def per_second(self) -> float:
        """The figure."""
        return self.plans / self.seconds


def rates(plans: int = PLANS) -> list[Rate]:
    """Play so many pairs of faults of each scenario of ours, on one core."""
    found = []
    for name, scenario in SCENARIOS.items():
        report = explore(scenario, with_pairs=True, plans_max=plans)
        found.append(Rate(name, report.played, report.seconds))
    return found
