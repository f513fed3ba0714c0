"""Ownership: who makes it again, what is never collected, and what a Job left behind before."""

from collections.abc import Iterator

from pilotage.teardown.diagnosis.hazards.model import Hazard, HazardCode, Outlook
from pilotage.teardown.diagnosis.remedies import place
from pilotage.teardown.snapshot.world import Item

JOB_UIDS = ("batch.kubernetes.io/controller-uid", "controller-uid")
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
