"""The claims of Experiments on an endpoint: which are taken up, what their variants are, and what these get. Pure.

Rules of this file
- A claim that was taken up stays. Of others, the oldest that can be met is met; a later one that does not fit beside it
  waits, and is told why.
- A variant is a revision of the endpoint like any other: the serving revision's spec with its overrides.
- Variants get their weights from the serving revision, which always keeps a share. With `match` they are in a branch of
  their own, and everybody else goes where they went before.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from pilotage.api.base import InvalidField
from pilotage.api.endpoint import REVISION_FIELDS, EndpointSpec
from pilotage.api.endpoint_status import PastRevision, RolloutState
from pilotage.api.experiment import ExperimentEndpoint, ExperimentSpec, ExperimentStatus
from pilotage.api.traffic import Assignment
from pilotage.api.variant import VariantSpec
from pilotage.controllers.endpoint.canary import ALL_STEPS
from pilotage.controllers.endpoint.revisions import analysis_problems
from pilotage.kube import Json, Object
from pilotage.runtime.conditions import clipped
from pilotage.serving.parts import EndpointRef
from pilotage.traffic.contract import WHOLE, Backend, Branch, Copies, Header, Mix, Stickiness
from pilotage.traffic.routers import Router

CLAIMS_MAX = 7
"""Experiments that an endpoint speaks of at a time; a step of its rollout may be one more."""
TAKEN_MAX = CLAIMS_MAX - 1
"""Experiments that are met at a time: one that is to go can always be spoken of."""
OVERRIDABLE = tuple(name for name in REVISION_FIELDS if name != "placement")
"""Fields that a variant may have of its own. It runs where its endpoint does: who may place that was asked then."""
REFUSAL_CHARS = 1000
SHARE_MAX = WHOLE - 1
"""The most that all variants together may have: the serving revision keeps a share."""


class ExperimentClaim(NamedTuple):
    """An Experiment on the endpoint."""

    name: str
    uid: str
    created: str
    spec: ExperimentSpec
    active: bool
    """Whether its variants shall be there. If not, they leave."""
    until: str = ""
    """End of its time, if it is known."""
    of_rollout: bool = False
    """Whether it is a step of the rollout that is under way, and no Experiment."""

    @property
    def weight(self) -> int:
        """The share of all its variants."""
        return sum(each.weight or 0 for each in self.spec.variants)


class EnteredVariant(NamedTuple):
    """A variant that takes part, with its Service."""

    claim: ExperimentClaim
    spec: VariantSpec
    service: str
    port: int


def read_claims(experiments: Iterable[Object], begun: Collection[str | None] = ()) -> list[ExperimentClaim]:
    """The claims of Experiments: those that were taken up, by uid, then those that are over, then the oldest first.

    One that cannot be read claims nothing: its own status says why. One that has ended claims nothing any more.
    """
    found = [claim for each in experiments if (claim := _claim(each)) is not None]
    return sorted(found, key=lambda each: (each.uid not in begun, each.active, each.created, each.uid))[:CLAIMS_MAX]


def _claim(obj: Object) -> ExperimentClaim | None:
    body = obj.to_dict()
    try:
        spec, status = ExperimentSpec.read(body.get("spec")), ExperimentStatus.read(body.get("status"))
    except InvalidField:
        return None
    if status.ended is not None:
        return None
    active = not obj.meta.terminating and not spec.terminate and status.reason is None
    meta = obj.meta
    return ExperimentClaim(meta.name, meta.uid, meta.creation_timestamp, spec, active, status.until or "")


def step_claim(endpoint: EndpointRef, state: RolloutState | None) -> ExperimentClaim | None:
    """The claim of the step that a rollout is in, if that is an experiment. Nobody else ends it."""
    canary = endpoint.spec.strategy.canary
    if state is None or canary is None or not 0 < state.step <= len(canary.steps):
        return None
    step = canary.steps[state.step - 1].experiment
    if step is None or state.phase not in ("Experimenting", "Held") or state.passed == ALL_STEPS:
        return None
    spec = ExperimentSpec(
        endpoint=ExperimentEndpoint(endpoint.name),
        variants=step.variants,
        match=step.match,
        assign=canary.assign,
        duration=step.duration,
    )
    name = f"{state.revision}-step{state.step}"
    return ExperimentClaim(name, f"{endpoint.uid}/{name}", state.since, spec, True, state.until or "", True)


def refusals(
    claims: Sequence[ExperimentClaim], serving: EndpointSpec, past: Sequence[PastRevision], router: Router
) -> dict[str, str]:
    """The sentence for each active claim that cannot be met beside the older ones, by its uid."""
    found: dict[str, str] = {}
    taken: list[ExperimentClaim] = []
    for claim in claims:
        if not claim.active:
            continue
        why = " ".join(_problems(claim, serving, past, router)) or _clash(claim, taken, router)
        why = clipped(why, REFUSAL_CHARS)
        if why:
            found[claim.uid] = why
        else:
            taken.append(claim)
    return found


def _problems(
    claim: ExperimentClaim, serving: EndpointSpec, past: Sequence[PastRevision], router: Router
) -> Iterable[str]:
    if claim.weight > SHARE_MAX:
        yield f"The weights of its variants are {claim.weight} together, and the serving revision has to keep a share."
    if serving.placement.kind == "Host" and not (claim.spec.on_hosts or claim.of_rollout):
        yield "The endpoint runs on Hosts: set onHosts, which needs the right to use them."
    if claim.spec.match is not None and any(each.mirror is not None for each in claim.spec.variants):
        yield "Copies are of all requests: take match or the mirror out."
    if claim.spec.analysis is not None and not router.measures:
        yield f"A route of kind {router.kind} does not measure requests: take analysis out."
    yield from analysis_problems(claim.spec.analysis, [each.name for each in claim.spec.variants])
    if claim.weight <= SHARE_MAX:
        yield from router.problems(_mix_of([claim]))
    for each in claim.spec.variants:
        try:
            spec = variant_spec(serving, each, past)
        except ValueError as error:
            yield f"variant {each.name}: {error}."
            continue
        if not each.same and _revisioned(spec) == _revisioned(serving):
            yield (
                f"variant {each.name} is what serves already: give it overrides, or `same: true` for a control on "
                "servers of its own."
            )


def _mix_of(claims: Sequence[ExperimentClaim]) -> Mix:
    """A mix with the variants of some claims, whose weights leave a share to what serves."""
    variants = [
        EnteredVariant(claim, each, f"{claim.uid}/{each.name}", 80) for claim in claims for each in claim.spec.variants
    ]
    return with_variants(Mix((Backend("serving", 80),)), "serving", variants)


def _clash(claim: ExperimentClaim, taken: Sequence[ExperimentClaim], router: Router) -> str:
    """The reason why it cannot be met beside those that are taken up."""
    names = ", ".join(f"experiment/{each.name}" for each in taken)
    if len(taken) >= TAKEN_MAX and not claim.of_rollout:
        return f"The endpoint has {len(taken)} experiments already ({names}): wait until one has ended."
    if (others := sum(each.weight for each in taken)) + claim.weight > SHARE_MAX:
        return (
            f"Its variants ask for {claim.weight} percent, and those of {names} have {others}: the serving revision "
            "has to keep a share. Lower the weights, or wait until the others have ended."
        )
    if any(each.spec.assign != claim.spec.assign for each in taken):
        return f"It assigns requests in another way than {names}: wait until the others have ended."
    if claim.spec.match is not None and any(each.spec.match == claim.spec.match for each in taken):
        return f"It takes the same requests as one of {names}: wait until the others have ended."
    if problems := router.problems(_mix_of([*taken, claim])):
        return f"Beside {names}: {' '.join(problems)}"
    return ""


def variant_spec(serving: EndpointSpec, variant: VariantSpec, past: Sequence[PastRevision]) -> EndpointSpec:
    """The spec of a variant. ValueError, for people, for one that there cannot be."""
    if variant.revision is not None:
        found = next((each for each in past if each.number == variant.revision), None)
        if found is None:
            raise ValueError(f"revision {variant.revision} is not in the history")
        changes: Json = {name: value for name, value in found.spec.items() if name in REVISION_FIELDS}
        base = {name: value for name, value in serving.written().items() if name not in REVISION_FIELDS}
        merged = {**base, **changes}
    else:
        changes = variant.overrides or {}
        if unknown := sorted(name for name in changes if name not in OVERRIDABLE):
            raise ValueError(f"overrides may have {', '.join(OVERRIDABLE)}, and not {clipped(unknown[0], 60)}")
        merged = _merged(serving.written(), changes)
        if "model" in changes:
            merged["model"] = changes["model"]
    try:
        spec = EndpointSpec.read(merged)
    except InvalidField as error:
        raise ValueError(f"{error.below('overrides')}: {error.reason}") from error
    if (spec.model.name is None) == (spec.model.source is None):
        raise ValueError("overrides.model: give exactly one of name and source")
    if spec.placement != serving.placement:
        raise ValueError("it runs elsewhere than what serves")
    return replace(spec, replicas=variant.replicas, autoscaling=None)


def _merged(base: Json, changes: Json) -> Json:
    """The base with some fields changed, at all depths; lists are replaced, and what is null is removed."""
    made = dict(base)
    for name, value in changes.items():
        if value is None:
            made.pop(name, None)
        elif isinstance(value, dict) and isinstance(made.get(name), dict):
            made[name] = _merged(made[name], value)
        else:
            made[name] = value
    return made


def _revisioned(spec: EndpointSpec) -> Mapping[str, object]:
    return {name: value for name, value in spec.without_defaults().items() if name in REVISION_FIELDS}


def with_variants(mix: Mix, serving: str, variants: Sequence[EnteredVariant]) -> Mix:
    """The mix with variants in it. `serving` is the Service that their weights come from.

    ValueError where it has not as much to give.
    """
    for claim in {each.claim.uid: each.claim for each in variants}.values():
        mine = [each for each in variants if each.claim.uid == claim.uid]
        weighted = tuple(Backend(each.service, each.port, each.spec.weight) for each in mine if each.spec.weight)
        copies = tuple(_copies(each) for each in mine if each.spec.mirror is not None)
        split = _less(mix.backends, serving, weighted)
        if claim.spec.match is None:
            branches = tuple(
                each._replace(backends=_less(each.backends, serving, weighted))
                if any(one.service == serving for one in each.backends)
                else each
                for each in mix.branches
            )
            mix = mix._replace(backends=split, branches=branches)
        elif weighted:
            headers = tuple(Header(each.name, each.exact) for each in claim.spec.match.headers)
            mix = mix._replace(branches=(*mix.branches, Branch(headers, split)))
        mix = mix._replace(copies=(*mix.copies, *copies), sticky=mix.sticky or sticky_of(claim.spec.assign, claim.uid))
    return mix


def sticky_of(assign: Assignment, salt: str) -> Stickiness | None:
    """The stickiness that an assignment asks for; None for one by request."""
    if assign.by != "Key":
        return None
    keys = tuple(
        ("header", each.header) if each.header is not None else ("body", each.body or "") for each in assign.key
    )
    return Stickiness(keys, salt)


def _copies(variant: EnteredVariant) -> Copies:
    mirror = variant.spec.mirror
    assert mirror is not None
    return Copies(variant.service, variant.port, mirror.percent, mirror.max_concurrent)


def _less(backends: Sequence[Backend], serving: str, given: Sequence[Backend]) -> tuple[Backend, ...]:
    """The backends with shares that come from the serving one."""
    taken = sum(each.weight for each in given)
    found = next((each for each in backends if each.service == serving), None)
    if found is None or found.weight < taken:
        raise ValueError(f"{serving} has no share of {taken} percent to give.")
    rest = tuple(each._replace(weight=each.weight - taken) if each is found else each for each in backends)
    return (*rest, *given)
