"""Fault plans that the simulator plays per second on one core: the number of faults that one can afford to try."""

from bench import steadiness
from bench.figures import PILOTAGE, Section
from bench.progress import say
from bench.run import Run
from pilotage_sim.bench import rates


def run(_: Run) -> Section:
    """Pairs of faults of each scenario of ours."""
    say("sim: pairs of faults")
    steadiness.sample()
    section = Section("sim", "The simulator: plans of two faults, each in a world of its own, on one core")
    for rate in rates():
        section.add(f"{rate.scenario}: plans per second", "/s", {PILOTAGE: rate.per_second})
    return section
