"""Controllers that do not remove their finalizer: their complaints, in conditions and in Events, and the remedies."""

import datetime as dt
import re
from collections.abc import Iterator
from shlex import quote
from typing import NamedTuple

from pilotage.kube import Json
from pilotage.teardown.diagnosis.finalizer_owners import FinalizerOwner
from pilotage.teardown.diagnosis.remedies import DELETE, LOOK, REPAIR, Remedy, place, strip_finalizer
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.planning.closure import gather_members
from pilotage.teardown.planning.ledger import Policy
from pilotage.teardown.snapshot.fields import entries, moment, text
from pilotage.teardown.snapshot.questions import EventsAbout
from pilotage.teardown.snapshot.world import Item

_TROUBLE = re.compile(
    r"error|fail|cannot|can't|could not|unable|denied|forbidden|refused|time[ds]? ?out|deadline|invalid|not allowed"
    r"|in use|conflict|reject",
    re.IGNORECASE,
)
_GOOD_WHEN_FALSE = re.compile(r"error|fail|degraded|stalled|blocked|problem|pressure|conflict", re.IGNORECASE)
_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"'
    r'(?: in API group "(?P<group>[^"]*)")?(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_LENGTH_MAX = 300
_BYSTANDERS = frozenset({"garbage-collector-controller", "default-scheduler", "kubelet", "node-controller"})
"""Components that report about many objects, and keep no finalizer that others would ask about."""


class Complaint(NamedTuple):
    """One of them. `fresh`: it was said after the deletion was asked for."""

    source: str
    """Source: ``condition Ready``, ``Event FailedCleanup of acme-operator``."""
    message: str
    when: str
    fresh: bool

    def __str__(self) -> str:
        return f"{self.source}: {self.message}"


class RefusedRequest(NamedTuple):
    """A request that the API server refused for lack of permission, as its message says."""

    user: str
    verb: str
    group: str
    plural: str
    subresource: str
    namespace: str

    def __str__(self) -> str:
        what = f"{self.plural}.{self.group}" if self.group else self.plural
        what += f"/{self.subresource}" if self.subresource else ""
        return f"{self.verb} {what}" + (
            f" in namespace {self.namespace}" if self.namespace else " in the whole cluster"
        )


def complaints(context: WhyContext, item: Item) -> list[Complaint]:
    """Events and conditions that complain about this object; those after its deletion come first."""
    found = [*_from_events(context, item), *_from_conditions(context, item)]
    return sorted(found, key=lambda complaint: not complaint.fresh)


def refusal_in(message: str) -> RefusedRequest | None:
    """The refused request, if the message is an API server's 403."""
    match = _FORBIDDEN.search(message)
    if match is None:
        return None
    plural, _, subresource = match["resource"].partition("/")
    return RefusedRequest(
        match["user"], match["verb"], match["group"] or "", plural, subresource, match["namespace"] or ""
    )


def _from_conditions(context: WhyContext, item: Item) -> Iterator[Complaint]:
    body = context.body(item)
    deleted = context.deleted_at(item)
    for condition in entries(body, "status", "conditions"):
        type_, message = text(condition, "type"), text(condition, "message")
        reason = text(condition, "reason")
        healthy = "False" if _GOOD_WHEN_FALSE.search(type_) else "True"
        if text(condition, "status") in (healthy, "") or not _TROUBLE.search(f"{reason} {message}"):
            continue
        when = text(condition, "lastTransitionTime")
        yield Complaint(f"condition {type_}", _short(message or reason), when, _not_before(moment(when), deleted))


def _from_events(context: WhyContext, item: Item) -> Iterator[Complaint]:
    """Warnings since the deletion was asked for; older ones are about something else."""
    answer = context.world.ask(EventsAbout(item.uid))
    deleted = context.deleted_at(item)
    seen: set[str] = set()
    for event in reversed(answer.items if answer else _in_world(context, item)):
        when = text(event, "lastTimestamp") or text(event, "eventTime") or text(event, "metadata", "creationTimestamp")
        message = _short(text(event, "message") or text(event, "note"))
        if text(event, "type") != "Warning" or message in seen or not _not_before(moment(when), deleted):
            continue
        seen.add(message)
        who = text(event, "source", "component") or text(event, "reportingComponent")
        if who in _BYSTANDERS:
            continue
        source = f"Event {text(event, 'reason')}" + (f" of {who}" if who else "")
        yield Complaint(source, message, when, fresh=True)


