"""The verdict: better, no worse, worse, undecided or invalid, with the reason and with what would decide it.

Rules, in this order:

1. Shares that are not as asked make everything else invalid: then the sides differ in more than the model.
2. One metric that is worse than its limit, as surely as was asked for, is enough for Worse.
3. Better and NoWorse need every metric that decides, and enough requests of each side. No data is never a pass.
4. Everything else is Undecided.

A metric is Worse if the whole interval of its harm is above its limit, NoWorse if it is below the limit, Better if it
is below zero. α is shared out among the metrics that decide, so that all of their intervals hold together.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pilotage.analysis.metrics import Reading, Sample, readings
from pilotage.analysis.rates import Interval
from pilotage.analysis.ratio import MISMATCH, division, p_value
from pilotage.analysis.strata import Together, by_unit, together
from pilotage.api.analysis import RATES, RATIOS, AnalysisSpec, MetricVerdict, Verdict
from pilotage.api.measured import MeasuredBackend, Stratum

_HOPELESS = 1000
"""Times as much data as there is: what needs more is not worth waiting for."""
_WORDS = {"Better": "better", "NoWorse": "no worse", "Worse": "worse", "Undecided": "undecided"}


class Side(NamedTuple):
    """One side of a comparison: its name for people, its Service, and its ready replicas where they are known."""

    name: str
    service: str
    replicas: int | None = None


class Fairness(NamedTuple):
    """The condition Fair: whether the sides differ in nothing but what is compared, as far as can be told."""

    fair: bool
    reason: str
    message: str


class _Judged(NamedTuple):
    """A metric with its interval and its result."""

    reading: Reading
    interval: Interval | None
    result: str

    @property
    def decides(self) -> bool:
        return not self.reading.spec.dry_run


def judge(
    spec: AnalysisSpec,
    candidate: Side,
    other: Side,
    strata: Sequence[Stratum],
    samples: Mapping[str, Sample],
    at: str,
) -> Verdict:
    """The verdict on a candidate at the time `at`. Raises InvalidField for settings that `metrics.problems` names."""
    sides = together(strata, candidate.service, other.service, spec.warmup_seconds)
    found = readings(spec, sides, samples)
    alpha = (1 - spec.confidence) / max(1, sum(not each.spec.dry_run for each in found))
    judged = [_judged(each, alpha) for each in found]
    numbers = _Numbers(spec, candidate, other, sides)
    result = _result(judged, numbers)
    advice = _advice(judged, numbers, alpha) if result == "Undecided" else []
    return Verdict(
        result=result,
        text=_sentence(result, judged, numbers)[:1024],
        at=at,
        candidate=candidate.name,
        against=other.name,
        requests={each.name: int(n) for each, n in zip((candidate, other), numbers.requests, strict=True)},
        units={each.name: int(n) for each, n in zip((candidate, other), numbers.units, strict=False)},
        seconds=round(sum(each.seconds for each in sides)),
        warmup_seconds=spec.warmup_seconds,
        confidence=spec.confidence,
        metrics=[_written(each) for each in judged],
        advice=advice,
    )


def fairness(spec: AnalysisSpec, candidate: Side, other: Side, strata: Sequence[Stratum]) -> Fairness:
    """The condition Fair of a comparison. A side that is short of replicas makes latencies incomparable."""
    sides = together(strata, candidate.service, other.service, spec.warmup_seconds)
    if _mismatch(sides) < MISMATCH:
        return Fairness(False, "SampleRatioMismatch", _divided(candidate, other, sides))
    if sides and not any(pair.candidate.requests.n or pair.other.requests.n for pair in sides):
        return Fairness(False, "ColdStart", f"no requests after the warm-up of {spec.warmup_seconds} s yet")
    if sides and (short := _short(candidate, other, sides[-1])):
        return Fairness(False, "OneSideShort", short)
    return Fairness(True, "SharesAsAsked", "requests are divided as the route says")


def _short(candidate: Side, other: Side, pair: Together) -> str:
    """The sentence on a side with less than half of the other's replicas for its share; empty if there is none."""
    if candidate.replicas is None or other.replicas is None:
        return ""
    ours, theirs = candidate.replicas / pair.candidate.weight, other.replicas / pair.other.weight
    if 2 * min(ours, theirs) >= max(ours, theirs):
        return ""
    side, weight = (candidate, pair.candidate.weight) if ours < theirs else (other, pair.other.weight)
    return (
        f"{side.name} has {side.replicas} ready for {weight:g} % of the requests, less than half of what the other "
        "side has for its share: latencies cannot be compared"
    )


