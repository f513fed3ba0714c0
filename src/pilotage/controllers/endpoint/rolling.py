"""The rollout of an endpoint that is under way: its mix of requests, the sizes of both sides, and what follows. Pure.

`canary` says which weight is wanted, `capacity` which one may be written and how large the sides are. Sizes are written
into the status at the end of a reconcile, and the next one applies them: what a side was told is never forgotten.
"""

import datetime as dt
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from pilotage.analysis.verdict import Side, judge
from pilotage.api.analysis import Verdict
from pilotage.api.base import InvalidField
from pilotage.api.endpoint import EndpointSpec
from pilotage.api.endpoint_status import RolloutReplicas, RolloutSizes, RolloutState
from pilotage.api.measured import Stratum
from pilotage.api.names import ANNOTATION_RETRY
from pilotage.api.strategy import ALL, AUTO, Canary, Surge
from pilotage.controllers.endpoint.canary import (
    ENDED,
    Intents,
    RolloutFacts,
    StepAnswer,
    aborting,
    advanced,
    awaits_verdict,
    begun,
    noted,
    scale_of,
    target_of,
)
from pilotage.controllers.endpoint.capacity import GainingShare, RolloutSide, Room, plan
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.endpoint.revisions import Rest, Revision, RevisionHistory
from pilotage.controllers.routing import Routed
from pilotage.kube.wire import format_time, parse_time
from pilotage.serving.parts import EndpointRef, Readiness, revision_name
from pilotage.serving.revision import replicas_of
from pilotage.traffic.contract import WHOLE, Backend, Branch, Header, Mix, Stickiness

SHORT_AFTER = dt.timedelta(seconds=60)
"""Time without a place for a replica after which `surge: Auto` does without it."""
GONE_SECONDS = 1.0
"""Interval at which it is checked whether replicas are gone."""
UNPLACED = ("Unschedulable", "Unplaced")
"""Reasons of a readiness: a replica finds no place."""


class RolloutInputs(NamedTuple):
    """Everything that was observed of the two sides of a rollout."""

    readiness: Mapping[int, Readiness] = {}
    """Readiness of both revisions, by number."""
    existing: Mapping[int, int] = {}
    """Pods or processes that are not proven gone, by number of their revision."""
    mix: Mix = Mix()
    """Mix of the route, as the cache has it."""
    intents: Intents = Intents()
    answer: StepAnswer | None = None
    experiment: str = ""
    """Phase of the experiment that is the current step; empty: it is none."""
    asked: str = ""
    """Fingerprint that the spec asks for; empty: it asks for nothing that can be."""


def canary_of(spec: EndpointSpec) -> Canary:
    """The settings of rollouts in steps."""
    return spec.strategy.canary or Canary()