def _in_world(context: WhyContext, item: Item) -> tuple[Json, ...]:
    """A dump may hold Events as objects."""
    events = (each.read() for each in context.world.of("", "Event", item.meta.namespace))
    return tuple(each for each in events if text(each, "involvedObject", "uid") == item.uid)


def _not_before(when: dt.datetime | None, deleted: dt.datetime | None) -> bool:
    return when is not None and (deleted is None or when >= deleted)


def _short(message: str) -> str:
    message = " ".join(message.split())
    return message if len(message) <= _LENGTH_MAX else f"{message[: _LENGTH_MAX - 1]}…"


def bring_back(keeper: FinalizerOwner) -> Iterator[Remedy]:
    """Start the controller again, as far as it can be told how."""
    workload = keeper.workload
    effect = "It finishes the deletion by itself. Nothing leaks."
    if workload is None:
        yield Remedy(f"Start {keeper.who} again", "kubectl get leases -A", effect, REPAIR, keeper.lease)
    elif keeper.trouble.startswith("scaled to 0") and workload.group_kind.kind in ("Deployment", "StatefulSet"):
        scale = f"kubectl scale {place(workload)} --replicas=1"
        yield Remedy("Bring the controller back", scale, effect, REPAIR, workload)
    else:
        yield Remedy("Bring the controller back", f"kubectl describe {place(workload)}", effect, REPAIR, workload)


def read_log(workload: Item) -> Remedy:
    """Let a person read what it says."""
    return Remedy(
        "Read the controller's log", f"kubectl logs {place(workload)} --tail=100", "Nothing changes.", LOOK, workload
    )


def restart(workload: Item) -> Remedy:
    """Let it begin anew."""
    return Remedy(
        "Restart the controller",
        f"kubectl rollout restart {place(workload)}",
        "It reconciles everything again when it starts. Nothing leaks.",
        REPAIR,
        workload,
    )


def last_resort(item: Item, keeper: FinalizerOwner) -> Iterator[Remedy]:
    """Removing the finalizer. What belongs to Kubernetes itself has better ways, or is not to be touched.

    Nor is one in a namespace's spec: it takes another request (`/finalize`), which writes the whole list, with the
    finalizer of the namespace controller. Without that one, all that is in the namespace would leak.
    """
    if item.terminating and not keeper.builtin and keeper.finalizer in item.meta.finalizers:
        yield strip_finalizer(item, keeper.finalizer, f"LEAKS: {keeper.leaks}")


def do_its_work(context: WhyContext, item: Item) -> Iterator[Remedy]:
    """Let `pilotage delete` take down what the object owns, in order, as its controller would have."""
    if not item.terminating or not context.world.children(item.uid):
        return
    going = gather_members(context.world, context.graph, [item], Policy(), adopt=True).going
    number = sum(not each.terminating for each in going.values())
    if number:
        yield Remedy(
            "Take down what it would have taken down, in order, then release it",
            f"pilotage delete {place(item)} --adopt",
            f"Would delete {number} object{'s' * (number != 1)}, and say how to release {item}. "
            "Nothing leaks that Pilotage can see.",
            DELETE,
            item,
        )


def grant(refusal: RefusedRequest) -> str:
    """The two commands that give the permission, in one line."""
    what = f"{refusal.plural}.{refusal.group}" if refusal.group else refusal.plural
    what += f"/{refusal.subresource}" if refusal.subresource else ""
    what, verb = quote(f"--resource={what}"), quote(f"--verb={refusal.verb}")
    name = f"let-{refusal.verb}-{refusal.plural}"
    subject = f"--user={refusal.user}"
    parts = refusal.user.split(":")
    if len(parts) == 4 and parts[:2] == ["system", "serviceaccount"]:
        subject = f"--serviceaccount={parts[2]}:{parts[3]}"
    role, cluster_role = quote(f"--role={name}"), quote(f"--clusterrole={name}")
    name, subject = quote(name), quote(subject)
    if refusal.namespace:
        where = f" -n {quote(refusal.namespace)}"
        return (
            f"kubectl create role {name} {verb} {what}{where} && "
            f"kubectl create rolebinding {name} {role} {subject}{where}"
        )
    return (
        f"kubectl create clusterrole {name} {verb} {what} && "
        f"kubectl create clusterrolebinding {name} {cluster_role} {subject}"
    )
