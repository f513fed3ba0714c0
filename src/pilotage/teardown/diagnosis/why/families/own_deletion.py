"""Our own kinds while they are deleted: what the operator or an agent says that it waits for, and on from there.

An endpoint waits for its Teardown, that for a part, and the part for whatever other families say about it. A status
that is written is what its writer says now: it is read instead of Events, which are about some time ago. Where the
owner of the finalizer does not run, what it said last does not matter: `finalizers` says that.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from shlex import quote
from typing import NamedTuple

from pilotage.api.endpoint import PhaseTimeouts
from pilotage.api.names import (
    ENDPOINT_FINALIZER,
    ENDPOINTS,
    GATEWAY_ROUTES,
    HOST_FINALIZER,
    HOSTS,
    LABEL_ENDPOINT_UID,
    LABEL_HOST,
    MODEL_FINALIZER,
    MODELS,
    PROCESS_FINALIZER,
    PROCESSES,
    TEARDOWN_DONE,
    TEARDOWNS,
)
from pilotage.kube import Json
from pilotage.teardown.diagnosis.finalizer_owners import FinalizerOwner, Liveness
from pilotage.teardown.diagnosis.remedies import DELETE, EDIT, REPAIR, Remedy, delete_by_hand, look_at, place
from pilotage.teardown.diagnosis.why.codes import NOTES, CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.controllers import Complaint, refusal_in, short, start_gateway
from pilotage.teardown.diagnosis.why.families.finalizers import forbidden, held_by, kept_by
from pilotage.teardown.diagnosis.why.model import Confidence, StuckCause
from pilotage.teardown.snapshot.fields import condition, counted, entries, mapping, number, seconds_since, text
from pilotage.teardown.snapshot.world import Item

OVERDUE = "Overdue"
"""Reason of the condition `Blocked` of a Teardown that only waits for long: its waits say for what."""
IN_SERVICE = frozenset({"Current", "Starting"})
"""States of revisions that need their weights."""
WAITS_MAX = 8
_PIDS = re.compile(r"process (\d+(?:, \d+)*) does not end", re.IGNORECASE)
_DRAINS = "requests in flight"


class _OwnKind(NamedTuple):
    finalizer: str
    explain: Callable[[WhyContext, Item, FinalizerOwner], Iterator[StuckCause]]


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Causes that our own programs name for an object of ours that is being deleted, and of a Teardown."""
    if item.group_kind == TEARDOWNS.group_kind and not item.terminating:
        yield from progress(context, item, context.finalizer_owner(item, ENDPOINT_FINALIZER))
    kind = _KINDS.get(item.group_kind)
    if kind is None or not item.terminating or kind.finalizer not in item.meta.finalizers:
        return
    keeper = context.finalizer_owner(item, kind.finalizer)
    if keeper.alive is Liveness.DEAD:
        return
    found = tuple(kind.explain(context, item, keeper))
    if found:
        context.claim(item, kind.finalizer)
        yield held_by(item, kind.finalizer, kept_by(item, keeper, *found))


# Endpoints and their Teardowns


def _endpoint(context: WhyContext, item: Item, keeper: FinalizerOwner) -> Iterator[StuckCause]:
    body = context.body(item)
    records = unfinished(context, item)
    for record in records:
        further = tuple(progress(context, record, keeper))
        if further:
            yield StuckCause(CauseCode.TEARDOWN, record, f"waits for {record}{_left(context, record)}", because=further)
    if not records:
        yield from _not_begun(context, item, keeper, body)


def _not_begun(context: WhyContext, item: Item, keeper: FinalizerOwner, body: Json | None) -> Iterator[StuckCause]:
    """No Teardown is seen: the status says why there is none, or what the one says that could not be read."""
    said = condition(body, "Degraded")
    if text(said, "reason") != "DeletionBlocked" or said.get("status") != "True":
        waiting = text(body, "status", "waitingFor")
        if waiting:
            yield _says(context, item, keeper, CauseCode.TEARDOWN_WAITS, "WAITS", waiting)
        return
    message = text(said, "message")
    in_the_way = _named(context, message)
    remedies = (look_at(item, "Fix what the operator reports", "It tries again by itself. Nothing leaks."),)
    if in_the_way is not None:
        remedies = (_give_way(in_the_way),)
    yield _says(context, item, keeper, CauseCode.TEARDOWN_NOT_BEGUN, "NOT BEGUN", message, remedies)


def _named(context: WhyContext, message: str) -> Item | None:
    """The Teardown of somebody else that has the name of the one that is to be made."""
    records = context.world.of(*TEARDOWNS.group_kind)
    return next((each for each in records if f"{each} exists and is about something else" in message), None)


def _give_way(record: Item) -> Remedy:
    return delete_by_hand(
        record,
        "Delete that Teardown",
        "The operator makes one of its own at its next attempt, and takes the parts down by it. Nothing leaks.",
    )


