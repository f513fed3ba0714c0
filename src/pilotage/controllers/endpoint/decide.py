"""The decision about one endpoint: the steps that follow from what was observed. Pure, and repeated after each step.

Rules of this file
- A decision rests on its arguments: the endpoint with its spec, the history in its status, what was observed, and the
  time. No client, clock, logger or memory. A crash at any point is just another call.
- Nothing is made before the finalizer is on the endpoint and the part is in its ledger.
- A revision begins only if its model is ready and, while another one serves, if the API server accepts its parts.
- A spec that asks again for a revision that still has its parts returns to it: nothing new is made.
- The revision that serves is kept as it should be until the wanted one has all traffic. Traffic moves only to a
  revision that is available. With the strategy Recreate, other revisions are proven gone before anything is made.
- A part goes only once the route is where it should be, names no Service of its revision, and the status says which
  revision serves. Nothing is deleted here: a Teardown is begun, once for each part, and its controller deletes.
- Every decision that is final says what the endpoint waits for, and when to look again if nothing wakes it.

A decision whose last step is not `WriteStatus` needs the result of that step: the reconcile executes the steps, adds
the result to what was observed, and decides again. The order is always the same: revision, parts, pods, route, Job of
a step, former parts, status.
"""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from pilotage.controllers.endpoint.canary import awaits_verdict, pause_seconds
from pilotage.controllers.endpoint.judging import StepJob, step_job
from pilotage.controllers.endpoint.ledger import PartName
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.endpoint.revisions import RequestedRevision, Revision, RevisionHistory
from pilotage.controllers.endpoint.rolling import (
    GONE_SECONDS,
    Rolling,
    RolloutInputs,
    canary_of,
    first_state,
    is_further,
    redirected,
    refusal,
    returned,
    waiting_in,
)
from pilotage.controllers.endpoint.steps import (
    AddFinalizer,
    AnnounceRollout,
    AnnounceServing,
    ApplyParts,
    BeginRevision,
    DryRun,
    EndpointStep,
    ListPods,
    MoveRoute,
    Observed,
    ObservedPart,
    RunJob,
    TearDown,
    WriteStatus,
)
from pilotage.controllers.endpoint.variants import Variants
from pilotage.controllers.routing import Routed
from pilotage.kube.wire import parse_time
from pilotage.serving.parts import EndpointRef, Readiness
from pilotage.serving.resources import JOBS
from pilotage.traffic.contract import Backend, Mix
from pilotage.traffic.routers import ROUTERS

PODS_AFTER = dt.timedelta(seconds=10)
"""Age of a revision from which on its pods are listed if it is not available: they say why."""
PODS_SECONDS = 15.0
"""Pause between two such lists."""
CLAIM = "PersistentVolumeClaim"
UNROUTED = Routed(True, False, "Done", "", None)
"""The route of an endpoint that has none: nothing leads anywhere."""


class EndpointDecision(NamedTuple):
    """The steps, in order, and the history as it is then."""

    steps: tuple[EndpointStep, ...]
    history: RevisionHistory


def decide(endpoint: EndpointRef, history: RevisionHistory, observed: Observed, now: dt.datetime) -> EndpointDecision:
    """The next steps. The caller decides again with the history of the last decision."""
    deciding = _Deciding(endpoint, history, observed, now)
    stages = (
        deciding.revision,
        deciding.variants_begin,
        deciding.parts,
        deciding.pods,
        deciding.failure,
        deciding.route,
        deciding.former_parts,
    )
    for stage in stages:
        if stage():
            break
    return EndpointDecision(tuple(deciding.steps), deciding.history)


def route_of(endpoint: EndpointRef) -> PartName | None:
    """The route, whatever it points at; None where the endpoint has none, or its kind has no router."""
    router = ROUTERS.get(endpoint.spec.route.kind)
    return PartName(router.resource, endpoint.name) if router is not None and router.resource is not None else None


