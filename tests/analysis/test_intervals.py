"""Intervals of rates and of means: properties, and false alarms when somebody looks after each request."""

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pilotage.analysis import means, rates
from pilotage.analysis.means import LogRatio
from pilotage.analysis.rates import Share

ALPHAS = st.sampled_from([0.05, 0.0125, 0.001])


@st.composite
def counted(draw, most=3000):
    n = draw(st.integers(1, most))
    return Share(draw(st.integers(0, n)), n)


ratios = st.builds(
    LogRatio, st.floats(-3, 3), st.floats(-3, 3), error=st.floats(0.001, 1), n=st.floats(10, 1e5, exclude_max=True)
)


@given(counted(), ALPHAS)
def test_the_interval_of_a_rate_contains_the_rate_and_lies_between_0_and_1(share, alpha):
    low, high = rates.interval(share, alpha)
    assert 0 <= low <= share.rate <= high <= 1
    assert low < high


@given(counted(), ALPHAS)
def test_the_interval_of_a_rate_shrinks_with_data_and_grows_with_confidence(share, alpha):
    low, high = rates.interval(share, alpha)
    more = rates.interval(share.scaled(2), alpha)
    surer = rates.interval(share, alpha / 2)
    assert low - 1e-9 <= more.low
    assert more.high <= high + 1e-9
    assert surer.low <= low
    assert high <= surer.high


@given(counted(500), ALPHAS)
def test_the_interval_of_a_rate_turns_round_with_what_counts_as_bad(share, alpha):
    low, high = rates.interval(share, alpha)
    assert rates.interval(Share(share.n - share.bad, share.n), alpha) == pytest.approx((1 - high, 1 - low), abs=1e-8)


@given(counted(), counted(), ALPHAS)
def test_the_interval_of_a_difference_contains_it_and_turns_round_with_the_sides(ours, theirs, alpha):
    low, high = rates.difference(ours, theirs, alpha)
    assert -1 <= low <= ours.rate - theirs.rate <= high <= 1
    assert rates.difference(theirs, ours, alpha) == pytest.approx((-high, -low), abs=1e-7)


@given(counted(400), counted(400))
def test_the_interval_of_a_difference_shrinks_with_data(ours, theirs):
    before = rates.difference(ours, theirs, 0.05)
    after = rates.difference(ours.scaled(3), theirs.scaled(3), 0.05)
    assert before.low - 1e-7 <= after.low
    assert after.high <= before.high + 1e-7


@given(counted(), counted(), st.floats(-0.5, 0.5))
def test_a_difference_is_excluded_by_either_of_the_two_tests(ours, theirs, value):
    """The interval is what both allow: the ends of the sides, and the evidence against the difference itself."""
    low, high = rates.difference(ours, theirs, 0.05)
    assume(min(abs(value - low), abs(value - high)) > 1e-6)
    mine, other = (rates.interval(each, 0.05 / 3) for each in (ours, theirs))
    ends = mine.low - other.high <= value <= mine.high - other.low
    assert (low < value < high) == (ends and rates.evidence_against(ours, theirs, value) < math.log(60))


@given(counted(400), counted(400), st.floats(-0.9, 0.9), st.floats(0, 1))
def test_the_evidence_against_a_difference_is_against_the_best_pair_of_rates_with_it(ours, theirs, value, place):
    rate = max(0, -value) + place * (1 - abs(value))
    assume(0.001 < rate < 0.999 and 0.001 < rate + value < 0.999)
    pairs = ((ours, rate + value), (theirs, rate))
    likelihood = sum(side.bad * math.log(p) + (side.n - side.bad) * math.log(1 - p) for side, p in pairs)
    mixture = sum(math.lgamma(s.bad + 0.5) + math.lgamma(s.n - s.bad + 0.5) - math.lgamma(s.n + 1) for s, _ in pairs)
    assert rates.evidence_against(ours, theirs, value) <= mixture - 2 * math.log(math.pi) - likelihood + 1e-6


