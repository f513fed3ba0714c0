"""Metrics: how the numbers of each become a comparison, and how its values are written.

A comparison is measured as harm: positive is worse for the candidate, whichever way the metric counts. Rates differ by
percentage points; times and speeds by ratios, whose logarithms are compared. A source of the user's own gives one
number of each side (a threshold, without an interval), or good of total (a rate), or pairs that a judge has decided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, expm1, isfinite, log1p, log2
from typing import Literal, NamedTuple, Protocol

from pilotage.analysis import means, rates
from pilotage.analysis.means import ENOUGH, LogRatio
from pilotage.analysis.rates import Interval, Share
from pilotage.analysis.strata import Together, ratio, shares
from pilotage.api.analysis import RATES, RATIOS, AnalysisSpec, Limit, MetricSpec, parsed_seconds
from pilotage.api.base import InvalidField
from pilotage.api.measured import LARGEST, LogSums, Tally, bin_of, upper_edge

STANDARD = (MetricSpec("errors", worse_by="2pp"), MetricSpec("ttft", worse_by="25%"))
"""Metrics of an analysis that names none."""
_NO_REQUESTS = "no requests of both sides at the same time yet"
_LABELS = {"gaveUp": "gave up", "tokensPerSecond": "tokens/s"}


class BareValues(NamedTuple):
    """One number of each side, from a source or a Job; None for a side that was not asked."""

    candidate: float
    other: float | None = None


class Goods(NamedTuple):
    """Good of total, of each side."""

    candidate: float
    candidate_total: float
    other: float
    other_total: float


class Pairs(NamedTuple):
    """Answers to the same requests that a judge has compared: won, lost or tied for the candidate."""

    won: float
    lost: float
    tied: float = 0


class NoData(NamedTuple):
    """A source without a usable answer, and why: neither passed nor failed."""

    text: str


Sample = BareValues | Goods | Pairs | NoData


class Machine(Protocol):
    """The harm of a candidate, with an interval for it."""

    @property
    def point(self) -> float:
        """The harm that was seen."""

    def interval(self, alpha: float) -> Interval:
        """The harm that there may be, with probability 1 - `alpha` at all looks together."""

    def scaled(self, factor: float) -> "Machine":
        """The same harm, from so many times as much data."""


class RateHarm(NamedTuple):
    """Difference of two shares of something bad."""

    candidate: Share
    other: Share

    @property
    def point(self) -> float:
        """The difference that was seen."""
        return self.candidate.rate - self.other.rate

    def interval(self, alpha: float) -> Interval:
        """The differences that there may be."""
        return rates.difference(self.candidate, self.other, alpha)

    def scaled(self, factor: float) -> "RateHarm":
        """The same rates, of so many times as many."""
        return RateHarm(self.candidate.scaled(factor), self.other.scaled(factor))


class RatioHarm(NamedTuple):
    """Logarithm of a ratio, turned round where more is better."""

    ratio: LogRatio
    sign: Literal[1, -1]

    @property
    def point(self) -> float:
        """The logarithm that was seen."""
        return self.sign * self.ratio.difference

    def interval(self, alpha: float) -> Interval:
        """The logarithms that there may be."""
        low, high = means.difference(self.ratio, alpha)
        return Interval(low, high) if self.sign > 0 else Interval(-high, -low)

    def scaled(self, factor: float) -> "RatioHarm":
        """The same means, of so many times as many values."""
        return RatioHarm(self.ratio.scaled(factor), self.sign)


class LossHarm(NamedTuple):
    """Share of pairs that the candidate lost, above one half. A tie is half a loss."""

    lost: Share

    @property
    def point(self) -> float:
        """The share above one half that was seen."""
        return self.lost.rate - 0.5

    def interval(self, alpha: float) -> Interval:
        """The shares above one half that there may be."""
        low, high = rates.interval(self.lost, alpha)
        return Interval(low - 0.5, high - 0.5)

    def scaled(self, factor: float) -> "LossHarm":
        """The same share, of so many times as many pairs."""
        return LossHarm(self.lost.scaled(factor))


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric as it was measured.

    `limit` is harm. Without a `machine` there is no interval: then `passed` says how a threshold was decided, and None
    is no data, with its reason in `text`. `sign` and `unit` say how harm is written.
    """

    spec: MetricSpec
    label: str
    limit: float = 0.0
    unit: Literal["pp", "%"] = "pp"
    sign: Literal[1, -1] = 1
    machine: Machine | None = None
    candidate: str = ""
    other: str = ""
    passed: bool | None = None
    text: str = ""

    def written(self, harm: float) -> str:
        """Harm as a difference of the metric: +0.04pp, or -10% of a speed."""
        return signed(100 * self.sign * harm if self.unit == "pp" else 100 * expm1(self.sign * harm), self.unit)

    def written_limit(self) -> str:
        """The limit as the metric's settings have it, with its sign."""
        value = self.limit if self.unit == "pp" else self.sign * expm1(self.sign * self.limit)
        return f"{'+' if self.sign > 0 else '-'}{100 * value:.4g}{self.unit}"

    def limit_met(self, harm: float) -> str:
        """The smallest limit that would be met if harm were at most this, rounded up; empty if there is none below
        100."""
        value = 100 * (harm if self.unit == "pp" else self.sign * expm1(self.sign * harm))
        digits = 0 if value > 10 else 1
        rounded = ceil(value * 10**digits) / 10**digits
        return f"{rounded:g}{self.unit}" if rounded < 100 else ""


