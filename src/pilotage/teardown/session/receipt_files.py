"""Receipts: the folder that keeps those nobody gave a place, and the receipt that a word means."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pilotage.teardown.planning.arguments import TargetError

if TYPE_CHECKING:
    from pilotage.teardown.engine.receipt import Receipt
    from pilotage.teardown.planning.ledger import Ledger
    from pilotage.teardown.session import Session

_RECORD_WORDS = ("td", "teardown", "teardowns", "teardowns.pilotage.dev")


def receipts_folder() -> Path:
    """``pilotage/receipts`` in $XDG_STATE_HOME or ~/.local/state; the working directory where there is no home."""
    home, root = os.environ.get("HOME"), os.environ.get("XDG_STATE_HOME")
    base = Path(root) if root else Path(home, ".local", "state") if home else Path()
    return base / "pilotage" / "receipts" if base.is_absolute() else Path()


def new_receipt(ledger: Ledger) -> Path:
    """``NAME-DATE-TIME.json`` in the folder of receipts, after the first target; never a file that exists.

    Makes the folder.
    """
    from pilotage.kube.wire import parse_time

    name = ledger.targets[0].partition(" ")[0].rpartition("/")[2] if ledger.targets else "teardown"
    stem = f"{name}-{parse_time(ledger.started):%Y%m%d-%H%M%S}"
    folder = receipts_folder()
    with contextlib.suppress(OSError):  # who writes the file is told
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, number = folder / f"{stem}.json", 1
    while not _reserve(path):
        number += 1
        path = folder / f"{stem}-{number}.json"
    return path


def _reserve(path: Path) -> bool:
    """Create a file; False if it exists. One that cannot be created counts as free: the first write reports that."""
    try:
        path.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return False
    except OSError:
        pass
    return True


def find_receipt(path: Path) -> Path:
    """The file that is meant: the path as it is; or, by its name alone, one in the folder of receipts."""
    if path.exists() or len(path.parts) != 1:
        return path
    kept = (receipts_folder() / path, receipts_folder() / f"{path}.json")
    return next((each for each in kept if each.exists()), path)


def record_named(word: str) -> str:
    """The name of the Teardown that a word such as ``td/NAME`` means; empty for a file."""
    kind, _, name = word.partition("/")
    return name if kind.lower() in _RECORD_WORDS and "/" not in name and not Path(word).exists() else ""


async def read_record(session: Session, name: str, namespace: str) -> Receipt:
    """The receipt in the status of a Teardown. Raises TargetError where it has none (yet), and ApiError."""
    from pilotage.api.names import TEARDOWN_DONE, TEARDOWNS
    from pilotage.api.teardown import StoredTeardown
    from pilotage.kube import Absent, ObjectKey
    from pilotage.teardown.engine.saved import LedgerRefused, check_saved
    from pilotage.teardown.session.teardown_record import receipt_of

    key = ObjectKey(namespace or session.client.namespace, name)
    what = f"teardown/{key.name} -n {key.namespace}"
    try:
        record = StoredTeardown.of(await session.client.get(TEARDOWNS, key))
    except Absent:
        raise TargetError(f"There is no {what}. A finished one goes after its ttlSecondsAfterFinished.") from None
    if record.status.phase != TEARDOWN_DONE:
        waits = f", and waits for {record.status.waiting_for}" if record.status.waiting_for else ""
        raise TargetError(f"{what} has no receipt yet: it is in phase {record.status.phase or 'cordon'}{waits}.")
    try:
        receipt = receipt_of(record)
        check_saved(receipt.ledger)
    except (ValueError, LedgerRefused) as error:
        raise TargetError(f"The receipt in {what} cannot be read: {error}.") from error
    return receipt
