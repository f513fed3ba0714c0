"""Experiments that do not go on: what their status says that they wait for, and why their endpoint is not ready."""

from collections.abc import Iterator
from shlex import quote

from pilotage.api.names import ENDPOINTS, EXPERIMENT_FINALIZER, EXPERIMENTS
from pilotage.kube import Json
from pilotage.teardown.diagnosis.remedies import EDIT, LOOK, Remedy, delete_by_hand, look_at, place
from pilotage.teardown.diagnosis.why.codes import NOTES, CauseCode
from pilotage.teardown.diagnosis.why.context import PATIENCE_SECONDS, WhyContext
from pilotage.teardown.diagnosis.why.controllers import short
from pilotage.teardown.diagnosis.why.families.own_readiness import not_acted_on, not_ready
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.fields import condition, seconds_since, text
from pilotage.teardown.snapshot.world import Item


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Why an Experiment that was asked about, and is not being deleted, does not run."""
    if item.group_kind != EXPERIMENTS.group_kind or item.terminating or not context.asked_about(item):
        return
    body = context.body(item)
    if body is None:
        return
    accepted = condition(body, "Accepted")
    if accepted.get("status") == "False":
        yield _refused(item, text(accepted, "message"))
    elif found := not_acted_on(context, item, body, EXPERIMENT_FINALIZER):
        yield found
    elif waiting := text(body, "status", "waitingFor"):
        yield _waiting(context, item, body, waiting)


def _refused(item: Item, message: str) -> StuckCause:
    change = Remedy(
        "Change its spec, or what its status names",
        f"kubectl edit {place(item)}",
        "It is taken up by itself once the reason is gone.",
        EDIT,
        item,
    )
    evidence = (f"The status of {item} says so.",)
    return StuckCause(
        CauseCode.EXPERIMENT_REFUSED, item, f"REFUSED: {short(message)}", evidence, remedies=(change, _give_up(item))
    )


def _waiting(context: WhyContext, item: Item, body: Json, waiting: str) -> StuckCause:
    """The step from its status to its endpoint; a note, while nothing is wrong and it is in time."""
    endpoint = context.world.find(*ENDPOINTS.group_kind, item.meta.namespace, text(body, "spec", "endpoint", "name"))
    further: tuple[StuckCause, ...] = ()
    if endpoint is not None:
        further = tuple(each for each in not_ready(context, endpoint) if each.code not in NOTES)
    elif not context.world.problem(*ENDPOINTS.group_kind, item.meta.namespace):
        further = (_missing(item, text(body, "spec", "endpoint", "name")),)
    age = seconds_since(context.now, item.meta.creation_timestamp) or 0.0
    phase = text(body, "status", "phase") or "Pending"
    late = phase == "Running" or (phase == "Pending" and age > PATIENCE_SECONDS)
    look = look_at(endpoint or item, "See what its endpoint reports", "Nothing changes.")
    return StuckCause(
        CauseCode.EXPERIMENT_WAITS if further or late else CauseCode.ENDPOINT_STARTING,
        item,
        f"is {phase}: {short(waiting)}",
        (f"The status of {item} says so.",),
        because=further,
        remedies=() if further or not late else (look,),
    )


def _missing(item: Item, name: str) -> StuckCause:
    namespace = item.meta.namespace
    see = Remedy(
        "See which endpoints there are; then create that one",
        f"kubectl get {ENDPOINTS.plural}.{ENDPOINTS.group} -n {quote(namespace)}",
        "The Experiment is taken up by itself.",
        LOOK,
        item,
    )
    line = f"MISSING: servingendpoint/{name} -n {namespace} does not exist"
    evidence = (f"The status of {item} says so.",)
    return StuckCause(CauseCode.ENDPOINT_MISSING, item, line, evidence, remedies=(see, _give_up(item)))


def _give_up(item: Item) -> Remedy:
    return delete_by_hand(item, "Delete the Experiment", "Whatever was made for it goes first. Nothing leaks.")
