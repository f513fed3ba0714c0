"""Several strata: only what ran at the same time is compared, and what was assigned is what is counted."""

import math
import random

import msgspec
import pytest

from pilotage.analysis.metrics import RateHarm, RatioHarm, readings
from pilotage.analysis.strata import together
from pilotage.api.analysis import AnalysisSpec, MetricSpec
from pilotage.api.measured import Stratum, Tally
from tests.analysis.sums import OURS, THEIRS, by_key, logs, normal, stratum, tally, verdict

ERRORS, TTFT = MetricSpec("errors", worse_by="2pp"), MetricSpec("ttft", worse_by="10%")


def _machine(metric: MetricSpec, *strata: Stratum):
    sides = together(strata, OURS.service, THEIRS.service, 120)
    return readings(AnalysisSpec(metrics=[metric]), sides, {})[0].machine


def _sums(ttft: float, n: int) -> Tally:
    return Tally(n, ttft=normal(n, ttft))


def test_a_rising_tide_is_nobodys_fault():
    """Each step of a ramp is slower by a third for everybody; added up, the candidate would be 20 % slower."""
    ramp = [
        stratum(
            _sums(0.4 * 1.35**step, int(2000 * share)), _sums(0.4 * 1.35**step, int(2000 * (1 - share))), 100 * share
        )
        for step, share in enumerate((0.05, 0.25, 0.5))
    ]
    assert _machine(TTFT, *ramp).point == pytest.approx(0)
    pooled = [sum(s.backends[side].requests.ttft.sum for s in ramp) for side in (0, 1)]
    counts = [sum(s.backends[side].requests.n for s in ramp) for side in (0, 1)]
    assert math.exp(pooled[0] / counts[0] - pooled[1] / counts[1]) > 1.2
    assert verdict(*ramp, metrics=[TTFT]).result == "NoWorse"


def test_errors_that_rise_for_everybody_are_nobodys_fault():
    ramp = [
        stratum(
            tally(1000 * share, rate * 1000 * share), tally(1000 * (1 - share), rate * 1000 * (1 - share)), 100 * share
        )
        for rate, share in ((0.0, 0.05), (0.04, 0.25), (0.2, 0.5))
    ]
    machine = _machine(ERRORS, *ramp)
    assert isinstance(machine, RateHarm)
    assert machine.point == pytest.approx(0)


def test_one_stratum_keeps_its_own_numbers():
    machine = _machine(ERRORS, stratum(tally(100, 3, 1), tally(1900, 7), 5))
    assert machine.candidate == pytest.approx((4, 100))
    assert machine.other == pytest.approx((7, 1900))


def test_strata_add_up_where_shares_stay_and_say_more_than_one_of_them():
    one = _machine(ERRORS, stratum(tally(100, 2), tally(900, 9), 10))
    three = _machine(ERRORS, *(stratum(tally(100, 2), tally(900, 9), 10, str(each)) for each in range(3)))
    assert three.candidate == pytest.approx((6, 300))
    assert three.other == pytest.approx((27, 2700))
    assert three.interval(0.05).high < one.interval(0.05).high
    slow = [_machine(TTFT, *[stratum(_sums(0.4, 100), _sums(0.4, 900), 10)] * each) for each in (1, 3)]
    assert slow[1].ratio.error == pytest.approx(slow[0].ratio.error / math.sqrt(3), rel=0.01)


def test_strata_are_weighted_alike_for_both_sides_and_whichever_side_is_the_candidate():
    """A side with many requests in one stratum has few for its share: weighting costs it precision, never adds any."""
    rises = stratum(tally(100, 5), tally(1900, 38), 5), stratum(tally(1000, 100), tally(1000, 80))
    turned = stratum(tally(1900, 38), tally(100, 5), 95), stratum(tally(1000, 80), tally(1000, 100))
    machine, mirrored = _machine(ERRORS, *rises), _machine(ERRORS, *turned)
    assert machine.point == pytest.approx((95 * 0.03 + 500 * 0.02) / 595)
    assert mirrored.point == pytest.approx(-machine.point)
    assert (mirrored.candidate, mirrored.other) == (pytest.approx(machine.other), pytest.approx(machine.candidate))
    assert machine.other.n < 1500
    assert machine.candidate.n == pytest.approx(1040.5, rel=0.001)


