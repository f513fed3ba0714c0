"""Verdicts: the result, its reason, what would decide it, and the text that a person reads."""

import math

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pilotage.analysis.metrics import BareValues, Goods, NoData, Pairs, problems
from pilotage.analysis.text import EXIT_CODES, lines
from pilotage.analysis.verdict import duration
from pilotage.api.analysis import RESULTS, AnalysisSpec, MetricSource, MetricSpec, Verdict
from pilotage.api.base import InvalidField
from pilotage.api.measured import BINS, Histogram, LogSums, MeasuredBackend, Stratum, Tally, bin_of
from tests.analysis.sums import OURS, THEIRS, by_key, histogram, normal, stratum, tally, verdict

ERRORS, TTFT = MetricSpec("errors", worse_by="2pp"), MetricSpec("ttft", worse_by="10%")
SLOW, SPEED = MetricSpec("slow", over="2s", worse_by="3pp"), MetricSpec("tokensPerSecond", worse_by="10%")


def full(n: float, errors: float = 0, ttft: float = 0.4, slow: float = 0.02, speed: float = 60) -> Tally:
    """A tally with every number, of n requests."""
    first = histogram({bin_of(0.4): n * (1 - slow), bin_of(5): n * slow})
    return Tally(n, errors, 0, normal(n, ttft), normal(n, speed, 0.5), first)


def results(found: Verdict) -> dict[str, str]:
    return {each.name: each.result for each in found.metrics}


@pytest.mark.parametrize(
    ("ours", "theirs", "result"),
    [
        (tally(2000, 4), tally(2000, 4), "NoWorse"),
        (tally(2000, 0), tally(2000, 200), "Better"),
        (tally(2000, 200), tally(2000, 4), "Worse"),
        (tally(60, 0), tally(60, 0), "Undecided"),
        (tally(10, 8), tally(10, 0), "Worse"),
        (tally(2000, 50), tally(2000, 4), "Undecided"),
    ],
)
def test_errors_by_2pp(ours, theirs, result):
    found = verdict(stratum(ours, theirs))
    assert (found.result, results(found)) == (result, {"errors": result})


def test_harm_within_the_limit_is_no_worse_even_where_it_is_certain():
    found = verdict(stratum(tally(100_000, 1500), tally(100_000, 500)))
    assert found.metrics[0].low == "+0.75pp"
    assert found.result == "NoWorse"


def test_without_a_limit_no_harm_is_accepted():
    metrics = [MetricSpec("errors")]
    assert verdict(stratum(tally(5000, 50), tally(5000, 50)), metrics=metrics).result == "Undecided"
    assert verdict(stratum(tally(5000, 150), tally(5000, 50)), metrics=metrics).result == "Worse"


def test_a_slower_candidate_is_worse_and_a_faster_one_better():
    sides = tally(2000, ttft=0.4), tally(2000, ttft=0.6)
    assert verdict(stratum(*sides), metrics=[TTFT]).result == "Better"
    found = verdict(stratum(*reversed(sides)), metrics=[TTFT])
    assert (found.result, found.metrics[0].difference, found.metrics[0].limit) == ("Worse", "+50.0%", "+10%")
    assert found.text.startswith("ttft: +50.0% [+38.8, +62.1]")


def test_fewer_tokens_per_second_are_worse():
    sides = full(2000, speed=40), full(2000, speed=60)
    found = verdict(stratum(*sides), metrics=[SPEED])
    assert (found.result, found.metrics[0].difference, found.metrics[0].limit) == ("Worse", "-33.3%", "-10%")
    low, high = (float(each.removesuffix("%")) for each in (found.metrics[0].low, found.metrics[0].high))
    assert low < -33.3 < high < -10
    assert verdict(stratum(*reversed(sides)), metrics=[SPEED]).result == "Better"


def test_a_limit_of_ten_percent_is_met_at_nine_tenths_of_a_speed_and_eleven_tenths_of_a_time():
    n = 10_000_000
    for factor, result in ((0.905, "NoWorse"), (0.895, "Worse")):
        assert verdict(stratum(full(n, speed=60 * factor), full(n)), metrics=[SPEED]).result == result
    for factor, result in ((1.095, "NoWorse"), (1.105, "Worse")):
        assert verdict(stratum(full(n, ttft=0.4 * factor), full(n)), metrics=[TTFT]).result == result


