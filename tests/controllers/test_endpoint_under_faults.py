"""The operator under faults: a sample of single ones. ``python -m pilotage_sim explore endpoint`` plays all."""

import sys

import pytest

from pilotage_sim.explore import explore, run_plan
from pilotage_sim.plan import PARTITION_SECONDS, Fault, FaultKind, single_faults
from pilotage_sim.scenarios.endpoint import EndpointLife
from pilotage_sim.scenarios.endpoint_gateway import EndpointBehindGateway
from pilotage_sim.scenarios.experiment import EndpointExperiment
from pilotage_sim.scenarios.rollout import EndpointRollout

SAMPLE = 15
LAST_PATCHES = 10
"""Number of the patches that the operator sends at the end of the story, while the endpoint is deleted."""


@pytest.mark.parametrize(
    ("scenario", "sample"),
    [
        (EndpointLife, SAMPLE),
        (EndpointBehindGateway, SAMPLE),
        (EndpointRollout, SAMPLE // 2),
        (EndpointExperiment, SAMPLE // 5),
    ],
)
def test_an_endpoint_lives_and_goes_under_single_faults(scenario, sample):
    report = explore(scenario, plans_max=sample)
    sys.stdout.write(f"{report}\n")
    assert report.played == sample < report.possible, str(report)
    assert report.failures == [], str(report)


def test_a_route_outlives_its_drain_however_slow_the_patch_is_that_begins_it():
    baseline = run_plan(EndpointBehindGateway)
    (counts,) = baseline.counts.values()
    slow = [each for each in single_faults(baseline.counts, lies=False) if each.kind is FaultKind.SLOW_CALL]
    patches = [each for each in slow if counts.calls[each.number - 1] == "patch"]
    for fault in patches[-LAST_PATCHES:]:
        assert run_plan(EndpointBehindGateway, (fault,), baseline=baseline).problems == [], str(fault)


def test_a_cache_that_lags_behind_a_receipt_begins_no_second_teardown():
    """Nobody is reached after the deletes of the first variants: their receipts come before the events of watches."""
    baseline = run_plan(EndpointExperiment)
    (counts,) = baseline.counts.values()
    deletes = [number for number, verb in enumerate(counts.calls, 1) if verb == "delete"]
    for after in (1, 2):
        fault = Fault(FaultKind.PARTITION, deletes[3] + after, str(PARTITION_SECONDS))
        assert run_plan(EndpointExperiment, (fault,), baseline=baseline).problems == [], str(fault)
