"""Notes that block nothing and are worth knowing before: cycles, kept objects, volumes that stay."""

from collections.abc import Iterator

from pilotage.catalogue.relation import Relation
from pilotage.teardown.diagnosis.hazards.model import Hazard, HazardCode, Outlook
from pilotage.teardown.snapshot.fields import text
from pilotage.teardown.snapshot.world import Item


def hazards(outlook: Outlook) -> Iterator[Hazard]:
    """Notes on a plan."""
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
