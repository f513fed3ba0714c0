"""Where a teardown stands: its ledger, what was seen of each entry, what was tried, and what is to be decided again.

It is told what a drive observes, and keeps all of it in step: what is news about an entry puts its part back on the
partitions and sets `changed`. It does no I/O.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pilotage.runtime.clock import SteadyClock
from pilotage.teardown.engine.decide import is_over
from pilotage.teardown.engine.newcomers import owner_of, take_in
from pilotage.teardown.engine.observations import Observations
from pilotage.teardown.engine.partitions import Partitions
from pilotage.teardown.engine.progress import Outcome, Step
from pilotage.teardown.planning.ledger import Disposition

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable

    from pilotage.kube import GroupKind, Object, Resource
    from pilotage.runtime.informer import Change
    from pilotage.teardown.engine.decision import Refusal
    from pilotage.teardown.engine.prove import Proof
    from pilotage.teardown.planning.ledger import Entry, Ledger


class RunState:
    """See the module. `on_step` hears what is gone and what was found, `on_ledger` when the ledger has grown."""

    def __init__(self, ledger: Ledger, *, on_step: Callable[[Step], None], on_ledger: Callable[[Ledger], None]) -> None:
        self.ledger = ledger
        self.clock = SteadyClock()
        self.partitions = Partitions(ledger)
        self.observations = Observations()
        self.changed = asyncio.Event()
        """Set by all news; who waits for it clears it."""
        self.refusals: dict[str, Refusal] = {}
        """By uid, the last one, until something succeeds."""
        self.asked_at: dict[str, dt.datetime] = {}
        self.parts = _by_owner(ledger)
        """What goes, by the uid of what it is a part of."""
        self._on_step = on_step
        self._on_ledger = on_ledger
        self._entries = ledger.by_uid()
        self._gone_at: dict[str, dt.datetime] = {}
        self._notes: list[str] = []

    def outcome(self, proof: Proof | None) -> Outcome:
        """As of now."""
        return Outcome(self.ledger, self.partitions.whole(), proof, self._gone_at, self.asked_at, tuple(self._notes))

    def unfinished(self, kind: GroupKind) -> list[Entry]:
        """The entries of a kind that are not known to be gone."""
        entries = (entry for entry in self.ledger.entries if entry.group_kind == kind)
        return [entry for entry in entries if not is_over(self.observations.all.get(entry.uid))]

    def touch(self, uid: str) -> None:
        """Something is new about an object: its part is decided again."""
        self.partitions.touch(uid, self.observations.all.get(uid))
        self.changed.set()

    def is_gone(self, entry: Entry, *, foreign: bool = False) -> None:
        """It is not there any more (`foreign`: another has its name)."""
        now = self.clock.now()
        if self.observations.gone(entry.uid, now, foreign=foreign):
            self._gone_at.setdefault(entry.uid, now)
            self.refusals.pop(entry.uid, None)
            self.touch(entry.uid)
            if entry.disposition is not Disposition.KEEP:
                self._on_step(Step("gone", entry, now, "another object has its name" if foreign else ""))

    def take(self, resource: Resource, change: Change) -> None:
        """One event of a watch."""
        obj = change.object
        entry = self._entries.get(obj.meta.uid)
        if change.new is None:
            if entry is not None:
                self.is_gone(entry)
            return
        if entry is not None:
            if self.observations.see(obj):
                self.touch(entry.uid)
            return
        owner = owner_of(obj, self._entries) if obj.meta.owner_references else None
        if owner is not None:
            self._found(resource, obj, owner)

    def take_proof(self, proof: Proof) -> bool:
        """Whether it holds. What it shows to be there after all goes back into the game."""
        for obj in proof.there:
            if obj.meta.uid in self._entries:
                self.observations.contradict(obj)
                self._gone_at.pop(obj.meta.uid, None)
                self.touch(obj.meta.uid)
        self.note(
            f"{self._entries[uid]} could not be read to prove it gone: {problem}"
            for uid, problem in proof.unread.items()
        )
        self.note(proof.unsearched)
        for resource, obj in proof.newcomers:
            owner = owner_of(obj, self._entries)
            if owner is not None and obj.meta.uid not in self._entries:
                self._found(resource, obj, owner)
        return proof.holds

    def note(self, notes: Iterable[str]) -> None:
        """What a person should know in the end; each is said once."""
        for note in notes:
            if note not in self._notes:
                self._notes.append(note)

    def _found(self, resource: Resource, obj: Object, owner: Entry) -> None:
        """Something that appeared after the plan was made, and that belongs to it."""
        self.ledger, entry = take_in(self.ledger, resource, obj, owner)
        self._entries = self.ledger.by_uid()
        self.parts = _by_owner(self.ledger)
        self.partitions = Partitions(self.ledger)
        for uid, observation in self.observations.all.items():
            self.partitions.touch(uid, observation)
        self._on_ledger(self.ledger)
        self.observations.see(obj)
        self._on_step(Step("found", entry, self.clock.now(), entry.reason))
        self.changed.set()


def _by_owner(ledger: Ledger) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in ledger.going:
        if entry.owner:
            found.setdefault(entry.owner, []).append(entry)
    return found