def test_a_stratum_with_one_side_alone_says_nothing():
    both = stratum(tally(100, 2), tally(900, 9), 10)
    assert _machine(ERRORS, both, stratum(None, tally(9000, 9000), 0)) == _machine(ERRORS, both)
    assert _machine(ERRORS, both, stratum(tally(0), tally(9000, 9000), 10)) == _machine(ERRORS, both)
    unweighted = stratum(tally(500, 500), tally(500), 0)
    assert _machine(ERRORS, both, unweighted) == _machine(ERRORS, both)


def test_variance_between_strata_is_no_variance_within():
    flat = _machine(TTFT, stratum(_sums(0.4, 500), _sums(0.4, 500)), stratum(_sums(0.4, 500), _sums(0.4, 500)))
    steep = _machine(TTFT, stratum(_sums(0.1, 500), _sums(0.1, 500)), stratum(_sums(9.0, 500), _sums(9.0, 500)))
    assert steep.ratio.error == pytest.approx(flat.ratio.error)


def test_a_side_that_varies_more_makes_the_interval_wider():
    calm = _machine(TTFT, stratum(_sums(0.4, 500), _sums(0.4, 500)))
    wild = _machine(TTFT, stratum(Tally(500, ttft=normal(500, 0.4, sd=2)), _sums(0.4, 500)))
    assert wild.ratio.error > 1.5 * calm.ratio.error


def test_identical_values_are_not_taken_for_certainty():
    machine = _machine(TTFT, stratum(Tally(30, ttft=logs([0.0] * 30)), Tally(30, ttft=logs([0.0] * 30))))
    assert machine.interval(0.05).high > 0.005


def test_fewer_than_twenty_values_have_no_interval():
    assert _machine(TTFT, stratum(_sums(0.4, 19), _sums(0.4, 2000))) is None
    assert isinstance(_machine(TTFT, stratum(_sums(0.4, 20), _sums(0.4, 2000))), RatioHarm)


def test_warm_up_and_gaps_are_taken_off_the_time():
    sides = together([stratum(tally(1), tally(1))], OURS.service, THEIRS.service, 120)
    assert [each.seconds for each in sides] == [50 * 60 - 120]
    gap = msgspec.structs.replace(stratum(tally(1), tally(1)), missed_seconds=30)
    sides = together([gap], OURS.service, THEIRS.service, 0)
    assert [each.seconds for each in sides] == [50 * 60 - 30]


def test_units_are_counted_where_keys_were_assigned():
    """Thirty users with ten requests each are thirty numbers and not three hundred."""
    machine = _machine(ERRORS, by_key(Tally(30, 1.5), Tally(30, 0)))
    assert machine.candidate == pytest.approx((1.5, 30))


def test_of_strata_with_the_same_users_the_one_that_says_most_speaks_alone():
    small, large = by_key(Tally(10, 5), Tally(190, 0), 5), by_key(Tally(90, 0), Tally(110, 0), 45)
    machine = _machine(ERRORS, small, large, small)
    assert (machine.candidate.n, machine.other.n) == (90, 110)
    small, large = (by_key(_sums(9, 30), _sums(1, 30)), by_key(_sums(0.4, 200), _sums(0.4, 200)))
    assert _machine(TTFT, small, large, small).point == pytest.approx(0)


def _users(rng: random.Random, users: int, requests: int) -> list[list[float]]:
    """Logarithms of times, by user: half of their variance is between users."""
    return [[rng.gauss(mean, 0.57) for _ in range(requests)] for mean in (rng.gauss(0, 0.57) for _ in range(users))]


def test_users_who_stay_on_their_side_are_no_difference_between_the_sides():
    by_request = by_user = 0
    for seed in range(40):
        sides = [_users(random.Random(f"{seed} {side}"), 50, 20) for side in (0, 1)]
        requests = [Tally(1000, ttft=logs([each for user in side for each in user])) for side in sides]
        units = [Tally(50, ttft=logs([sum(user) / len(user) for user in side])) for side in sides]
        low, high = _machine(TTFT, stratum(*requests)).interval(0.05)
        by_request += low > 0 or high < 0
        low, high = _machine(TTFT, by_key(*units)).interval(0.05)
        by_user += low > 0 or high < 0
    assert by_request >= 5
    assert by_user <= 2