def test_one_metric_that_is_worse_is_enough_and_one_that_is_undecided_prevents_a_pass():
    metrics = [ERRORS, TTFT, SPEED]
    assert verdict(stratum(full(5000), full(5000)), metrics=metrics).result == "NoWorse"
    worse = verdict(stratum(full(5000, ttft=0.8), full(5000)), metrics=metrics)
    assert (worse.result, results(worse)) == ("Worse", {"errors": "NoWorse", "ttft": "Worse", "tokens/s": "NoWorse"})
    silent = tally(5000), tally(5000)
    undecided = verdict(stratum(*silent), metrics=metrics)
    assert (undecided.result, undecided.text) == ("Undecided", "tokens/s: fewer than 20 values of a side: undecided")
    both = verdict(stratum(tally(5000, ttft=0.9), tally(5000)), metrics=metrics)
    assert both.result == "Worse"


def test_the_risk_is_shared_out_among_the_metrics_that_decide():
    one, two = (verdict(stratum(full(900), full(900)), metrics=each) for each in ([ERRORS], [ERRORS, TTFT]))
    dry = verdict(stratum(full(900), full(900)), metrics=[ERRORS, MetricSpec("ttft", worse_by="10%", dry_run=True)])
    high = [float(each.metrics[0].high.removesuffix("pp")) for each in (one, two, dry)]
    assert high[0] < high[1]
    assert high[2] == high[0]
    surer = verdict(stratum(full(900), full(900)), metrics=[ERRORS], confidence=0.975)
    assert surer.metrics[0].high == two.metrics[0].high


def test_a_dry_run_reports_and_decides_nothing():
    dry = MetricSpec("ttft", worse_by="10%", dry_run=True)
    found = verdict(stratum(tally(2000, ttft=0.9), tally(2000)), metrics=[ERRORS, dry])
    assert (found.result, results(found)["ttft"], found.metrics[1].dry_run) == ("NoWorse", "Worse", True)
    alone = verdict(stratum(tally(2000), tally(2000)), metrics=[dry])
    assert (alone.result, alone.text) == ("Undecided", "no metric decides: each of them is a dry run")


def test_a_candidate_that_hangs_is_found_though_its_status_codes_are_fine():
    hung = Tally(12, errors=0, gave_up=12)
    assert verdict(stratum(hung, tally(228), 5)).result == "Worse"


def test_who_gave_up_is_an_error_unless_a_metric_for_it_decides():
    gave_up = MetricSpec("gaveUp", worse_by="2pp")
    sides = stratum(tally(2000, 0, 300), tally(2000))
    assert results(verdict(sides, metrics=[ERRORS])) == {"errors": "Worse"}
    assert results(verdict(sides, metrics=[ERRORS, gave_up])) == {"errors": "NoWorse", "gave up": "Worse"}
    dry = MetricSpec("gaveUp", worse_by="2pp", dry_run=True)
    assert verdict(sides, metrics=[ERRORS, dry]).result == "Worse"


def test_slow_counts_requests_above_the_limit_also_those_without_a_token_yet():
    def side(late: float, waiting: float) -> Tally:
        first = histogram({bin_of(1.9): 100 - late, bin_of(2.1): late})
        return Tally(100, 0, 0, LogSums(), LogSums(), first, histogram({bin_of(0.5): 40, bin_of(3): waiting}))

    found = verdict(stratum(side(5, 0), side(0, 0)), metrics=[SLOW]).metrics[0]
    assert (found.name, found.candidate, found.other) == ("slow > 2 s", "5.00%", "0.00%")
    waits = verdict(stratum(side(0, 100), side(0, 0)), metrics=[SLOW])
    assert (waits.metrics[0].candidate, waits.result) == ("50%", "Worse")


def test_a_limit_between_two_edges_is_rounded_and_said():
    found = verdict(stratum(full(100), full(100)), metrics=[MetricSpec("slow", over="5s", worse_by="3pp")])
    assert found.metrics[0].name == "slow > 4.8 s"


numbers = st.integers(0, 30)


@settings(deadline=None)
@given(st.sampled_from(["errors", "gaveUp", "slow", "ttft", "tokensPerSecond", "quality"]), st.booleans(), numbers)
def test_no_data_never_passes(name, ours, n):
    """A side without requests, however many the other one had, with any metric and the widest limit."""
    limit = "99pp" if name in ("errors", "gaveUp", "slow") else "99%"
    metric = MetricSpec(name, worse_by=limit, over="2s" if name == "slow" else None)
    sides = (Tally(), full(n)) if ours else (full(n), Tally())
    for strata in ([], [stratum(*sides)], [stratum(sides[0], None)], [stratum(None, sides[1])]):
        assert verdict(*strata, metrics=[metric], min_requests=1).result == "Undecided"


