"""The revisions of an endpoint: which one is wanted, which one serves, and what each consists of. Pure.

The history in the status, with the rollout that is under way, is the only memory. The entry in state Current serves.
The candidate of a rollout is wanted; without a rollout, the last entry after the serving one that was not given up is.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import fields, replace

from pilotage.analysis.metrics import problems as metric_problems
from pilotage.api.analysis import SERVING, AnalysisSpec
from pilotage.api.endpoint import REVISION_FIELDS, EndpointSpec
from pilotage.api.endpoint_status import PastRevision, RolloutState
from pilotage.controllers.endpoint.canary import ENDED, awaits_verdict
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.kube import Json
from pilotage.kube.wire import format_time, parse_time
from pilotage.runtime.conditions import clipped
from pilotage.serving import backend, desired_objects
from pilotage.serving.parts import Capabilities, DesiredObject, EndpointRef, ResolvedModel
from pilotage.serving.placements import ServiceBackend
from pilotage.serving.problems import problems
from pilotage.serving.revision import fingerprint, replicas_of
from pilotage.serving.runtimes import RUNTIMES
from pilotage.traffic.routers import ROUTERS, Capability, route_problems

KEPT = 10
"""Length of the history."""
MESSAGE_CHARS = 400
"""Length of a message in the history."""
GIVEN_UP = ("Abandoned", "Aborted", "Variant", "Resting", "Previous")
"""States of revisions that are not wanted, unless the spec returns to them."""
HELD = ("Current", "Resting", "Variant")
"""States of revisions that never leave the history: they have parts."""
_MODEL_FIELDS = {*ResolvedModel._fields} - {"other_names"}


@dataclass(frozen=True)
class Revision:
    """One revision. Its parts are computed once, when they are asked for: there may be a thousand of them."""

    number: int
    subject: EndpointRef
    """The endpoint, with the spec of this revision."""
    model: ResolvedModel
    fingerprint: str
    capabilities: Capabilities

    @cached_property
    def parts(self) -> Sequence[DesiredObject]:
        """All its objects, and those of all revisions, in the order in which they are made."""
        return desired_objects(self.subject, self.number, self.model, self.capabilities)

    @property
    def backend(self) -> ServiceBackend:
        """Its Service and the port."""
        return backend(self.subject, self.number)

    def answers_to(self, name: str) -> bool:
        """Whether its servers accept a name of the model in requests."""
        if RUNTIMES[self.subject.spec.runtime.name].answers_any_name:
            return True
        return name in (self.model.name, *self.model.other_names)

    @property
    def name(self) -> str:
        """Name for people."""
        return f"{self.subject.name}-{self.number}"


class RequestedRevision(NamedTuple):
    """The revision that a spec asks for, with its Model looked up. Equal fingerprints are the same revision."""

    model: ResolvedModel
    fingerprint: str


def requested(
    subject: EndpointRef,
    model: ResolvedModel | EndpointProblem,
    capabilities: Capabilities,
    canary_refusal: str = "",
) -> RequestedRevision | EndpointProblem:
    """The revision that a spec asks for, or why there can be none.

    `canary_refusal`: the reason why its route cannot have weights in this cluster, in a sentence; empty: none.
    """
    if isinstance(model, EndpointProblem):
        return model
    spec = subject.spec
    wrong = [*problems(subject, model, capabilities), *route_problems(spec), *canary_problems(spec, canary_refusal)]
    if wrong:
        return EndpointProblem("InvalidSpec", " ".join(wrong))
    return RequestedRevision(model, fingerprint(spec, model))


def canary_problems(spec: EndpointSpec, refusal: str = "") -> list[str]:
    """Why requests cannot move in steps, in sentences for people; empty if they can."""
    canary, router = spec.strategy.canary, ROUTERS.get(spec.route.kind)
    if spec.strategy.type != "Canary" or canary is None or router is None:
        return []
    found = []
    others = " or ".join(each.kind for each in ROUTERS.values() if Capability.WEIGHTS in each.can)
    if refusal:
        found.append(f"{refusal} Instead, use {others}, or strategy BlueGreen.")
    elif Capability.WEIGHTS not in router.can and not router.may_pair:
        found.append(
            f"A route of kind {router.kind} has no weights, which a Canary needs: use {others}, or strategy BlueGreen."
        )
    if canary.match is not None and Capability.MATCH not in router.can:
        found.append(f"A route of kind {router.kind} cannot choose requests by a header: take canary.match out.")
    if canary.assign.by == "Key" and Capability.STICKY not in router.can:
        found.append(f"A route of kind {router.kind} cannot assign requests by a key: take canary.assign out.")
    found += analysis_problems(canary.analysis, ())
    if not router.measures and awaits_verdict(canary) is not None:
        found.append(f"A route of kind {router.kind} does not measure requests: take the analysis out.")
    if replicas_of(spec) == 1 and canary.surge in (0, "0%"):
        found.append(
            "One replica and surge 0 would leave no server in between: use surge 1 with another node or host for one "
            "more replica, or two replicas, or strategy Recreate."
        )
    return found


def analysis_problems(analysis: AnalysisSpec | None, variants: Sequence[str]) -> list[str]:
    """Why an analysis cannot be made, in sentences for people. `variants`: names that it may compare with."""
    if analysis is None:
        return []
    found = [f"analysis: {each}." for each in metric_problems(analysis)]
    if analysis.against not in (SERVING, *variants):
        found.append(
            f"analysis.against: there is no variant {analysis.against}: use {', '.join((SERVING, *variants))}."
        )
    if analysis.sources:
        found.append("This operator asks no sources but its gateway: take analysis.sources out.")
    return found


class Rest(NamedTuple):
    """Time until which a revision is kept out of traffic, and with how many replicas."""

    until: str | None
    replicas: int | None


class RevisionHistory(NamedTuple):
    """The revisions that are remembered, oldest first."""

    past: tuple[PastRevision, ...] = ()
    """Revisions as the status has them."""
    revisions: tuple[Revision, ...] = ()
    """The same revisions; a field that changes in place has the value of the endpoint's spec now, and replicas are
    those of the revision's role."""
    rollout: RolloutState | None = None
    """The rollout that is under way, or the last one."""

    @classmethod
    def read(
        cls, written: Iterable[Json], subject: EndpointRef, capabilities: Capabilities, rollout: object = None
    ) -> RevisionHistory:
        """Read `status.history` and `status.rollout`. Raises ValueError for what no operator has written."""
        past = tuple(PastRevision.read(each) for each in written)
        found = cls(past, (), RolloutState.read(rollout) if rollout is not None else None)
        sizes = found._sizes()
        return found._replace(revisions=tuple(_revision(each, subject, capabilities, sizes) for each in past))

    def _sizes(self) -> dict[int, ReplicaBounds]:
        """Replicas of the revisions that have others than the spec says, by number."""
        found = {past.number: ReplicaBounds(past.replicas, True) for past in self.past if past.replicas is not None}
        rollout, candidate = self.under_way, self._candidate
        if rollout is not None and rollout.sizes is not None and candidate is not None:
            exact = not rollout.sizes.surge
            serving = [number for number, state in self.states.items() if state == "Current"]
            found |= {number: ReplicaBounds(rollout.sizes.serving, exact) for number in serving}
            found[candidate] = ReplicaBounds(rollout.sizes.candidate, exact)
        return found

    @property
    def under_way(self) -> RolloutState | None:
        """The rollout that has not ended."""
        return self.rollout if self.rollout is not None and self.rollout.phase not in ENDED else None

    @property
    def _candidate(self) -> int | None:
        """The number of the candidate."""
        if self.under_way is None:
            return None
        name = self.under_way.revision.rpartition("-")[2]
        return next((past.number for past in self.past if str(past.number) == name), None)

    def written(self) -> Json:
        """`history` and `rollout` of the status."""
        made: Json = {"history": [each.written() for each in self.past]}
        return made if self.rollout is None else made | {"rollout": self.rollout.written()}

    @property
    def states(self) -> dict[int, str]:
        """The state of each revision, by its number."""
        return {each.number: each.state for each in self.past}

    @property
    def wanted(self) -> Revision | None:
        """The revision that shall serve."""
        candidate, serving = self._candidate, self.serving
        if candidate is not None:
            return next(each for each in self.revisions if each.number == candidate)
        open_ = [each for each in self.revisions if self.states[each.number] not in GIVEN_UP]
        if serving is None:
            served = [each for each in self.revisions if self.states[each.number] == "Previous"]
            return max((*open_, *served), key=lambda each: each.number, default=None)
        return max((each for each in open_ if each.number >= serving.number), key=lambda each: each.number)

    @property
    def wanted_since(self) -> str:
        """Time at which the wanted revision was created."""
        assert self.wanted is not None
        return next(past.created for past in self.past if past.number == self.wanted.number)

    @property
    def serving(self) -> Revision | None:
        """The revision that serves."""
        current = [number for number, state in self.states.items() if state == "Current"]
        return next((each for each in self.revisions if each.number in current), None)

    @property
    def served(self) -> bool:
        """Whether a revision serves, or has served."""
        return any(past.state in ("Current", "Previous", "Resting") for past in self.past)

    def begin(
        self,
        subject: EndpointRef,
        asked: RequestedRevision,
        capabilities: Capabilities,
        now: dt.datetime,
        rollout: RolloutState | None = None,
    ) -> RevisionHistory:
        """The history with one more revision, which is the wanted one from now on; `rollout` leads to it, if any."""
        new = PastRevision(
            number=self.next_number,
            created=format_time(now),
            state="Starting",
            fingerprint=asked.fingerprint,
            spec=subject.spec.written(),
            model={name: value for name, value in asked.model._asdict().items() if isinstance(value, str)},
            names=[each for each in self._other_names(subject) if each != asked.model.name],
        )
        former = self._abandon(lambda past: past.state == "Starting", f"Revision {new.number} was asked for instead.")
        held = [past for past in former.past if past.state in HELD or past.until is not None]
        others = [past for past in former.past if past not in held and past.experiment is None]
        others = others[-max(KEPT - 1 - len(held), 1) :]
        kept = {past.number for past in (*held, *others, *former.ended_variants()[-KEPT:])}
        made = RevisionHistory((*(past for past in former.past if past.number in kept), new), (), rollout)
        size = made._sizes()
        revisions = (
            *(each for each in self.revisions if each.number in kept),
            _revision(new, subject, capabilities, size),
        )
        return made._replace(revisions=revisions, rollout=rollout or self.rollout)

    def begin_variant(
        self,
        subject: EndpointRef,
        asked: RequestedRevision,
        capabilities: Capabilities,
        now: dt.datetime,
        variant: tuple[str, str],
    ) -> RevisionHistory:
        """The history with one more revision, for a variant: the uid of its experiment, and its name.

        `subject` has the spec of the variant. The wanted revision stays the same.
        """
        experiment, name = variant
        new = PastRevision(
            number=self.next_number,
            created=format_time(now),
            state="Variant",
            fingerprint=asked.fingerprint,
            spec=subject.spec.written(),
            model={name: value for name, value in asked.model._asdict().items() if isinstance(value, str)},
            names=[each for each in self._other_names(subject) if each != asked.model.name],
            replicas=subject.spec.replicas,
            experiment=experiment,
            variant=name,
        )
        gone = {past.number for past in self.ended_variants()[:-KEPT]}
        made = self._replace(past=(*(past for past in self.past if past.number not in gone), new))
        revisions = (each for each in self.revisions if each.number not in gone)
        return made._replace(revisions=(*revisions, _revision(new, subject, capabilities, made._sizes())))

    def ended_variants(self) -> list[PastRevision]:
        """The entries of variants that are over, the oldest first."""
        return [past for past in self.past if past.experiment and past.state != "Variant" and past.until is None]

    def variants(self) -> list[Revision]:
        """The revisions of variants that are not over."""
        return [each for each in self.revisions if self.states[each.number] == "Variant"]

    def _other_names(self, subject: EndpointRef) -> list[str]:
        """Names of the route while a revision follows the one that serves: a server that lacks one answers 404."""
        return [*dict.fromkeys([subject.name, *([self.serving.model.name] if self.serving is not None else [])])]

    @property
    def next_number(self) -> int:
        """The number of the next revision."""
        return max((each.number for each in self.past), default=0) + 1

    def arrive(self, number: int, rest: Rest | None = None) -> RevisionHistory:
        """The history once a revision serves; the one that served before may rest, and no other one does any more."""

        def change(past: PastRevision) -> PastRevision:
            if past.number == number:
                return replace(past, state="Current", message="", until=None, replicas=None)
            if past.state not in ("Current", "Resting"):
                return past
            if rest is None or past.state == "Resting":
                return replace(past, state="Previous", until=None)
            return replace(past, state="Resting", until=rest.until, replicas=rest.replicas)

        return self._change(change)

    def give_up(self, number: int, state: str, message: str, rest: Rest | None = None) -> RevisionHistory:
        """The history once the rollout of a revision was aborted. One that has served is a former one again."""

        def change(past: PastRevision) -> PastRevision:
            if past.number != number:
                return past
            kept = rest or Rest(None, None)
            said = clipped(message, MESSAGE_CHARS)
            return replace(past, state=state, message=said, until=kept.until, replicas=kept.replicas)

        return self._change(change)

    def expire(self, now: dt.datetime) -> RevisionHistory:
        """The history after the time of revisions that are kept out of traffic is over."""

        def change(past: PastRevision) -> PastRevision:
            if past.until is None or parse_time(past.until) > now:
                return past
            state = "Previous" if past.state == "Resting" else past.state
            return replace(past, state=state, until=None)

        return self._change(change)

    def expiring(self, now: dt.datetime) -> list[float]:
        """Seconds until the time of each such revision is over."""
        return [(parse_time(past.until) - now).total_seconds() for past in self.past if past.until is not None]

    def kept(self) -> list[Revision]:
        """The revisions that are kept out of traffic for a while."""
        numbers = {past.number for past in self.past if past.until is not None}
        return [each for each in self.revisions if each.number in numbers]

    def aborted(self, fingerprint: str) -> PastRevision | None:
        """The last revision that was begun, if it has this fingerprint and its rollout was aborted."""
        begun = [past for past in self.past if past.state != "Variant" and past.experiment is None]
        last = max(begun, key=lambda past: past.number, default=None)
        return last if last is not None and (last.state, last.fingerprint) == ("Aborted", fingerprint) else None

    def forgive(self, fingerprint: str) -> RevisionHistory:
        """The history once the spec asks for something else than what was aborted: that may be tried again then."""

        def forgiven(past: PastRevision) -> PastRevision:
            other = past.state == "Aborted" and past.fingerprint != fingerprint
            return replace(past, state="Abandoned") if other else past

        return self._change(forgiven)

    def fail(self, number: int, message: str) -> RevisionHistory:
        """The history once a revision cannot become available as it is. It stays the wanted one."""
        return self._with_state(number, "Failed", clipped(message, MESSAGE_CHARS))

    def start(self, number: int) -> RevisionHistory:
        """The history while a revision may become available."""
        return self._with_state(number, "Starting")

    def return_to(self, number: int) -> RevisionHistory:
        """The history once the spec asks again for a revision that still has its parts: later ones are abandoned."""
        message = f"The spec returned to revision {number}."
        returned = self._abandon(lambda past: past.number > number and past.state not in HELD, message)
        return returned if self.states[number] == "Current" else returned._without_role(number).start(number)

    def _without_role(self, number: int) -> RevisionHistory:
        """The history with a revision that is no variant any more: its role changes, and it is not started anew."""
        free = {"experiment": None, "variant": None, "until": None, "replicas": None}
        return self._change(lambda past: replace(past, **free) if past.number == number else past)

    def depart(self) -> RevisionHistory:
        """The history once the revision that served is gone, before another one serves."""
        return self._change(lambda past: replace(past, state="Previous") if past.state == "Current" else past)

    def _abandon(self, which: Callable[[PastRevision], bool], message: str) -> RevisionHistory:
        """The history without hope for some revisions. Why one failed before stays in its message."""

        def abandoned(past: PastRevision) -> PastRevision:
            said = past.message if past.state in ("Failed", "Abandoned") else message
            return replace(past, state="Abandoned", message=said) if which(past) else past

        return self._change(abandoned)

    def _with_state(self, number: int, state: str, message: str = "") -> RevisionHistory:
        return self._change(lambda past: replace(past, state=state, message=message) if past.number == number else past)

    def _change(self, change: Callable[[PastRevision], PastRevision]) -> RevisionHistory:
        return self._replace(past=tuple(change(past) for past in self.past))


