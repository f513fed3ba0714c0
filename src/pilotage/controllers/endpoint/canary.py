"""The steps of a rollout: which one it is in, and what ends it. Pure.

    Starting → step 1 → … → step N → Promoting → Promoted
        any of these → Aborting → Aborted

- A step ends with a proof or with an answer, and only then the next one is noted. Its end is noted as a time, so that a
  restart neither lengthens nor shortens a pause.
- Unknown is not yes: without a verdict, an answer or a proof the rollout stays where it is, and says so.
- An intent names the revision that it is about, and for a promotion the step: an old one never acts on what follows.
- Steps that are edited in the middle never lower a weight: the rollout goes on with the first step that its present
  weight does not satisfy yet.
- Held is no memory: a rollout is held for as long as there is a reason, and then goes on in the same step.
"""

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from pilotage.api.analysis import AnalysisSpec, Verdict
from pilotage.api.base import seconds_of
from pilotage.api.endpoint_status import DECISIONS_MAX, RolloutDecision, RolloutSizes, RolloutState, VariantShare
from pilotage.api.names import ANNOTATION_ABORT, ANNOTATION_HOLD, ANNOTATION_PROMOTE, ANNOTATION_RETRY
from pilotage.api.strategy import Canary, CanaryStep
from pilotage.kube.wire import format_time, parse_time

ENDED = ("Promoted", "Aborted")
ALL_STEPS = "all"
"""Stands for the digest of the steps that are passed once the promotion has begun."""
TEXT_MAX = 1000
_PHASES = {
    "setWeight": "Shifting",
    "setScale": "Shifting",
    "pause": "Pausing",
    "analysis": "Analysing",
    "experiment": "Experimenting",
    "job": "Judging",
}


class Intents(NamedTuple):
    """Requests of people to a rollout, each bound to one revision."""

    promote: str = ""
    abort: str = ""
    hold: str = ""
    retry: str = ""

    @classmethod
    def read(cls, annotations: Mapping[str, str]) -> "Intents":
        """The intents in the annotations of an endpoint."""
        names = (ANNOTATION_PROMOTE, ANNOTATION_ABORT, ANNOTATION_HOLD, ANNOTATION_RETRY)
        return cls(*(annotations.get(name, "") for name in names))


class StepAnswer(NamedTuple):
    """Answer of a Job or an experiment to the step that asked for it."""

    step: int
    result: str
    """Passed, Worse or Held."""
    text: str = ""


class RolloutFacts(NamedTuple):
    """Everything that was observed of a rollout."""

    weight: int = 0
    """Weight of the candidate, as the route says it."""
    is_proven: bool = False
    """Whether every proxy is proven to have that."""
    alone: str = ""
    """Name of the revision that has all requests and its full size, once the other one is out of the route, proven and
    drained; empty: neither has."""
    total: int = 1
    """Replicas of the endpoint."""
    ready: int = 0
    """Ready replicas of the candidate."""
    failure: str = ""
    """Reason why the candidate cannot become available."""
    refusal: str = ""
    """Reason why the route is refused."""
    short: str = ""
    """Reason why a side is not ready for the requests that it shall get."""
    verdict: Verdict | None = None
    answer: StepAnswer | None = None
    experiment: str = ""
    """Phase of the claim of a step that is an experiment; empty: there is none."""


def begun(
    revision: str, canary: Canary, sizes: RolloutSizes, now: dt.datetime, *, is_return: bool = False
) -> RolloutState:
    """A rollout that begins. A return to a revision that still runs takes no steps."""
    made = RolloutState(
        revision=revision,
        phase="Starting",
        of=len(canary.steps),
        since=format_time(now),
        sizes=sizes,
        passed=_digest(()),
    )
    if is_return:
        return _promoting(made, now, "The spec returned to a revision that still runs.")
    return noted(made, "Starting", "", now)


def advanced(
    state: RolloutState, canary: Canary, facts: RolloutFacts, intents: Intents, now: dt.datetime
) -> RolloutState:
    """The rollout after everything that follows from what was observed."""
    machine = _Machine(canary, facts, intents, now)
    state = machine.edited(state)
    for _ in range(len(canary.steps) + 3):
        following = machine.next(state)
        if following == state:
            break
        state = following
    return replace(state, verdict=facts.verdict or state.verdict)


