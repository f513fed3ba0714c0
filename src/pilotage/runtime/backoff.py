"""Delays between retries: of items in a queue, with the rules and the figures of client-go, and of connections.

A limiter answers one question, `when(item)`, and counts the question as a failure of that item. None of them adds
jitter. A `Backoff` is for one connection, and does.
"""

import random
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from pilotage.kube.ratelimit import TokenBucket

T = TypeVar("T", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)


def exponential(first: float, longest: float, failures: int) -> float:
    """The delay after `failures` earlier failures in a row: the first one doubled for each, up to the longest."""
    # The exponent is bounded because a float overflows after a thousand failures.
    return min(longest, first * 2.0 ** min(max(failures, 0), 64))


class RateLimiter(Protocol[T_contra]):
    """A rule for the delay of a failed item."""

    def when(self, item: T_contra, /) -> float:
        """Count one more failure of the item, and return the seconds until it may be tried again."""

    def forget(self, item: T_contra, /) -> None:
        """The item is not retried any more, be it done or given up: its failures are forgotten."""

    def num_requeues(self, item: T_contra, /) -> int:
        """The number of failures of the item that are remembered."""


class ExponentialBackoff(Generic[T]):
    """Backoff per item: `base_seconds`, doubled with each failure, up to `max_seconds`."""

    def __init__(self, base_seconds: float = 0.005, max_seconds: float = 1000.0) -> None:
        self._base = base_seconds
        self._max = max_seconds
        self._failures: dict[T, int] = {}

    def when(self, item: T) -> float:
        """Count a failure; the seconds until the next attempt."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        return exponential(self._base, self._max, failures)

    def forget(self, item: T) -> None:
        """Forget the failures of an item."""
        self._failures.pop(item, None)

    def num_requeues(self, item: T) -> int:
        """The number of failures that are remembered."""
        return self._failures.get(item, 0)


class OverallLimit(Generic[T]):
    """All items together: one token of the bucket per retry, whichever item it is for."""

    def __init__(self, bucket: TokenBucket) -> None:
        self._bucket = bucket

    def when(self, _item: T) -> float:
        """Count a failure; the seconds until the next attempt."""
        return self._bucket.reserve()

    def forget(self, _item: T) -> None:
        """Nothing is remembered per item."""

    def num_requeues(self, _item: T) -> int:
        """Nothing is remembered per item: 0."""
        return 0


class MaxOf(Generic[T]):
    """The longest wait that any of the limiters asks for; each of them counts every failure."""

    def __init__(self, *limiters: RateLimiter[T]) -> None:
        self._limiters = limiters

    def when(self, item: T) -> float:
        """Count a failure; the seconds until the next attempt."""
        return max(limiter.when(item) for limiter in self._limiters)

    def forget(self, item: T) -> None:
        """Forget the failures of an item."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """The number of failures that are remembered."""
        return max(limiter.num_requeues(item) for limiter in self._limiters)


def default_limiter() -> MaxOf[T]:
    """The limiter of a controller: 5 ms to 1000 s per item; 10 retries per second, 100 at once, for all together."""
    return MaxOf(ExponentialBackoff(), OverallLimit(TokenBucket(qps=10, burst=100)))


class Backoff:
    """Delays between attempts to connect: they double from the first to the last, and each is spread over once to twice
    its length, with randomness from an injected seed.
    """

    def __init__(self, first: float, last: float, rng: random.Random) -> None:
        self._bounds = (first, last)
        self._rng = rng
        self._failures = 0

    def next(self) -> float:
        """The next delay, in seconds."""
        delay = exponential(*self._bounds, self._failures)
        self._failures += 1
        return delay * (1 + self._rng.random())

    def reset(self) -> None:
        """Start over with the first."""
        self._failures = 0
