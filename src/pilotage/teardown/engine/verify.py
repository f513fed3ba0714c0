"""Whether a receipt still holds: everything in it is read again, by uid, as it was for the proof.

What was gone must still be gone; a uid never comes back, but a proof can have been wrong, or made on another cluster.
An object of the same name is another object, and is mentioned. What was kept should still be there. What cannot be
read proves nothing, either way.
"""

import enum
from typing import NamedTuple

from pilotage.kube import Client, Json
from pilotage.teardown.engine.prove import prove
from pilotage.teardown.engine.receipt import ObjectRecord, Receipt
from pilotage.teardown.planning.ledger import Entry

COMPLETE = "complete"


class ReceiptVerdict(enum.StrEnum):
    """The answer in a word."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    UNKNOWN = "unknown"
    """Too little could be read to say."""


class Verification(NamedTuple):
    """Result of reading the cluster again."""

    verdict: ReceiptVerdict
    gone: tuple[Entry, ...]
    """Proven gone, again."""
    back: tuple[Entry, ...]
    """There, although they should be gone."""
    unread: dict[str, str]
    """Objects that could not be read, by name, with the reason."""
    successors: dict[str, str]
    """Names of gone objects that another object has by now, with its uid."""
    kept: tuple[Entry, ...]
    """Kept, and there."""
    lost: tuple[Entry, ...]
    """Entries that were to be kept, and are not there any more."""
    incomplete: str = ""
    """Why the receipt promises less than it seems to; empty for the receipt of a complete teardown."""
    contradiction: str = ""
    """How the receipt contradicts itself; empty where it does not."""
    elsewhere: str = ""
    """Why this may not be the cluster of the receipt; empty where it is."""

    def to_json(self) -> Json:
        """All of it."""
        return {
            "verdict": str(self.verdict),
            "gone": [entry.reference for entry in self.gone],
            "back": [entry.reference for entry in self.back],
            "unread": self.unread,
            "successors": self.successors,
            "kept": [entry.reference for entry in self.kept],
            "lost": [entry.reference for entry in self.lost],
            "incomplete": self.incomplete,
            "contradiction": self.contradiction,
            "elsewhere": self.elsewhere,
        }


async def verify(client: Client, receipt: Receipt, *, server: str = "", cluster: str = "") -> Verification:
    """Read everything in a receipt again. Never raises an ApiError: what cannot be read is unread.

    `server` is where the client is connected to, and `cluster` the identity of the cluster there, if it is known: on
    another cluster all would seem to be gone.
    """
    ledger = receipt.ledger
    proof = await prove(client, ledger)
    there = {obj.meta.uid for obj in proof.there}
    gone = tuple(entry for entry in ledger.going if entry.uid in proof.gone)
    back = tuple(entry for entry in ledger.going if entry.uid in there)
    kept = tuple(entry for entry in ledger.kept if proof.kept.get(entry.uid) is True)
    lost = tuple(entry for entry in ledger.kept if proof.kept.get(entry.uid) is False)
    # A uid that is there shows that it is the same cluster, whatever its address is by now.
    elsewhere = "" if back or kept else _elsewhere(receipt, server, cluster)
    incomplete, contradiction = _incomplete(receipt), _contradiction(receipt)
    if back or lost or incomplete or contradiction:
        verdict = ReceiptVerdict.DOES_NOT_HOLD
    elif elsewhere or proof.unread:
        verdict = ReceiptVerdict.UNKNOWN
    else:
        verdict = ReceiptVerdict.HOLDS
    return Verification(
        verdict,
        gone,
        back,
        {str(entry): proof.unread[entry.uid] for entry in ledger.entries if entry.uid in proof.unread},
        {str(entry): proof.taken[entry.uid] for entry in gone if entry.uid in proof.taken},
        kept,
        lost,
        incomplete,
        contradiction,
        elsewhere,
    )


def _incomplete(receipt: Receipt) -> str:
    if receipt.result == COMPLETE:
        return ""
    if receipt.result == "incomplete":
        left = [str(record) for record in receipt.objects if record.state not in ("gone", "kept")]
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        return f"the teardown ended without {', '.join(left[:3]) or 'a proof'}{more}"
    return "the teardown was cut off, or is still under way: nothing was proven at its end"


def _contradiction(receipt: Receipt) -> str:
    """The first difference between what a finished receipt says of its objects, and its ledger, which is verified."""
    if receipt.result not in (COMPLETE, "incomplete"):
        return ""
    records = {record.uid: record for record in receipt.objects}
    for entry in receipt.ledger.entries:
        record = records.pop(entry.uid, None)
        if record is None or _reference(record) != _reference_of(entry):
            return f"its ledger has {entry} (uid {entry.uid}), and its objects do not"
        if receipt.result == COMPLETE and entry in receipt.ledger.going and record.state != "gone":
            return f"it is called complete, and {entry} is {record.state}"
    extra = next(iter(records.values()), None)
    if extra is not None:
        return f"its objects have {extra} (uid {extra.uid}), and its ledger does not"
    return "" if len(receipt.objects) == len(receipt.ledger.entries) else "it has an object twice"


def _reference(record: ObjectRecord) -> tuple[str, ...]:
    return record.api_version, record.kind, record.namespace, record.name


def _reference_of(entry: Entry) -> tuple[str, ...]:
    return entry.resource.api_version, entry.resource.kind, entry.namespace, entry.name


def _elsewhere(receipt: Receipt, server: str, cluster: str) -> str:
    if receipt.cluster and cluster:
        same = receipt.cluster == cluster
        return "" if same else f"the receipt was made on the cluster {receipt.cluster}, and this is {cluster}"
    if not server or not receipt.server or server == receipt.server:
        return ""
    return f"the receipt was made at {receipt.server}, and this is {server}"