def unfinished(context: WhyContext, endpoint: Item) -> list[Item]:
    """The Teardowns of an endpoint that have not ended.

    They are in its namespace; where that is being deleted, the operator has them in its own.
    """
    around = context.world.find("", "Namespace", "", endpoint.meta.namespace)
    anywhere = around is None or around.terminating
    return [
        record
        for record in context.world.of(*TEARDOWNS.group_kind)
        if record.meta.labels.get(LABEL_ENDPOINT_UID) == endpoint.uid
        and (anywhere or record.meta.namespace == endpoint.meta.namespace)
        and text(body := context.body(record), "spec", "target", "uid") in (endpoint.uid, "")
        and text(body, "status", "phase") != TEARDOWN_DONE
    ]


def progress(context: WhyContext, record: Item, keeper: FinalizerOwner) -> Iterator[StuckCause]:
    """Causes that keep a Teardown from its end: that it is refused, or the parts that it waits for."""
    body = context.body(record)
    if text(body, "status", "phase") == TEARDOWN_DONE:
        return
    for type_ in ("Stalled", "Blocked"):
        said = condition(body, type_)
        if said.get("status") == "True" and text(said, "reason") != OVERDUE:
            yield _refused(context, record, keeper, text(said, "message"))
            return
    parts = _parts(context, body)
    waits = entries(body, "status", "waits")
    limit = _limit(body)
    for wait in waits[:WAITS_MAX]:
        yield _wait(context, record, keeper, wait, parts.get(text(wait, "object")), limit)
    if not waits:
        for name, part in parts.items():
            if part.terminating and (found := _stopping(context.causes_of(part))):
                yield StuckCause(CauseCode.TEARDOWN_WAITS, record, f"waits for {name}", because=found)


def _refused(context: WhyContext, record: Item, keeper: FinalizerOwner, message: str) -> StuckCause:
    another = delete_by_hand(
        record,
        "Delete this Teardown, if you did not write it",
        "What is left of the endpoint is taken down by another one. Nothing leaks.",
    )
    return _says(context, record, keeper, CauseCode.TEARDOWN_REFUSED, "NOT ACTED ON", message, (another,))


def _left(context: WhyContext, record: Item) -> str:
    status = mapping(context.body(record), "status")
    phase, left = text(status, "phase"), number(status, "left")
    return f" (phase {phase}, {counted(left, 'object')} left)" if phase else ""


def _parts(context: WhyContext, body: Json | None) -> dict[str, Item]:
    """The objects of a Teardown's ledger that still exist, by the names that its waits have."""
    uids = [text(each, "uid") for each in entries(body, "status", "ledger", "entries")]
    return {str(item): item for uid in uids if (item := context.world.get(uid)) is not None}


def _limit(body: Json | None) -> int:
    """The seconds after which a Teardown reports that its phase is overdue."""
    phase = text(body, "status", "phase")
    default = getattr(PhaseTimeouts(), phase, PhaseTimeouts().remove)
    return number(body, "spec", "deletion", "timeouts", phase, default=default)


def _wait(
    context: WhyContext, record: Item, keeper: FinalizerOwner, wait: Json, part: Item | None, limit: int
) -> StuckCause:
    """One thing that a Teardown waits for, and why that does not go."""
    said = text(wait, "text")
    line = f"waits for {text(wait, 'object')}"
    if refusal := refusal_in(said):
        complaint = Complaint(f"{record}", said, text(wait, "since"), fresh=True)
        further: tuple[StuckCause, ...] = (forbidden(context, part or record, keeper, complaint, refusal),)
        return StuckCause(CauseCode.TEARDOWN_WAITS, record, line, because=further)
    found = context.causes_of(part) if part is not None else ()
    further = _stopping(found) or (found if part is not None and part.terminating else ())
    if further:
        return StuckCause(CauseCode.TEARDOWN_WAITS, record, line, because=further)
    late = (
        (seconds_since(context.now, text(wait, "until")) or 0.0) > 0
        or (seconds_since(context.now, text(wait, "since")) or 0.0) > limit
        or text(wait, "cause") == "refused"
    )
    return StuckCause(
        CauseCode.TEARDOWN_WAITS if late else CauseCode.TEARDOWN_WORKING,
        record,
        f"{line}: {short(said)}",
        (f"{record} says: {short(said)}",),
        remedies=tuple(_go_on(context, part or record)) if late else (),
        since=text(wait, "since"),
    )


def _go_on(context: WhyContext, item: Item) -> Iterator[Remedy]:
    """Remedies for a part that a Teardown waits for, and that nothing else explains."""
    yield look_at(item, "Look at it", "Nothing changes.")
    if item.group_kind == GATEWAY_ROUTES.group_kind and (remedy := start_gateway(item, context.body(item))):
        yield remedy


# Servers on Hosts


