"""Settings of an analysis, which compares a candidate with another side, and the verdict that it comes to."""

import re
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from pilotage.api.base import InvalidField, Schema, Seconds, Timestamp, map_list, matches, one_of

RATES = ("errors", "gaveUp", "slow")
"""Metrics of the gateway that are shares of requests."""
RATIOS = ("ttft", "tokensPerSecond")
"""Metrics of the gateway that are compared as ratios of geometric means."""
SERVING = "Serving"
"""The name of the serving revision as the other side of a comparison."""
RESULTS = ("Better", "NoWorse", "Worse", "Undecided", "Invalid")
_LIMIT = r"^([0-9]+(\.[0-9]+)?)(pp|%)$"
_DURATION = r"^([0-9]+(\.[0-9]+)?)(ms|s)$"
MetricName = Annotated[str, matches("^[a-zA-Z]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$", max_length=63)]
Result = Annotated[str, one_of(*RESULTS)]
Line = Annotated[str, Meta(max_length=1024)]


class Limit(NamedTuple):
    """Harm that is accepted: percentage points of a rate (0.02 is 2pp), or a part of the other side's value."""

    value: float
    unit: Literal["pp", "%"]

    @classmethod
    def parsed(cls, text: str) -> "Limit":
        """A limit such as ``2pp`` or ``10%``. Raises InvalidField."""
        number = re.fullmatch(_LIMIT[1:-1], text)
        if number is None:
            raise InvalidField("worseBy", f"{text!r} is no limit: write 2pp for percentage points, 10% for a ratio")
        unit: Literal["pp", "%"] = "pp" if number[3] == "pp" else "%"
        value = float(number[1]) / 100
        if value >= 1:
            raise InvalidField("worseBy", f"{text!r} is no limit: it has to be less than 100")
        return cls(value, unit)


def parsed_seconds(text: str) -> float:
    """The seconds of a duration such as ``2s`` or ``500ms``. Raises InvalidField."""
    number = re.fullmatch(_DURATION[1:-1], text)
    if number is None or not float(number[1]):
        raise InvalidField("over", f"{text!r} is no duration: write 2s or 500ms")
    return float(number[1]) / (1000 if number[3] == "ms" else 1)


class MetricSpec(Schema, frozen=True):
    """Metric that is compared, and the harm that is accepted."""

    name: MetricName
    """errors, gaveUp, slow, ttft or tokensPerSecond, which the gateway measures; or the name of a source, or of a Job.
    A request that the client gave up before the first token is an error, unless a metric gaveUp decides."""
    worse_by: Annotated[str, matches(_LIMIT, max_length=16)] | None = None
    """Harm that is accepted: percentage points of a rate, such as 2pp; a percentage of the other side's value, such as
    10%, for ttft, tokensPerSecond and values of a source. If unset, none."""
    over: Annotated[str, matches(_DURATION, max_length=16)] | None = None
    """Time to the first token from which on a request is slow, such as 2s. It is rounded to a quarter of an octave.
    For the metric slow only."""
    at_least: float | None = None
    """Smallest value of the candidate that passes. For values of a source or a Job only."""
    at_most: float | None = None
    """Largest value of the candidate that passes. For values of a source or a Job only."""
    dry_run: bool = False
    """Whether the metric is reported and decides nothing."""


class MetricSource(Schema, frozen=True, kw_only=True):
    """System that is asked for the values of one metric, for both sides at the same time."""

    name: MetricName
    """Name of the metric."""
    kind: Literal["Prometheus", "Runtime", "Web"]
    """Prometheus: a query. Runtime: a metric of the servers' own /metrics. Web: a URL that answers with JSON."""
    address: Annotated[str, matches("^https?://", max_length=2048)] | None = None
    """URL of the system. Runtime needs none."""
    query: Annotated[str, Meta(min_length=1, max_length=8192)]
    """Query or metric. $candidate and $other are replaced by the Services."""
    total: Annotated[str, Meta(max_length=8192)] | None = None
    """Second query: the total that `query` is the good part of. With it, the metric is a rate with an interval; without
    it, a value without one."""


class AnalysisSpec(Schema, frozen=True):
    """Comparison of a candidate with another side. Intervals hold at every look, for all metrics together."""

    against: Annotated[str, matches(f"^({SERVING}|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$", max_length=63)] = SERVING
    """Name of the variant to compare with, or Serving."""
    warmup_seconds: Seconds = 120
    """Seconds after a change of the shares whose requests are left out."""
    metrics: Annotated[list[MetricSpec], Meta(max_length=16, extra_json_schema=map_list("name"))] = []
    """Metrics that are compared. If empty: errors by 2pp, ttft by 25%."""
    sources: Annotated[list[MetricSource], Meta(max_length=16, extra_json_schema=map_list("name"))] = []
    """Sources of metrics that the gateway does not measure."""
    confidence: Annotated[float, Meta(ge=0.5, le=0.9999)] = 0.95
    """Probability that all intervals are right at all times. It is shared out among the metrics that decide."""
    min_requests: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 50
    """Requests that each side must have had for the result Better or NoWorse."""
    on_worse: Literal["End", "Pause", "Report"] = "End"
    """Reaction to the result Worse."""


class MetricVerdict(Schema, frozen=True, kw_only=True):
    """Comparison of one metric, in the units of the metric."""

    name: Annotated[str, Meta(max_length=80)]
    """Name of the metric."""
    candidate: Line = ""
    """Value of the candidate. Empty if there is none."""
    other: Line = ""
    """Value of the other side. Empty if there is none."""
    difference: Line = ""
    """Difference between the two: percentage points, or a percentage of the other side's value."""
    low: Line = ""
    """Lower end of the interval of the difference. Empty if there is no interval."""
    high: Line = ""
    """Upper end of the interval of the difference. Empty if there is no interval."""
    limit: Line = ""
    """Limit of the difference."""
    result: Result
    """Better, NoWorse, Worse or Undecided."""
    text: Line = ""
    """Reason for the result, where the numbers do not say it."""
    dry_run: bool = False
    """Whether the metric decides nothing."""


class Verdict(Schema, frozen=True, kw_only=True):
    """Comparison of a candidate with another side."""

    result: Result
    """Better, NoWorse: passed. Worse: failed. Undecided: not enough data yet. Invalid: the sides cannot be compared."""
    text: Line
    """Reason for the result, in one sentence."""
    at: Timestamp
    """Time of the numbers."""
    candidate: Annotated[str, Meta(max_length=253)]
    """Name of the candidate."""
    against: Annotated[str, Meta(max_length=253)]
    """Name of the other side."""
    requests: Annotated[dict[str, int], Meta(max_length=2)] = {}
    """Number of requests that were compared, by side."""
    units: Annotated[dict[str, int], Meta(max_length=2)] = {}
    """Number of buckets of keys that were compared, by side. Empty if requests were assigned one by one."""
    seconds: Annotated[int, Meta(ge=0)] = 0
    """Seconds in which they were measured, side by side."""
    warmup_seconds: Annotated[int, Meta(ge=0)] = 0
    """Seconds of each warm-up that was left out."""
    confidence: Annotated[float, Meta(ge=0, le=1)] = 0.95
    """Probability that all intervals are right at all times."""
    metrics: Annotated[list[MetricVerdict], Meta(max_length=16)] = []
    """Comparison of each metric."""
    advice: Annotated[list[Line], Meta(max_length=16)] = []
    """Ways to a decision: requests and time that are missing, and limits that would be met now."""
