"""The receipt: the record of one teardown, from before its first act to its proof.

It is written before anything is done, with the ledger in it, so that a teardown that was cut off can be resumed from
it; and at the end once more, with what was proven, what was kept and what is left. Plain JSON, one object.

Its digest tells a file that was changed, or cut off, from one that was not. It is no signature: whoever changes the
file on purpose can make a new one.
"""

import contextlib
import datetime as dt
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import msgspec

from pilotage.kube import NAMESPACES, ApiError, Client, ObjectKey
from pilotage.kube.wire import format_micro_time
from pilotage.teardown.engine.progress import Outcome
from pilotage.teardown.engine.saved import LedgerRefused, check_saved
from pilotage.teardown.planning.ledger import Disposition, Entry, Ledger
from pilotage.teardown.snapshot.fields import counted

FORMAT = "pilotage.dev/receipt-v1"
BYTES_MAX = 64 << 20
"""The receipt of 50,000 objects has about half of it."""


class ReceiptError(Exception):
    """A file that is no receipt, or cannot be read or written; the message says which and why."""


class ReadRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The read that proved something."""

    request: str
    at: str
    resource_version: str = ""


class ObjectRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The result for one object."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    found: str
    """Reason why it is part of the teardown."""
    phase: str
    state: str
    """``gone``, ``kept``, or what it was when the teardown ended without it."""
    asked: str = ""
    gone: str = ""
    proof: ReadRecord | None = None
    unverified: str = ""
    waits: str = ""
    """Reason for waiting, of an entry that is not gone."""

    def __str__(self) -> str:
        place = f" -n {self.namespace}" if self.namespace else ""
        return f"{self.kind.lower()}/{self.name}{place}"


class Receipt(msgspec.Struct, frozen=True, rename="camel"):
    """The record of one teardown, as it is saved."""

    targets: tuple[str, ...]
    server: str
    cluster: str
    """The uid of its namespace kube-system: a server's address may be that of another cluster the next time."""
    started: str
    ledger: Ledger
    """The ledger that `--resume` continues."""
    format: str = FORMAT
    result: str = "running"
    """``running`` (or cut off), ``complete``, ``incomplete``."""
    ended: str = ""
    objects: tuple[ObjectRecord, ...] = ()
    references: tuple[str, ...] = ()
    """Objects that are still there and point at something that is gone."""
    notes: tuple[str, ...] = ()

    def count(self, state: str) -> int:
        """Number of objects that ended in a state."""
        return sum(record.state == state for record in self.objects)


async def cluster_uid(client: Client) -> str:
    """The identity of a cluster: the uid of its namespace kube-system. Empty where that may not be read."""
    try:
        found = await client.get(NAMESPACES, ObjectKey("", "kube-system"), metadata_only=True)
    except ApiError:
        return ""
    return found.meta.uid


def begin(ledger: Ledger, server: str, cluster: str = "") -> Receipt:
    """The receipt of a teardown that is about to start."""
    return Receipt(targets=ledger.targets, server=server, cluster=cluster, started=ledger.started, ledger=ledger)


def conclude(outcome: Outcome, server: str, now: dt.datetime, cluster: str = "") -> Receipt:
    """The receipt of one that has ended, complete or not."""
    ledger = outcome.ledger
    waits = {wait.entry.uid: f"{wait.cause}: {wait.text}" for wait in outcome.decision.waits}
    return Receipt(
        targets=ledger.targets,
        server=server,
        cluster=cluster,
        started=ledger.started,
        ledger=ledger,
        result="complete" if outcome.complete and not ledger.unread else "incomplete",
        ended=format_micro_time(now),
        objects=tuple(_record(entry, outcome, waits) for entry in ledger.entries),
        references=tuple(sorted(outcome.proof.pointers)) if outcome.proof is not None else (),
        notes=tuple(dict.fromkeys((*ledger.remarks, *_unread(ledger), *outcome.notes, *_names_taken(outcome)))),
    )


def _unread(ledger: Ledger) -> list[str]:
    if not ledger.unread:
        return []
    shown = ", ".join(ledger.unread[:3]) + (", …" if len(ledger.unread) > 3 else "")
    return [
        f"{counted(len(ledger.unread), 'kind')} could not be read ({shown}): what of them was meant may still be there"
    ]


def _names_taken(outcome: Outcome) -> list[str]:
    taken = outcome.proof.taken if outcome.proof is not None else {}
    return [
        f"{entry} is gone; another object has its name now (uid {taken[entry.uid]}), and was not touched"
        for entry in outcome.ledger.going
        if entry.uid in taken
    ]


def _record(entry: Entry, outcome: Outcome, waits: dict[str, str]) -> ObjectRecord:
    read = outcome.proof.gone.get(entry.uid) if outcome.proof is not None else None
    asked, gone = outcome.asked_at.get(entry.uid), outcome.gone_at.get(entry.uid)
    return ObjectRecord(
        entry.resource.api_version,
        entry.resource.kind,
        entry.namespace,
        entry.name,
        entry.uid,
        entry.reason,
        str(entry.phase),
        _state(entry, outcome),
        format_micro_time(asked) if asked else "",
        format_micro_time(gone) if gone else "",
        ReadRecord(read.request, format_micro_time(read.at), read.resource_version) if read else None,
        entry.unverified,
        waits.get(entry.uid, ""),
    )


def _state(entry: Entry, outcome: Outcome) -> str:
    proof = outcome.proof
    if entry.disposition is Disposition.KEEP:
        there = proof is None or proof.kept.get(entry.uid, True)
        return "kept" if there else "to be kept, but not there"
    if proof is not None and entry.uid in proof.gone:
        return "gone"
    return "seen gone, not proven" if entry.uid in outcome.gone_at else "left"


def save(receipt: Receipt, path: Path) -> None:
    """Write it whole or not at all: a new file in the same folder, then a rename."""
    told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(receipt))
    text = msgspec.json.format(msgspec.json.encode(told | {"digest": _digest(told)}), indent=2)
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        try:
            with open(temporary, "xb", opener=_only_for_us) as file:
                file.write(text + b"\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise ReceiptError(f"{path}: the receipt cannot be written: {error.strerror}") from error


def _only_for_us(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def load(path: Path) -> Receipt:
    """Read one back. What it says of itself fits together; whether it is true, only a server can tell."""
    raw = _read(path)
    try:
        head: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, Any])
        if head.get("format") != FORMAT:
            raise ReceiptError(f"{path}: not a receipt of Pilotage: its format is {head.get('format')!r:.100}")
        if head.pop("digest", None) not in (None, _digest(head)):  # those of earlier versions have none
            raise ReceiptError(f"{path}: it was changed after it was written: its digest does not fit")
        receipt = msgspec.json.decode(raw, type=Receipt)
        check_saved(receipt.ledger)
    except LedgerRefused as error:
        raise ReceiptError(f"{path}: this receipt cannot be used: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReceiptError(f"{path}: not a receipt of Pilotage: {error}") from error
    except RecursionError:
        raise ReceiptError(f"{path}: not a receipt of Pilotage: it is nested too deeply") from None
    return receipt


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ReceiptError(f"{path}: not a regular file")
            raw = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise ReceiptError(f"{path}: {error.strerror}") from error
    if len(raw) > BYTES_MAX:
        raise ReceiptError(f"{path}: not a receipt of Pilotage: it is larger than {BYTES_MAX >> 20} MiB")
    return raw


def _digest(told: dict[str, Any]) -> str:
    """Digest of the whole content of a receipt, whatever its layout."""
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
