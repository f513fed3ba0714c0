"""The drain clock: when requests under way have ended, or have had their time."""

from typing import NamedTuple

import pytest

from pilotage.traffic.drain import DrainLimits, TrafficWait, cut_short, undrained

THIRTY = DrainLimits(30.0)
JUST_CAME = "no requests are under way; a moment is given to those that just came"
UNCOUNTED = "requests under way are not counted; they are given time"


class Case(NamedTuple):
    name: str
    in_flight: int | None
    detached: float
    want: TrafficWait | None
    limits: DrainLimits = THIRTY
    idle: float | None = None


CASES = (
    Case("requests under way have the whole timeout", 3, 1.0, TrafficWait("3 requests are still under way", 29.0)),
    Case("one request is one", 1, 29.0, TrafficWait("1 request is still under way", 1.0)),
    Case("after the timeout they are cut", 3, 30.0, None),
    Case("zero is not believed at once", 0, 0.0, TrafficWait(JUST_CAME, 1.0)),
    Case("nor just before the grace period is over", 0, 0.75, TrafficWait(JUST_CAME, 0.25)),
    Case("zero after the grace period is drained", 0, 1.0, None),
    Case("a timeout that is shorter than the grace period wins", 0, 0.0, TrafficWait(JUST_CAME, 0.5), DrainLimits(0.5)),
    Case("an unknown count is never zero", None, 5.0, TrafficWait(UNCOUNTED, 25.0)),
    Case("an unknown count has the whole timeout", None, 30.0, None),
    Case("or what the caller gives it", None, 0.5, TrafficWait(UNCOUNTED, 1.5), DrainLimits(30.0, 1.0, 2.0)),
    Case("which ends", None, 2.0, None, DrainLimits(30.0, 1.0, 2.0)),
    Case("and is not longer than the timeout", None, 29.0, TrafficWait(UNCOUNTED, 1.0), DrainLimits(30.0, 1.0, 60.0)),
    Case("without a timeout nothing is waited for", 3, 0.0, None, DrainLimits(0.0)),
    Case("also what nobody counts", None, 0.0, None, DrainLimits(0.0, 1.0, 1.0)),
    Case("a tracked idle time counts from its own start", 0, 20.0, TrafficWait(JUST_CAME, 0.5), idle=0.5),
    Case("and ends by itself", 0, 20.0, None, idle=1.0),
    Case("a rest of rounding is still waited for", 0, 1.0 - 1e-13, TrafficWait(JUST_CAME, 0.01)),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_drain_clock(case):
    assert undrained(case.in_flight, case.detached, case.limits, idle_seconds=case.idle) == case.want


def test_a_countdown_says_how_long_requests_have():
    assert undrained(2, 1.0, THIRTY).countdown == "2 requests are still under way; 29 s left"


def test_a_drain_that_was_cut_short_is_noted_and_one_that_was_not_is_not():
    assert cut_short(2) == "2 requests were still under way when the time to drain was over"
    assert cut_short(1) == "1 request was still under way when the time to drain was over"
    assert cut_short(0) == cut_short(None) == ""
