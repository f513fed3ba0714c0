"""The state of a teardown under way: its ledger, observations, refusals, and what has to be decided again.

Observers and actions report here; news about an entry make its partition due and set `changed`. No I/O.

What is remembered only saves requests: a run that begins anew with the same ledger, after a crash, comes to the same
end.
"""

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable

from pilotage.kube import GroupKind, Object, Resource
from pilotage.runtime.clock import SteadyClock
from pilotage.runtime.informer import Change
from pilotage.teardown.engine.decide import is_over
from pilotage.teardown.engine.decision import Decision, Refusal, Withheld
from pilotage.teardown.engine.newcomers import owner_of, take_in
from pilotage.teardown.engine.observations import Observations
from pilotage.teardown.engine.partitions import Partitions
from pilotage.teardown.engine.progress import Step
from pilotage.teardown.engine.prove import Proof, Read
from pilotage.teardown.planning.ledger import Disposition, Entry, Ledger


class RunState:
    """The state of one run. `on_step` is told what is gone and what was found, `on_ledger` when the ledger has grown.

    `hasten`: in a small ledger, parts whose owner is gone are deleted, and not left to the garbage collector.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        hasten: bool = True,
        on_step: Callable[[Step], None] | None = None,
        on_ledger: Callable[[Ledger], None] | None = None,
    ) -> None:
        self.clock = SteadyClock()
        """No step of the system's clock shortens the time that requests are given to end."""
        self.observations = Observations()
        self.changed = asyncio.Event()
        """Set by all news; the waiter clears it."""
        self.refusals: dict[str, Refusal] = {}
        """Last refusal by uid, until something succeeds."""
        self.withheld: dict[str, Withheld] = {}
        """Entries that must not be deleted yet, by uid."""
        self.asked_at: dict[str, dt.datetime] = {}
        self.gone_at: dict[str, dt.datetime] = {}
        self.proven: dict[str, Read] = {}
        """Read that has shown the absence, by uid."""
        self.on_step: Callable[[Step], None] = on_step or (lambda _: None)
        self._on_ledger: Callable[[Ledger], None] = on_ledger or (lambda _: None)
        self._hasten = hasten
        self._notes: list[str] = []
        self._proof_notes: list[str] = []
        """Notes of the last proof: what it could not read may be read by the next."""
        self.grow(ledger)

    def grow(self, ledger: Ledger) -> None:
        """Go on with a ledger that has more entries."""
        self.ledger = ledger
        self.entries = ledger.by_uid()
        self.partitions = Partitions(ledger, hasten=self._hasten)
        self.parts: dict[str, list[Entry]] = {}
        """Entries that go, by the uid of their owner."""
        for entry in ledger.going:
            if entry.owner:
                self.parts.setdefault(entry.owner, []).append(entry)
        for uid, observation in self.observations.all.items():
            self.partitions.touch(uid, observation)
        self.changed.set()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the receipt."""
        return (*self._notes, *self._proof_notes)

    @property
    def left(self) -> int:
        """Number of entries that are not gone, as far as is known."""
        return sum(not self.is_over(entry) for entry in self.ledger.going)

    def is_over(self, entry: Entry) -> bool:
        """Whether an entry is known to be gone."""
        return is_over(self.observations.all.get(entry.uid))

    def unfinished(self, kind: GroupKind) -> list[Entry]:
        """The entries of a kind that are not known to be gone."""
        return [entry for entry in self.ledger.entries if entry.group_kind == kind and not self.is_over(entry)]

    def decide(self, now: dt.datetime) -> list[Decision]:
        """Decide the partitions that something has happened to; returns their decisions."""
        decisions = self.partitions.decide(self.observations.all, self.refusals, self.withheld, now)
        for decision in decisions:
            self.note(decision.notes)
        return decisions

    # News

    def touch(self, uid: str) -> None:
        """Mark the partition of an object to be decided again."""
        self.partitions.touch(uid, self.observations.all.get(uid))
        self.changed.set()

    def see(self, obj: Object) -> bool:
        """An object as it was read; returns whether that is news."""
        news = self.observations.see(obj)
        if news:
            self.touch(obj.meta.uid)
        return news

    def is_gone(self, entry: Entry, *, foreign: bool = False, proof: Read | None = None) -> None:
        """It is not there any more (`foreign`: another object has its name). `proof`: the read that has shown it."""
        now = self.clock.now()
        if proof is not None:
            self.proven.setdefault(entry.uid, proof)
        if self.observations.gone(entry.uid, now, foreign=foreign):
            self.gone_at.setdefault(entry.uid, now)
            self.refusals.pop(entry.uid, None)
            self.touch(entry.uid)
            if entry.disposition is not Disposition.KEEP:
                self.on_step(Step("gone", entry, now, "another object has its name" if foreign else ""))

    def is_unknown(self, entry: Entry, problem: str) -> None:
        """It could not be read."""
        if self.observations.unknown(entry.uid, problem):
            self.touch(entry.uid)

    def settle(self, entry: Entry, settled: bool | None, problem: str = "") -> None:
        """Note whether anything still acts as if a gone object were there (`settled` None: unknown), and what does."""
        if self.observations.settle(entry.uid, settled, problem):
            self.touch(entry.uid)

    def withhold(self, entry: Entry, withheld: Withheld | None) -> None:
        """Whether an entry must not be deleted yet; None: it may be."""
        if self.withheld.get(entry.uid) == withheld:
            return
        if withheld is None:
            del self.withheld[entry.uid]
        else:
            self.withheld[entry.uid] = withheld
        self.touch(entry.uid)

    def take(self, resource: Resource, change: Change) -> None:
        """One event of a watch."""
        obj = change.object
        entry = self.entries.get(obj.meta.uid)
        if change.new is None:
            if entry is not None:
                self.is_gone(entry)
            return
        if entry is not None:
            self.see(obj)
            return
        owner = owner_of(obj, self.entries) if obj.meta.owner_references else None
        if owner is not None:
            self._found(resource, obj, owner)

    def take_proof(self, proof: Proof) -> bool:
        """Whether it holds. What it shows to be there after all has to go again."""
        for obj in proof.there:
            if obj.meta.uid in self.entries:
                self.observations.contradict(obj)
                self.gone_at.pop(obj.meta.uid, None)
                self.touch(obj.meta.uid)
        self._proof_notes = [
            f"{self.entries[uid]} could not be read to prove it gone: {problem}"
            for uid, problem in proof.unread.items()
        ]
        self._proof_notes += proof.unsearched
        for resource, obj in proof.newcomers:
            owner = owner_of(obj, self.entries)
            if owner is not None and obj.meta.uid not in self.entries:
                self._found(resource, obj, owner)
        return proof.holds

    def note(self, notes: Iterable[str]) -> None:
        """Add notes for the receipt; each is kept once."""
        for note in notes:
            if note and note not in self._notes:
                self._notes.append(note)

    def _found(self, resource: Resource, obj: Object, owner: Entry) -> None:
        """Add an object that appeared after the plan was made, and that belongs to it."""
        ledger, entry = take_in(self.ledger, resource, obj, owner)
        self.grow(ledger)
        self._on_ledger(ledger)
        self.see(obj)
        self.on_step(Step("found", entry, self.clock.now(), entry.reason))
