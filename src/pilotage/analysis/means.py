"""Means of logarithms: the ratio of two geometric means, such as times to the first token.

The interval is a confidence sequence by a normal mixture (Robbins; Johari, Pekelis and Walsh; Waudby-Smith and others):
it holds at every look. It rests on the central limit theorem, so it begins with `ENOUGH` values of each side, and
logarithms are what makes that few enough: times are skewed, their logarithms much less so.
"""

from math import log, log1p, sqrt
from typing import NamedTuple

from pilotage.analysis.rates import Interval

ENOUGH = 20
"""Values of each side from which on there is an interval."""
_SHARPEST_AT = 500
"""Effective number of values at which the interval is as narrow as it can be."""


class LogRatio(NamedTuple):
    """The difference of two means of logarithms, its standard error, and the effective number of values behind it."""

    candidate: float
    other: float
    error: float
    n: float

    @property
    def difference(self) -> float:
        """The logarithm of the ratio."""
        return self.candidate - self.other

    def scaled(self, factor: float) -> "LogRatio":
        """The same means, of so many times as many values."""
        return self._replace(error=self.error / sqrt(factor), n=self.n * factor)


def difference(ratio: LogRatio, alpha: float) -> Interval:
    """The logarithms of ratios that there may be, with probability 1 - `alpha` at all looks together."""
    gain = ratio.n * (-2 * log(alpha) + log1p(-2 * log(alpha))) / _SHARPEST_AT
    radius = ratio.error * sqrt((1 + 1 / gain) * (log1p(gain) - 2 * log(alpha)))
    return Interval(ratio.difference - radius, ratio.difference + radius)