@given(counted(400), counted(400))
def test_one_more_failure_moves_both_ends_of_the_difference_up(ours, theirs):
    assume(ours.bad < ours.n)
    before = rates.difference(ours, theirs, 0.05)
    after = rates.difference(Share(ours.bad + 1, ours.n), theirs, 0.05)
    assert after.low >= before.low - 1e-7
    assert after.high >= before.high - 1e-7


def test_a_candidate_that_fails_half_of_its_requests_is_beyond_2pp_with_the_fifth():
    lows = [rates.difference(Share(math.ceil(n / 2), n), Share(0, 19 * n), 0.05).low for n in range(1, 8)]
    assert [each > 0.02 for each in lows] == [False, False, False, False, True, False, True]


@pytest.mark.parametrize(("points", "requests"), [(0.01, 800), (0.02, 380), (0.05, 140)])
def test_no_failure_at_all_excludes_so_much_harm(points, requests):
    """The price of "no worse" at 5 % weight: a few requests fewer do not do."""
    highs = [rates.difference(Share(0, n), Share(0, 19 * n), 0.05).high for n in (requests, round(0.93 * requests))]
    assert [each < points for each in highs] == [True, False]


@given(ratios, ALPHAS)
def test_the_interval_of_a_ratio_contains_it_turns_round_and_shrinks(ratio, alpha):
    low, high = means.difference(ratio, alpha)
    assert low < ratio.difference < high
    turned = ratio._replace(candidate=ratio.other, other=ratio.candidate)
    assert means.difference(turned, alpha) == pytest.approx((-high, -low))
    more, surer = means.difference(ratio.scaled(2), alpha), means.difference(ratio, alpha / 2)
    assert low <= more.low
    assert more.high <= high
    assert surer.low < low


def test_the_interval_of_a_ratio_is_the_normal_mixture():
    """Values of the published formula, computed apart: n = 500, standard error 0.05, α = 0.05."""
    rho = (2 * 2.995732273553991 + math.log(1 + 2 * 2.995732273553991)) / 500
    radius = 0.05 * math.sqrt((500 * rho + 1) / (500 * rho) * math.log((500 * rho + 1) / 0.05**2))
    low, high = means.difference(LogRatio(0.1, 0.0, 0.05, 500), 0.05)
    assert (high - low) / 2 == pytest.approx(radius)
    assert radius / 0.05 == pytest.approx(3.035, abs=0.001)


def _false_alarms_of_rates(rate: float, share: float, runs: int, requests: int) -> int:
    alarms = 0
    for seed in range(runs):
        rng = random.Random(seed)
        bad, n = [0, 0], [0, 0]
        for _ in range(requests):
            side = rng.random() < share
            n[side] += 1
            bad[side] += rng.random() < rate
            if min(n) and rates.evidence_against(Share(bad[1], n[1]), Share(bad[0], n[0]), 0) >= math.log(60):
                alarms += 1
                break
    return alarms


def test_the_same_rate_twice_seldom_looks_different_whoever_looks_after_each_request():
    assert _false_alarms_of_rates(0.2, 0.5, runs=60, requests=300) <= 3


def test_the_same_times_twice_seldom_look_different_whoever_looks_after_each_request():
    alarms = 0
    for seed in range(60):
        rng = random.Random(seed)
        sums = [[0, 0.0, 0.0], [0, 0.0, 0.0]]
        for _ in range(1000):
            side, value = sums[rng.random() < 0.5], rng.gauss(0, 0.8)
            side[0], side[1], side[2] = side[0] + 1, side[1] + value, side[2] + value * value
            (n, total, squares), (m, other, others) = sums
            if min(n, m) < means.ENOUGH:
                continue
            variance = (squares - total**2 / n) / (n - 1) / n + (others - other**2 / m) / (m - 1) / m
            low, high = means.difference(LogRatio(total / n, other / m, math.sqrt(variance), n * m / (n + m)), 0.05)
            if low > 0 or high < 0:
                alarms += 1
                break
    assert alarms <= 3
