"""Ownership: foreground deletions and what blocks them, orphaning, and owners that the garbage collector cannot use."""

from collections.abc import Iterator

from pilotage.catalogue.names import FOREGROUND, ORPHAN
from pilotage.kube import OwnerReference
from pilotage.teardown.diagnosis.remedies import (
    DELETE,
    EDIT,
    LOOK,
    Remedy,
    look_at,
    place,
    redrive_foreground,
    replay_delete,
)
from pilotage.teardown.diagnosis.why.codes import NOTES, CauseCode
from pilotage.teardown.diagnosis.why.context import COLLECTOR_SECONDS, WhyContext
from pilotage.teardown.diagnosis.why.model import Confidence, StuckCause
from pilotage.teardown.snapshot.fields import span
from pilotage.teardown.snapshot.world import Item, Name, World

CIRCLE_MAX = 100


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Dependents that a terminating object waits for, and problems with its own owners."""
    if item.terminating and FOREGROUND in item.meta.finalizers:
        context.claim(item, FOREGROUND)
        yield from _foreground(context, item)
    if item.terminating and ORPHAN in item.meta.finalizers:
        context.claim(item, ORPHAN)
        yield _orphaning(context, item)
    if item.meta.owner_references:
        yield from _owners(context, item)


# Below it


def _foreground(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    blocking = [child for child in context.world.children(item.uid) if _blocks(item, child)]
    for group in context.groups(blocking):
        child = group.example
        further = context.causes_of(child)
        if not child.terminating and not _stops(further):
            further = (*further, _not_deleted(context, item, child))
        elif not further:
            further = (_going(context, child),)
        yield StuckCause(
            CauseCode.FOREGROUND,
            item,
            f"waits for {child}, which it owns{group.others}",
            (f"{child} has an owner reference to it with blockOwnerDeletion.",),
            because=further,
            since=item.meta.deletion_timestamp,
        )
    if not blocking:
        yield from _nothing_blocks(context, item)


def _nothing_blocks(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    age = context.deleted_seconds_ago(item)
    unread = _unread_kinds(context, item)
    if age < COLLECTOR_SECONDS:
        text = f"the garbage collector has had {span(age)} so far"
        yield StuckCause(CauseCode.FOREGROUND_WORKING, item, text, confidence=Confidence.MEDIUM)
    elif unread:
        yield StuckCause(
            CauseCode.UNREADABLE,
            item,
            f"waits in the foreground for what it owns, and {unread[0]} could not be read",
            tuple(unread),
            Confidence.LOW,
            remedies=(redrive_foreground(item),),
        )
    else:
        yield StuckCause(
            CauseCode.FOREGROUND_LOST,
            item,
            "waits in the foreground for what it owns, but nothing is left that blocks it: the garbage collector "
            "lost track of it",
            (f"All readable kinds were read, and none has an object that names uid {item.uid} as a blocking owner.",),
            Confidence.HIGH if age > 10 * COLLECTOR_SECONDS else Confidence.MEDIUM,
            remedies=(redrive_foreground(item),),
            since=item.meta.deletion_timestamp,
        )


def _not_deleted(context: WhyContext, owner: Item, child: Item) -> StuckCause:
    """The collector's turn: its own delete of a dependent was refused, or is still to come."""
    age = context.deleted_seconds_ago(owner)
    if age < COLLECTOR_SECONDS:
        text = f"is not being deleted yet; the garbage collector has had {span(age)} so far"
        return StuckCause(CauseCode.FOREGROUND_WORKING, child, text, confidence=Confidence.MEDIUM)
    return StuckCause(
        CauseCode.FOREGROUND_DEPENDENT_NOT_DELETED,
        child,
        "is not being deleted: the garbage collector's delete was refused or lost, and it tries again ever more rarely",
        (f"{owner} has been waiting for {span(age)}, and {child} has no deletionTimestamp.",),
        Confidence.MEDIUM,
        remedies=(look_at(child, "Check what refuses its delete", "Nothing changes."), replay_delete(child)),
    )


def _going(context: WhyContext, child: Item) -> StuckCause:
    text = f"is being deleted for {span(context.deleted_seconds_ago(child))}, and nothing visible holds it"
    return StuckCause(CauseCode.FOREGROUND_WORKING, child, text, confidence=Confidence.MEDIUM)


def _orphaning(context: WhyContext, item: Item) -> StuckCause:
    children = context.world.children(item.uid)
    age = context.deleted_seconds_ago(item)
    left = f"{len(children)} still name it" if children else "none names it any more"
    return StuckCause(
        CauseCode.ORPHAN_PENDING if age >= COLLECTOR_SECONDS else CauseCode.FOREGROUND_WORKING,
        item,
        f"waits until the garbage collector has taken it off what it owns, which is to stay: {left}",
        tuple(f"{child} still names it as an owner." for child in children[:5]),
        Confidence.HIGH if children else Confidence.MEDIUM,
        remedies=(
            Remedy("Check whether the garbage collector runs", _MANAGER, "Nothing changes.", LOOK, item),
            Remedy(
                "Send the delete again, in the background",
                f"kubectl delete {place(item)} --cascade=background --wait=false",
                "LEAKS nothing, but what it owns is then deleted, although it was to stay."
                if children
                else "Nothing leaks.",
                DELETE,
                item,
            ),
        ),
        since=item.meta.deletion_timestamp,
    )


_MANAGER = "kubectl get lease kube-controller-manager -n kube-system -o yaml"


# Above it


