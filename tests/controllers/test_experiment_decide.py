"""When an Experiment ends, and what it says until then: one decision at a time."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from pilotage.api.analysis import Verdict
from pilotage.api.endpoint_status import ClaimedExperiment, ClaimedVariant, Replicas
from pilotage.api.experiment import ExperimentSpec, ExperimentStatus
from pilotage.controllers.experiment.decide import (
    LOST_SECONDS,
    ExperimentState,
    ObservedEndpoint,
    decide,
    parsed_duration,
    summary,
    worst,
)
from pilotage.kube.wire import format_time

NOW = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)
VARIANTS: list[dict[str, Any]] = [
    {"name": "q8", "weight": 10, "overrides": {}},
    {"name": "big", "mirror": {"percent": 5}, "same": True},
]


def ago(seconds: float) -> str:
    return format_time(NOW - dt.timedelta(seconds=seconds))


def state(*, deleting: bool = False, status: dict[str, Any] | None = None, **spec: Any) -> ExperimentState:
    given = {"endpoint": {"name": "chat"}, "variants": VARIANTS, **spec}
    return ExperimentState(ago(600), deleting, ExperimentSpec.read(given), ExperimentStatus.read(status))


def claim(phase: str, *, ready: int = 1, message: str = "") -> ObservedEndpoint:
    variants = [ClaimedVariant(name=each["name"], replicas=Replicas(ready, 1)) for each in VARIANTS]
    return ObservedEndpoint(claim=ClaimedExperiment(name="e", uid="u", phase=phase, variants=variants, message=message))


def verdict(result: str) -> Verdict:
    return Verdict(result=result, text="", at=ago(0), candidate="q8", against="Serving")


RUNNING = {"accepted": ago(100), "started": ago(50)}


@pytest.mark.parametrize(
    ("experiment", "endpoint", "phase", "reason"),
    [
        (state(), None, "Pending", None),
        (state(), ObservedEndpoint(), "Pending", None),
        (state(), claim("Refused", message="too much"), "Pending", None),
        (state(), claim("Starting"), "Starting", None),
        (state(), claim("Waiting", message="a rollout is under way"), "Pending", None),
        (state(), claim("Entering"), "Entering", None),
        (state(), claim("Running"), "Running", None),
        (state(status={"accepted": ago(1799)}), claim("Starting"), "Starting", None),
        (state(status={"accepted": ago(1800)}), claim("Starting"), "Leaving", "NotStarted"),
        (state(status=RUNNING, duration="1m"), claim("Running"), "Running", None),
        (state(status=RUNNING, duration="50s"), claim("Running"), "Leaving", "Completed"),
        (state(status=RUNNING, terminate=True), claim("Running"), "Leaving", "Terminated"),
        (state(status=RUNNING, deleting=True), claim("Running"), "Leaving", "Deleted"),
        (state(status=RUNNING | {"reason": "Completed"}, terminate=True), claim("Running"), "Leaving", "Completed"),
        (state(status=RUNNING | {"reason": "Worse"}), claim("Stopping"), "Stopping", "Worse"),
        (state(status=RUNNING | {"reason": "Worse"}), claim("Gone"), "Ended", "Worse"),
        (state(status=RUNNING), None, "Ended", "EndpointDeleted"),
        (state(status=RUNNING), claim("Running")._replace(deleting=True), "Leaving", "EndpointDeleted"),
        (state(terminate=True), None, "Ended", "Terminated"),
        (state(terminate=True), ObservedEndpoint(), "Leaving", "Terminated"),
        (state(deleting=True), claim("Refused"), "Leaving", "Deleted"),
        (state(status=RUNNING | {"reason": "Worse", "ended": ago(9)}), claim("Stopping"), "Ended", "Worse"),
        (state(status=RUNNING | {"reason": "Worse", "ended": ago(9)}), ObservedEndpoint(), "Ended", "Worse"),
    ],
)
def test_phase_and_reason(experiment, endpoint, phase, reason):
    found = decide(experiment, endpoint, {}, NOW)
    assert (found.phase, found.reason) == (phase, reason)


def test_the_clock_starts_when_all_of_it_is_programmed():
    entering = decide(state(duration="2h"), claim("Entering"), {}, NOW)
    assert (entering.accepted, entering.started, entering.until) == (ago(0), None, None)
    running = decide(state(duration="2h", status={"accepted": ago(9)}), claim("Running"), {}, NOW)
    assert (running.started, running.until, running.requeue_after) == (ago(0), ago(-7200), 7200)


def test_a_variant_without_servers_ends_it_after_a_while_and_not_at_once():
    lost = decide(state(status=RUNNING), claim("Running", ready=0), {}, NOW)
    assert (lost.phase, lost.lost_since, lost.requeue_after) == ("Running", ago(0), LOST_SECONDS)
    over = decide(state(status=RUNNING | {"lostSince": ago(LOST_SECONDS)}), claim("Running", ready=0), {}, NOW)
    assert (over.phase, over.reason) == ("Leaving", "VariantLost")
    back = decide(state(status=RUNNING | {"lostSince": ago(LOST_SECONDS)}), claim("Running"), {}, NOW)
    assert (back.phase, back.lost_since) == ("Running", None)


@pytest.mark.parametrize(
    ("on_worse", "result", "reason"),
    [("End", "Worse", "Worse"), ("Report", "Worse", None), ("End", "Undecided", None), ("End", "Invalid", None)],
)
def test_a_verdict_ends_it_only_if_it_is_worse_and_asked_to(on_worse, result, reason):
    experiment = state(status=RUNNING, analysis={"onWorse": on_worse})
    assert decide(experiment, claim("Running"), {"q8": verdict(result)}, NOW).reason == reason


def test_without_an_analysis_nothing_is_ended_by_one():
    assert decide(state(status=RUNNING), claim("Running"), {"q8": verdict("Worse")}, NOW).reason is None


def test_it_is_kept_for_its_time_once_it_has_ended():
    ended = RUNNING | {"reason": "Completed", "ended": ago(99)}
    assert not decide(state(status=ended, ttlSecondsAfterFinished=100), claim("Gone"), {}, NOW).expired
    assert decide(state(status=ended, ttlSecondsAfterFinished=99), claim("Gone"), {}, NOW).expired


def test_it_says_what_it_waits_for():
    assert "servingendpoint/chat does not exist" in decide(state(), None, {}, NOW).waiting_for
    assert decide(state(), claim("Refused", message="too much"), {}, NOW).waiting_for == "too much"
    assert decide(state(status=RUNNING), claim("Running"), {}, NOW).waiting_for == ""


def test_shares_in_a_column_and_the_verdict_that_counts():
    assert summary(state().spec.variants) == "q8 10, big ~5"
    found = worst({name: verdict(name) for name in ("Better", "Undecided", "NoWorse")})
    assert found is not None
    assert found.result == "Undecided"
    assert worst({}) is None


@pytest.mark.parametrize(("text", "seconds"), [("2h", 7200), ("90m", 5400), ("1h30m", 5400), ("45s", 45)])
def test_durations(text, seconds):
    assert parsed_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "1d", "-1h", "h"])
def test_no_durations(text):
    with pytest.raises(ValueError, match="no duration"):
        parsed_duration(text)