def test_a_side_without_requests_has_its_own_sentence():
    silent = verdict(stratum(Tally(), tally(3000), 10))
    assert (silent.result, silent.text) == ("Undecided", "q8 has had no requests, so there is nothing to compare")
    assert lines(silent)[-1] == "Undecided: q8 has had no requests, so there is nothing to compare."
    other = verdict(stratum(tally(3000), Tally(), 10))
    assert other.text == "control has had no requests, so there is nothing to compare"
    assert verdict().text == "q8 and control have had no requests at the same time yet"


def test_a_pass_needs_the_requests_that_were_asked_for_and_a_failure_does_not():
    metrics = [MetricSpec("errors", worse_by="50pp")]
    few = stratum(tally(40), tally(40))
    assert verdict(few, metrics=metrics, min_requests=40).result == "NoWorse"
    found = verdict(few, metrics=metrics, min_requests=100)
    assert (found.result, results(found)) == ("Undecided", {"errors": "NoWorse"})
    assert found.text == "within every limit, but at least 100 requests of each side are asked for"
    assert found.advice == ["60 more requests of q8 are asked for."]
    assert verdict(stratum(tally(40, 39), tally(40)), metrics=metrics, min_requests=100).result == "Worse"
    assert verdict(stratum(tally(40), tally(760), 5), metrics=metrics, min_requests=100).result == "Undecided"


def test_advice_names_the_requests_and_the_time_and_they_do_decide():
    found = verdict(stratum(tally(100), tally(1900), 5))
    assert found.advice == [
        "If the difference stays as it is, about 290 more requests of q8, 2 h 16 min at this rate, would decide it.",
        "A limit of 6.8pp would be met now.",
    ]
    assert verdict(stratum(tally(390), tally(7410), 5)).result == "NoWorse"
    assert (
        verdict(stratum(tally(100), tally(1900), 5), metrics=[MetricSpec("errors", worse_by="6.8pp")]).result
        == "NoWorse"
    )
    assert (
        verdict(stratum(tally(100), tally(1900), 5), metrics=[MetricSpec("errors", worse_by="6.6pp")]).result
        != "NoWorse"
    )


def test_advice_is_about_the_metric_that_needs_most():
    sides = full(300), full(300)
    alone = [verdict(stratum(*sides), metrics=[each], confidence=0.975).advice for each in (ERRORS, TTFT)]
    both = verdict(stratum(*sides), metrics=[ERRORS, TTFT]).advice
    assert alone[0][0] != alone[1][0] == both[0]
    assert [each.split(":")[0] for each in both[1:]] == ["errors", "ttft"]


def test_advice_for_a_speed_gives_a_limit_that_would_be_met():
    found = verdict(stratum(full(500, speed=57), full(500)), metrics=[SPEED])
    limit = found.advice[-1].removeprefix("A limit of ").removesuffix(" would be met now.")
    assert (
        verdict(stratum(full(500, speed=57), full(500)), metrics=[MetricSpec("tokensPerSecond", worse_by=limit)]).result
        == "NoWorse"
    )


def test_a_difference_at_its_limit_is_not_waited_for():
    found = verdict(stratum(tally(1000, 30), tally(1000, 10)))
    assert found.advice[0] == (
        "If the difference stays as it is, more requests will hardly decide it: it is too close to the limit."
    )


QUALITY = MetricSpec("quality", worse_by="5pp")


