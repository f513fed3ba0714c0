"""Strata made of a few numbers, and sums that grow request by request."""

import math
from collections.abc import Sequence

from pilotage.analysis.metrics import Sample
from pilotage.analysis.verdict import Side, judge
from pilotage.api.analysis import AnalysisSpec, MetricSpec, Verdict
from pilotage.api.measured import Histogram, LogSums, MeasuredBackend, Stratum, Tally

OURS, THEIRS = Side("q8", "assistant-9"), Side("control", "assistant-8")
AT = "2026-11-17T13:00:00Z"


def logs(values: Sequence[float]) -> LogSums:
    """Sums of logarithms, which are given."""
    return LogSums(len(values), sum(values), sum(each * each for each in values))


def normal(n: float, value: float, sd: float = 0.8) -> LogSums:
    """Sums of n values with this geometric mean and standard deviation of the logarithm."""
    mean = math.log(value)
    return LogSums(n, n * mean, n * mean**2 + (n - 1) * sd**2)


def tally(n: float, errors: float = 0, gave_up: float = 0, ttft: float | None = 0.4, **more: object) -> Tally:
    made = normal(n - errors - gave_up, ttft) if ttft and n > errors + gave_up else LogSums()
    return Tally(n, errors, gave_up, made, **more)  # type: ignore[arg-type]


def stratum(ours: Tally | None, theirs: Tally | None, share: float = 50, version: str = "1", **more: object) -> Stratum:
    """Two sides for 50 minutes; `share` is the candidate's weight."""
    sides = ((OURS, ours, share), (THEIRS, theirs, 100 - share))
    made = [
        MeasuredBackend(service=side.service, weight=weight, requests=each, **more)  # type: ignore[arg-type]
        for side, each, weight in sides
        if each is not None
    ]
    return Stratum(version=version, since="2026-11-17T12:00:00Z", until="2026-11-17T12:50:00Z", backends=made)


def by_key(ours: Tally, theirs: Tally, share: float = 50, version: str = "1") -> Stratum:
    """Two sides whose units are given; each unit had ten requests."""
    sides = ((OURS, ours, share), (THEIRS, theirs, 100 - share))
    made = [
        MeasuredBackend(service=side.service, weight=weight, requests=Tally(each.n * 10, each.errors * 10), units=each)
        for side, each, weight in sides
    ]
    return Stratum(version=version, since="2026-11-17T12:00:00Z", until="2026-11-17T12:50:00Z", backends=made)


def verdict(*strata: Stratum, samples: dict[str, Sample] | None = None, **settings: object) -> Verdict:
    """The verdict with settings of an analysis; without metrics, errors by 2pp."""
    chosen = {"metrics": [MetricSpec("errors", worse_by="2pp")]} | settings
    return judge(AnalysisSpec(**chosen), OURS, THEIRS, strata, samples or {}, AT)  # type: ignore[arg-type]


def histogram(counts: dict[int, float]) -> Histogram:
    return Histogram(0, [counts.get(each, 0) for each in range(max(counts) + 1)])
