"""Sample ratio mismatch: requests were not divided as the route says, so the two sides are not alike.

The test is that of the binomial distribution, as a mixture that holds at every look: for each stratum the likelihood of
the counts under a share near the expected one, against the expected one itself. A fixed-sample test with the same
p-value, asked each second, would call three of a hundred sound experiments unsound.

Requests under way count: those of a slow side end later, and it would seem to get fewer. With assignment by key the
units are counted: a user with a hundred requests has been assigned once. Several keys may share a bucket, so their
number is estimated from the buckets that are occupied, and the evidence discounted for that.
"""

from collections.abc import Sequence
from math import exp, expm1, lgamma, log, log1p
from typing import NamedTuple

from pilotage.analysis.strata import Together
from pilotage.api.measured import UNITS_MAX

MISMATCH = 0.001
"""p-value below which the shares are not as asked."""
_CLOSENESS = 100
"""How close to the expected share others are looked for: as many requests as would hint at one."""
_LEAST_SHARE = 1e-6
"""Smallest share that is expected of a side; a gateway has none below one percent."""
_FULL = 0.9
"""Part of all buckets from which on their number says too little about the number of keys."""


class Division(NamedTuple):
    """Requests or keys of both sides, and the candidate's expected share of them."""

    candidate: float
    other: float
    expected: float
    discount: float = 1.0


def division(pair: Together) -> Division:
    """The division of one stratum's requests, or of its keys."""
    expected = pair.candidate.weight / (pair.candidate.weight + pair.other.weight)
    expected = min(max(expected, _LEAST_SHARE), 1 - _LEAST_SHARE)
    if pair.candidate.units is None or pair.other.units is None:
        ours, theirs = (each.requests.n + each.under_way for each in (pair.candidate, pair.other))
        return Division(ours, theirs, expected)
    return _of_keys(pair.candidate.units.n, pair.other.units.n, expected)


def p_value(divisions: Sequence[Division]) -> float:
    """The probability that sound shares ever look as uneven as these, at any look."""
    evidence = sum(each.discount * _evidence(each) for each in divisions)
    return exp(-max(evidence, 0.0)) if evidence < 700 else 0.0


def _evidence(each: Division) -> float:
    ours, theirs = _CLOSENESS * each.expected, _CLOSENESS * (1 - each.expected)
    mixture = _log_beta(ours + each.candidate, theirs + each.other) - _log_beta(ours, theirs)
    return mixture - each.candidate * log(each.expected) - each.other * log1p(-each.expected)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _of_keys(ours: float, theirs: float, expected: float) -> Division:
    """Keys by linear counting: the variance that it adds takes as much off the evidence."""
    if max(ours, theirs) > _FULL * UNITS_MAX:
        return Division(0, 0, expected)
    keys = [-UNITS_MAX * log1p(-each / UNITS_MAX) for each in (ours, theirs)]
    added = [UNITS_MAX * (expm1(each / UNITS_MAX) - each / UNITS_MAX) for each in keys]
    own = sum(keys) * expected * (1 - expected)
    whole = own + (1 - expected) ** 2 * added[0] + expected**2 * added[1]
    return Division(keys[0], keys[1], expected, own / whole if whole else 1.0)
