"""Pods: the one kind that goes gracefully, and whose going a kubelet has to confirm.

A pod that is deleted stays until its node's kubelet says that its processes have ended. While its grace lasts it is not
stuck. After that, what matters is whether the kubelet can still say so: the node may be lost, or a volume or a
container may not let go. A forced delete removes the record, not the process: it always is the last remedy.
"""

from collections.abc import Iterator
from shlex import quote

from pilotage.catalogue.kind import Guard
from pilotage.catalogue.registry import guards as known_guards
from pilotage.catalogue.relation import Relation
from pilotage.kube import Json
from pilotage.teardown.diagnosis.remedies import DELETE, FORCE, LOOK, REPAIR, Remedy, delete_by_hand, look_at, place
from pilotage.teardown.diagnosis.why.backends import lost_node, unready_node
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.model import Confidence, StuckCause
from pilotage.teardown.snapshot.fields import dig, entries, mapping, number, seconds_since, span, text
from pilotage.teardown.snapshot.questions import EventsAbout
from pilotage.teardown.snapshot.world import Item, World

FORCE_DELETE_POD = "force-delete-pod"
MIRROR = "kubernetes.io/config.mirror"

# What a kubelet says, in Events, when it cannot finish.
_FAILURES = {
    "FailedKillPod": (CauseCode.POD_CANNOT_BE_KILLED, "its containers cannot be stopped"),
    "FailedUnMount": (CauseCode.POD_VOLUME_STUCK, "a volume cannot be unmounted"),
    "FailedUnmountDevice": (CauseCode.POD_VOLUME_STUCK, "a volume cannot be unmounted"),
    "FailedPreStopHook": (CauseCode.POD_PRESTOP_FAILS, "its preStop hook fails"),
}
_CONFIRM_SECONDS = 10
"""Time that a healthy kubelet takes at most to confirm after the grace; later it is overdue."""


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Why a pod is still there, or what a delete of it would run into."""
    if item.group_kind != ("", "Pod"):
        return
    body = context.body(item)
    if MIRROR in item.meta.annotations:
        yield _mirror(item, body)
    elif item.terminating:
        yield from _terminating(context, item, body or {})


def _mirror(item: Item, body: Json | None) -> StuckCause:
    node = text(body, "spec", "nodeName") or "its node"
    return StuckCause(
        CauseCode.POD_STATIC,
        item,
        f"is the mirror of a static pod: the kubelet of {node} makes it again from a file there",
        (f"it has the annotation {MIRROR}",),
        remedies=(
            Remedy(
                f"Take its manifest out of the kubelet's folder on {node}",
                f"ssh {node} ls /etc/kubernetes/manifests",
                "The kubelet stops the pod and removes its mirror. Nothing leaks.",
                REPAIR,
                item,
            ),
        ),
    )


def _terminating(context: WhyContext, item: Item, body: Json) -> Iterator[StuckCause]:
    over = seconds_since(context.now, item.meta.deletion_timestamp)
    if _has_ended(item, body):
        return  # only finalizers can hold it by now, and those speak for themselves
    lost = lost_node(context.world, text(body, "spec", "nodeName"))
    if lost:
        yield _on_lost_node(context.world, item, body, lost)
    elif over is not None and over < 0:
        yield _in_grace(item, body, -over)
    elif over is not None:
        yield from _overdue(context, item, body, over)


def _has_ended(item: Item, body: Json) -> bool:
    """Whether no kubelet need confirm any more: it never ran, it has ended, or that was confirmed (grace 0)."""
    if body and not text(body, "spec", "nodeName"):
        return True
    if text(body, "status", "phase") in ("Succeeded", "Failed"):
        return True
    # A grace of 0 is the kubelet's last word, or that of a person who forces it: without finalizers it would be gone.
    return item.meta.deletion_grace_period_seconds == 0 and bool(item.meta.finalizers)


def _on_lost_node(world: World, item: Item, body: Json, lost: StuckCause) -> StuckCause:
    name = text(body, "spec", "nodeName")
    remedies = [_force(item, body)]
    if world.find("", "Node", "", name):
        remedies.insert(
            0,
            Remedy(
                "If the machine is certainly off, declare it out of service: pods and volumes are released together",
                f"kubectl taint nodes {quote(name)} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
                "All its pods are removed and their volumes detached. If the machine still runs, data may be damaged.",
                DELETE,
                item,
            ),
        )
    return StuckCause(
        CauseCode.POD_ON_LOST_NODE,
        item,
        f"waits for the kubelet of node {name} to confirm that it has ended",
        because=(lost,),
        remedies=tuple(remedies),
    )


# The grace


def _in_grace(item: Item, body: Json, left: float) -> StuckCause:
    grace = item.meta.deletion_grace_period_seconds
    evidence = [f"its grace is {grace} s, and ends at {item.meta.deletion_timestamp}"]
    hooks = [
        text(each, "name") for each in entries(body, "spec", "containers") if mapping(each, "lifecycle", "preStop")
    ]
    if hooks:
        evidence.append(f"the preStop hook of {', '.join(hooks)} counts towards it: SIGTERM comes only after the hook")
    return StuckCause(
        CauseCode.POD_IN_GRACE, item, f"is within its grace: {span(left)} of {span(grace)} left", tuple(evidence)
    )


def _overdue(context: WhyContext, item: Item, body: Json, over: float) -> Iterator[StuckCause]:
    node = text(body, "spec", "nodeName") or "its node"
    answer = context.world.ask(EventsAbout(item.uid))
    for event in reversed(answer.items if answer else ()):
        if known := _FAILURES.get(text(event, "reason")):
            code, what = known
            yield StuckCause(
                code,
                item,
                f"is {span(over)} past its grace: {what}",
                (f"the kubelet of {node} says: {text(event, 'message')}",),
                remedies=(
                    look_at(item, "Fix what the kubelet reports", "It ends the pod by itself then. Nothing leaks."),
                    _force(item, body),
                ),
                since=item.meta.deletion_timestamp,
            )
            return
    if over < _CONFIRM_SECONDS:
        yield StuckCause(
            CauseCode.POD_CONFIRMING, item, f"its grace ended {span(over)} ago: the kubelet is about to confirm"
        )
        return
    unready = unready_node(context.world, node)
    yield StuckCause(
        CauseCode.POD_OVERDUE,
        item,
        f"is {span(over)} past its grace, and the kubelet of {node} has not confirmed that it has ended",
        _running(body),
        Confidence.HIGH if unready else Confidence.MEDIUM,
        because=(unready,) if unready else (),
        remedies=(
            Remedy(
                f"Look at the kubelet and the container runtime of {node}",
                f"kubectl describe {quote(f'node/{node}')}",
                "The kubelet ends the pod by itself once it can. Nothing leaks.",
                REPAIR,
                item,
            ),
            _force(item, body),
        ),
        since=item.meta.deletion_timestamp,
    )


def _running(body: Json) -> tuple[str, ...]:
    running = [
        text(each, "name") for each in entries(body, "status", "containerStatuses") if mapping(each, "state", "running")
    ]
    return (f"still running, as far as the kubelet has said: {', '.join(running)}",) if running else ()


def _force(item: Item, body: Json) -> Remedy:
    held = _devices(body)
    return Remedy(
        "Force the delete, once you know that its processes have ended",
        f"pilotage why {place(item)} --fix={FORCE_DELETE_POD}",
        "LEAKS: it removes the record, not the process, which may still run on the node"
        + (f" and hold {held}" if held else " and hold its volumes and devices")
        + ".",
        FORCE,
        item,
        code=FORCE_DELETE_POD,
    )


def _devices(body: Json) -> str:
    """Resources beyond CPU and memory: ``1 nvidia.com/gpu``."""
    found: dict[str, int] = {}
    for container in entries(body, "spec", "containers"):
        limits = mapping(container, "resources", "limits")
        for name, amount in limits.items():
            if "/" in name:
                found[name] = found.get(name, 0) + (int(amount) if str(amount).isdecimal() else number(amount))
    return ", ".join(f"{amount} {name}" for name, amount in found.items())


# Guards, such as disruption budgets: they refuse evictions, never a DELETE


def guards(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Guards that would refuse an eviction now. A note: nobody should take one for the cause of a delete that hangs."""
    if item.group_kind != ("", "Pod") or item.terminating or not context.asked_about(item):
        return
    known = {row.group_kind: row.guard for row in known_guards()}
    for edge in context.graph.into(item.uid):
        guard = known.get(edge.source.group_kind)
        if guard is None or not guard.disruptions_allowed or edge.relation is not Relation.PROTECTS:
            continue
        body = context.body(edge.source)
        allowed = _at(body, guard.disruptions_allowed)
        if body is None or (isinstance(allowed, int) and allowed > 0):
            continue
        yield StuckCause(
            CauseCode.BUDGET_REFUSES_EVICTION,
            edge.source,
            f"blocks eviction of {item} (429). A DELETE is unaffected.",
            tuple(_evidence(guard, body)),
            remedies=(
                delete_by_hand(
                    item,
                    "Delete the pod, or better its workload, instead of evicting it",
                    "It goes at once, whatever the budget says. Fewer pods than it asks for may then run.",
                    LOOK,
                ),
            ),
        )


def _evidence(guard: Guard, body: object) -> Iterator[str]:
    name = guard.disruptions_allowed.rpartition(".")[2]
    count = ""
    if guard.healthy and guard.healthy_wanted:
        count = f": {_at(body, guard.healthy) or 0} of {_at(body, guard.healthy_wanted) or 0} needed pods are healthy"
    yield f"{name} is 0{count}"
    for path in guard.settings:
        value = _at(body, path)
        if isinstance(value, int | str) and value != "":
            yield f"it asks for {path.rpartition('.')[2]} {value}"
            return


def _at(body: object, path: str) -> object:
    return dig(body, *path.split(".")) if path else None
