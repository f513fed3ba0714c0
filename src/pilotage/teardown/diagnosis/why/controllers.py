"""Controllers that do not remove their finalizer: their complaints, in conditions and in Events, and the remedies."""

import datetime as dt
import re
from collections.abc import Iterator
from shlex import quote
from typing import NamedTuple

from pilotage.api.names import GROUP, PROCESS_FINALIZER, TEARDOWN_FINALIZER, UP_MARKER
from pilotage.kube import GroupKind, Json
from pilotage.teardown.diagnosis.finalizer_owners import FinalizerOwner, Liveness
from pilotage.teardown.diagnosis.finalizer_owners.liveness import CRASHES, judge_workload
from pilotage.teardown.diagnosis.remedies import DELETE, LOOK, REPAIR, Remedy, place, strip_finalizer
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.planning.closure import gather_members
from pilotage.teardown.planning.ledger import Policy
from pilotage.teardown.snapshot.fields import entries, mapping, moment, number, text
from pilotage.teardown.snapshot.questions import EventsAbout
from pilotage.teardown.snapshot.world import Item, World

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
_SCALED = ("Deployment", "StatefulSet")
_BYSTANDERS = frozenset({"garbage-collector-controller", "default-scheduler", "kubelet", "node-controller"})
"""Components that report about many objects, and keep no finalizer that others would ask about."""


class Complaint(NamedTuple):
    """One of them. `fresh`: it was said, or is still said, after the deletion was asked for."""

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
    """Conditions and Events that complain about this object: what is said now before what was said once.

    A condition is what a controller says now, an Event what it said at some time, so conditions come first. A condition
    comes after the Events only if the status is known not to have been written since the deletion: then it is about
    something else.
    """
    conditions = list(_from_conditions(context, item))
    if _status_written(context.body(item)) is None:
        return [*conditions, *_from_events(context, item)]
    older = [each for each in conditions if not each.fresh]
    return [*(each for each in conditions if each.fresh), *_from_events(context, item), *older]


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
    written = _status_written(body)
    for condition in entries(body, "status", "conditions"):
        type_, message = text(condition, "type"), text(condition, "message")
        if item.group_kind == ("", "Namespace") and type_.startswith("Namespace"):
            continue  # these are of the namespace controller, which keeps no finalizer of others
        reason = text(condition, "reason")
        healthy = "False" if _GOOD_WHEN_FALSE.search(type_) else "True"
        if text(condition, "status") in (healthy, "") or not _TROUBLE.search(f"{reason} {message}"):
            continue
        when = text(condition, "lastTransitionTime")
        # A message can change without a transition, so the time of the last write counts as well.
        fresh = _not_before(moment(when), deleted) or _not_before(written, deleted)
        yield Complaint(f"condition {type_}", short(message or reason), when, fresh)


def _status_written(body: Json | None) -> dt.datetime | None:
    """Time of the last write of the status; None where managedFields do not tell."""
    found = [
        when
        for entry in entries(body, "metadata", "managedFields")
        if "f:status" in mapping(entry, "fieldsV1") and (when := moment(entry, "time")) is not None
    ]
    return max(found, default=None)


def _from_events(context: WhyContext, item: Item) -> Iterator[Complaint]:
    """Warnings since the deletion was asked for; older ones are about something else."""
    answer = context.world.ask(EventsAbout(item.uid))
    deleted = context.deleted_at(item)
    seen: set[str] = set()
    for event in reversed(answer.items if answer else _in_world(context, item)):
        when = text(event, "lastTimestamp") or text(event, "eventTime") or text(event, "metadata", "creationTimestamp")
        message = short(text(event, "message") or text(event, "note"))
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


def short(message: str) -> str:
    """A message in one line of bounded length."""
    message = " ".join(message.split())
    return message if len(message) <= _LENGTH_MAX else f"{message[: _LENGTH_MAX - 1]}…"


def bring_back(context: WhyContext, keeper: FinalizerOwner) -> Iterator[Remedy]:
    """Start the controller again, as far as it can be told how; each that it may be, where that is not certain."""
    lease = keeper.lease
    effect = "It finishes the deletion by itself. Nothing leaks."
    if keeper.workload is not None:
        for workload in (keeper.workload, *keeper.others):
            yield from _revive(workload, judge_workload(context.world, workload).trouble, effect)
    elif keeper.finalizer == PROCESS_FINALIZER and lease is not None:
        yield from start_agent(lease.meta.name, lease)
    elif is_ours(keeper.finalizer):
        yield start_operator(context.world, effect)
    elif lease is not None:
        show = f"kubectl get {place(lease)} -o yaml"
        yield Remedy(f"See who held the Lease of {keeper.who}, and start it there again", show, effect, REPAIR, lease)


def _revive(workload: Item, trouble: str, effect: str) -> Iterator[Remedy]:
    if trouble.startswith("scaled to 0") and workload.group_kind.kind in _SCALED:
        scale = f"kubectl scale {place(workload)} --replicas=1"
        yield Remedy("Bring the controller back", scale, effect, REPAIR, workload)
        return
    describe = f"kubectl describe {place(workload)}"
    yield Remedy("Find out why the controller does not run, and mend that", describe, effect, REPAIR, workload)
    if CRASHES in trouble:
        yield read_log(workload, previous=True)


