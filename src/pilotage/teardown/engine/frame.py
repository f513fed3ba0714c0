"""What a decision needs of a ledger, worked out once: who is whose part, and until when things may take."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from pilotage.kube.wire import parse_time
from pilotage.teardown.planning.ledger import Disposition

if TYPE_CHECKING:
    from pilotage.teardown.planning.ledger import Entry, Ledger


class Frame:
    """A ledger, looked at from all sides. Nothing in it changes."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.entries = ledger.by_uid()
        self.labels = {entry.uid: str(entry) for entry in ledger.entries}
        """Each entry as a person reads it."""
        self.started = parse_time(ledger.started)
        self.until = self.started + dt.timedelta(seconds=ledger.policy.timeout_seconds)
        self.stalled = dt.timedelta(seconds=ledger.policy.stalled_seconds)
        self.parts: dict[str, list[Entry]] = {}
        self.keepsakes: dict[str, list[Entry]] = {}
        """What stays, by the entries that would take it along."""
        for entry in ledger.entries:
            if entry.owner:
                self.parts.setdefault(entry.owner, []).append(entry)
            for uid in entry.disown:
                self._remember(entry, uid)

    def _remember(self, kept: Entry, owner: str) -> None:
        """An owner that is carried along takes it, too, when its carrier goes."""
        while owner in self.entries and kept not in self.keepsakes.setdefault(owner, []):
            self.keepsakes[owner].append(kept)
            above = self.entries[owner]
            owner = above.owner if above.disposition is Disposition.COLLECT else ""
