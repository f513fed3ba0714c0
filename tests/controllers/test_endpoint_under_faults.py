"""The operator under faults: a sample of single ones. ``python -m pilotage_sim explore endpoint`` plays all."""

import sys

from pilotage_sim.explore import explore
from pilotage_sim.scenarios.endpoint import EndpointLife

SAMPLE = 15


def test_an_endpoint_lives_and_goes_under_single_faults():
    report = explore(EndpointLife, plans_max=SAMPLE)
    sys.stdout.write(f"{report}\n")
    assert report.played == SAMPLE < report.possible, str(report)
    assert report.failures == [], str(report)
