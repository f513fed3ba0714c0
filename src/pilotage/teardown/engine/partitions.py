"""Partitions of a ledger, which are decided independently: only those that something has happened to, again.

Partitions do not wait for each other: a thousand endpoints are a thousand small ledgers, and a decision about one costs
as much as if it were alone. Entries that own each other, or wait for each other, are in the same partition.
"""

import datetime as dt
import heapq
from collections.abc import Mapping

import msgspec

from pilotage.catalogue.phase import Phase
from pilotage.teardown.engine.decide import decide, is_over, runs
from pilotage.teardown.engine.decision import Decision, Observation, Refusal, Withheld
from pilotage.teardown.planning.ledger import Disposition, Entry, Ledger, LedgerIndex

LARGE = 16
"""Number of partitions up to which dependents are deleted at once. Of more, the collector takes them: that is
slower for each, and less work for all."""
_NOT_DECIDED = Decision(Phase.CORDON, (), ())


class Partitions:
    """The partitions of one ledger, with the last decision about each."""

    def __init__(self, ledger: Ledger, *, hasten: bool = True) -> None:
        """`hasten`: in a small ledger, do the work of the garbage collector."""
        self._hasten = hasten
        self._partitions = [LedgerIndex(each) for each in split(ledger)]
        self._partition_of = {uid: number for number, each in enumerate(self._partitions) for uid in each.entries}
        self._decisions = [_NOT_DECIDED] * len(self._partitions)
        self._again: dict[int, dt.datetime] = {}
        self._moments: list[tuple[dt.datetime, int]] = []
        """A heap of all that was ever in `_again`; what is not there any more is passed over."""
        self._due = set(range(len(self._partitions)))
        self._unfinished = set(self._due)
        self._entries = ledger.by_uid()
        self._collected: dt.datetime | None = None
        """Time at which the garbage collector was last seen at work."""
        self._running: dict[str, set[str]] = {}
        """Running entries that are not known to be gone, by namespace."""
        self._last: dict[str, set[int]] = {}
        """Partitions that wait until nothing runs in a namespace, by namespace."""
        for entry in ledger.entries:
            if runs(entry):
                self._running.setdefault(entry.namespace, set()).add(entry.uid)
            if entry.last:
                self._last.setdefault(entry.namespace, set()).add(self._partition_of[entry.uid])

    @property
    def finished(self) -> bool:
        """Whether all partitions are, as of their last decisions."""
        return not self._unfinished and not self._due

    @property
    def is_large(self) -> bool:
        """Whether there are many partitions."""
        return len(self._partitions) > LARGE

    @property
    def hastens(self) -> bool:
        """Whether we do the work of the garbage collector."""
        return self._hasten and not self.is_large

    def touch(self, uid: str, observation: Observation | None) -> None:
        """Mark the partition of an object to be decided again, after an event or an attempt."""
        if uid not in self._partition_of:
            return
        self._due.add(self._partition_of[uid])
        entry = self._entries[uid]
        if entry.disposition is Disposition.COLLECT and observation is not None and observation.gone_at is not None:
            self._collected = max(self._collected or observation.gone_at, observation.gone_at)
        if runs(entry):
            running = self._running[entry.namespace]
            if not is_over(observation):
                running.add(uid)
            elif uid in running:
                running.discard(uid)
                if not running:
                    self._due |= self._last.get(entry.namespace, set())

    def recall(self) -> None:
        """Decide all of them the next time: the time that things take has changed, and with it the texts of waits."""
        self._due = set(range(len(self._partitions)))

    def decide(
        self,
        observations: Mapping[str, Observation],
        refusals: Mapping[str, Refusal],
        withheld: Mapping[str, Withheld],
        now: dt.datetime,
    ) -> list[Decision]:
        """Decide the partitions that it is time for; returns their decisions."""
        while (moment := self.again()) is not None and moment <= now:
            number = self._moments[0][1]
            del self._again[number]
            self._due.add(number)
        running = {namespace for namespace, uids in self._running.items() if uids}
        decided = []
        for number in sorted(self._due):
            decision = decide(
                self._partitions[number],
                observations,
                refusals,
                now,
                running=running,
                collected=self._collected,
                hasten=self.hastens,
                withheld=withheld,
            )
            self._decisions[number] = decision
            decided.append(decision)
            moments = [wait.again for wait in decision.waits if wait.again is not None]
            self._again.pop(number, None)
            if moments:
                self._again[number] = min(moments)
                heapq.heappush(self._moments, (self._again[number], number))
            if decision.finished:
                self._unfinished.discard(number)
            else:
                self._unfinished.add(number)
        self._due.clear()
        return decided

    def again(self) -> dt.datetime | None:
        """Time at which a partition has to be decided again, though nothing may have happened."""
        while self._moments and self._again.get(self._moments[0][1]) != self._moments[0][0]:
            heapq.heappop(self._moments)
        return self._moments[0][0] if self._moments else None

    def whole(self) -> Decision:
        """The last decisions, as one."""
        left = [self._decisions[number] for number in sorted(self._unfinished)]
        return Decision(
            min((decision.phase for decision in left), default=Phase.PROVE),
            tuple(action for decision in left for action in decision.actions),
            tuple(wait for decision in left for wait in decision.waits),
            tuple(note for decision in self._decisions for note in decision.notes),
            bool(left) and all(decision.hopeless for decision in left if decision.blockers or decision.actions),
        )


def split(ledger: Ledger) -> list[Ledger]:
    """The partitions of a ledger, in the order in which they first appear."""
    above: dict[str, str] = {entry.uid: entry.uid for entry in ledger.entries}

    def top(uid: str) -> str:
        while above[uid] != uid:
            above[uid] = above[above[uid]]
            uid = above[uid]
        return uid

    for entry in ledger.entries:
        for other in (entry.owner, *entry.after, *entry.disown):
            if other in above:
                above[top(entry.uid)] = top(other)
    together: dict[str, list[Entry]] = {}
    for entry in ledger.entries:
        together.setdefault(top(entry.uid), []).append(entry)
    return [msgspec.structs.replace(ledger, entries=tuple(entries)) for entries in together.values()]
