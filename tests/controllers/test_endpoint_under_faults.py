"""The operator under faults: a sample of single ones. ``python -m pilotage_sim explore endpoint`` plays all."""

import sys

import pytest

from pilotage_sim.explore import explore
from pilotage_sim.scenarios.endpoint import EndpointLife
from pilotage_sim.scenarios.endpoint_gateway import EndpointBehindGateway

SAMPLE = 15


@pytest.mark.parametrize("scenario", [EndpointLife, EndpointBehindGateway])
def test_an_endpoint_lives_and_goes_under_single_faults(scenario):
    report = explore(scenario, plans_max=SAMPLE)
    sys.stdout.write(f"{report}\n")
    assert report.played == SAMPLE < report.possible, str(report)
    assert report.failures == [], str(report)
