"""Services whose load balancer a cloud controller has to give back; and the EndpointSlices that stay behind."""

from collections.abc import Iterator

from pilotage.catalogue.names import LOAD_BALANCER, SERVICE_NAME
from pilotage.kube import Json
from pilotage.teardown.diagnosis.finalizer_owners import FinalizerOwner, Liveness
from pilotage.teardown.diagnosis.remedies import Remedy, delete_by_hand, look_at, strip_finalizer
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.model import Confidence, StuckCause
from pilotage.teardown.snapshot.fields import counted, entries, text
from pilotage.teardown.snapshot.questions import EventsAbout
from pilotage.teardown.snapshot.world import Item

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_CONTROLLER = "endpointslice-controller.k8s.io"


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Why a Service stays, and what of it would stay."""
    if item.group_kind == ("", "Service"):
        if item.terminating and LOAD_BALANCER in item.meta.finalizers:
            yield from _load_balancer(context, item)
        if context.asked_about(item):
            yield from _hand_made_slices(context, item)
    elif item.group_kind == ("discovery.k8s.io", "EndpointSlice"):
        yield from _slice(context, item)


def _load_balancer(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    context.claim(item, LOAD_BALANCER)
    keeper = context.finalizer_owner(item, LOAD_BALANCER)
    addresses = [
        text(each, "ip") or text(each, "hostname")
        for each in entries(context.body(item), "status", "loadBalancer", "ingress")
    ]
    said = _said(context, item)
    evidence = [f"its load balancer has the address {', '.join(addresses)}"] if addresses else []
    evidence += keeper.evidence
    where = f" at {', '.join(addresses)}" if addresses else ""
    leaks = f"LEAKS: the load balancer{where} in the cloud, with its address and cost."
    if said:
        code, words = (
            CauseCode.LOAD_BALANCER_FAILS,
            "its cloud controller tries to delete the load balancer, and fails",
        )
        evidence.insert(0, f"it says: {text(said, 'message')}")
        confidence = Confidence.HIGH
    else:
        code, words, confidence = _verdict(keeper)
    root = StuckCause(
        code,
        keeper.workload or item,
        words,
        tuple(evidence),
        confidence,
        remedies=(
            look_at(
                keeper.workload or item,
                "Bring the cloud controller back, or fix what it reports",
                "It deletes the load balancer and removes the finalizer. Nothing leaks.",
            ),
            strip_finalizer(item, LOAD_BALANCER, leaks),
        ),
    )
    yield StuckCause(
        CauseCode.LOAD_BALANCER_NOT_RELEASED,
        item,
        f"waits for finalizer {LOAD_BALANCER}: its load balancer has to be deleted in the cloud first",
        because=(root,),
    )


def _verdict(keeper: FinalizerOwner) -> tuple[CauseCode, str, Confidence]:
    who = keeper.who or "cloud controller"
    if keeper.alive is Liveness.DEAD:
        return (
            CauseCode.LOAD_BALANCER_CONTROLLER_DEAD,
            f"the {who} does NOT RUN{_because(keeper.trouble)}",
            Confidence.HIGH,
        )
    if keeper.alive is Liveness.ALIVE and keeper.workload is not None:
        return CauseCode.LOAD_BALANCER_CONTROLLER_SILENT, f"the {who} runs and says nothing about it", Confidence.MEDIUM
    return (
        CauseCode.LOAD_BALANCER_CONTROLLER_MISSING,
        "nothing deletes it: no cloud controller was found in this cluster",
        Confidence.MEDIUM,
    )


def _because(trouble: str) -> str:
    return f": {trouble}" if trouble else ""


def _said(context: WhyContext, item: Item) -> Json | None:
    """The newest Event in which a cloud controller says that it fails."""
    answer = context.world.ask(EventsAbout(item.uid))
    events = answer.items if answer else ()
    return next(
        (
            each
            for each in reversed(events)
            if text(each, "type") == "Warning" and "LoadBalancer" in text(each, "reason")
        ),
        None,
    )


# EndpointSlices


def _hand_made_slices(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Slices that nobody cleans up: they name the Service by their label alone, and no controller keeps them."""
    left = [
        each
        for each in context.world.of("discovery.k8s.io", "EndpointSlice", item.meta.namespace)
        if each.meta.labels.get(SERVICE_NAME) == item.meta.name
        and not each.meta.owner_references
        and each.meta.labels.get(MANAGED_BY) != _CONTROLLER
    ]
    if left:
        yield StuckCause(
            CauseCode.ENDPOINTSLICES_STAY,
            left[0],
            f"stays when {item} goes{_others(left)}: it was made by hand, has no owner, and nothing cleans it up",
            remedies=(_delete(left[0]),),
        )


def _slice(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    name = item.meta.labels.get(SERVICE_NAME, "")
    world = context.world
    if not name or item.terminating or world.problem("", "Service", item.meta.namespace):
        return
    if world.find("", "Service", item.meta.namespace, name) is None:
        kept = item.meta.labels.get(MANAGED_BY) or "nobody"
        yield StuckCause(
            CauseCode.ENDPOINTSLICE_WITHOUT_SERVICE,
            item,
            f"is left over: its Service {name} does not exist, and it is managed by {kept}",
            (f"its label {SERVICE_NAME} is {name}",),
            remedies=(_delete(item),),
        )


def _others(left: list[Item]) -> str:
    return f" (and {counted(len(left) - 1, 'more slice')})" if len(left) > 1 else ""


def _delete(item: Item) -> Remedy:
    return delete_by_hand(item, "Delete it: a proxy may still send traffic to its addresses", "Nothing leaks.")
