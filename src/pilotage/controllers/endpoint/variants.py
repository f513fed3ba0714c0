"""The variants of experiments on an endpoint, from their first part to the proof that nothing is left of them. Pure.

`experiments` says which claims can be met and what their variants get; here it is worked out how far each one is.

    Starting → all available → Entering → the route is proven → Running
        any of these, the claim ends → Leaving → out of the route, drained → Stopping → everything proven gone → Gone

- The variants of one experiment enter together, and leave together.
- Variants whose Experiment is gone leave all the same.
- While an experiment is under way, the endpoint keeps what serves: else what is compared with would change.
"""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pilotage.api.analysis import SERVING, AnalysisSpec
from pilotage.api.endpoint import EndpointSpec
from pilotage.api.endpoint_status import ClaimedExperiment, ClaimedVariant, PastRevision, Replicas, VariantShare
from pilotage.api.variant import VariantSpec
from pilotage.controllers.endpoint.experiments import EnteredVariant, ExperimentClaim, with_variants
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.endpoint.revisions import RequestedRevision, Rest, Revision, RevisionHistory
from pilotage.controllers.routing import Routed
from pilotage.kube.wire import format_time
from pilotage.runtime.conditions import clipped
from pilotage.serving.parts import Readiness
from pilotage.traffic.contract import WHOLE, Backend, Mix

UNDER_WAY = ("Entering", "Running")
TEXT_CHARS = 1000
"""Length of a message: what it quotes may be as long as others like."""
WAITS_FOR_ROLLOUT = "It waits until the rollout of the endpoint is over."
WAITS_FOR_SERVING = "It waits until the endpoint serves."


class RequestedVariant(NamedTuple):
    """A variant that a claim asks for, with its Model looked up."""

    spec: EndpointSpec
    revision: RequestedRevision | EndpointProblem


class ExperimentInputs(NamedTuple):
    """Everything that was observed of the experiments on an endpoint."""

    claims: Sequence[ExperimentClaim] = ()
    """Claims, the oldest first."""
    refused: Mapping[str, str] = {}
    """Sentences for the claims that cannot be met, by uid."""
    requested: Mapping[tuple[str, str], RequestedVariant] = {}
    """Variants of the claims that can be met, by uid and name."""
    before: Sequence[ClaimedExperiment] = ()
    """Claims as the status has them."""
    mix: Mix = Mix()
    """Mix that the route says."""