def aborting(state: RolloutState, why: str, now: dt.datetime) -> RolloutState:
    """The rollout on its way back."""
    if state.phase in (*ENDED, "Aborting"):
        return state
    made = replace(
        state,
        phase="Aborting",
        since=format_time(now),
        until=None,
        weight=replace(state.weight, wanted=0),
        message=why[:TEXT_MAX],
    )
    return noted(made, "Aborting", why, now)


def target_of(state: RolloutState, weight: int) -> int:
    """The weight that the candidate shall get; a rollout that is held keeps the present one."""
    return weight if state.phase == "Held" else state.weight.wanted


def scale_of(canary: Canary, state: RolloutState, total: int) -> int:
    """The number of replicas that the steps so far ask for; 0: as many as the weight needs."""
    scales = [each.set_scale for each in canary.steps[: state.step] if each.set_scale is not None]
    if not scales or scales[-1].follow is not None:
        return 0
    last = scales[-1]
    return last.replicas if last.replicas is not None else -(-(last.percent or 0) * total // 100)


def kind_of(step: CanaryStep) -> str:
    """The field of a step that is set."""
    return next(name for name in _PHASES if getattr(step, _snake(name)) is not None)


def awaits_verdict(canary: Canary) -> AnalysisSpec | None:
    """The analysis that a rollout asks for, beside all steps or in one of them."""
    in_step = any(each.analysis is not None for each in canary.steps)
    return canary.analysis or (AnalysisSpec() if in_step else None)


def pause_seconds(canary: Canary, state: RolloutState, now: dt.datetime) -> float | None:
    """Seconds until time alone changes something."""
    until = parse_time(state.until) if state.until is not None else start_deadline(canary, state)
    if until is None or state.phase in ENDED:
        return None
    left = (until - now).total_seconds()
    return left if left > 0 else None


def start_deadline(canary: Canary, state: RolloutState) -> dt.datetime | None:
    """The time by which the variants of the current step have to be programmed; None: there are none to wait for."""
    step = canary.steps[state.step - 1] if 0 < state.step <= len(canary.steps) else None
    if step is None or step.experiment is None or state.until is not None or state.passed == ALL_STEPS:
        return None
    return parse_time(state.since) + dt.timedelta(seconds=step.experiment.start_deadline_seconds)


class _Machine(NamedTuple):
    """The transitions, for one set of observations."""

    canary: Canary
    facts: RolloutFacts
    intents: Intents
    now: dt.datetime

    def next(self, state: RolloutState) -> RolloutState:
        """The rollout after one transition; the same one if there is none."""
        if state.phase in ENDED:
            return state
        if state.phase == "Aborting":
            return self.back(state)
        if why := self.abort(state):
            return aborting(state, why, self.now)
        if held := self.hold(state):
            return replace(state, phase="Held", message=held[:TEXT_MAX])
        if state.passed == ALL_STEPS:
            return self.promotion(state)
        if self.intents.promote == f"{state.revision}/all":
            return _promoting(state, self.now, "Promoted by request.")
        return self.starting(state) if not state.step else self.step(state, self.canary.steps[state.step - 1])

    def abort(self, state: RolloutState) -> str:
        """The reason to abort; empty: none."""
        facts, verdict = self.facts, self.facts.verdict
        if self.intents.abort == state.revision:
            return "Aborted by request."
        if self.canary.on_failure == "Abort" and facts.failure:
            return f"The candidate failed: {facts.failure}"
        if self.is_worse() and self.canary.on_failure == "Abort" and self.reaction() == "End":
            return f"The candidate is worse: {verdict.text if verdict else ''}"
        return self.answered(state, "Worse") or ("" if self.intents.hold == state.revision else self.late(state))

    def late(self, state: RolloutState) -> str:
        """The reason to abort because the variants of a step do not start; empty: none."""
        deadline = start_deadline(self.canary, state)
        is_late = deadline is not None and self.now >= deadline
        return f"The experiment of step {state.step} has not started in time." if is_late else ""

    def answered(self, state: RolloutState, result: str) -> str:
        """The text of an answer to the current step, if it has that result."""
        answer = self.facts.answer
        return answer.text if answer is not None and (answer.step, answer.result) == (state.step, result) else ""

    def is_worse(self) -> bool:
        return self.facts.verdict is not None and self.facts.verdict.result == "Worse"

    def reaction(self) -> str:
        spec = awaits_verdict(self.canary)
        return spec.on_worse if spec is not None else "Report"

    def hold(self, state: RolloutState) -> str:
        """The reason to hold the rollout where it is; empty: none."""
        facts = self.facts
        if self.intents.hold == state.revision:
            return f"Held by request. Remove the annotation {ANNOTATION_HOLD} to go on."
        if facts.failure:
            return f"The candidate failed: {facts.failure}"
        if facts.refusal:
            return f"The route is refused, and the former weights stay in force: {facts.refusal}"
        if self.is_worse() and self.reaction() != "Report" and facts.verdict is not None:
            return f"The candidate is worse: {facts.verdict.text}"
        return "" if self.is_skipped(state) else self.answered(state, "Held")

    def is_skipped(self, state: RolloutState) -> bool:
        return self.intents.promote == f"{state.revision}/{state.step}"

    def back(self, state: RolloutState) -> RolloutState:
        if self.facts.alone and self.facts.alone != state.revision:
            made = replace(state, phase="Aborted", since=format_time(self.now))
            return noted(made, "Aborted", state.message, self.now)
        return state

    def promotion(self, state: RolloutState) -> RolloutState:
        if state.phase != "Promoting":  # it was held
            return replace(state, phase="Promoting", message="")
        if self.facts.alone == state.revision:
            made = replace(state, phase="Promoted", since=format_time(self.now), message="")
            return noted(made, "Promoted", "", self.now)
        return state

    def starting(self, state: RolloutState) -> RolloutState:
        if self.facts.ready:
            return self.entered(state, 1)
        return replace(state, phase="Starting", message=self.facts.short[:TEXT_MAX])

    def step(self, state: RolloutState, step: CanaryStep) -> RolloutState:
        kind = kind_of(step)
        if step.experiment is not None and self.facts.experiment == "Running" and state.until is None:
            # Its clock starts when all of it is programmed.
            state = replace(state, until=_end(seconds_of(step.experiment.duration), self.now))
        ended, message = getattr(self, f"_{_snake(kind)}")(state, step)
        if ended:
            return self.entered(state, state.step + 1)
        waits = kind == "analysis" and self.is_over(state)
        return replace(state, phase="Pausing" if waits else _PHASES[kind], message=message[:TEXT_MAX])

    def _set_weight(self, state: RolloutState, _: CanaryStep) -> tuple[bool, str]:
        return self.facts.is_proven and self.facts.weight == state.weight.wanted, self.facts.short

    def _set_scale(self, state: RolloutState, _: CanaryStep) -> tuple[bool, str]:
        size = scale_of(self.canary, state, self.facts.total)
        return self.facts.ready >= max(1, size), self.facts.short

    def _pause(self, state: RolloutState, step: CanaryStep) -> tuple[bool, str]:
        assert step.pause is not None
        if self.is_skipped(state) or (step.pause.duration is not None and self.is_over(state)):
            return True, ""
        return False, "" if step.pause.duration else f"Until step {state.step} is promoted."

    def _analysis(self, state: RolloutState, _: CanaryStep) -> tuple[bool, str]:
        verdict = self.facts.verdict
        if self.is_skipped(state) or (verdict is not None and verdict.result in ("Better", "NoWorse")):
            return True, ""
        said = verdict.text if verdict is not None else "There are no measured numbers yet."
        if not self.is_over(state):
            return False, said
        return False, f"The time for the analysis is over. {said.rstrip('.')}. Promote or abort."

    def _experiment(self, state: RolloutState, _: CanaryStep) -> tuple[bool, str]:
        is_over = self.facts.experiment == "Running" and state.until is not None and self.is_over(state)
        return self.is_skipped(state) or is_over, f"The experiment is {(self.facts.experiment or 'Starting').lower()}."

    def _job(self, state: RolloutState, _: CanaryStep) -> tuple[bool, str]:
        return self.is_skipped(state) or bool(self.answered(state, "Passed")), "The Job has not ended."

    def is_over(self, state: RolloutState) -> bool:
        return state.until is not None and self.now >= parse_time(state.until)

    def entered(self, state: RolloutState, number: int) -> RolloutState:
        """The rollout at the begin of a step, or of its promotion after the last one."""
        steps = self.canary.steps
        if number > len(steps):
            return _promoting(state, self.now, "All steps are done.")
        step = steps[number - 1]
        kind = kind_of(step)
        wanted = step.set_weight if step.set_weight is not None else state.weight.wanted
        made = replace(
            state,
            phase=_PHASES[kind],
            step=number,
            of=len(steps),
            since=format_time(self.now),
            until=_until(step, self.now),
            passed=_digest(steps[: number - 1]),
            weight=replace(state.weight, wanted=wanted),
            message="",
        )
        return noted(made, _PHASES[kind], _named(step), self.now)

    def edited(self, state: RolloutState) -> RolloutState:
        """The rollout after its steps were edited."""
        steps = self.canary.steps
        if state.phase in (*ENDED, "Aborting") or state.passed == ALL_STEPS:
            return state
        if not state.step:
            return replace(state, of=len(steps))
        if state.step <= len(steps) and state.passed == _digest(steps[: state.step - 1]):
            return self.reread(state, steps[state.step - 1])
        number = 1 + len(_satisfied(steps, self.facts.weight))
        entered = self.entered(replace(state, of=len(steps)), number)
        wanted = max(entered.weight.wanted, self.facts.weight)
        return replace(entered, weight=replace(entered.weight, wanted=wanted))

    def reread(self, state: RolloutState, step: CanaryStep) -> RolloutState:
        """The current step, which itself may have been edited."""
        wanted = state.weight.wanted
        if step.set_weight is not None:
            wanted = max(step.set_weight, min(wanted, self.facts.weight))
        until = state.until if step.experiment is not None else _until(step, parse_time(state.since))
        return replace(state, of=len(self.canary.steps), until=until, weight=replace(state.weight, wanted=wanted))


def _satisfied(steps: Sequence[CanaryStep], weight: int) -> Sequence[CanaryStep]:
    """The steps up to the last one that sets a weight which the candidate has already."""
    last = 0
    for number, step in enumerate(steps, 1):
        if step.set_weight is None:
            continue
        if step.set_weight > weight:
            break
        last = number
    return steps[:last]


def _promoting(state: RolloutState, now: dt.datetime, why: str) -> RolloutState:
    made = replace(
        state,
        phase="Promoting",
        step=state.of,
        passed=ALL_STEPS,
        since=format_time(now),
        until=None,
        weight=VariantShare(100, state.weight.programmed, state.weight.effective),
        message="",
    )
    return noted(made, "Promoting", why, now)


def _until(step: CanaryStep, since: dt.datetime) -> str | None:
    limit = next((each for each in (step.analysis, step.job) if each is not None), None)
    duration = step.pause.duration if step.pause is not None else limit.at_most if limit is not None else None
    if duration is None:
        return None
    return _end(seconds_of(duration), since)


def _end(seconds: float, since: dt.datetime) -> str:
    whole = since.replace(microsecond=0) + dt.timedelta(seconds=bool(since.microsecond))
    return format_time(whole + dt.timedelta(seconds=seconds))


def noted(state: RolloutState, what: str, text: str, now: dt.datetime) -> RolloutState:
    """The rollout with one more transition."""
    made = RolloutDecision(what, state.step, format_time(now), text[:TEXT_MAX])
    return replace(state, decisions=[*state.decisions, made][-DECISIONS_MAX:])


def _named(step: CanaryStep) -> str:
    return f"{kind_of(step)} {step.set_weight}" if step.set_weight is not None else kind_of(step)


def _digest(steps: Sequence[CanaryStep]) -> str:
    return hashlib.sha256(msgspec.json.encode([each.without_defaults() for each in steps])).hexdigest()[:12]


def _snake(name: str) -> str:
    return {"setWeight": "set_weight", "setScale": "set_scale"}.get(name, name)