class _Numbers(NamedTuple):
    """Everything about a comparison but the metrics."""

    spec: AnalysisSpec
    candidate: Side
    other: Side
    sides: Sequence[Together]

    @property
    def requests(self) -> tuple[float, float]:
        """Requests of both sides that were compared."""
        ours, theirs = _both(self.sides)
        return sum(each.requests.n for each in ours), sum(each.requests.n for each in theirs)

    @property
    def units(self) -> tuple[float, ...]:
        """Units of both sides in the stratum that has most of them; empty if requests are counted."""
        if not by_unit(self.sides):
            return ()
        counts = [
            tuple(0.0 if each.units is None else each.units.n for each in (pair.candidate, pair.other))
            for pair in self.sides
        ]
        return max(counts, key=min)

    @property
    def lacking(self) -> str:
        """The side without any request, if there is one."""
        ours, theirs = self.requests
        return self.candidate.name if ours < 1 else self.other.name if theirs < 1 else ""


def _judged(reading: Reading, alpha: float) -> _Judged:
    if reading.machine is None:
        result = {True: "NoWorse", False: "Worse", None: "Undecided"}[reading.passed]
        return _Judged(reading, None, result)
    interval = reading.machine.interval(alpha)
    return _Judged(reading, interval, _result_of(interval, reading.limit))


def _result_of(interval: Interval, limit: float) -> str:
    if interval.low > limit:
        return "Worse"
    if interval.high < 0:
        return "Better"
    return "NoWorse" if interval.high < limit else "Undecided"


def _result(judged: Sequence[_Judged], numbers: _Numbers) -> str:
    results = {each.result for each in judged if each.decides}
    if _mismatch(numbers.sides) < MISMATCH:
        return "Invalid"
    if "Worse" in results:
        return "Worse"
    if not results or "Undecided" in results or _too_few(judged, numbers):
        return "Undecided"
    return "Better" if "Better" in results else "NoWorse"


def _too_few(judged: Sequence[_Judged], numbers: _Numbers) -> bool:
    """Whether a side has had fewer requests than asked for, where a metric of the gateway decides."""
    ours = any(each.decides and each.reading.spec.name in (*RATES, *RATIOS) for each in judged)
    return ours and min(numbers.requests) < numbers.spec.min_requests


def _mismatch(sides: Sequence[Together]) -> float:
    """The p-value of the shares. A side without a request has a sentence of its own, which says more."""
    ours, theirs = (sum(each.requests.n for each in side) for side in _both(sides))
    return p_value([division(pair) for pair in sides]) if ours and theirs else 1.0


def _both(sides: Sequence[Together]) -> tuple[list[MeasuredBackend], list[MeasuredBackend]]:
    return [each.candidate for each in sides], [each.other for each in sides]


def _divided(candidate: Side, other: Side, sides: Sequence[Together]) -> str:
    divisions = [division(pair) for pair in sides]
    total = sum(each.candidate + each.other for each in divisions)
    seen = sum(each.candidate for each in divisions) / total
    expected = sum((each.candidate + each.other) * each.expected for each in divisions) / total
    what = "keys" if by_unit(sides) else "requests"
    return (
        f"{candidate.name} got {100 * seen:.3g} % of {total:,.0f} {what} where the weights say {100 * expected:.3g} %: "
        f"it and {other.name} cannot be compared"
    )


def _sentence(result: str, judged: Sequence[_Judged], numbers: _Numbers) -> str:
    if result == "Invalid":
        return _divided(numbers.candidate, numbers.other, numbers.sides)
    deciding = [each for each in judged if each.decides]
    if not deciding:
        return "no metric decides: each of them is a dry run"
    if result in ("Better", "NoWorse"):
        better = [each.reading.label for each in deciding if each.result == "Better"]
        rest = f"better in {', '.join(better)}" if better else "within every limit"
        return f"{numbers.candidate.name} is no worse than {numbers.other.name}: {rest}"
    if result == "Undecided" and (nothing := _nothing(numbers, deciding)):
        return nothing
    return "; ".join(_phrase(each, numbers.other.name) for each in deciding if each.result == result) or (
        f"within every limit, but at least {numbers.spec.min_requests:,} requests of each side are asked for"
    )


def _nothing(numbers: _Numbers, deciding: Sequence[_Judged]) -> str:
    """The sentence for a side without requests; empty if both have some, or no metric of the gateway is undecided."""
    names = (*RATES, *RATIOS)
    if not any(each.result == "Undecided" and each.reading.spec.name in names for each in deciding):
        return ""
    if not numbers.sides:
        return f"{numbers.candidate.name} and {numbers.other.name} have had no requests at the same time yet"
    return f"{numbers.lacking} has had no requests, so there is nothing to compare" if numbers.lacking else ""