class ReplicaBounds(NamedTuple):
    """Number of replicas that a role gives a revision."""

    replicas: int
    exact: bool
    """Whether an autoscaler may not give it more."""

    def of(self, spec: EndpointSpec) -> EndpointSpec:
        """A spec with these replicas."""
        scaling = spec.autoscaling
        if scaling is None:
            return replace(spec, replicas=self.replicas)
        if not self.replicas:
            return replace(spec, replicas=0, autoscaling=None)
        most = self.replicas if self.exact else max(scaling.max, self.replicas)
        return replace(spec, autoscaling=replace(scaling, min=self.replicas, max=most))


def _revision(
    past: PastRevision, subject: EndpointRef, capabilities: Capabilities, sizes: Mapping[int, ReplicaBounds]
) -> Revision:
    then = EndpointSpec.read({name: value for name, value in past.spec.items() if name in REVISION_FIELDS})
    revisioned = [each.name for each in fields(EndpointSpec) if each.encode_name in REVISION_FIELDS]
    spec = replace(subject.spec, **{name: getattr(then, name) for name in revisioned})
    if past.number in sizes:
        spec = sizes[past.number].of(spec)
    known = {name: value for name, value in past.model.items() if name in _MODEL_FIELDS}
    try:
        model = ResolvedModel(**known, other_names=tuple(past.names))
    except TypeError as error:
        raise ValueError(f"revision {past.number}: {error}") from error
    return Revision(past.number, subject._replace(spec=spec), model, past.fingerprint, capabilities)
