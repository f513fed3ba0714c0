"""Finalizers: who would have to remove one, whether they run, and what they say when they try."""

from collections.abc import Iterator

from pilotage.teardown.diagnosis.finalizer_owners import FinalizerOwner, Liveness
from pilotage.teardown.diagnosis.remedies import LOOK, REDRIVE, REPAIR, Remedy, look_at, place
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import PATIENCE_SECONDS, WhyContext
from pilotage.teardown.diagnosis.why.controllers import (
    Complaint,
    RefusedRequest,
    bring_back,
    complaints,
    do_its_work,
    find_log,
    grant,
    is_ours,
    last_resort,
    read_log,
    refusal_in,
    restart,
    start_operator,
)
from pilotage.teardown.diagnosis.why.model import Confidence, StuckCause
from pilotage.teardown.planning.ledger import HOLD, UNDER_WAY_SECONDS
from pilotage.teardown.snapshot.fields import span
from pilotage.teardown.snapshot.questions import MayThey
from pilotage.teardown.snapshot.world import Item


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Causes of finalizers that no other family has explained; of an object that stays, those that would hang."""
    for finalizer in dict.fromkeys(item.meta.finalizers):
        if context.claimed(item, finalizer):
            continue
        if item.terminating:
            yield waits_for(context, item, finalizer)
        elif (keeper := context.finalizer_owner(item, finalizer)).alive is Liveness.DEAD or finalizer == HOLD:
            yield StuckCause(
                CauseCode.FINALIZER,
                item,
                f"a delete would wait for finalizer {finalizer}",
                because=(kept_by(item, keeper, _root(context, item, keeper)),),
            )


def waits_for(context: WhyContext, item: Item, finalizer: str) -> StuckCause:
    """The chain for one finalizer of an object that is being deleted."""
    keeper = context.finalizer_owner(item, finalizer)
    root = _root(context, item, keeper)
    step = root if root.code == CauseCode.FINALIZER_UNCLAIMED else kept_by(item, keeper, root)
    return held_by(item, finalizer, step)


def held_by(item: Item, finalizer: str, step: StuckCause) -> StuckCause:
    """The step from an object that is being deleted to its finalizer."""
    text = f"waits for finalizer {finalizer}"
    return StuckCause(CauseCode.FINALIZER, item, text, because=(step,), since=item.meta.deletion_timestamp)


def _root(context: WhyContext, item: Item, keeper: FinalizerOwner) -> StuckCause:
    if keeper.finalizer == HOLD:
        return _unfinished(context, item, keeper)
    if keeper.alive is Liveness.DEAD:
        return _dead(context, item, keeper)
    said = complaints(context, item)
    for complaint in said:
        if refusal := refusal_in(complaint.message):
            return forbidden(context, item, keeper, complaint, refusal)
    if said and (said[0].fresh or not keeper.builtin):
        return _erroring(item, keeper, said)
    age = context.deleted_seconds_ago(item)
    if keeper.alive is Liveness.ALIVE:
        return _working(item, keeper, age) if age < PATIENCE_SECONDS else _silent(context, item, keeper, age)
    if keeper.builtin or keeper.workload or keeper.lease:
        return (
            _working(item, keeper, age)
            if age < PATIENCE_SECONDS and keeper.builtin
            else _unclear(context, item, keeper)
        )
    if context.world.namespaces or context.world.problem("apps", "Deployment"):
        return _unclear(context, item, keeper)  # not found where nobody looked
    return _missing(context, item, keeper) if keeper.who else _unclaimed(item, keeper)


def kept_by(item: Item, keeper: FinalizerOwner, *because: StuckCause) -> StuckCause:
    """The step from a finalizer to its owner."""
    workloads = ", ".join(map(str, (*([keeper.workload] if keeper.workload else []), *keeper.others)))
    likely = "probably kept by" if keeper.guessed else "kept by"
    return StuckCause(
        CauseCode.FINALIZER_KEEPER,
        keeper.workload or item,
        f"{likely} {keeper.who or 'an unknown controller'}{f'  {workloads}' if workloads else ''}",
        (f"Before it removes the finalizer, it {keeper.does}.",) if keeper.does else (),
        confidence=Confidence.LOW if keeper.guessed else Confidence.HIGH,
        because=because,
    )


# Root causes


def _dead(context: WhyContext, item: Item, keeper: FinalizerOwner) -> StuckCause:
    if keeper.workload and keeper.workload.meta.namespace == item.meta.namespace and _namespace_goes(context, item):
        return _went_first(item, keeper, keeper.workload)
    return StuckCause(
        CauseCode.FINALIZER_CONTROLLER_DEAD,
        keeper.workload or keeper.lease or item,
        f"NOT RUNNING: {keeper.trouble}",
        keeper.evidence,
        remedies=(*bring_back(context, keeper), *do_its_work(context, item), *last_resort(item, keeper)),
    )


def _went_first(item: Item, keeper: FinalizerOwner, workload: Item) -> StuckCause:
    """Nothing new is created in a namespace that is being deleted: a controller in there cannot be brought back."""
    elsewhere = Remedy(
        f"Copy {keeper.who} to another namespace, and run it there until its objects are gone",
        f"kubectl get {place(workload)} -o yaml",
        "It finishes the deletions by itself, and the namespace goes. Nothing leaks.",
        REPAIR,
        workload,
    )
    return StuckCause(
        CauseCode.NAMESPACE_OPERATOR_INSIDE,
        workload,
        f"WENT FIRST: it runs in the namespace that is being deleted ({keeper.trouble}), and no pod can start there",
        (*keeper.evidence, "Pods go first when a namespace is deleted, and none is created in it any more."),
        remedies=(elsewhere, *last_resort(item, keeper)),
    )


def forbidden(
    context: WhyContext, item: Item, keeper: FinalizerOwner, complaint: Complaint, refusal: RefusedRequest
) -> StuckCause:
    """The root cause where the API server refuses a request of the owner: the permission that it lacks."""
    question = MayThey(
        refusal.user, refusal.verb, refusal.group, refusal.plural, refusal.namespace, refusal.subresource
    )
    answer = context.world.ask(question)
    confidence, now = Confidence.MEDIUM, ""
    if answer is not None and answer.error_class is None:
        confidence = Confidence.MEDIUM if answer.allowed else Confidence.HIGH
        now = "It may by now: the controller tries again." if answer.allowed else "The server confirms that it may not."
    permit = Remedy(
        f"Give {refusal.user} the permission",
        grant(refusal),
        "Its controller tries again and finishes the deletion by itself. Nothing leaks.",
        REPAIR,
        item,
    )
    return StuckCause(
        CauseCode.FINALIZER_CONTROLLER_FORBIDDEN,
        keeper.workload or item,
        f"FORBIDDEN: {refusal.user} may not {refusal}",
        (str(complaint), *([now] if now else []), *keeper.evidence),
        confidence,
        remedies=(permit, *last_resort(item, keeper)),
        since=complaint.when,
    )


def _erroring(item: Item, keeper: FinalizerOwner, said: list[Complaint]) -> StuckCause:
    first = said[0]
    remedies = [
        look_at(
            item,
            "Fix what the controller reports",
            "It tries again by itself and finishes the deletion. Nothing leaks.",
        )
    ]
    if keeper.workload:
        remedies.append(read_log(keeper.workload))
    return StuckCause(
        CauseCode.FINALIZER_CONTROLLER_ERRORING,
        keeper.workload or item,
        f"FAILS: {first.message}",
        (*(str(each) for each in said), *keeper.evidence),
        Confidence.HIGH if first.fresh else Confidence.MEDIUM,
        remedies=(*remedies, *last_resort(item, keeper)),
        since=first.when,
    )


def _working(item: Item, keeper: FinalizerOwner, age: float) -> StuckCause:
    return StuckCause(
        CauseCode.FINALIZER_CONTROLLER_WORKING,
        keeper.workload or item,
        f"has been at work for {span(age)}" if keeper.alive is Liveness.ALIVE else f"has had {span(age)} so far",
        keeper.evidence,
        Confidence.HIGH if keeper.alive is Liveness.ALIVE else Confidence.MEDIUM,
        remedies=(Remedy("Wait", f"pilotage wait {place(item)}", "Nothing leaks.", LOOK, item),),
    )


def _silent(context: WhyContext, item: Item, keeper: FinalizerOwner, age: float) -> StuckCause:
    remedies = [look_at(item, "Look at what it waits for", "Nothing changes.")]
    if keeper.workload:
        remedies = [read_log(keeper.workload), restart(keeper.workload)]
    elif is_ours(keeper.finalizer):
        remedies = [find_log(context.world, keeper)]
    return StuckCause(
        CauseCode.FINALIZER_CONTROLLER_SILENT,
        keeper.workload or item,
        f"runs, but has not removed the finalizer for {span(age)}, and reports no reason",
        keeper.evidence,
        Confidence.MEDIUM,
        remedies=(*remedies, *last_resort(item, keeper)),
    )


def _unclear(context: WhyContext, item: Item, keeper: FinalizerOwner) -> StuckCause:
    title = f"Check whether {keeper.who or keeper.workload or f'the controller of {keeper.finalizer}'} runs"
    found = look_at(keeper.workload, title, "Nothing changes.") if keeper.workload else None
    check = found or Remedy(title, "kubectl get deployments,statefulsets,leases -A", "Nothing changes.", LOOK)
    if is_ours(keeper.finalizer) and keeper.workload is None:
        check = find_log(context.world, keeper)
    return StuckCause(
        CauseCode.FINALIZER_CONTROLLER_UNCLEAR,
        keeper.workload or item,
        "whether it runs could not be determined",
        keeper.evidence,
        Confidence.LOW,
        remedies=(check, *last_resort(item, keeper)),
    )


def _missing(context: WhyContext, item: Item, keeper: FinalizerOwner) -> StuckCause:
    effect = "It finishes the deletion by itself. Nothing leaks."
    install = Remedy(
        f"See which controllers there are; if {keeper.who} is not among them, install it again",
        "kubectl get deployments,statefulsets,leases -A",
        effect,
        REPAIR,
    )
    if is_ours(keeper.finalizer):
        install = start_operator(context.world, effect)
    return StuckCause(
        CauseCode.FINALIZER_CONTROLLER_MISSING,
        item,
        "NOT FOUND: nothing in this cluster looks like it; it was uninstalled, or runs elsewhere",
        keeper.evidence,
        Confidence.MEDIUM,
        remedies=(install, *do_its_work(context, item), *last_resort(item, keeper, missing=True)),
    )


def _unfinished(context: WhyContext, item: Item, keeper: FinalizerOwner) -> StuckCause:
    """Our own: no controller comes back to it, but the same command, given again, goes on where it was cut off."""
    young = item.terminating and context.deleted_seconds_ago(item) < UNDER_WAY_SECONDS
    finish = Remedy(
        "Finish the teardown",
        f"pilotage delete {place(item)}",
        "Takes down what is left of its parts, in order, and releases it. Nothing leaks. Give --resume RECEIPT instead "
        "where the receipt of that teardown is at hand.",
        REDRIVE,
        item,
    )
    return StuckCause(
        CauseCode.FINALIZER_TEARDOWN_UNFINISHED,
        item,
        f"{'UNDER WAY, or not finished' if young else 'NOT FINISHED'}: its parts go first, and only "
        "`pilotage delete` releases it then",
        keeper.evidence,
        Confidence.MEDIUM if young else Confidence.HIGH,
        remedies=(finish, *last_resort(item, keeper)),
    )


def _unclaimed(item: Item, keeper: FinalizerOwner) -> StuckCause:
    return StuckCause(
        CauseCode.FINALIZER_UNCLAIMED,
        item,
        "NO OWNER FOUND: no known controller, workload, API group or Lease matches it",
        keeper.evidence,
        Confidence.MEDIUM,
        remedies=(
            look_at(item, "Find out who put it there", "Its author knows what it is for. Nothing changes."),
            *last_resort(item, keeper),
        ),
    )


def _namespace_goes(context: WhyContext, item: Item) -> bool:
    namespace = context.world.find("", "Namespace", "", item.meta.namespace)
    return namespace is not None and namespace.terminating
