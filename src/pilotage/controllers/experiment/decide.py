"""The decision about one Experiment: whether it is over, and why. Pure, and repeated.

Rules of this file
- The endpoint's controller makes variants and writes the route; what it says of the claim (`ClaimedExperiment`) is all
  that is known about them here. Here is decided when the claim ends: `status.reason` is that decision, written once.
- The clock of the experiment starts when the endpoint says that all of it is programmed.
- Ended means that the endpoint has proven every part of every variant gone, or that there is no endpoint any more. No
  word of the endpoint is no proof: it may be about to take the claim up. Once Ended, it stays so.
- A refusal is no end: the Experiment waits, says why, and is taken up once the reason is gone.
"""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pilotage.api.analysis import AnalysisSpec, Verdict
from pilotage.api.endpoint_status import ClaimedExperiment, ClaimedVariant
from pilotage.api.experiment import ExperimentSpec, ExperimentStatus
from pilotage.api.variant import VariantSpec
from pilotage.kube.wire import format_time, parse_time

LOST_SECONDS = 300.0
"""Time without any server after which a variant that has served ends its experiment."""
PASSED = ("Better", "NoWorse")
_DURATION = re.compile(r"(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")


class ObservedEndpoint(NamedTuple):
    """The endpoint of an experiment."""

    deleting: bool = False
    claim: ClaimedExperiment | None = None
    """The word of the endpoint's controller about this experiment; None: it has none."""


class ExperimentState(NamedTuple):
    """An Experiment as it was read."""

    created: str
    deleting: bool
    spec: ExperimentSpec
    status: ExperimentStatus


class ExperimentDecision(NamedTuple):
    """The state that follows."""

    phase: str
    reason: str | None
    accepted: str | None
    started: str | None
    until: str | None
    ended: str | None
    lost_since: str | None
    waiting_for: str
    requeue_after: float | None
    """Seconds after which time alone changes the decision."""
    expired: bool = False
    """Whether its time to be kept is over."""

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left, so that it may go."""
        return self.phase == "Ended"


def parsed_duration(text: str) -> float:
    """Seconds of a duration such as 1h30m. ValueError for what is none."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError(f"{text!r} is no duration: write 2h, 90m or 1h30m")
    hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return 3600.0 * hours + 60.0 * minutes + seconds


def decide(
    experiment: ExperimentState,
    endpoint: ObservedEndpoint | None,
    verdicts: Mapping[str, Verdict],
    now: dt.datetime,
) -> ExperimentDecision:
    """The next state. `endpoint`: None where it does not exist; `verdicts` by variant."""
    return _Deciding(experiment, endpoint, verdicts, now).decision()