def surge_of(surge: Surge, total: int) -> int:
    """The number of replicas beyond the total."""
    if surge == AUTO:
        return 1
    return surge if isinstance(surge, int) else -(-int(surge.rstrip("%")) * total // WHOLE)


def first_state(
    history: RevisionHistory, endpoint: EndpointRef, inputs: RolloutInputs, now: dt.datetime
) -> RolloutState | None:
    """The rollout to the next revision; None: it has no steps, or there is nothing that it could be compared with."""
    canary, total = canary_of(endpoint.spec), total_of(history, endpoint.spec, inputs)
    if endpoint.spec.strategy.type != "Canary" or history.serving is None or not total:
        return None
    surge = surge_of(canary.surge, total)
    name = revision_name(endpoint.name, history.next_number)
    return begun(name, canary, RolloutSizes(total, min(1, surge), total, surge), now)


def total_of(history: RevisionHistory, spec: EndpointSpec, inputs: RolloutInputs) -> int:
    """The replicas of the endpoint; those that an autoscaler has given it so far are kept during a rollout."""
    least = replicas_of(spec)
    if spec.autoscaling is None or history.serving is None:
        return least
    return min(max(least, inputs.existing.get(history.serving.number, 0)), spec.autoscaling.max)


def returned(
    history: RevisionHistory, to: Revision, spec: EndpointSpec, inputs: RolloutInputs, now: dt.datetime
) -> RevisionHistory:
    """The history once the spec asks again for a revision that still runs. From one that rests, nothing is started."""
    serving = history.serving
    if history.states[to.number] != "Resting" or serving is None:
        return history.return_to(to.number)
    canary, total = canary_of(spec), total_of(history, spec, inputs)
    has = replicas_of(to.subject.spec)
    sizes = RolloutSizes(total, has, total, max(surge_of(canary.surge, total), has))
    state = begun(to.name, canary, sizes, now, is_return=True)
    return history.give_up(to.number, "Starting", "")._replace(rollout=state)


def redirected(history: RevisionHistory, fingerprint: str, now: dt.datetime) -> RevisionHistory:
    """The history once the spec asks for something else than the candidate: that one goes back first."""
    state, candidate, serving = history.under_way, history.wanted, history.serving
    if state is None or candidate is None or serving is None or candidate.fingerprint == fingerprint:
        return history
    why = "The spec asks for another revision."
    if serving.fingerprint == fingerprint:
        why = f"The spec returned to {serving.name}."
    return history._replace(rollout=aborting(state, why, now))


def refusal(history: RevisionHistory, fingerprint: str, intents: Intents) -> EndpointProblem | None:
    """The reason why a spec is not tried again, if its rollout was aborted and nobody asks for another try."""
    past, serving = history.aborted(fingerprint), history.serving
    if past is None or serving is None:
        return None
    name = revision_name(serving.subject.name, past.number)
    if intents.retry == name:
        return None
    return EndpointProblem(
        "RolloutAborted",
        f"The rollout of {name} was aborted: {past.message.rstrip('. ') or 'no reason is known'}. It is tried again "
        f"once the spec is changed, or with `pilotage retry {serving.subject.name} -n {serving.subject.namespace}` "
        f"({ANNOTATION_RETRY}: {name}).",
    )


def is_further(before: RolloutState, after: RolloutState) -> bool:
    """Whether the next reconcile has something to do."""
    told = [(each.phase, each.step, each.sizes, each.weight.wanted) for each in (before, after)]
    return told[0] != told[1]


def waiting_in(state: RolloutState) -> str:
    """The wait of a rollout, for people."""
    where = f"step {state.step} of {state.of}, {state.phase}" if state.step else state.phase
    return f"{state.revision}: {where}. {state.message}".rstrip()


class Rolling(NamedTuple):
    """A rollout that is under way, with what was observed of it."""

    history: RevisionHistory
    spec: EndpointSpec
    inputs: RolloutInputs
    now: dt.datetime

    @property
    def canary(self) -> Canary:
        """Its settings."""
        return canary_of(self.spec)

    @property
    def state(self) -> RolloutState:
        """Its state in the status."""
        assert self.history.under_way is not None
        return self.history.under_way

    @property
    def sizes(self) -> RolloutSizes:
        """The sizes that both sides were told."""
        sizes = self.state.sizes
        assert sizes is not None  # a rollout begins with them
        return sizes if self.spec.autoscaling is not None else replace(sizes, total=replicas_of(self.spec))

    @property
    def candidate(self) -> Revision:
        """The side that the rollout leads to."""
        assert self.history.wanted is not None
        return self.history.wanted

    @property
    def serving(self) -> Revision:
        """The side that serves."""
        assert self.history.serving is not None
        return self.history.serving

    # The mix

    @property
    def weight(self) -> int:
        """The weight of the candidate, as the route says it."""
        key = self.candidate.backend
        return next((each.weight for each in self.inputs.mix.backends if each.key == tuple(key)), 0)

    def mix(self) -> Mix:
        """The mix that the route shall have now."""
        serving, candidate = (Backend(*each.backend) for each in (self.serving, self.candidate))
        weight = self.allowed()
        if not weight and self.is_leaving:
            return Mix((serving,))
        if weight == WHOLE and self.state.phase == "Promoting":
            return Mix((candidate,), sticky=self.sticky)
        if not self.is_entered:
            return Mix((serving,))
        shared = (serving._replace(weight=WHOLE - weight), candidate._replace(weight=weight))
        return Mix(shared, self.branches(candidate), sticky=self.sticky)

    @property
    def is_leaving(self) -> bool:
        """Whether the candidate goes back."""
        return self.state.phase == "Aborting"

    @property
    def is_entered(self) -> bool:
        """Whether the candidate is named by the route: from its first step on."""
        has_begun = bool(self.state.step or self.state.weight.wanted)
        return bool(self.weight) or (has_begun and bool(self.ready(self.candidate)))

    def branches(self, candidate: Backend) -> tuple[Branch, ...]:
        """The branch of requests that always go to the candidate."""
        match = self.canary.match
        if match is None:
            return ()
        headers = tuple(Header(each.name, each.exact) for each in match.headers)
        return (Branch(headers, (candidate._replace(weight=WHOLE),)),)

    @property
    def sticky(self) -> Stickiness | None:
        """Assignment of requests by key."""
        assign = self.canary.assign
        if assign.by != "Key":
            return None
        keys = tuple(("header", each.header) if each.header else ("body", each.body or "") for each in assign.key)
        return Stickiness(keys, self.state.revision)

    # Sizes

    def ready(self, revision: Revision) -> int:
        """Ready replicas of a side."""
        found = self.inputs.readiness.get(revision.number)
        return found.ready if found is not None else 0

    def side(self, revision: Revision, desired: int) -> RolloutSide:
        """One side, for `capacity`."""
        existing = self.inputs.existing.get(revision.number, 0)
        if self.spec.autoscaling is not None and self.sizes.surge:
            existing = min(existing, desired)  # an autoscaler may give it more, which is no matter of the rollout
        return RolloutSide(desired, min(self.ready(revision), desired), existing)

    def planned(self, *, proven: bool, alone: str = "") -> tuple[int, int, int]:
        """Replicas of the serving revision and of the candidate, and the weight that the candidate may have.

        `alone`: the Service that has the route to itself, once all others are drained.
        """
        sizes, target = self.sizes, target_of(self.state, self.weight)
        room = Room(sizes.total, sizes.surge, self.canary.max_unavailable)
        serving = self.side(self.serving, sizes.serving)
        candidate = self.side(self.candidate, sizes.candidate)
        if target >= self.weight and not self.is_leaving:
            share = GainingShare(self.weight, proven, alone == self.candidate.backend.service)
            size = scale_of(self.canary, self.state, sizes.total)
            made = plan(room, serving, candidate, share, target, size=size, rest=self.rests(sizes), hurry=False)
            return made.losing, made.gaining, made.weight
        share = GainingShare(WHOLE - self.weight, proven, alone == self.serving.backend.service)
        rest = sizes.candidate if self.canary.abort.scale_down_delay_seconds else 0
        made = plan(room, candidate, serving, share, WHOLE - target, rest=rest, hurry=self.is_leaving)
        return made.gaining, made.losing, WHOLE - made.weight

    @property
    def has_excess(self) -> bool:
        """Whether a side has more replicas than it was told to have."""
        sizes = self.sizes
        told = ((self.serving, sizes.serving), (self.candidate, sizes.candidate))
        return any(side.existing > side.desired for side in (self.side(*each) for each in told))

    def rests(self, sizes: RolloutSizes) -> int:
        """Replicas that the former revision keeps."""
        former = self.canary.former
        if not former.keep_seconds:
            return 0
        return sizes.total if former.replicas == ALL else int(former.replicas)

    def allowed(self) -> int:
        """The weight that may be written now."""
        return self.planned(proven=False)[2]

    # What follows

    def after(self, routed: Routed) -> RevisionHistory:
        """The history after the route was observed: the next step, the next sizes, and perhaps the end."""
        state = replace(self.state, sizes=self.short_of_resources())
        if state.sizes != self.sizes:
            state = noted(state, "CapacityShort", self.making_room(), self.now)
        here = self._replace(history=self.history._replace(rollout=state), inputs=self.inputs._replace(mix=routed.mix))
        alone = next(iter(routed.mix.services)) if routed.done and len(routed.mix.services) == 1 else ""
        serving, candidate, _ = here.planned(proven=routed.proven, alone=alone)
        effective = routed.effective or {}
        state = advanced(state, self.canary, here.facts(routed, alone), self.inputs.intents, self.now)
        state = replace(
            state,
            sizes=replace(here.sizes, serving=serving, candidate=candidate),
            replicas=RolloutReplicas(self.counted(self.serving, serving), self.counted(self.candidate, candidate)),
            weight=replace(
                state.weight,
                programmed=here.weight if routed.proven else None,
                effective=effective.get(self.candidate.backend.service),
            ),
        )
        return here.ended(self.history._replace(rollout=state))

    def counted(self, revision: Revision, desired: int) -> str:
        """Replicas of a side, for people."""
        return f"{self.ready(revision)} of {desired}"

    def facts(self, routed: Routed, alone: str) -> RolloutFacts:
        """Observations, for `canary`."""
        ready = self.inputs.readiness.get(self.candidate.number)
        return RolloutFacts(
            self.weight,
            routed.proven,
            self.whole(alone),
            self.sizes.total,
            self.ready(self.candidate),
            ready.message if ready is not None and ready.failed else "",
            routed.text if routed.reason == "Rejected" else "",
            self.shortage(),
            self.verdict(routed),
            self.inputs.answer,
            self.inputs.experiment,
        )

    def whole(self, alone: str) -> str:
        """The name of the revision whose Service has the route to itself, if it has its full size."""
        sizes = self.sizes
        for each, size in ((self.serving, sizes.serving), (self.candidate, sizes.candidate)):
            if each.backend.service == alone and size >= sizes.total:
                return each.name
        return ""

    def verdict(self, routed: Routed) -> Verdict | None:
        """The verdict on the candidate; None: nothing is measured, or nobody asks."""
        spec = awaits_verdict(self.canary)
        if spec is None or not routed.measured:
            return None
        try:
            strata = msgspec.convert(routed.measured, list[Stratum])
        except msgspec.ValidationError:
            return None
        candidate, serving = (
            Side(each.name, each.backend.service, self.ready(each)) for each in (self.candidate, self.serving)
        )
        try:
            return judge(spec, candidate, serving, strata, {}, format_time(self.now))
        except InvalidField:
            return None

    def shortage(self) -> str:
        """The reason why a side has not the replicas that it shall have."""
        for each in (self.candidate, self.serving):
            ready = self.inputs.readiness.get(each.number)
            if ready is not None and not ready.available:
                return f"{each.name}: {ready.message}"
        return ""

    def short_of_resources(self) -> RolloutSizes:
        """The sizes, without a surge that finds no resources."""
        sizes, ready = self.sizes, self.inputs.readiness.get(self.candidate.number)
        is_short = ready is not None and ready.reason in UNPLACED and "taint" not in ready.message
        waits = is_short and self.now - parse_time(self.state.since) > SHORT_AFTER
        if self.canary.surge == AUTO and sizes.surge and sizes.total > 1 and waits and not self.is_leaving:
            return replace(sizes, surge=0)
        return sizes

    def making_room(self) -> str:
        """The consequence of resources that are short, for people."""
        total = self.sizes.total
        return (
            f"{self.shortage()} One replica of {self.serving.name} makes room ({total - 1} of {total} serve meanwhile)."
        )

    def ended(self, history: RevisionHistory) -> RevisionHistory:
        """The history with the roles changed, if the rollout has ended."""
        state = history.rollout
        if state is None or state.phase not in ENDED:
            return history
        assert state.sizes is not None
        if state.phase == "Promoted":
            return history.arrive(
                self.candidate.number, self.rest(self.canary.former.keep_seconds, state.sizes.serving)
            )
        delay = self.canary.abort.scale_down_delay_seconds
        rest = self.rest(delay, state.sizes.candidate)
        return history.give_up(self.candidate.number, self.given_up(), state.message, rest)

    def rest(self, seconds: int, replicas: int) -> Rest | None:
        """The time that a revision is kept out of traffic."""
        if not seconds:
            return None
        until = self.now + dt.timedelta(seconds=seconds)
        return Rest(format_time(until), replicas)

    def given_up(self) -> str:
        """The state of a candidate whose rollout was aborted: what the spec still asks for is not tried again."""
        return "Aborted" if self.inputs.asked in ("", self.candidate.fingerprint) else "Abandoned"