def _owners(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """The garbage collector's view of its owners. Each is a note where it blocks nothing."""
    world = context.world
    found = [cause for owner in item.meta.owner_references if (cause := _wrong(context, item, owner))]
    yield from found
    owners = {owner.uid: world.get(owner.uid) for owner in item.meta.owner_references}
    living = [each for each in owners.values() if each and not each.terminating]
    if not item.terminating and living and len(living) < len(owners) and not found:
        text = f"stays, although not all of its owners do: {living[0]} owns it, too"
        yield StuckCause(CauseCode.OWNER_KEEPS, item, text, (f"{living[0]} is there, with the uid that is named.",))
    if not item.terminating and (circle := _circle(world, item)):
        yield StuckCause(
            CauseCode.OWNER_CYCLE,
            item,
            "owns itself through a cycle: the garbage collector never collects it. A delete of any of them does",
            (" → ".join(str(each) for each in circle),),
        )


def _wrong(context: WhyContext, item: Item, owner: OwnerReference) -> StuckCause | None:
    world = context.world
    group = owner.api_version.rpartition("/")[0]
    there = world.get(owner.uid)
    if there:
        return _misplaced(item, there)
    reading = next((each for kind, each in world.kinds.items() if kind == (group, owner.kind)), None)
    namespace = item.meta.namespace if reading is None or reading.resource.namespaced else ""
    name = Name(group, owner.kind, namespace, owner.name)
    if problem := world.problem(*name[:3]):
        return _unreadable_owner(context, item, name, owner, problem)
    if len(item.meta.owner_references) > 1 and _kept(world, item):
        return None
    same_name = world.find(*name)
    doing = "began to delete it for that" if item.terminating else "deletes it for that, as soon as nothing refuses it"
    if same_name:
        return StuckCause(
            CauseCode.OWNER_WRONG_UID,
            item,
            f"its owner {name} is another object by now; the one it belonged to is gone: the garbage collector {doing}",
            (f"The owner reference names uid {owner.uid}; {same_name} has uid {same_name.uid}.",),
            remedies=_drop_reference(item, "It stays, without an owner."),
        )
    return StuckCause(
        CauseCode.OWNER_GONE,
        item,
        f"its owner {name} is gone, and the garbage collector {doing}",
        (f"No {name} was found, nor anything else with uid {owner.uid}.",),
    )


def _misplaced(item: Item, owner: Item) -> StuckCause | None:
    """An owner that is there, and still counts for nothing because of where it is."""
    if not owner.meta.namespace or owner.meta.namespace == item.meta.namespace:
        return None
    if not item.meta.namespace:
        return StuckCause(
            CauseCode.OWNER_NAMESPACED,
            item,
            f"has no namespace, but its owner {owner} has: the garbage collector never collects it",
            (f"The owner reference names uid {owner.uid}, which is in namespace {owner.meta.namespace}.",),
            remedies=(Remedy("Delete it by itself", f"pilotage delete {place(item)}", "Nothing leaks.", DELETE, item),),
        )
    return StuckCause(
        CauseCode.OWNER_IN_OTHER_NAMESPACE,
        item,
        f"its owner {owner} is in another namespace, which counts as gone: the garbage collector "
        + ("began to delete it for that" if item.terminating else "deletes it for that"),
        (f"An owner is looked up in the namespace of what it owns, {item.meta.namespace}.",),
        remedies=_drop_reference(item, "It stays, without an owner."),
    )


def _unreadable_owner(
    context: WhyContext, item: Item, name: Name, owner: OwnerReference, problem: str
) -> StuckCause | None:
    context.unread(f"{name.group_kind}: {problem}")
    if item.terminating:
        return None
    return StuckCause(
        CauseCode.OWNER_UNREADABLE,
        item,
        f"its owner {name} is of a kind that could not be read: while the server does not serve it, the garbage "
        "collector leaves it alone",
        (f"{owner.api_version} {owner.kind}: {problem}",),
        Confidence.MEDIUM,
        remedies=(
            Remedy("Check whether the kind is served", "kubectl api-resources", "Nothing changes.", LOOK, name),
            *_drop_reference(item, "It stays, without an owner; delete it by itself."),
        ),
    )


def _drop_reference(item: Item, effect: str) -> tuple[Remedy, ...]:
    if item.terminating:
        return ()
    command = f'kubectl patch {place(item)} --type=json -p \'[{{"op":"remove","path":"/metadata/ownerReferences"}}]\''
    return (Remedy("Remove the owner reference", command, effect, EDIT, item),)


# Helpers


def _blocks(owner: Item, child: Item) -> bool:
    same_place = not owner.meta.namespace or owner.meta.namespace == child.meta.namespace
    return same_place and any(
        each.uid == owner.uid and each.block_owner_deletion for each in child.meta.owner_references
    )


def _stops(further: tuple[StuckCause, ...]) -> bool:
    """Whether something already says why a dependent's delete does not go through."""
    return any(cause.code not in NOTES for cause in further)


def _kept(world: World, item: Item) -> bool:
    return any((owner := world.get(each.uid)) and not owner.terminating for each in item.meta.owner_references)


def _unread_kinds(context: WhyContext, item: Item) -> list[str]:
    """The kinds that could hold something it owns, and could not be read."""
    found = context.world.unread([True, not item.meta.namespace])
    for each in found:
        context.unread(each)
    return found


def _circle(world: World, item: Item) -> list[Item]:
    """A way from the object over its owners back to itself, if no owner outside of it lives; else nothing."""
    way: list[Item] = []
    seen: set[str] = set()
    current: Item | None = item
    while current is not None and len(way) < CIRCLE_MAX:
        if current.uid in seen:
            return [*way, current] if current.uid == item.uid else []
        seen.add(current.uid)
        way.append(current)
        owners = [owner for each in current.meta.owner_references if (owner := world.get(each.uid))]
        if len(owners) != 1:
            return []
        current = owners[0]
    return []