def signed(value: float, unit: str) -> str:
    """A number with its sign: two digits after the point for percentage points, one for percentages."""
    digits = 2 if unit == "pp" and abs(value) < 10 else 1
    return f"{value:+.{digits}f}{unit}"


def problems(spec: AnalysisSpec, jobs: Sequence[str] = ()) -> list[str]:
    """Mistakes in the settings that no schema can express, a sentence each. `jobs` names the Jobs that give scores."""
    own = {each.name for each in spec.sources} | set(jobs)
    found = [f"{each}: the gateway measures it; give the source another name" for each in own & {*RATES, *RATIOS}]
    for metric in spec.metrics:
        if metric.name not in (*RATES, *RATIOS) and metric.name not in own:
            known = ", ".join((*RATES, *RATIOS, *sorted(own)))
            found.append(f"{metric.name}: neither the gateway nor a source has it; there are {known}")
        else:
            found += _problems_of(metric)
    return found


def _problems_of(metric: MetricSpec) -> list[str]:
    found = []
    if (metric.over is None) == (metric.name == "slow"):
        found.append(f"{metric.name}: over is needed for slow, and for nothing else")
    if metric.name in (*RATES, *RATIOS) and (metric.at_least is not None or metric.at_most is not None):
        found.append(f"{metric.name}: atLeast and atMost are for values of a source; use worseBy")
    try:
        limit = limit_of(metric)
        if metric.over is not None:
            parsed_seconds(metric.over)
    except InvalidField as error:
        return [*found, f"{metric.name}: {error}"]
    expected = {**dict.fromkeys(RATES, "pp"), **dict.fromkeys(RATIOS, "%")}.get(metric.name, limit.unit)
    if metric.worse_by is not None and limit.unit != expected:
        kind, such = ("a rate", "2pp") if expected == "pp" else ("a ratio", "10%")
        found.append(f"{metric.name}: worseBy {metric.worse_by}: it is {kind}; write a limit such as {such}")
    return found


def limit_of(metric: MetricSpec) -> Limit:
    """The limit of a metric; without one, no harm is accepted. Raises InvalidField."""
    return Limit.parsed(metric.worse_by) if metric.worse_by is not None else Limit(0.0, "%")


def readings(spec: AnalysisSpec, sides: Sequence[Together], samples: Mapping[str, Sample]) -> list[Reading]:
    """Every metric of an analysis as it was measured. Raises InvalidField for a limit that is none."""
    metrics = spec.metrics or STANDARD
    apart = any(each.name == "gaveUp" and not each.dry_run for each in metrics)
    found = []
    for metric in metrics:
        if metric.name in RATES:
            found.append(_rate(metric, sides, gave_up_apart=apart))
        elif metric.name in RATIOS:
            found.append(_ratio(metric, sides))
        else:
            found.append(_sample(metric, samples.get(metric.name, NoData("its source has not answered yet"))))
    return found


def _rate(metric: MetricSpec, sides: Sequence[Together], *, gave_up_apart: bool) -> Reading:
    limit = limit_of(metric).value
    over = bin_nearest(parsed_seconds(metric.over or "1s"))

    def share(tally: Tally) -> Share:
        if metric.name == "errors":
            return Share(min(tally.errors + (0 if gave_up_apart else tally.gave_up), tally.n), tally.n)
        if metric.name == "gaveUp":
            return Share(min(tally.gave_up, tally.n), tally.n)
        late = tally.no_token.above(over)
        return Share(tally.first_token.above(over) + late, tally.first_token.n + late)

    label = f"slow > {upper_edge(over):.2g} s" if metric.name == "slow" else _LABELS.get(metric.name, metric.name)
    found = shares(sides, share)
    if found is None:
        return Reading(metric, label, limit, text=_NO_REQUESTS)
    ours, theirs = found
    return Reading(
        metric, label, limit, machine=RateHarm(ours, theirs), candidate=percent(ours.rate), other=percent(theirs.rate)
    )


