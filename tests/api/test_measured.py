"""Numbers of the gateway, and settings of an analysis, without a server."""

import math
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.api.analysis import AnalysisSpec, Limit, Verdict, parsed_seconds
from pilotage.api.base import InvalidField
from pilotage.api.measured import (
    BINS,
    Histogram,
    LogSums,
    Measured,
    MeasuredBackend,
    Stratum,
    Tally,
    bin_of,
    upper_edge,
)
from pilotage.api.structural import structural


@given(st.floats(0, 1e6))
def test_a_duration_is_not_above_the_edge_of_its_bin_and_above_the_edge_before_it(seconds):
    bin_ = bin_of(seconds)
    assert seconds <= upper_edge(bin_) * (1 + 1e-9)
    assert bin_ == 0 or seconds > upper_edge(bin_ - 1)


@pytest.mark.parametrize("seconds", [0.25, 0.5, 1, 2, 4, 8])
def test_common_limits_are_edges(seconds):
    assert upper_edge(bin_of(seconds)) == seconds
    assert bin_of(seconds * 1.001) == bin_of(seconds) + 1


def test_the_last_bin_has_no_end():
    assert (bin_of(1e12), upper_edge(BINS - 1)) == (BINS - 1, math.inf)


def test_a_histogram_counts_what_is_above_a_bin_wherever_its_own_counts_begin():
    histogram = Histogram(first=10, counts=[1, 2, 3])
    assert [histogram.above(each) for each in (0, 9, 10, 11, 12, 63)] == [6, 6, 5, 3, 0, 0]


def _log_normal(n: int, sd: float) -> Histogram:
    edges = [math.log(upper_edge(each) / 0.4) / sd / math.sqrt(2) for each in range(BINS - 1)]
    below = [0, *(round(n * (1 + math.erf(each)) / 2) for each in edges), n]
    counts: list[float] = [after - before for before, after in pairwise(below)]
    first = next(each for each, count in enumerate(counts) if count)
    last = max(each for each, count in enumerate(counts) if count)
    return Histogram(first, counts[first : last + 1])


def _tally(n: int) -> Tally:
    sums = LogSums(n, -12345.678, 23456.789)
    return Tally(n, 1234, 123, sums, sums, _log_normal(n, 0.8), Histogram(30, [12] * 5))


def test_ten_strata_of_four_services_with_10_000_requests_each_fit_into_20_kb():
    backends = [
        MeasuredBackend(service=f"assistant-{each}", weight=12.5, left_out=120, under_way=12, requests=_tally(9876))
        for each in range(4)
    ]
    time = "2026-11-17T12:00:04Z"
    strata = [
        Stratum(version=str(each), since=time, until=time, missed_seconds=12.5, backends=backends) for each in range(10)
    ]
    written = [each.written() for each in strata]
    assert len(msgspec.json.encode(written)) < 20_000
    assert msgspec.convert(written, Measured) == strata


@pytest.mark.parametrize(("text", "limit"), [("2pp", (0.02, "pp")), ("10%", (0.1, "%")), ("0.5pp", (0.005, "pp"))])
def test_a_limit_is_points_or_a_part(text, limit):
    assert Limit.parsed(text) == limit


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2", "worseBy: '2' is no limit: write 2pp for percentage points, 10% for a ratio"),
        ("-2pp", "worseBy: '-2pp' is no limit: write 2pp for percentage points, 10% for a ratio"),
        ("2pp\n", r"worseBy: '2pp\n' is no limit: write 2pp for percentage points, 10% for a ratio"),
        ("100%", "worseBy: '100%' is no limit: it has to be less than 100"),
    ],
)
def test_another_limit_is_refused_with_what_to_write(text, reason):
    with pytest.raises(InvalidField) as error:
        Limit.parsed(text)
    assert str(error.value) == reason


def test_a_duration_is_seconds_or_milliseconds():
    assert [parsed_seconds(each) for each in ("2s", "500ms", "1.5s")] == [2, 0.5, 1.5]
    for text in ("2", "0s", "2m", ""):
        with pytest.raises(InvalidField, match="is no duration: write 2s or 500ms"):
            parsed_seconds(text)


def test_settings_and_verdicts_have_structural_schemas():
    against = structural(AnalysisSpec, {})["properties"]["against"]
    assert against["default"] == "Serving"
    assert structural(Verdict, {})["properties"]["confidence"]["type"] == "number"
    AnalysisSpec.read({"against": "control", "metrics": [{"name": "slow", "over": "2s", "worseBy": "3pp"}]})
    with pytest.raises(InvalidField, match="worseBy"):
        AnalysisSpec.read({"metrics": [{"name": "errors", "worseBy": "2"}]})