class _Deciding:
    """One decision in the making. A stage returns True if its last step is the last one of the decision."""

    def __init__(self, endpoint: EndpointRef, history: RevisionHistory, observed: Observed, now: dt.datetime) -> None:
        self.endpoint = endpoint
        self.spec = endpoint.spec
        self.history = history
        self.observed = observed
        self.now = now
        self.steps: list[EndpointStep] = [] if observed.held else [AddFinalizer()]
        self.problem: EndpointProblem | None = None
        self.pauses: list[float] = []
        self.job: StepJob | None = None
        """The Job of the step that the rollout was in when this began."""

    @property
    def wanted(self) -> Revision:
        wanted = self.history.wanted
        assert wanted is not None  # the first stage sees to that
        return wanted

    @property
    def has_arrived(self) -> bool:
        """Whether the wanted revision serves."""
        return self.history.serving is not None and self.history.serving.number == self.wanted.number

    def readiness(self, revision: Revision) -> Readiness | None:
        applied = self.observed.applied
        return applied.readiness.get(revision.number) if applied is not None else None

    def ends_with(self, step: EndpointStep) -> bool:
        self.steps.append(step)
        return True

    # The stages

    def revision(self) -> bool:
        """Begin a new revision if the spec asks for one."""
        self.history = self.history.expire(self.now)
        asked, last = self.observed.requested, self.history.wanted
        if isinstance(asked, EndpointProblem):
            self.problem = asked
            return last is None and self.reports()
        if last is not None and last.fingerprint != asked.fingerprint and (holds := self.variants.holds()) is not None:
            self.problem = holds
            return False
        self.history = redirected(self.history.forgive(asked.fingerprint), asked.fingerprint, self.now)
        if self.history.under_way is not None or (last is not None and last.fingerprint == asked.fingerprint):
            return False
        if (still := self.still_running(asked.fingerprint)) is not None:
            self.history = returned(self.history, still, self.spec, self.rollout_inputs(), self.now)
            return False
        if (refused := refusal(self.history, asked.fingerprint, self.observed.rolling.intents)) is not None:
            self.problem = refused
            return False
        return self.begins(asked)

    def begins(self, asked: RequestedRevision) -> bool:
        rollout = first_state(self.history, self.endpoint, self.rollout_inputs(), self.now)
        begun = self.history.begin(self.endpoint, asked, self.observed.capabilities, self.now, rollout)
        assert begun.wanted is not None
        if self.history.serving is not None and not self.observed.accepted:
            return self.ends_with(DryRun(begun.wanted))
        self.history = begun
        return self.ends_with(BeginRevision(begun.wanted))

    @property
    def variants(self) -> Variants:
        """The variants of experiments, as far as they are."""
        applied = self.observed.applied
        running = {part.revision for part in self.observed.parts if part.revision}
        return Variants(
            self.history,
            self.observed.experiments,
            applied.readiness if applied is not None else {},
            running,
            self.observed.teardowns,
        )

    def variants_begin(self) -> bool:
        """Begin the next variant of an experiment."""
        found = self.variants.missing()
        if found is None:
            return False
        claim, variant, asked = found
        assert not isinstance(asked.revision, EndpointProblem)
        subject = self.endpoint._replace(spec=asked.spec)
        self.history = self.history.begin_variant(
            subject, asked.revision, self.observed.capabilities, self.now, (claim.uid, variant.name)
        )
        return self.ends_with(BeginRevision(self.history.revisions[-1]))

    def still_running(self, fingerprint: str) -> Revision | None:
        """The revision with a fingerprint that serves, rests, or came after that one, and still has its parts."""
        serving = self.history.serving
        parts = [part for part in self.observed.parts if part.resource != JOBS]  # a Job goes before its revision
        leaving = {part.revision for part in parts if part.uid in self.observed.leaving}
        running = {part.revision for part in parts} - leaving
        for each in reversed(self.history.revisions):
            if each.fingerprint != fingerprint or str(each.number) in leaving:
                continue
            if serving is not None and each.number == serving.number:
                return each
            is_later = serving is None or each.number > serving.number
            state = self.history.states[each.number]
            is_held = state == "Variant" and each.number in {one.number for one in self.variants.kept()}
            may_return = state == "Resting" or (is_later and state not in ("Previous", "Aborted") and not is_held)
            if may_return and str(each.number) in running:
                return each
        return None

    def parts(self) -> bool:
        """Make the parts of the wanted revision, and keep up those of the one that serves until then."""
        serving = self.history.serving
        if not self.has_arrived:
            if self.spec.strategy.type == "Recreate":
                if self.clears_former():
                    return True
            elif serving is not None and self.observed.applied is None:
                self.steps.append(ApplyParts(serving))
        if self.observed.applied is None:
            kept = {each.number: each for each in (*self.history.kept(), *self.variants.kept())}
            self.steps += [ApplyParts(each) for number, each in kept.items() if number != self.wanted.number]
            return self.ends_with(ApplyParts(self.wanted))
        self.problem = self.problem or self.observed.applied.problem
        return False

    def clears_former(self) -> bool:
        """Take down all that is not the wanted revision's before anything of it is made, the route included."""
        serves = self.history.serving is not None  # if nothing does, the route is the wanted revision's
        former = [
            part for part in self.observed.parts if not _is_of(part, self.wanted.number) and (serves or part.revision)
        ]
        if former or self.observed.teardowns:
            self.tear_down("Replaced", former)
            waits = self.observed.teardowns_wait or "its Teardown begins"
            if blocked := self.observed.teardowns_blocked:
                self.problem = EndpointProblem("TeardownBlocked", blocked)
            return self.reports(waiting_for=f"{waits} (the former revision is torn down first)")
        self.history = self.history.depart()._replace(rollout=None)
        return False

    def pods(self) -> bool:
        """Let pods explain why the wanted revision is not available."""
        ready = self.readiness(self.wanted)
        if self.wanted.subject.spec.placement.kind == "Host":
            return False  # there are none, and the processes have said it
        if ready is None or ready.available or not ready.desired:
            return False
        age = self.now - parse_time(self.history.wanted_since)
        is_old = age >= PODS_AFTER
        self.pauses.append(PODS_SECONDS if is_old else (PODS_AFTER - age).total_seconds())
        return is_old and not self.observed.pods_listed and self.ends_with(ListPods(self.wanted))

    def failure(self) -> bool:
        """Write into the history whether the wanted revision can become available."""
        ready, applied = self.readiness(self.wanted), self.observed.applied
        if self.has_arrived or ready is None or applied is None:
            return False
        problem = applied.problem if applied.problem is not None and not applied.problem.waits else None
        if problem is not None or ready.failed:
            self.history = self.history.fail(self.wanted.number, problem.message if problem else ready.message)
        else:
            self.history = self.history.start(self.wanted.number)
        return False

    def route(self) -> bool:
        """Move traffic to the wanted revision once it is available; keep it where it is until then."""
        if self.is_rolling:
            return self.roll()
        ready = self.readiness(self.wanted)
        moves = self.has_arrived or (ready is not None and ready.available)
        target = self.wanted if moves else self.history.serving
        if target is None:
            return False
        if self.spec.route.kind == "None":
            if moves:
                self.arrive()
            return False
        routed = self.observed.routed
        if routed is None:
            return self.ends_with(self.move(self.mixed(Mix((Backend(*target.backend),)))))
        if isinstance(routed, EndpointProblem):
            self.problem = routed
            return self.reports()
        if routed.again is not None:
            self.pauses.append(routed.again)
        if routed.done and moves:
            self.arrive()
        return False

    @property
    def is_rolling(self) -> bool:
        """Whether a rollout in steps leads from one revision to another."""
        return self.history.under_way is not None and self.history.serving is not None and not self.has_arrived

    def rollout_inputs(self) -> RolloutInputs:
        applied, asked = self.observed.applied, self.observed.requested
        readiness = applied.readiness if applied is not None else {}
        fingerprint = "" if isinstance(asked, EndpointProblem) else asked.fingerprint
        return self.observed.rolling._replace(readiness=readiness, asked=fingerprint)

    def roll(self) -> bool:
        """Take a rollout on: its mix of requests, its step, and the sizes of both sides."""
        rolling = Rolling(self.history, self.spec, self.rollout_inputs(), self.now)
        routed, before = self.observed.routed, rolling.state
        if routed is None:
            return self.ends_with(self.move(self.mixed(rolling.mix())))
        if isinstance(routed, EndpointProblem):
            self.problem = routed
            return self.reports()
        judged, self.job = self.observed.judged, step_job(self.history, self.spec)
        if self.job is not None and judged is None:
            return self.ends_with(RunJob(self.job))
        step = self.variants.of_step(self.mixed(rolling.mix()), routed)
        answer = judged.answer if judged is not None else None
        self.history = rolling._replace(inputs=rolling.inputs._replace(experiment=step, answer=answer)).after(routed)
        after = self.history.rollout
        assert after is not None
        self.steps += [
            AnnounceRollout(after.revision, each) for each in after.decisions if each not in before.decisions
        ]
        if is_further(before, after):
            self.pauses.append(0.0)
        if rolling.has_excess:
            self.pauses.append(GONE_SECONDS)  # a pod that is gone wakes nobody
        self.pauses += [
            each
            for each in (
                routed.again,
                judged.again if judged is not None else None,
                pause_seconds(rolling.canary, after, self.now),
            )
            if each is not None
        ]
        return False

    def mixed(self, base: Mix) -> Mix:
        """The mix with the variants that take part."""
        return self.variants.mixed(base)

    def wanted_mix(self) -> Mix:
        """The mix that the route shall have."""
        if self.is_rolling:
            return self.mixed(Rolling(self.history, self.spec, self.rollout_inputs(), self.now).mix())
        serving = self.history.serving
        return self.mixed(Mix((Backend(*serving.backend),))) if serving is not None else Mix()

    def move(self, mix: Mix) -> MoveRoute:
        mixed = [each for each in self.history.revisions if each.backend.service in mix.services]
        others = {each.backend.service for each in self.history.revisions} - mix.services
        answering = {each.backend.service for each in mixed if (ready := self.readiness(each)) and ready.ready}
        # While one revision follows another, clients may call the model as either of them does, if both know the name.
        both = [each for each in (self.history.serving, self.wanted) if each is not None]
        names = {each.model.name for each in both}
        models = {name for name in names if all(each.answers_to(name) for each in (*both, *mixed))}
        applied = self.observed.applied
        return MoveRoute(
            mix,
            tuple(sorted(others & applied.services)) if applied is not None else (),
            tuple(sorted(models)),
            frozenset(answering),
            self.variants.analysis() or (awaits_verdict(canary_of(self.spec)) if self.is_rolling else None),
            self.observed.leaving,
        )

    def arrive(self) -> None:
        if not self.has_arrived:
            follows = self.history.served
            self.history = self.history.arrive(self.wanted.number)
            if follows:  # that the first one serves is what everybody expects: the status says so
                self.steps.append(AnnounceServing(self.wanted))

    def former_parts(self) -> bool:
        """Take down what nothing points at any more: former revisions, routes, autoscalers."""
        routed, teardowns = self.routed(), self.observed.teardowns
        if self.spec.route.kind != "None" and not self.is_unrouted() and (routed is None or not routed.done):
            return self.reports(replacing=teardowns)
        if routed is not None or self.spec.route.kind == "None":
            self.history = self.variants.ended(routed or UNROUTED, self.now)
        kept = self.kept_revisions()
        former = self.former_by_revision(kept)
        if former and self.observed.recorded != self.history.states:
            # The status says first which revision serves. An operator that forgot that after a crash would make the
            # former one anew while it goes.
            self.pauses.append(0.0)
            return self.reports(replacing=len(former))
        for revision, parts in former.items():
            is_former = revision and revision not in {str(each.number) for each in kept}
            self.tear_down(self.reason_of(revision) if is_former else "Replaced", parts)
        return self.reports(replacing=max(len(former), teardowns))

    def reason_of(self, revision: str) -> str:
        """The reason for the Teardown of a former revision, by its label."""
        states = {str(number): state for number, state in self.history.states.items()}
        if any(str(past.number) == revision and past.experiment for past in self.history.past):
            return "Ended"
        return "Aborted" if states.get(revision) == "Aborted" else "Superseded"

    def is_unrouted(self) -> bool:
        """Whether nothing serves and there is no route of any kind: then nothing points at any revision."""
        routes = {each.resource for each in ROUTERS.values()}
        return self.history.serving is None and not any(part.resource in routes for part in self.observed.parts)

    def kept_revisions(self) -> list[Revision]:
        """The revision that is wanted, the one that serves, those that are kept, and those that the route names."""
        routed = self.routed()
        named = routed.services if routed is not None else frozenset[str]()
        numbers = {
            each.number
            for each in (self.wanted, self.history.serving, *self.history.kept(), *self.variants.kept())
            if each is not None
        }
        return [each for each in self.history.revisions if each.number in numbers or each.backend[0] in named]

    def former_by_revision(self, kept: Sequence[Revision]) -> dict[str, list[ObservedPart]]:
        """The parts that no kept revision consists of, by their revision."""
        current = {(part.resource, part.name) for each in kept for part in each.parts}
        if (route := route_of(self.endpoint)) is not None:
            current.add((route.resource, route.name))
        if (routed := self.routed()) is not None:
            current |= routed.parts
        # Its answer is in the status before it goes: else a crash would let it judge once more.
        current |= {(JOBS, each.name) for each in (self.job, step_job(self.history, self.spec)) if each is not None}
        found: dict[str, list[ObservedPart]] = {}
        for part in self.observed.parts:
            if (part.resource, part.name) not in current:
                found.setdefault(part.revision, []).append(part)
        return found

    def tear_down(self, reason: str, parts: Sequence[ObservedPart]) -> None:
        """Begin a Teardown of those parts that no other one has named yet."""
        if begun := tuple(part for part in parts if part.uid not in self.observed.leaving):
            self.steps.append(TearDown(reason, begun))

    # The end

    def reports(self, *, waiting_for: str = "", replacing: int = 0) -> bool:
        if self.problem is not None:
            self.pauses.append(self.problem.retry_after)
        self.pauses += self.history.expiring(self.now)
        return self.ends_with(
            WriteStatus(
                self.problem,
                waiting_for or self.waiting_for(),
                self.routed(),
                replacing,
                min(self.pauses) if self.pauses else None,
                tuple(self.variants.claimed(self.wanted_mix(), self.routed()))
                if self.observed.experiments.claims
                else (),
            )
        )

    def routed(self) -> Routed | None:
        routed = self.observed.routed
        return None if isinstance(routed, EndpointProblem) else routed

    def waiting_for(self) -> str:
        routed = self.routed()
        if self.problem is not None:
            return self.problem.message
        if self.history.under_way is not None:
            return waiting_in(self.history.under_way)
        if routed is not None and not routed.done:
            return routed.text
        ready = self.readiness(self.wanted)
        if ready is not None and not ready.available:
            # An agent says itself how far its processes are; of pods, only trouble is worth a word.
            is_told = self.wanted.subject.spec.placement.kind == "Host" and not self.has_arrived
            return ready.message if is_told or ready.troubled else ""
        return self.observed.teardowns_blocked


def _is_of(part: ObservedPart, number: int) -> bool:
    """Whether a part belongs to a revision, or holds data."""
    return part.revision == str(number) or part.resource.kind == CLAIM