def bin_nearest(seconds: float) -> int:
    """The bin whose upper edge is nearest to a duration."""
    above = bin_of(seconds)
    return above if above == 0 or log2(upper_edge(above) / seconds) <= 1 / 8 else above - 1


def percent(rate: float) -> str:
    """A rate as text: 0.27%, or 50%."""
    return f"{100 * rate:.3g}%" if rate >= 0.1 else f"{100 * rate:.2f}%"


def _ratio(metric: MetricSpec, sides: Sequence[Together]) -> Reading:
    limit = limit_of(metric).value
    label = _LABELS.get(metric.name, metric.name)
    is_time = metric.name == "ttft"
    harm = log1p(limit) if is_time else -log1p(-limit)

    def sums(tally: Tally) -> LogSums:
        return tally.ttft if is_time else tally.tokens_per_second

    sign: Literal[1, -1] = 1 if is_time else -1
    found = ratio(sides, sums)
    if found is None:
        return Reading(metric, label, harm, "%", sign, text=f"fewer than {ENOUGH} values of a side")
    write = _duration if is_time else "{:.1f}".format
    ours, theirs = write(exp(found.candidate)), write(exp(found.other))
    return Reading(metric, label, harm, "%", sign, RatioHarm(found, sign), ours, theirs)


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.0f}ms" if seconds < 1 else f"{seconds:.2f}s"


def _sample(metric: MetricSpec, sample: Sample) -> Reading:
    if isinstance(sample, NoData):
        return Reading(metric, metric.name, text=sample.text)
    limit = limit_of(metric)
    if isinstance(sample, BareValues):
        return _threshold(metric, sample, limit)
    if not all(0 <= each <= LARGEST for each in sample):
        return Reading(metric, metric.name, limit.value, text="its counts are no numbers of requests")
    if isinstance(sample, Pairs):
        n = sample.won + sample.lost + sample.tied
        if n <= 0:
            return Reading(metric, metric.name, limit.value, text="no pair has been decided yet")
        machine = LossHarm(Share(sample.lost + sample.tied / 2, n))
        lost = f"{sample.lost:g} lost", f"{sample.won:g} won"
        return Reading(metric, metric.name, limit.value, machine=machine, candidate=lost[0], other=lost[1])
    if min(sample.candidate_total, sample.other_total) <= 0:
        return Reading(metric, metric.name, limit.value, text="the total of a side is 0")
    if sample.candidate > sample.candidate_total or sample.other > sample.other_total:
        return Reading(metric, metric.name, limit.value, text="more are good than there are in total")
    ours, theirs = (
        Share(total - good, total)
        for good, total in ((sample.candidate, sample.candidate_total), (sample.other, sample.other_total))
    )
    good = percent(1 - ours.rate), percent(1 - theirs.rate)
    return Reading(metric, metric.name, limit.value, "pp", -1, RateHarm(ours, theirs), good[0], good[1])


def _threshold(metric: MetricSpec, values: BareValues, limit: Limit) -> Reading:
    """A bare number has no interval: it is on one side of its limit or on the other."""
    ours, theirs = values
    if not all(isfinite(each) for each in values if each is not None):
        return Reading(metric, metric.name, text="its value is no finite number")
    bounds = []
    if metric.at_least is not None:
        bounds.append((ours >= metric.at_least, f"at least {metric.at_least:g}"))
    if metric.at_most is not None:
        bounds.append((ours <= metric.at_most, f"at most {metric.at_most:g}"))
    if metric.worse_by is not None:
        if theirs is None:
            return Reading(
                metric, metric.name, candidate=f"{ours:g}", text="the other side has no value to compare with"
            )
        bound = theirs + limit.value if limit.unit == "pp" else theirs + limit.value * abs(theirs)
        bounds.append((ours <= bound, f"at most {bound:.4g}"))
    if not bounds:
        return Reading(metric, metric.name, candidate=f"{ours:g}", text="no limit is set: atLeast, atMost or worseBy")
    shown = "" if theirs is None else f"{theirs:g}"
    passed, text = all(each for each, _ in bounds), ", ".join(text for _, text in bounds)
    return Reading(metric, metric.name, candidate=f"{ours:g}", other=shown, passed=passed, text=text)