class _Deciding:
    """One decision in the making."""

    def __init__(
        self,
        experiment: ExperimentState,
        endpoint: ObservedEndpoint | None,
        verdicts: Mapping[str, Verdict],
        now: dt.datetime,
    ) -> None:
        self.experiment = experiment
        self.spec, self.status = experiment.spec, experiment.status
        self.endpoint = endpoint
        self.claim = endpoint.claim if endpoint is not None else None
        self.verdicts = verdicts
        self.now = now
        self.pauses: list[float] = []

    def decision(self) -> ExperimentDecision:
        running = self.claim is not None and self.claim.phase == "Running"
        claimed = self.claim is not None and self.claim.phase not in ("Refused", "Waiting")
        accepted = self.status.accepted or (format_time(self.now) if claimed else None)
        started = self.status.started or (format_time(self.now) if running else None)
        until = self.until(started)
        lost = self.lost_since(started)
        reason = self.status.reason or self.end(accepted, started, until, lost)
        phase = self.phase(reason)
        ended = self.status.ended or (format_time(self.now) if phase == "Ended" else None)
        expired = ended is not None and self.is_past(ended, float(self.spec.ttl_seconds_after_finished))
        return ExperimentDecision(
            phase,
            reason,
            accepted,
            started,
            until,
            ended,
            lost,
            self.waiting_for(phase, reason),
            min(self.pauses) if self.pauses else None,
            expired,
        )

    def until(self, started: str | None) -> str | None:
        if started is None or self.spec.duration is None:
            return None
        return format_time(parse_time(started) + dt.timedelta(seconds=parsed_duration(self.spec.duration)))

    def lost_since(self, started: str | None) -> str | None:
        """Since when a variant that has served has had no server; None: each has one."""
        if started is None or self.claim is None or self.claim.phase != "Running":
            return None
        if all(each.replicas.ready for each in self.claim.variants):
            return None
        return self.status.lost_since or format_time(self.now)

    def end(self, accepted: str | None, started: str | None, until: str | None, lost: str | None) -> str | None:
        """The reason to end it now, if there is one."""
        if self.experiment.deleting:
            return "Deleted"
        if self.spec.terminate:
            return "Terminated"
        if self.endpoint is None:
            return "EndpointDeleted" if self.status.accepted else None
        if self.endpoint.deleting:
            return "EndpointDeleted"
        if started is None:
            late = accepted is not None and self.is_past(accepted, float(self.spec.start_deadline_seconds))
            return "NotStarted" if late else None
        if until is not None and self.is_past(until, 0.0):
            return "Completed"
        if lost is not None and self.is_past(lost, LOST_SECONDS):
            return "VariantLost"
        if self.analysis.on_worse == "End" and any(each.result == "Worse" for each in self.verdicts.values()):
            return "Worse"
        return None

    @property
    def analysis(self) -> AnalysisSpec:
        return self.spec.analysis or AnalysisSpec(on_worse="Report")

    def phase(self, reason: str | None) -> str:
        said = self.claim.phase if self.claim is not None else ""
        if reason is None:
            return said if said in ("Starting", "Entering", "Running") else "Pending"
        if self.status.ended is not None or self.endpoint is None or said == "Gone":
            return "Ended"
        return said if said in ("Leaving", "Stopping") else "Leaving"

    def is_past(self, since: str, seconds: float) -> bool:
        """Whether so many seconds have passed; if not, the decision is made again then."""
        left = seconds - (self.now - parse_time(since)).total_seconds()
        if left > 0:
            self.pauses.append(left)
        return left <= 0

    def waiting_for(self, phase: str, reason: str | None) -> str:
        if phase == "Ended" or (phase == "Running" and self.claim is not None and not self.claim.message):
            return ""
        if self.endpoint is None and reason is None:
            return f"servingendpoint/{self.spec.endpoint.name} does not exist: create it, or delete the Experiment."
        if self.claim is None and reason is not None:
            return f"servingendpoint/{self.spec.endpoint.name} has not said yet that nothing of it is left."
        if self.claim is None:
            return f"servingendpoint/{self.spec.endpoint.name} has not taken it up yet."
        stuck = [f"{each.name}: {each.message}" for each in self.claim.variants if each.message]
        return " ".join(filter(None, (self.claim.message, *stuck)))


def summary(variants: Sequence[VariantSpec]) -> str:
    """Variants and their shares for a column; copies are marked by a tilde."""
    shares = (f"~{each.mirror.percent}" if each.mirror is not None else str(each.weight or 0) for each in variants)
    return ", ".join(f"{each.name} {share}" for each, share in zip(variants, shares, strict=True))


def worst(verdicts: Mapping[str, Verdict]) -> Verdict | None:
    """The verdict that decides about the whole: Worse before Invalid before Undecided before what passed."""
    order = ("Worse", "Invalid", "Undecided", *reversed(PASSED))
    ranked = sorted(verdicts.values(), key=lambda each: order.index(each.result) if each.result in order else 0)
    return ranked[0] if ranked else None


def claimed(claim: ClaimedExperiment | None, name: str) -> ClaimedVariant:
    """The state of a variant, as far as its endpoint has brought it."""
    found = claim.variants if claim is not None else []
    return next((each for each in found if each.name == name), ClaimedVariant(name=name))