@pytest.mark.parametrize(
    ("metric", "sample", "result"),
    [
        (QUALITY, Goods(9900, 10_000, 9900, 10_000), "NoWorse"),
        (QUALITY, Goods(8000, 10_000, 9900, 10_000), "Worse"),
        (QUALITY, Goods(99, 100, 99, 100), "Undecided"),
        (QUALITY, Goods(9999, 10_000, 9000, 10_000), "Better"),
        (QUALITY, Goods(0, 0, 9900, 10_000), "Undecided"),
        (QUALITY, Pairs(5000, 5000), "NoWorse"),
        (QUALITY, Pairs(50, 50), "Undecided"),
        (QUALITY, Pairs(100, 300), "Worse"),
        (QUALITY, Pairs(300, 100), "Better"),
        (QUALITY, Pairs(0, 0, 10_000), "NoWorse"),
        (QUALITY, Pairs(0, 0), "Undecided"),
        (QUALITY, NoData("no series"), "Undecided"),
        (QUALITY, Goods(math.nan, 10_000, 9900, 10_000), "Undecided"),
        (QUALITY, Goods(9900, math.inf, 9900, 10_000), "Undecided"),
        (QUALITY, Goods(20_000, 10_000, 9900, 10_000), "Undecided"),
        (QUALITY, Pairs(-5, 10_000), "Undecided"),
        (MetricSpec("quality", at_least=0.82), BareValues(0.82), "NoWorse"),
        (MetricSpec("quality", at_least=0.82), BareValues(0.81), "Worse"),
        (MetricSpec("quality", at_most=5), BareValues(5.1), "Worse"),
        (MetricSpec("quality", at_least=1, at_most=5), BareValues(0.5), "Worse"),
        (MetricSpec("quality", worse_by="10%"), BareValues(1.09, 1.0), "NoWorse"),
        (MetricSpec("quality", worse_by="10%"), BareValues(1.11, 1.0), "Worse"),
        (MetricSpec("quality", worse_by="10%"), BareValues(1.0), "Undecided"),
        (MetricSpec("quality", worse_by="10%"), BareValues(math.nan, 1.0), "Undecided"),
        (MetricSpec("quality", at_most=5), BareValues(-math.inf), "Undecided"),
        (MetricSpec("quality"), BareValues(1.0, 1.0), "Undecided"),
    ],
)
def test_a_source_of_ones_own(metric, sample, result):
    found = verdict(metrics=[metric], samples={"quality": sample})
    assert found.result == result


def test_a_source_that_has_not_answered_is_undecided():
    found = verdict(metrics=[QUALITY])
    assert (found.result, found.text) == ("Undecided", "quality: its source has not answered yet: undecided")


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        ([MetricSpec("latency")], "latency: neither the gateway nor a source has it; there are errors, gaveUp, slow, "),
        ([MetricSpec("slow", worse_by="2pp")], "slow: over is needed for slow, and for nothing else"),
        ([MetricSpec("ttft", over="2s")], "ttft: over is needed for slow, and for nothing else"),
        ([MetricSpec("errors", worse_by="10%")], "errors: worseBy 10%: it is a rate; write a limit such as 2pp"),
        ([MetricSpec("ttft", worse_by="2pp")], "ttft: worseBy 2pp: it is a ratio; write a limit such as 10%"),
        ([MetricSpec("errors", worse_by="2")], "errors: worseBy: '2' is no limit: write 2pp"),
        ([MetricSpec("errors", at_most=3)], "errors: atLeast and atMost are for values of a source; use worseBy"),
    ],
)
def test_settings_that_make_no_sense_are_named(metrics, sentence):
    (found,) = problems(AnalysisSpec(metrics=metrics))
    assert found.startswith(sentence)


def test_settings_that_make_sense_have_no_problem():
    source = MetricSource(name="quality", kind="Web", address="http://judge", query="x")
    metrics = [ERRORS, TTFT, SLOW, SPEED, QUALITY, MetricSpec("score", at_least=0.8)]
    assert problems(AnalysisSpec(metrics=metrics, sources=[source]), jobs=["score"]) == []
    clash = MetricSource(name="errors", kind="Web", address="http://judge", query="x")
    assert problems(AnalysisSpec(sources=[clash])) == ["errors: the gateway measures it; give the source another name"]


def test_a_limit_that_is_none_is_refused():
    with pytest.raises(InvalidField):
        verdict(stratum(tally(10), tally(10)), metrics=[MetricSpec("errors", worse_by="much")])


def test_without_metrics_errors_and_ttft_are_compared():
    assert [each.name for each in verdict(metrics=[]).metrics] == ["errors", "ttft"]


def test_the_text_of_a_verdict():
    ours = Tally(2214, 6, 0, normal(2214, 0.388), normal(2214, 61.2, 0.5), Histogram(24, [2172, *[0] * 13, 42]))
    theirs = Tally(2187, 5, 0, normal(2187, 0.365), normal(2187, 60.8, 0.5), Histogram(24, [2152, *[0] * 13, 35]))
    found = verdict(stratum(ours, theirs), metrics=[ERRORS, TTFT, SLOW, SPEED])
    assert lines(found) == [
        "q8 against control: 2,214 and 2,187 requests in 48 min, 2 min of warm-up left out",
        "  errors       0.27 %   0.23 %  +0.04 pp  [-0.98, +1.06]  no worse   (limit +2 pp)",
        "  ttft         388 ms   365 ms  +6.3 %    [-2.4, +15.8]   undecided  (limit +10 %)",
        "  slow > 2 s   1.90 %   1.60 %  +0.30 pp  [-1.89, +2.53]  no worse   (limit +3 pp)",
        "  tokens/s       61.2     60.8  +0.7 %    [-4.6, +6.2]    no worse   (limit -10 %)",
        f"Undecided. {found.advice[0]}",
        "A limit of 16 % would be met now.",
        "The intervals hold at every look, all four together with 95 %: looking often does not make them wrong.",
    ]


