"""How long a failed item waits before it is tried again; the rules and the figures are client-go's.

A limiter answers one question, `when(item)`, and counts the asking as a failure of that item. None of them adds jitter.
"""

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from pilotage.kube.ratelimit import TokenBucket

T = TypeVar("T", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)


class RateLimiter(Protocol[T_contra]):
    """Decides how long a failed item waits."""

    def when(self, item: T_contra, /) -> float:
        """Count one more failure of the item, and return the seconds until it may be tried again."""

    def forget(self, item: T_contra, /) -> None:
        """The item is not retried any more, be it done or given up: its failures are forgotten."""

    def num_requeues(self, item: T_contra, /) -> int:
        """How many failures of the item are remembered."""


class ExponentialBackoff(Generic[T]):
    """Per item: `base_seconds`, doubled with each failure, up to `max_seconds`."""

    def __init__(self, base_seconds: float = 0.005, max_seconds: float = 1000.0) -> None:
        self._base = base_seconds
        self._max = max_seconds
        self._failures: dict[T, int] = {}

    def when(self, item: T) -> float:
        """See `RateLimiter.when`."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        # The exponent is bounded because a float overflows after a thousand failures.
        return min(self._max, self._base * 2.0 ** min(failures, 64))

    def forget(self, item: T) -> None:
        """See `RateLimiter.forget`."""
        self._failures.pop(item, None)

    def num_requeues(self, item: T) -> int:
        """See `RateLimiter.num_requeues`."""
        return self._failures.get(item, 0)


class OverallLimit(Generic[T]):
    """All items together: one token of the bucket per retry, whichever item it is for."""

    def __init__(self, bucket: TokenBucket) -> None:
        self._bucket = bucket

    def when(self, _item: T) -> float:
        """See `RateLimiter.when`; takes a token."""
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
        """See `RateLimiter.when`."""
        return max(limiter.when(item) for limiter in self._limiters)

    def forget(self, item: T) -> None:
        """See `RateLimiter.forget`."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """See `RateLimiter.num_requeues`: the most that any of them remembers."""
        return max(limiter.num_requeues(item) for limiter in self._limiters)


def default_limiter() -> MaxOf[T]:
    """The limiter of a controller: 5 ms to 1000 s per item; 10 retries per second, 100 at once, for all together."""
    return MaxOf(ExponentialBackoff(), OverallLimit(TokenBucket(qps=10, burst=100)))
