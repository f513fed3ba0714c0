"""Shares that are not as asked."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.analysis.ratio import MISMATCH, Division, division, p_value
from pilotage.analysis.strata import together
from pilotage.analysis.verdict import Side, fairness
from pilotage.api.analysis import AnalysisSpec
from pilotage.api.measured import Tally
from tests.analysis.sums import OURS, THEIRS, by_key, stratum, tally, verdict


@pytest.mark.parametrize(
    ("ours", "theirs", "expected", "uneven"),
    [
        (500, 500, 0.5, False),
        (530, 470, 0.5, False),
        (600, 400, 0.5, True),
        (100, 900, 0.1, False),
        (50, 950, 0.1, True),
        (5, 3, 0.1, False),
        (20, 0, 0.1, True),
    ],
)
def test_an_uneven_division_is_found(ours, theirs, expected, uneven):
    assert (p_value([Division(ours, theirs, expected)]) < MISMATCH) is uneven


@given(st.integers(0, 5000), st.integers(0, 5000), st.floats(0.01, 0.99))
def test_the_sides_may_be_exchanged(ours, theirs, expected):
    turned = p_value([Division(theirs, ours, 1 - expected)])
    assert p_value([Division(ours, theirs, expected)]) == pytest.approx(turned, rel=1e-4, abs=1e-300)


def test_a_share_that_changes_from_stratum_to_stratum_is_not_uneven():
    strata = [Division(50, 950, 0.05), Division(500, 500, 0.5)]
    assert p_value(strata) > 0.5
    assert p_value([Division(550, 1450, 0.5)]) < MISMATCH


def test_sound_shares_stay_sound_at_every_look():
    mistaken = 0
    for seed in range(100):
        rng, ours = random.Random(seed), 0
        for n in range(1, 1000):
            ours += rng.random() < 0.1
            if p_value([Division(ours, n - ours, 0.1)]) < MISMATCH:
                mistaken += 1
                break
    assert mistaken == 0


def _division(one):
    return division(together([one], OURS.service, THEIRS.service, 0)[0])


def test_requests_under_way_have_been_divided_too():
    """A side that hangs ends nothing; it is slow, and not short of requests."""
    one = stratum(tally(10), tally(500), under_way=490)
    ours = one.backends[0]
    assert (_division(one).candidate, ours.requests.n) == (500, 10)


def test_keys_are_what_is_divided_where_keys_are_assigned():
    one = _division(by_key(Tally(50), Tally(50)))
    assert one.candidate == pytest.approx(51.2, abs=0.2)
    assert one.discount < 1
    assert p_value([_division(by_key(Tally(100), Tally(300)))]) < MISMATCH
    assert p_value([_division(by_key(Tally(159), Tally(800), share=10))]) > 0.5


def test_full_buckets_say_nothing_about_the_number_of_keys():
    assert p_value([_division(by_key(Tally(1000), Tally(1024), share=10))]) == 1


def test_as_few_keys_as_buckets_taken_by_two_thousand_users_are_no_mismatch():
    for seed in range(30):
        rng = random.Random(seed)
        taken = (set(), set())
        for _ in range(1500):
            taken[rng.random() < 0.3].add(rng.randrange(1024))
        assert p_value([_division(by_key(Tally(len(taken[1])), Tally(len(taken[0])), share=30))]) > MISMATCH


def test_a_mismatch_makes_a_verdict_invalid_whatever_the_metrics_say():
    for errors in (0, 300):
        found = verdict(stratum(tally(300, errors), tally(900), 50))
        assert found.result == "Invalid"
        assert found.text == (
            "q8 got 25 % of 1,200 requests where the weights say 50 %: it and control cannot be compared"
        )


SPEC = AnalysisSpec()


@pytest.mark.parametrize(
    ("ours", "theirs", "one", "reason"),
    [
        (1, 1, stratum(tally(500), tally(500)), "SharesAsAsked"),
        (None, None, stratum(tally(500), tally(500)), "SharesAsAsked"),
        (1, 2, stratum(tally(500), tally(500)), "SharesAsAsked"),
        (1, 3, stratum(tally(500), tally(500)), "OneSideShort"),
        (3, 1, stratum(tally(500), tally(500)), "OneSideShort"),
        (1, 9, stratum(tally(100), tally(900), 10), "SharesAsAsked"),
        (1, 3, stratum(tally(100), tally(900), 10), "OneSideShort"),
        (1, 1, stratum(tally(900), tally(500)), "SampleRatioMismatch"),
        (1, 1, stratum(tally(0), tally(0)), "ColdStart"),
    ],
)
def test_a_comparison_is_fair_if_shares_and_replicas_are(ours, theirs, one, reason):
    sides = Side("q8", OURS.service, ours), Side("control", THEIRS.service, theirs)
    found = fairness(SPEC, *sides, [one])
    assert (found.fair, found.reason) == (reason == "SharesAsAsked", reason)


def test_the_side_that_is_short_is_named():
    sides = Side("q8", OURS.service, 1), Side("control", THEIRS.service, 3)
    assert fairness(SPEC, *sides, [stratum(tally(500), tally(500))]).message.startswith("q8 has 1 ready for 50 %")
