"""Objects that stay, come back, or go in no order: by their owners, in a cycle, kept, retained. None of it blocks."""

from collections.abc import Iterator

from pilotage.catalogue.names import JOB_UIDS
from pilotage.catalogue.relation import Relation
from pilotage.teardown.diagnosis.hazards.model import Hazard, HazardCode, Outlook
from pilotage.teardown.diagnosis.remedies import place
from pilotage.teardown.snapshot.fields import text
from pilotage.teardown.snapshot.world import Item

_NAMED = "named"


def hazards(outlook: Outlook) -> Iterator[Hazard]:
    """Effects of owners on the members of a ledger."""
    for item in outlook.going.values():
        yield from _made_again(outlook, item)
        yield from _never_collected(outlook, item)
    jobs = {item.uid: item for item in outlook.of("batch", "Job")}
    if jobs:
        yield from _orphaned_pods(outlook, jobs)


def _made_again(outlook: Outlook, item: Item) -> Iterator[Hazard]:
    reference = item.meta.controller
    owner = outlook.world.get(reference.uid) if reference else None
    if owner is not None and not outlook.goes(owner) and outlook.entry(item).reason == _NAMED:
        yield Hazard(
            HazardCode.OWNER_MAKES_IT_AGAIN,
            owner,
            f"stays and controls {item}: it probably makes another one as soon as this is gone",
            False,
            f"Take {place(owner)} down instead, or scale it down.",
        )


def _never_collected(outlook: Outlook, item: Item) -> Iterator[Hazard]:
    if not item.meta.namespace:
        return
    for child in outlook.world.children(item.uid):
        if not child.meta.namespace and not outlook.goes(child):
            yield Hazard(
                HazardCode.NEVER_COLLECTED,
                child,
                f"names {item} as its owner, and stays: what has no namespace is never collected with what has one",
                False,
                f"Name it as well: {place(child)}",
            )


def _orphaned_pods(outlook: Outlook, jobs: dict[str, Item]) -> Iterator[Hazard]:
    """Our own deletes say the propagation, and orphan nothing. What was orphaned before is nobody's."""
    for pod in outlook.world.of("", "Pod"):
        uid = next((pod.meta.labels[name] for name in JOB_UIDS if name in pod.meta.labels), "")
        owned = any(owner.uid == uid for owner in pod.meta.owner_references)
        if uid in jobs and not owned and not outlook.goes(pod):
            yield Hazard(
                HazardCode.JOB_PODS_ORPHANED,
                pod,
                f"was made by {jobs[uid]} and is not owned by it any more: it stays",
                False,
                f"Name it as well: {place(pod)}",
            )


def notes(outlook: Outlook) -> Iterator[Hazard]:
    """Cycles, kept objects and volumes that stay."""
    entries = outlook.ledger.by_uid()
    for circle in outlook.ledger.cycles:
        names = [str(entries[uid]) for uid in circle if uid in entries]
        if names:
            words = f"waits for itself through {', '.join(names[1:]) or 'itself'}: these go together, in no order"
            yield Hazard(HazardCode.CYCLE, entries[circle[0]].full_name, words, False, "")
    for entry in outlook.ledger.kept:
        owners = [str(entries[uid]) for uid in entry.disown if uid in entries]
        if owners:
            words = f"is owned by {', '.join(owners)}: the reference to what goes is taken off, so that it stays"
            yield Hazard(HazardCode.KEPT_FROM_OWNER, entry.full_name, words, False, "")
    for claim in outlook.of("", "PersistentVolumeClaim"):
        yield from _retained(outlook, claim)


def _retained(outlook: Outlook, claim: Item) -> Iterator[Hazard]:
    for edge in outlook.graph.out_of(claim.uid):
        volume = edge.target
        if edge.relation is not Relation.CLAIMS or volume is None or outlook.goes(volume):
            continue
        if text(outlook.world.body(volume), "spec", "persistentVolumeReclaimPolicy") == "Retain":
            yield Hazard(
                HazardCode.VOLUME_RETAINED,
                volume,
                f"stays when {claim} goes, with its data: its reclaim policy is Retain",
                False,
                "Delete it, and the storage behind it, once its data is saved or not needed.",
            )
