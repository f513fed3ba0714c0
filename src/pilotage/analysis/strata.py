"""Sides of a comparison over several strata: only what ran at the same time is compared.

While shares change, so do the hour and the load. Added up over all of it, the candidate would have its requests late
and the other side early, and a busy evening would be its fault. So each stratum is compared in itself, and the
differences are weighted by how precise they are: the same weights for both sides, so that what happened to both cancels
out.

With assignment by key the same users are in several strata, and their differences are not independent. Then the stratum
that says most speaks alone.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from math import sqrt
from typing import NamedTuple

from pilotage.analysis.means import ENOUGH, LogRatio
from pilotage.analysis.rates import Share
from pilotage.api.measured import LogSums, MeasuredBackend, Stratum, Tally

_LEAST_DEVIATION = 0.01
"""Smallest standard deviation of a logarithm that is believed: clocks and rounding have as much."""

_LARGEST_LOG = 30
"""Largest logarithm of a time or a speed that is believed: ten thousand years."""


class Together(NamedTuple):
    """Both sides of one stratum, in which both had a share of the requests."""

    candidate: MeasuredBackend
    other: MeasuredBackend
    seconds: float


def together(strata: Sequence[Stratum], candidate: str, other: str, warmup_seconds: float) -> list[Together]:
    """The strata in which two Services had requests to themselves, the warm-up taken off their time."""
    found = []
    for stratum in strata:
        backends = {each.service: each for each in stratum.backends if each.weight > 0}
        if candidate in backends and other in backends:
            seconds = _seconds(stratum) - warmup_seconds
            found.append(Together(backends[candidate], backends[other], max(seconds, 0.0)))
    return found


def by_unit(sides: Sequence[Together]) -> bool:
    """Whether requests were assigned by key, so that units are counted."""
    return any(each.units is not None for pair in sides for each in (pair.candidate, pair.other))


def shares(sides: Sequence[Together], share_of: Callable[[Tally], Share]) -> tuple[Share, Share] | None:
    """The shares of both sides, over all strata; None if a side has no data where the other one has.

    Rates of strata are weighted alike for both sides. The number behind a weighted rate is the one that has the same
    variance. A single stratum keeps its own numbers.
    """
    pairs = [(share_of(ours), share_of(theirs)) for ours, theirs in _tallies(sides)]
    pairs = [(ours, theirs) for ours, theirs in pairs if min(ours.n, theirs.n) >= 1]
    weights = _weights([_harmonic(ours.n, theirs.n) for ours, theirs in pairs], alone=by_unit(sides))
    if not weights:
        return None
    ours, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    return _weighted(ours, weights), _weighted(theirs, weights)


def ratio(sides: Sequence[Together], sums_of: Callable[[Tally], LogSums]) -> LogRatio | None:
    """The ratio of both sides' geometric means, over all strata; None if a side has too few values."""
    pairs = [(sums_of(ours), sums_of(theirs)) for ours, theirs in _tallies(sides)]
    pairs = [(ours, theirs) for ours, theirs in pairs if _plausible(ours) and _plausible(theirs)]
    weights = _weights([_harmonic(ours.n, theirs.n) for ours, theirs in pairs], alone=by_unit(sides))
    used = [pair for pair, weight in zip(pairs, weights, strict=True) if weight]
    weights = [weight for weight in weights if weight]
    ours, theirs = ([pair[side] for pair in used] for side in (0, 1))
    if min(sum(each.n for each in ours), sum(each.n for each in theirs)) < ENOUGH:
        return None
    variance = _variance_of_mean(ours, weights) + _variance_of_mean(theirs, weights)
    spread = (_pooled_variance(ours) + _pooled_variance(theirs)) / 2
    return LogRatio(_mean(ours, weights), _mean(theirs, weights), sqrt(variance), spread / variance)


def _plausible(sums: LogSums) -> bool:
    """Whether sums are those of logarithms: a status may say anything."""
    return sums.n >= 1 and abs(sums.sum) <= sums.n * _LARGEST_LOG and sums.squares <= sums.n * _LARGEST_LOG**2


def _tallies(sides: Sequence[Together]) -> list[tuple[Tally, Tally]]:
    if by_unit(sides):
        return [(pair.candidate.units or Tally(), pair.other.units or Tally()) for pair in sides]
    return [(pair.candidate.requests, pair.other.requests) for pair in sides]


def _weights(precisions: Sequence[float], *, alone: bool) -> list[float]:
    """Weights that add up to 1, in proportion to the precisions; `alone` leaves the first of the largest."""
    if alone and precisions:
        largest = precisions.index(max(precisions))
        return [float(index == largest) for index in range(len(precisions))]
    total = sum(precisions)
    return [each / total for each in precisions]


def _harmonic(ours: float, theirs: float) -> float:
    """The precision of a difference between two means of so many values, in values."""
    return ours * theirs / (ours + theirs)


def _weighted(parts: Sequence[Share], weights: Sequence[float]) -> Share:
    used = [(part, weight) for part, weight in zip(parts, weights, strict=True) if weight]
    rate = sum(weight * min(part.rate, 1.0) for part, weight in used)
    n = 1 / sum(weight**2 / part.n for part, weight in used)
    return Share(rate * n, n)


def _mean(parts: Sequence[LogSums], weights: Sequence[float]) -> float:
    return sum(weight * part.sum / part.n for part, weight in zip(parts, weights, strict=True))


def _variance_of_mean(parts: Sequence[LogSums], weights: Sequence[float]) -> float:
    """The variance of a weighted mean, each part with a variance of its own as far as it has the values for that."""
    pooled = _pooled_variance(parts)
    own = [(_squares(part) + ENOUGH * pooled) / (part.n - 1 + ENOUGH) for part in parts]
    return sum(w**2 * each / part.n for part, w, each in zip(parts, weights, own, strict=True))


def _pooled_variance(parts: Sequence[LogSums]) -> float:
    """The variance within parts: differences between parts are no part of it."""
    freedom = max(sum(part.n - 1 for part in parts), 1.0)
    return float(max(sum(_squares(part) for part in parts) / freedom, _LEAST_DEVIATION**2))


def _squares(part: LogSums) -> float:
    return max(part.squares - part.sum**2 / part.n, 0.0)


def _seconds(stratum: Stratum) -> float:
    """The length of a stratum; 0 if its times are none, because it only tells people how long to wait."""
    try:
        since, until = (datetime.fromisoformat(each) for each in (stratum.since, stratum.until))
        return (until - since).total_seconds() - stratum.missed_seconds
    except (TypeError, ValueError):
        return 0.0
