"""Delays of failed items."""

import random

from pilotage.kube.ratelimit import TokenBucket
from pilotage.runtime.backoff import Backoff, ExponentialBackoff, MaxOf, OverallLimit, RateLimiter, default_limiter
from pilotage_sim.loop import virtual


def test_the_wait_doubles_from_5_ms_up_to_1000_s_and_stays_there() -> None:
    limiter = ExponentialBackoff[str]()
    waits = [limiter.when("a") for _ in range(20)]
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04]
    assert waits[17] == 0.005 * 2**17 == 655.36
    assert waits[18:] == [1000.0, 1000.0]
    assert {limiter.when("a") for _ in range(3000)} == {1000.0}


def test_each_item_has_its_own_failures_until_it_is_forgotten() -> None:
    limiter = ExponentialBackoff[str](1, 60)
    assert [limiter.when("a"), limiter.when("a"), limiter.when("b")] == [1, 2, 1]
    assert [limiter.num_requeues(item) for item in "abc"] == [2, 1, 0]
    limiter.forget("a")
    limiter.forget("never seen")
    assert [limiter.num_requeues(item) for item in "abc"] == [0, 1, 0]
    assert [limiter.when("a"), limiter.when("b")] == [1, 2]


@virtual
async def test_the_overall_limit_does_not_ask_which_item_it_is() -> None:
    limiter = OverallLimit[str](TokenBucket(qps=2, burst=1))
    assert [limiter.when(item) for item in "aab"] == [0, 0.5, 1]
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0
    assert limiter.when("a") == 1.5


@virtual
async def test_max_of_takes_the_longest_wait_and_every_limiter_counts() -> None:
    limiter = MaxOf[str](ExponentialBackoff(0.25, 60), OverallLimit(TokenBucket(qps=1, burst=1)))
    assert [limiter.when("a") for _ in range(3)] == [0.25, 1, 2]
    assert [limiter.when("a") for _ in range(3)] == [3, 4, 8]
    assert limiter.num_requeues("a") == 6
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0
    assert limiter.when("a") == 6  # the bucket does not forget


@virtual
async def test_a_controller_retries_at_most_10_times_per_second_after_the_first_100() -> None:
    limiter: RateLimiter[int] = default_limiter()
    waits = [limiter.when(item) for item in range(120)]
    assert waits[:100] == [0.005] * 100
    assert [round(wait, 6) for wait in waits[100:]] == [round(0.1 * n, 6) for n in range(1, 21)]


def test_attempts_to_connect_are_spread_over_once_to_twice_a_delay_that_doubles():
    backoff = Backoff(1.0, 5.0, random.Random(7))
    bounds = [1, 2, 4, 5, 5]
    delays = [backoff.next() for _ in bounds]
    assert all(low <= delay <= 2 * low for low, delay in zip(bounds, delays, strict=True))
    assert len({delay / low for low, delay in zip(bounds, delays, strict=True)}) == len(bounds)
    backoff.reset()
    assert backoff.next() <= 2
