"""A rollout in steps, by the status of its endpoint: its steps, its two sides, and the commands that apply. Pure."""

from collections.abc import Iterator
from shlex import quote
from typing import Any, Literal, NamedTuple

from pilotage.api.endpoint_status import RolloutState, StoredEndpoint, VariantShare
from pilotage.rollout.revisions import retriable_revision, revision_named
from pilotage.teardown.snapshot.fields import entries, mapping, text

ENDS = ("Promoted", "Aborted")
"""Phases in which a rollout has ended."""
WITH_END = ("pause", "analysis", "job", "experiment")
"""Steps that a promotion ends. The others end with a proof, and with nothing else."""


class ShownStep(NamedTuple):
    """One step of a rollout."""

    number: int
    name: str
    """The step in words: `setWeight 25`, `pause 10m`."""
    state: Literal["done", "active", "later"]
    ended: str = ""
    """Time at which it ended; empty if that is not known."""


class ShownSide(NamedTuple):
    """One of the two revisions of a rollout."""

    revision: str
    role: Literal["serving", "candidate"]
    replicas: str
    share: VariantShare
    measured: str
    """Values of the last verdict, in words."""


def under_way(endpoint: StoredEndpoint) -> RolloutState | None:
    """The rollout that has not ended, if there is one."""
    state = endpoint.status.rollout
    return state if state is not None and state.phase not in ENDS else None


def shift(endpoint: StoredEndpoint) -> str:
    """The shift that is under way, for a cell of a table: `25 % to a-8, step 3 of 9`; empty if there is none."""
    state = under_way(endpoint)
    if state is None:
        return ""
    share = share_words(state.weight)
    if state.phase == "Aborting":
        return f"back from {state.revision}, which has {share}"
    held = "held, " if state.phase == "Held" else ""
    where = f"step {state.step} of {state.of}" if state.step else "before its first step"
    return f"{held}{share} to {state.revision}, {where}"


def share_words(share: VariantShare) -> str:
    """A share in words: what every proxy has, and what is wanted if that is another one."""
    if share.programmed is None:
        return f"{share.wanted} % (not proven)"
    return f"{share.wanted} %" if share.programmed == share.wanted else f"{share.programmed} → {share.wanted} %"