def _process(context: WhyContext, item: Item, keeper: FinalizerOwner) -> Iterator[StuckCause]:
    """Cause by the status of a process that its agent stops. It is written at each attempt, which an Event is not."""
    body = context.body(item)
    message = text(body, "status", "message")
    if not message or text(body, "status", "phase") != "Stopping":
        return
    if _DRAINS in message and ";" not in message:
        waits = f"{counted(number(body, 'status', 'inFlight'), 'request')} in flight"
        most = number(body, "spec", "drainSeconds", default=30)
        yield StuckCause(CauseCode.PROCESS_DRAINS, item, f"ends its requests first: {waits}, for {most} s at most")
        return
    host = item.meta.labels.get(LABEL_HOST, "")
    remedies = [look_at(item, "Fix what the agent reports", "It tries again by itself. Nothing leaks.")]
    if found := _PIDS.search(message):
        pids = found[1].replace(",", "")
        remedies = [
            Remedy(
                f"End it as root on the machine of host/{host}; what waits in the kernel (state D) ends with a reboot",
                f"ssh {quote(host)} sudo kill -9 {pids}",
                "The agent sees that it has ended, and finishes the deletion by itself. Nothing leaks.",
                REPAIR,
                item,
            )
        ]
    yield _says(context, item, keeper, CauseCode.PROCESS_NOT_STOPPED, "NOT STOPPED", message, tuple(remedies))


def _host(context: WhyContext, item: Item, _: FinalizerOwner) -> Iterator[StuckCause]:
    on_it = [
        each for each in context.world.of(*PROCESSES.group_kind) if each.meta.labels.get(LABEL_HOST) == item.meta.name
    ]
    for group in context.groups(on_it):
        further = _stopping(context.causes_of(group.example))
        if further:
            line = f"waits for {group.example}, which was placed on it{group.others}"
            yield StuckCause(CauseCode.HOST_NOT_EMPTY, item, line, because=further)


# Models


def _model(context: WhyContext, item: Item, keeper: FinalizerOwner) -> Iterator[StuckCause]:
    body = context.body(item)
    users = [
        each for each in context.world.of(*ENDPOINTS.group_kind, item.meta.namespace) if _uses(context, each, item)
    ]
    for group in context.groups(users):
        yield _used_by(context, item, group.example, group.others)
    said = condition(body, "Deleting")
    if not users and text(said, "reason") not in ("", "InUse") and said.get("status") == "True":
        message = text(said, "message")
        mend = look_at(item, "Let the operator remove the file", "It tries again by itself. Nothing leaks.")
        yield _says(context, item, keeper, CauseCode.MODEL_FILES_STAY, "FILES STAY", message, (mend,))


def _uses(context: WhyContext, endpoint: Item, model: Item) -> bool:
    """Whether its spec, or a revision of it that is in service, names a Model."""
    body = context.body(endpoint)
    revisions = [each for each in entries(body, "status", "history") if text(each, "state") in IN_SERVICE]
    return model.meta.name in (text(each, "spec", "model", "name") for each in (body, *revisions))


def _used_by(context: WhyContext, model: Item, user: Item, others: str) -> StuckCause:
    line = f"is used by {user}{others}: a Model stays until nothing uses it"
    if user.terminating and (further := context.causes_of(user)):
        return StuckCause(CauseCode.MODEL_IN_USE, model, line, because=further)
    return StuckCause(
        CauseCode.MODEL_IN_USE,
        user,
        line,
        remedies=(
            Remedy(
                f"Let {user} serve another model",
                f"pilotage redeploy {quote(user.meta.name)} -n {quote(user.meta.namespace)} --model OTHER",
                f"It serves on while it changes; then {model} goes by itself. Nothing leaks.",
                EDIT,
                user,
            ),
            Remedy(
                f"Delete {user}, if it is to go as well",
                f"pilotage delete {place(user)}",
                f"It stops serving; then {model} goes by itself. Nothing leaks.",
                DELETE,
                user,
            ),
        ),
    )


# Helpers


def _says(
    context: WhyContext,
    item: Item,
    keeper: FinalizerOwner,
    code: CauseCode,
    verdict: str,
    message: str,
    remedies: tuple[Remedy, ...] = (),
) -> StuckCause:
    """The root cause that a status names: a permission that is missing, or the message as it is."""
    if refusal := refusal_in(message):
        return forbidden(context, item, keeper, Complaint(f"status of {item}", message, "", fresh=True), refusal)
    sure = Confidence.HIGH if keeper.alive is Liveness.ALIVE else Confidence.MEDIUM
    evidence = (f"The status of {item} says so.", *keeper.evidence)
    return StuckCause(code, item, f"{verdict}: {short(message)}", evidence, sure, remedies=remedies)


def _stopping(found: tuple[StuckCause, ...]) -> tuple[StuckCause, ...]:
    return tuple(cause for cause in found if cause.code not in NOTES)


_KINDS: Mapping[tuple[str, str], _OwnKind] = {
    ENDPOINTS.group_kind: _OwnKind(ENDPOINT_FINALIZER, _endpoint),
    MODELS.group_kind: _OwnKind(MODEL_FINALIZER, _model),
    HOSTS.group_kind: _OwnKind(HOST_FINALIZER, _host),
    PROCESSES.group_kind: _OwnKind(PROCESS_FINALIZER, _process),
}
