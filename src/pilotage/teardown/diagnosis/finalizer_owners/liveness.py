"""Whether a controller runs: from the workload that runs it, and from the Lease that it renews.

A Lease that is renewed is the best proof there is: somebody does the work at this moment, wherever that may be. A
workload without available pods is dead. No workload and no Lease prove nothing.
"""

import enum
from collections.abc import Iterator

import msgspec

from pilotage.kube import Json
from pilotage.teardown.snapshot.fields import dig, entries, mapping, moment, number, seconds_since, span, text
from pilotage.teardown.snapshot.world import Item, World

SLACK_SECONDS = 10
"""Clocks differ: a Lease is expired only when it is overdue by more than this."""
LEASE_SECONDS_DEFAULT = 15
PODS_ASKED_MAX = 3

CRASHES = "keeps crashing"
"""Part of `Judgement.trouble` where containers exit again and again."""
_WAITING = {
    "ErrImagePull": "image cannot be pulled",
    "ImagePullBackOff": "image cannot be pulled",
    "InvalidImageName": "image cannot be pulled",
    "CrashLoopBackOff": CRASHES,
    "CreateContainerConfigError": "its configuration cannot be read",
    "CreateContainerError": "its container cannot be made",
    "RunContainerError": "its container cannot be started",
}


class Liveness(enum.StrEnum):
    """Whether a controller runs. Only evidence decides: no trace of one is not a proof that it is dead."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


class Judgement(msgspec.Struct, frozen=True):
    """Whether it runs, why not, and what that rests on."""

    alive: Liveness
    trouble: str = ""
    evidence: tuple[str, ...] = ()


def judge_workload(world: World, workload: Item) -> Judgement:
    """Liveness by a Deployment, StatefulSet, DaemonSet or Pod."""
    body = world.body(workload)
    if body is None:
        return Judgement(Liveness.UNKNOWN, evidence=(f"The status of {workload} was not read.",))
    if workload.group_kind.kind == "Pod":
        return _judge_pod(workload, body)
    desired, available = _replicas(workload, body)
    leaving = " It is itself being deleted." if workload.terminating else ""
    if available > 0:
        return Judgement(
            Liveness.ALIVE, evidence=(f"{workload}: {available} of {desired} replicas available.{leaving}",)
        )
    if desired == 0:
        return Judgement(Liveness.DEAD, "scaled to 0", (f"{workload} is scaled to 0.{leaving}",))
    if not isinstance(body.get("status"), dict):
        return Judgement(Liveness.UNKNOWN, evidence=(f"{workload} has no status.",))
    trouble = f"0 of {desired} replicas available"
    reasons = ", ".join(dict.fromkeys(_reasons(world, workload, body)))
    since = _since(world, body)
    trouble += (f", {reasons}" if reasons else "") + since
    return Judgement(Liveness.DEAD, trouble, (f"{workload}: {trouble}.{leaving}",))


def judge_lease(world: World, lease: Item) -> Judgement:
    """Liveness by a Lease: fresh, expired, or released by its holder (which says nothing)."""
    body = world.body(lease)
    if body is None:
        return Judgement(Liveness.UNKNOWN)
    holder = text(body, "spec", "holderIdentity")
    renewed = seconds_since(world.now, text(body, "spec", "renewTime"))
    if not holder or renewed is None:
        return Judgement(Liveness.UNKNOWN, evidence=(f"No process holds {lease}.",))
    duration = number(body, "spec", "leaseDurationSeconds", default=LEASE_SECONDS_DEFAULT)
    if renewed <= duration + SLACK_SECONDS:
        return Judgement(Liveness.ALIVE, evidence=(f"{lease} was renewed {span(renewed)} ago by {holder}.",))
    late = span(renewed - duration)
    return Judgement(
        Liveness.DEAD, f"its lease expired {late} ago", (f"{lease} expired {late} ago; {holder} held it.",)
    )


def together(world: World, workload: Item | None, lease: Item | None) -> Judgement:
    """Liveness by both. A fresh Lease wins; an expired one counts where no workload says otherwise, or where one of its
    own pods holds it.
    """
    by_lease = judge_lease(world, lease) if lease else Judgement(Liveness.UNKNOWN)
    by_workload = judge_workload(world, workload) if workload else Judgement(Liveness.UNKNOWN)
    evidence = by_workload.evidence + by_lease.evidence
    if by_lease.alive is Liveness.ALIVE:
        return Judgement(Liveness.ALIVE, "", evidence)
    if by_workload.alive is Liveness.DEAD:
        return Judgement(Liveness.DEAD, by_workload.trouble, evidence)
    if by_lease.alive is Liveness.DEAD and (workload is None or _holds(world, workload, lease)):
        return Judgement(Liveness.DEAD, by_lease.trouble, evidence)
    return Judgement(by_workload.alive, "", evidence)


def either(judged: list[Judgement]) -> Judgement:
    """Liveness of a controller that one of several workloads runs: dead only where all are, alive where any is."""
    evidence = tuple(line for each in judged for line in each.evidence)
    states = {each.alive for each in judged}
    if Liveness.ALIVE in states:
        return Judgement(Liveness.ALIVE, "", evidence)
    if states == {Liveness.DEAD}:
        return Judgement(Liveness.DEAD, "; ".join(dict.fromkeys(each.trouble for each in judged)), evidence)
    return Judgement(Liveness.UNKNOWN, "", evidence)


def pods_of(world: World, workload: Item) -> Iterator[Item]:
    """The pods of a workload, by ownership: its own, and those of its ReplicaSets."""
    for child in world.children(workload.uid):
        if child.group_kind == ("", "Pod"):
            yield child
        elif child.group_kind == ("apps", "ReplicaSet"):
            yield from (each for each in world.children(child.uid) if each.group_kind == ("", "Pod"))


def _holds(world: World, workload: Item, lease: Item | None) -> bool:
    holder = text(lease.read(), "spec", "holderIdentity") if lease else ""
    return any(holder.startswith(pod.meta.name) for pod in pods_of(world, workload))


def _replicas(workload: Item, body: Json) -> tuple[int, int]:
    status = mapping(body, "status")
    if workload.group_kind.kind == "DaemonSet":
        return number(status, "desiredNumberScheduled"), number(status, "numberAvailable")
    available = number(status, "availableReplicas", default=number(status, "readyReplicas"))
    return number(body, "spec", "replicas", default=1), available


def _judge_pod(pod: Item, body: Json) -> Judgement:
    ready = next((each for each in entries(body, "status", "conditions") if each.get("type") == "Ready"), {})
    if ready.get("status") == "True":
        return Judgement(Liveness.ALIVE, evidence=(f"{pod} is ready.",))
    if dig(body, "status") is None:
        return Judgement(Liveness.UNKNOWN, evidence=(f"{pod} has no status.",))
    reasons = ", ".join(dict.fromkeys(_pod_reasons(body))) or "not ready"
    return Judgement(Liveness.DEAD, reasons, (f"{pod}: {reasons}.",))


def _reasons(world: World, workload: Item, body: Json) -> Iterator[str]:
    """Why its pods are not available, as far as they say so."""
    asked = 0
    for pod in pods_of(world, workload):
        if asked == PODS_ASKED_MAX:
            break
        asked += 1
        yield from _pod_reasons(world.body(pod) or {})
    for condition in entries(body, "status", "conditions"):
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            yield text(condition, "message") or text(condition, "reason")
    if not asked and not world.problem("", "Pod", workload.meta.namespace):
        yield "it has no pods"


def _pod_reasons(body: Json) -> Iterator[str]:
    statuses = entries(body, "status", "initContainerStatuses") + entries(body, "status", "containerStatuses")
    for status in statuses:
        reason = text(status, "state", "waiting", "reason")
        if reason in _WAITING:
            yield _WAITING[reason]
    for condition in entries(body, "status", "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            yield "cannot be scheduled"


def _since(world: World, body: Json) -> str:
    for condition in entries(body, "status", "conditions"):
        if condition.get("type") == "Available" and condition.get("status") == "False":
            seconds = seconds_since(world.now, moment(condition, "lastTransitionTime"))
            return f" (since {span(seconds)})" if seconds is not None else ""
    return ""