def raw_steps(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps as the user wrote them."""
    return entries(spec, "strategy", "canary", "steps")


def kind_of_step(step: dict[str, Any]) -> str:
    """The field of a step that is set."""
    return next(iter(step), "")


def step_name(step: dict[str, Any]) -> str:
    """A step in words."""
    kind = kind_of_step(step)
    value = step.get(kind)
    match kind:
        case "setWeight":
            return f"setWeight {value}"
        case "setScale":
            return f"setScale {_scale(mapping(step, kind))}"
        case "pause":
            return f"pause {text(step, kind, 'duration') or 'until promoted'}"
        case "analysis":
            return f"analysis, at most {text(step, kind, 'atMost') or '30m'}"
        case "job":
            return f"job {text(step, kind, 'image')}"
        case _:
            return f"{kind} {text(step, kind, 'duration')}".rstrip()


def _scale(scale: dict[str, Any]) -> str:
    if "percent" in scale:
        return f"{scale['percent']} %"
    return str(scale["replicas"]) if "replicas" in scale else "as its weight needs"


def current_step(endpoint: StoredEndpoint) -> dict[str, Any]:
    """The step that a rollout is in; empty where it is in none."""
    state, steps = under_way(endpoint), raw_steps(endpoint.spec)
    return steps[state.step - 1] if state is not None and 0 < state.step <= len(steps) else {}


def phase_words(endpoint: StoredEndpoint) -> str:
    """The phase of a rollout, with its step and the reason: `Pausing, pause 10m`."""
    state, step = endpoint.status.rollout, current_step(endpoint)
    if state is None:
        return ""
    in_step = bool(step) and state.phase not in ("Promoting", "Aborting")
    return ": ".join(filter(None, (f"{state.phase}, {step_name(step)}" if in_step else state.phase, state.message)))


def shown_steps(endpoint: StoredEndpoint) -> list[ShownStep]:
    """The steps of the rollout under way, or of the last one."""
    state = endpoint.status.rollout
    if state is None:
        return []
    over = state.phase in ("Promoting", "Promoted")
    return [
        ShownStep(
            number,
            step_name(step),
            "done" if over or number < state.step else "active" if number == state.step else "later",
            _ended(state, number) if over or number < state.step else "",
        )
        for number, step in enumerate(raw_steps(endpoint.spec), 1)
    ]


def _ended(state: RolloutState, number: int) -> str:
    """The time of the first transition into a later step, or of the promotion; they are noted in order."""
    begun = next((at for at, each in enumerate(state.decisions) if each.step == number), None)
    if begun is None:
        return ""
    later = (each.at for each in state.decisions[begun:] if each.step > number or each.what == "Promoting")
    return next(later, "")


def shown_sides(endpoint: StoredEndpoint) -> list[ShownSide]:
    """The two sides of the rollout under way."""
    state = under_way(endpoint)
    if state is None:
        return []
    weight = state.weight
    rest = VariantShare(
        100 - weight.wanted,
        None if weight.programmed is None else 100 - weight.programmed,
        None if weight.effective is None else 100 - weight.effective,
    )
    metrics = state.verdict.metrics if state.verdict is not None else []
    serving = ", ".join(f"{each.name} {each.other}" for each in metrics if each.other)
    candidate = ", ".join(f"{each.name} {each.candidate}" for each in metrics if each.candidate)
    return [
        ShownSide(endpoint.status.revision or "", "serving", state.replicas.serving, rest, serving),
        ShownSide(state.revision, "candidate", state.replicas.candidate, weight, candidate),
    ]


def next_commands(endpoint: StoredEndpoint) -> list[str]:
    """The commands that take a rollout on or back, the likely one first."""
    state = endpoint.status.rollout
    if state is None:
        return []
    words = f"{quote(endpoint.metadata.name)} -n {quote(endpoint.metadata.namespace)}"
    return [f"pilotage {command}".replace(" NAME", f" {words}") for command in _commands(endpoint, state)]


def _commands(endpoint: StoredEndpoint, state: RolloutState) -> Iterator[str]:
    if state.phase == "Aborted" and retriable_revision(endpoint) is not None:
        yield from ("retry NAME", "rollback NAME")
    elif state.phase == "Promoted" and any(each.state == "Resting" for each in endpoint.status.history):
        yield "rollback NAME"
    if state.phase in (*ENDS, "Aborting"):
        return
    if is_held_by_request(endpoint):
        yield "hold NAME --release"
    elif kind_of_step(current_step(endpoint)) in WITH_END and state.phase != "Promoting":
        yield "promote NAME"
    yield "abort NAME"


def waits_for_person(endpoint: StoredEndpoint) -> bool:
    """Whether the rollout under way stays where it is until somebody acts.

    An analysis pauses only once its time is over without a result.
    """
    state = under_way(endpoint)
    if state is None or state.phase != "Pausing":
        return state is not None and state.phase == "Held"
    return not text(current_step(endpoint), "pause", "duration")


def is_held_by_request(endpoint: StoredEndpoint) -> bool:
    """Whether a person holds the rollout under way."""
    from pilotage.api.names import ANNOTATION_HOLD

    state = under_way(endpoint)
    return state is not None and endpoint.metadata.annotations.get(ANNOTATION_HOLD) == state.revision


def model_in(endpoint: StoredEndpoint, revision: str) -> dict[str, Any]:
    """The spec of a revision on record, by its name; empty where there is none."""
    past = revision_named(endpoint, revision)
    return past.spec if past is not None else {}