def is_ours(finalizer: str) -> bool:
    """Whether the operator or an agent of Pilotage removes it."""
    domain = finalizer.partition("/")[0]
    return finalizer != TEARDOWN_FINALIZER and (domain == GROUP or domain.endswith(f".{GROUP}"))


def start_operator(world: World, effect: str) -> Remedy:
    """Start the operator where no workload is seen that runs it: on one machine, or in a cluster that has none."""
    if _is_one_machine(world):
        return Remedy("Start Pilotage again", "pilotage up", effect, REPAIR)
    if _is_unread(world):
        return Remedy("Look for the Deployment of the operator, and bring it back", _OPERATOR, effect, REPAIR)
    title = "Install the operator again (or start `pilotage operator`, if it runs outside of the cluster)"
    return Remedy(title, "pilotage install --print | kubectl apply --server-side -f -", effect, REPAIR)


_OPERATOR = f"kubectl get deployments,pods,leases -n {UP_MARKER.namespace}"


def _is_one_machine(world: World) -> bool:
    """Whether this is the API server of `pilotage up`."""
    return world.find("", "ConfigMap", UP_MARKER.namespace, UP_MARKER.name) is not None


def _is_unread(world: World) -> bool:
    """Whether a Deployment of the operator may exist that was not read."""
    elsewhere = bool(world.namespaces) and UP_MARKER.namespace not in world.namespaces
    everywhere = GroupKind("apps", "Deployment") in world.everywhere
    return (elsewhere and not everywhere) or bool(world.problem("apps", "Deployment", UP_MARKER.namespace))


def start_agent(host: str, subject: Item) -> Iterator[Remedy]:
    """Start the agent of a Host again, or give the Host up."""
    yield Remedy(
        f"Start the agent on the machine of host/{host} again",
        f"pilotage agent --name {quote(host)}",
        "It takes over what still runs there, and finishes what was asked for meanwhile. Nothing leaks.",
        REPAIR,
        subject,
    )
    yield Remedy(
        "If that machine is gone for good, delete its Host",
        f"kubectl delete {quote(f'hosts.{GROUP}/{host}')}",
        "The operator removes its processes and addresses from the cluster. LEAKS: servers, if the machine still runs.",
        DELETE,
        subject,
    )


def start_gateway(route: Item, body: Json | None) -> Remedy | None:
    """Start the gateway, where it has not taken up the route as it is; None where it has."""
    if number(body, "status", "observedGeneration", default=-1) >= number(body, "metadata", "generation"):
        return None
    return Remedy(
        "Start the gateway again, if it does not run (`pilotage up` runs one)",
        "pilotage gateway",
        "It takes the route up by itself. Nothing leaks.",
        REPAIR,
        route,
    )


def read_log(workload: Item, *, previous: bool = False) -> Remedy:
    """Let a person read what it says; of a container that crashed, what it said last."""
    command = f"kubectl logs {place(workload)} --tail=100{' --previous' * previous}"
    return Remedy("Read the controller's log", command, "Nothing changes.", LOOK, workload)


def restart(workload: Item) -> Remedy:
    """Let it begin anew."""
    return Remedy(
        "Restart the controller",
        f"kubectl rollout restart {place(workload)}",
        "It reconciles everything again when it starts. Nothing leaks.",
        REPAIR,
        workload,
    )


def find_log(world: World, keeper: FinalizerOwner) -> Remedy:
    """Let a person read the log of a program of ours, or find out where that is."""
    if keeper.workload is not None:
        return read_log(keeper.workload)
    if keeper.lease is not None:
        holder = f"kubectl get {place(keeper.lease)} -o jsonpath='{{.spec.holderIdentity}}'"
        title = f"See which process is {keeper.who}, and read its log there"
        return Remedy(title, holder, "Nothing changes.", LOOK, keeper.lease)
    if not _is_one_machine(world) and _is_unread(world):
        return Remedy(f"See whether {keeper.who} runs, and read its log", _OPERATOR, "Nothing changes.", LOOK)
    program = "pilotage up" if _is_one_machine(world) else "pilotage operator"
    title = f"Find the process of {keeper.who} on the machine where it was started, and read its log"
    return Remedy(title, f"pgrep -af '{program}'", "Nothing changes.", LOOK)


def last_resort(item: Item, keeper: FinalizerOwner, *, missing: bool = False) -> Iterator[Remedy]:
    """Removing the finalizer. What belongs to Kubernetes itself has better ways, or is not to be touched.

    Ours is offered only where nothing of ours runs (or is `missing`) that would do the work.

    Nor is one in a namespace's spec: it takes another request (`/finalize`), which writes the whole list, with the
    finalizer of the namespace controller. Without that one, all that is in the namespace would leak.
    """
    if is_ours(keeper.finalizer) and keeper.alive is not Liveness.DEAD and not missing:
        return
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