def _phrase(each: _Judged, other: str) -> str:
    reading, interval = each.reading, each.interval
    if reading.machine is None or interval is None:
        seen = f"{reading.candidate}, " if reading.candidate else ""
        return f"{reading.label}: {seen}{reading.text}: {_WORDS[each.result]}"
    low, high = _ends(reading, interval)
    bracket = f"[{low.removesuffix(reading.unit)}, {high.removesuffix(reading.unit)}]"
    return (
        f"{reading.label}: {reading.written(reading.machine.point)} {bracket} against {other}, "
        f"limit {reading.written_limit()}: {_WORDS[each.result]}"
    )


def _ends(reading: Reading, interval: Interval) -> tuple[str, str]:
    """Both ends as differences of the metric, the lower one first."""
    low, high = (reading.written(each) for each in interval)
    return (low, high) if reading.sign > 0 else (high, low)


def _written(each: _Judged) -> MetricVerdict:
    reading, interval = each.reading, each.interval
    plain = MetricVerdict(
        name=reading.label,
        candidate=reading.candidate,
        other=reading.other,
        result=each.result,
        text=reading.text[:1024],
        dry_run=reading.spec.dry_run,
    )
    if reading.machine is None or interval is None:
        return plain
    low, high = _ends(reading, interval)
    return MetricVerdict(
        name=plain.name,
        candidate=plain.candidate,
        other=plain.other,
        difference=reading.written(reading.machine.point),
        low=low,
        high=high,
        limit=reading.written_limit(),
        result=each.result,
        dry_run=plain.dry_run,
    )


def _advice(judged: Sequence[_Judged], numbers: _Numbers, alpha: float) -> list[str]:
    """Ways to a decision: more of the same, or another limit."""
    open_ = [each for each in judged if each.decides and each.result == "Undecided" and each.interval is not None]
    lines = []
    if open_:
        lines.append(_more(open_, numbers, alpha))
    elif _too_few(judged, numbers) and not numbers.lacking:
        lines.append(_few(numbers))
    for each in open_:
        limit = each.reading.limit_met(each.interval.high if each.interval else 1)
        if limit:
            prefix = f"{each.reading.label}: a" if len(open_) > 1 else "A"
            lines.append(f"{prefix} limit of {limit} would be met now.")
    return lines


def _more(open_: Sequence[_Judged], numbers: _Numbers, alpha: float) -> str:
    factor = max(_factor(each.reading, alpha) for each in open_)
    if factor > _HOPELESS:
        return "If the difference stays as it is, more requests will hardly decide it: it is too close to the limit."
    return f"If the difference stays as it is, {_extra(factor, numbers)} would decide it."


def _few(numbers: _Numbers) -> str:
    ours, theirs = numbers.requests
    side = numbers.candidate if ours <= theirs else numbers.other
    return f"{math.ceil(numbers.spec.min_requests - min(ours, theirs)):,} more requests of {side.name} are asked for."


def _extra(factor: float, numbers: _Numbers) -> str:
    """The data that are missing, when `factor` times as much is needed, and the time that they take."""
    counted, what = (numbers.units, "keys") if numbers.units else (numbers.requests, "requests")
    more = max(1, round_up((factor - 1) * counted[0]))
    seconds = (factor - 1) * sum(each.seconds for each in numbers.sides)
    time = f", {duration(seconds)} at this rate," if seconds >= 1 else ""
    return f"about {more:,} more {what} of {numbers.candidate.name}{time}"


def round_up(value: float) -> int:
    """A number with two digits that count, at least as large."""
    digits = len(str(int(value))) - 2
    step = 10 ** max(digits, 0)
    return int(-(-value // step) * step)


def duration(seconds: float) -> str:
    """A time for people: 40 s, 48 min, 4 h 45 min, 3 d 2 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h"


def _factor(reading: Reading, alpha: float) -> float:
    """How many times as much data would decide a metric, if its values stay as they are."""
    machine = reading.machine
    assert machine is not None

    def decided(factor: float) -> bool:
        return _result_of(machine.scaled(factor).interval(alpha), reading.limit) != "Undecided"

    high = 2.0
    while not decided(high):
        high *= 2
        if high > _HOPELESS:
            return high
    low = high / 2
    while high / low > 1.05:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high
