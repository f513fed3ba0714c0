"""Rates: the share of requests that failed, gave up, or were slow, and the difference between two sides.

Everything here holds at every look, for any number of looks, and for any number of requests from the first one on.

- The interval of one side is Robbins' beta mixture: all p for which the mixture of all binomial likelihoods, by a
  Beta(1/2, 1/2), is not 1/α times as likely as p itself.
- The difference of two sides lies between the differences of their ends. That is sharp when few requests fail.
- It also lies where the mixture of both sides is not 1/α times as likely as the best pair of rates with that difference
  (universal inference). That is sharp when many fail, and finds a broken candidate within a few requests.

The difference is in both, each of the three tests has a third of α, so that all of it holds together.

The tests hold for numbers between 0 and 1 as well as for yes and no, because the likelihood is convex in them: a unit
adds its own share of failed requests.
"""

from collections.abc import Callable
from math import acos, copysign, cos, inf, isfinite, lgamma, log, pi, sqrt
from typing import NamedTuple

_LOG_PI = log(pi)
_STEPS = 60
"""Steps towards an end of an interval, at most; ten are the rule."""
_EXACT = 1e-9
"""Surplus of evidence that counts as none."""


class Interval(NamedTuple):
    """An interval with both of its ends."""

    low: float
    high: float


class Share(NamedTuple):
    """`bad` of `n` requests or units. Neither has to be a whole number."""

    bad: float
    n: float

    @property
    def rate(self) -> float:
        """The share itself."""
        return self.bad / self.n

    def scaled(self, factor: float) -> "Share":
        """The same rate, of so many times as many."""
        return Share(self.bad * factor, self.n * factor)


def interval(share: Share, alpha: float) -> Interval:
    """The rates that a side may have, with probability 1 - `alpha` at all looks together."""
    bound = _log_mixture(share) + log(alpha)

    def surplus(rate: float) -> float:
        return bound - _log_likelihood(share, rate)

    low = _boundary(surplus, 0.0, share.rate) if share.bad > 0 else 0.0
    high = _boundary(surplus, 1.0, share.rate) if share.bad < share.n else 1.0
    return Interval(low, high)


def difference(candidate: Share, other: Share, alpha: float) -> Interval:
    """The differences of rates, candidate minus other, that there may be, with 1 - `alpha` at all looks together."""
    ours, theirs = interval(candidate, alpha / 3), interval(other, alpha / 3)
    seen = candidate.rate - other.rate

    def surplus(value: float) -> float:
        return evidence_against(candidate, other, value) + log(alpha / 3)

    low, high = ours.low - theirs.high, ours.high - theirs.low
    return Interval(
        _boundary(surplus, low, seen) if surplus(low) > 0 else low,
        _boundary(surplus, high, seen) if surplus(high) > 0 else high,
    )


def evidence_against(candidate: Share, other: Share, value: float) -> float:
    """The logarithm of the evidence against a difference: it exceeds -log(α) ever with probability α if it is true."""
    best = _best_rate(candidate, other, value)
    likelihood = _log_likelihood(candidate, min(max(best + value, 0.0), 1.0)) + _log_likelihood(other, best)
    return _log_mixture(candidate) + _log_mixture(other) - likelihood


def _best_rate(candidate: Share, other: Share, value: float) -> float:
    """The rate of the other side that makes both sides most likely if the candidate's is higher by `value`.

    The root of a cubic in closed form (Farrington and Manning), which is as exact as is needed: the likelihood is flat
    there.
    """
    n, bad = candidate.n + other.n, candidate.bad + other.bad
    square = ((candidate.n + 2 * other.n) * value - n - bad) / (3 * n)
    linear = ((other.n * value - n - 2 * other.bad) * value + bad) / (3 * n)
    half = square**3 - 1.5 * linear * square + other.bad * value * (1 - value) / (2 * n)
    root = copysign(sqrt(max(square**2 - linear, 0.0)), half)
    angle = acos(min(max(half / root**3, -1.0), 1.0)) if root else 0.0
    return min(max(2 * root * cos((pi + angle) / 3) - square, 0.0, -value), 1.0, 1.0 - value)


def _log_mixture(share: Share) -> float:
    """The logarithm of the mean likelihood over Beta(1/2, 1/2)."""
    bad, good = share.bad, share.n - share.bad
    return lgamma(bad + 0.5) + lgamma(good + 0.5) - lgamma(share.n + 1) - _LOG_PI


def _log_likelihood(share: Share, rate: float) -> float:
    return _times_log(share.bad, rate) + _times_log(share.n - share.bad, 1 - rate)


def _times_log(count: float, rate: float) -> float:
    if count <= 0:
        return 0.0
    return count * log(rate) if rate > 0 else -inf


def _boundary(surplus: Callable[[float], float], outside: float, inside: float) -> float:
    """The value at which the surplus of evidence, positive outside, is zero: by false position, or by halves."""
    outer, inner = surplus(outside), surplus(inside)
    for _ in range(_STEPS):
        middle = (outside + inside) / 2
        if isfinite(outer) and outer > inner:
            middle = (outside * inner - inside * outer) / (inner - outer)
        now = surplus(middle)
        if abs(now) < _EXACT:
            return middle
        if now > 0:
            outside, outer, inner = middle, now, inner / 2
        else:
            inside, inner, outer = middle, now, outer / 2
    return outside