def test_the_text_of_a_verdict_without_data_by_key_and_with_a_dry_run():
    dry = MetricSpec("errors", worse_by="2pp", dry_run=True)
    found = verdict(by_key(Tally(50, 0.5), Tally(50, 0.5)), metrics=[dry, TTFT], warmup_seconds=0)
    ends = _bracket(found)
    assert lines(found) == [
        "q8 against control: 500 and 500 requests of 50 and 50 buckets of keys in 50 min",
        f"  errors   1.00 %   1.00 %  +0.00 pp  {ends}  undecided  (limit +2 pp, decides nothing)",
        f"  ttft                                {' ' * len(ends)}  undecided  (fewer than 20 values of a side)",
        "Undecided: ttft: fewer than 20 values of a side: undecided.",
    ]


def _bracket(found: Verdict) -> str:
    metric = found.metrics[0]
    return f"[{metric.low}, {metric.high}]".replace("pp", "")


def test_a_verdict_can_be_written_and_read():
    found = verdict(stratum(full(100), full(100)), metrics=[ERRORS, TTFT, SLOW, SPEED])
    assert Verdict.read(found.written()) == found
    assert found.requests == {"q8": 100, "control": 100}


def test_a_pass_exits_with_0_and_nothing_else_does():
    assert EXIT_CODES == {"Better": 0, "NoWorse": 0, "Worse": 1, "Undecided": 4, "Invalid": 5}
    assert EXIT_CODES.keys() == set(RESULTS)


def test_units_are_those_of_the_stratum_that_decides():
    strata = by_key(Tally(10), Tally(190), 5), by_key(Tally(90), Tally(110), 45)
    found = verdict(*strata)
    assert (found.units, found.requests) == ({"q8": 90, "control": 110}, {"q8": 1000, "control": 3000})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(40, "40 s"), (89, "89 s"), (120, "2 min"), (5400, "1 h 30 min"), (17100, "4 h 45 min"), (266400, "3 d 2 h")],
)
def test_a_time_for_people(seconds, text):
    assert duration(seconds) == text


def test_the_last_bin_is_slow_by_any_limit():
    side = Tally(100, 0, 0, LogSums(), LogSums(), Histogram(BINS - 1, [100]))
    found = verdict(stratum(side, full(100)), metrics=[MetricSpec("slow", over="300s", worse_by="3pp")])
    assert found.metrics[0].candidate == "100%"


extremes = st.sampled_from([0.0, 1e-300, 0.5, 1.0, 19.0, 20.0, 1e3, 1e9, 1e15])
sums = st.builds(LogSums, extremes, st.sampled_from([-1e15, -1.0, 0.0, 1e-9, 1e15]), extremes)
histograms = st.builds(Histogram, st.integers(0, BINS - 1), st.lists(extremes, max_size=3))
tallies = st.builds(Tally, extremes, extremes, extremes, sums, sums, histograms, histograms)
backends = st.tuples(st.sampled_from([5e-324, 1e-9, 10.0, 100.0]), tallies, st.none() | tallies)


@settings(deadline=None, max_examples=60, phases=[Phase.reuse, Phase.generate])
@given(
    st.lists(st.tuples(backends, backends), max_size=3),
    st.sampled_from(["", "2026-11-17T12:00:00", "2026-11-17T12:00:00Z"]),
)
def test_no_numbers_that_the_schema_allows_raise_an_error_or_leave_the_units_of_a_verdict(pairs, since):
    strata = [
        Stratum(
            version=str(number),
            since=since,
            until="2026-11-17T12:50:00Z",
            backends=[
                MeasuredBackend(service=side.service, weight=weight, requests=requests, units=units)
                for side, (weight, requests, units) in zip((OURS, THEIRS), both, strict=True)
            ],
        )
        for number, both in enumerate(pairs)
    ]
    found = verdict(*strata, metrics=[ERRORS, TTFT, SLOW, SPEED])
    assert Verdict.read(found.written()) == found
    assert "nan" not in "\n".join(lines(found))