class Variants(NamedTuple):
    """The variants of an endpoint, with what was observed of them."""

    history: RevisionHistory
    inputs: ExperimentInputs
    readiness: Mapping[int, Readiness]
    running: Collection[str]
    """Labels of revisions that have parts."""
    unfinished: int
    """Number of unfinished Teardowns of the endpoint's parts."""

    @property
    def accepted(self) -> list[ExperimentClaim]:
        """The claims that are met."""
        return [each for each in self.inputs.claims if each.active and each.uid not in self.inputs.refused]

    def past(self, claim: ExperimentClaim, name: str) -> PastRevision | None:
        """The entry of a variant in the history."""
        mine = (each for each in reversed(self.history.past) if (each.experiment, each.variant) == (claim.uid, name))
        return next(mine, None)

    def revision(self, claim: ExperimentClaim, name: str) -> Revision | None:
        """The revision of a variant that is not over."""
        past = self.past(claim, name)
        if past is None or past.state != "Variant":
            return None
        return next(each for each in self.history.revisions if each.number == past.number)

    # What is made

    def missing(self) -> tuple[ExperimentClaim, VariantSpec, RequestedVariant] | None:
        """The first variant that has to begin, and can."""
        if self.history.serving is None:
            return None
        for claim in self.accepted:
            if self.history.under_way is not None and not claim.of_rollout:
                continue
            for each in claim.spec.variants:
                asked = self.inputs.requested.get((claim.uid, each.name))
                if asked is None or isinstance(asked.revision, EndpointProblem):
                    continue
                if self.revision(claim, each.name) is None:
                    return claim, each, asked
        return None

    def kept(self) -> list[Revision]:
        """The revisions of variants whose claims are met: they are kept up."""
        found = (self.revision(claim, each.name) for claim in self.accepted for each in claim.spec.variants)
        return [each for each in found if each is not None]

    def analysis(self) -> AnalysisSpec | None:
        """The analysis with the longest warm-up of those that the claims ask for; None: there is no claim."""
        asked = [each.spec.analysis or AnalysisSpec() for each in self.accepted]
        return max(asked, key=lambda each: each.warmup_seconds, default=None)

    def holds(self) -> EndpointProblem | None:
        """The reason why the endpoint keeps what serves, if an experiment is under way."""
        for claim in self.accepted:
            begun = any(self.revision(claim, each.name) is not None for each in claim.spec.variants)
            if begun and not claim.of_rollout:
                until = f" until {claim.until}" if claim.until else ""
                return EndpointProblem(
                    "ExperimentRuns",
                    f"experiment/{claim.name} runs{until}, and what it compares with has to stay. End it with "
                    f"`pilotage terminate {claim.name}`, or wait: then the new spec is rolled out.",
                    waits=True,
                )
        return None

    # What they get

    def entered(self) -> list[EnteredVariant]:
        """The variants that take part: those of an experiment whose variants are all available, or were.

        One that the route names stays in it when a server is lost.
        """
        mix = self.inputs.mix
        found: list[EnteredVariant] = []
        for claim in self.accepted:
            mine = [(each, self.revision(claim, each.name)) for each in claim.spec.variants]
            made = [(each, revision) for each, revision in mine if revision is not None]
            if len(made) < len(mine) and not any(one.backend.service in mix.services for _, one in made):
                continue
            named = {revision.number for _, revision in made if revision.backend.service in mix.services}
            able = {revision.number for _, revision in made if self._is_available(revision)}
            if named or len(able) == len(made):
                taken = named | able
                found += [EnteredVariant(claim, each, *one.backend) for each, one in made if one.number in taken]
        return found

    def mixed(self, base: Mix) -> Mix:
        """The mix with the variants that take part."""
        serving = self.history.serving
        entered = self.entered()
        if serving is None or not entered:
            return base
        try:
            return with_variants(base, serving.backend.service, entered)
        except ValueError:
            return base  # the serving revision has too little to give, in the middle of a rollout: they wait

    def _is_available(self, revision: Revision) -> bool:
        ready = self.readiness.get(revision.number)
        return ready is not None and ready.available

    # What follows

    def ended(self, routed: Routed, now: dt.datetime) -> RevisionHistory:
        """The history with the variants over that no claim is about any more, and that are out of the route."""
        history, claims = self.history, {each.uid: each for each in self.inputs.claims}
        wanted = {(claim.uid, each.name) for claim in self.accepted for each in claim.spec.variants}
        backends = {each.number: each.backend.service for each in self.history.revisions}
        for past in self.history.past:
            if past.state != "Variant" or (past.experiment, past.variant) in wanted:
                continue
            if not routed.done or backends[past.number] in routed.mix.services:
                continue
            claim = claims.get(past.experiment or "")
            delay = claim.spec.scale_down_delay_seconds if claim is not None else 0
            until = format_time(now + dt.timedelta(seconds=delay)) if delay else None
            message = f"It was variant {past.variant} of an experiment that has ended."
            history = history.give_up(past.number, "Abandoned", message, Rest(until, past.replicas))
        return history

    def claimed(self, wanted: Mix, routed: Routed | None) -> list[ClaimedExperiment]:
        """`status.experiments`."""
        return [self._claimed(each, wanted, routed) for each in self.inputs.claims]

    def _claimed(self, claim: ExperimentClaim, wanted: Mix, routed: Routed | None) -> ClaimedExperiment:
        refusal = self.inputs.refused.get(claim.uid, "")
        phase = self._phase(claim, wanted, routed)
        serving = self.history.serving
        return ClaimedExperiment(
            name=claim.name,
            uid=claim.uid,
            phase=phase,
            message=clipped(refusal or self._message(claim, phase, routed), TEXT_CHARS),
            variants=[self._variant(claim, each, wanted, routed) for each in claim.spec.variants],
            serving=self._side(SERVING, serving, _share(serving, wanted, routed), routed) if serving else None,
        )

    def _phase(self, claim: ExperimentClaim, wanted: Mix, routed: Routed | None) -> str:
        pasts = [past for each in claim.spec.variants if (past := self.past(claim, each.name)) is not None]
        if not claim.active:
            if any(each.state == "Variant" for each in pasts):
                return "Leaving"
            parts = {str(each.number) for each in pasts} & {*self.running}
            waits = any(each.until is not None for each in pasts)
            return "Stopping" if parts or waits or (pasts and self.unfinished) else "Gone"
        if claim.uid in self.inputs.refused:
            return "Refused"
        if self._wait(claim) and not any(each.state == "Variant" for each in pasts):
            return "Waiting"
        services = {each.service for each in self.entered() if each.claim.uid == claim.uid}
        if not services or not services <= wanted.services:
            return "Starting"
        was = next((each.phase for each in self.inputs.before if each.uid == claim.uid), "")
        if routed is not None and (routed.done or (was == "Running" and routed.mix == wanted)):
            return "Running"
        return "Entering"

    def of_step(self, wanted: Mix, routed: Routed | None) -> str:
        """The phase of the experiment that is a step of the rollout; empty: there is none."""
        claim = next((each for each in self.inputs.claims if each.of_rollout), None)
        return self._phase(claim, wanted, routed) if claim is not None else ""

    def _wait(self, claim: ExperimentClaim) -> str:
        """The reason why its variants cannot begin yet; empty: they can."""
        if self.history.serving is None:
            return WAITS_FOR_SERVING
        return WAITS_FOR_ROLLOUT if self.history.under_way is not None and not claim.of_rollout else ""

    def _message(self, claim: ExperimentClaim, phase: str, routed: Routed | None) -> str:
        if phase == "Waiting":
            return self._wait(claim)
        return routed.text if routed is not None and phase in ("Entering", "Leaving") and not routed.done else ""

    def _variant(self, claim: ExperimentClaim, spec: VariantSpec, wanted: Mix, routed: Routed | None) -> ClaimedVariant:
        revision = self.revision(claim, spec.name)
        asked = self.inputs.requested.get((claim.uid, spec.name))
        if revision is None:
            stuck = asked.revision if asked is not None else None
            message = stuck.message if isinstance(stuck, EndpointProblem) and claim.active else ""
            return ClaimedVariant(name=spec.name, message=clipped(message, TEXT_CHARS))
        if spec.mirror is not None:
            now = routed.mix if routed is not None and routed.proven else Mix()
            copied = next((each.percent for each in now.copies if each.service == revision.backend.service), 0)
            share = VariantShare(wanted=spec.mirror.percent, programmed=copied if now.backends else None)
        else:
            share = _share(revision, wanted, routed)
        return self._side(spec.name, revision, share, routed)

    def _side(self, name: str, revision: Revision, share: VariantShare, routed: Routed | None) -> ClaimedVariant:
        ready = self.readiness.get(revision.number)
        service = revision.backend.service
        return ClaimedVariant(
            name=name,
            revision=revision.number,
            service=service,
            replicas=Replicas(ready.ready, ready.desired) if ready is not None else Replicas(),
            share=share,
            in_flight=routed.in_flight.get(service) if routed is not None else None,
            message=clipped(ready.message, TEXT_CHARS) if ready is not None and not ready.available else "",
        )


def _share(revision: Revision, wanted: Mix, routed: Routed | None) -> VariantShare:
    """The share of a revision, in the branch where it has most."""
    service = revision.backend.service
    programmed = _weight(routed.mix, service) if routed is not None and routed.proven else None
    effective = (routed.effective or {}).get(service) if routed is not None else None
    return VariantShare(wanted=_weight(wanted, service), programmed=programmed, effective=effective)


def _weight(mix: Mix, service: str) -> int:
    branches: list[tuple[Backend, ...]] = [each.backends for each in mix.branches] or [mix.backends]
    weights = [each.weight for backends in (mix.backends, *branches) for each in backends if each.service == service]
    return min(max(weights, default=0), WHOLE)
