"""A cluster in a few lines: deletes, the garbage collector, and finalizer owners that release after a while.

It is what `decide` is driven against: one tick is one second, everything is seen at once, unless it is hidden.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pilotage.catalogue.names import FOREGROUND
from pilotage.kube import Propagation
from pilotage.kube.wire import format_time
from pilotage.teardown.engine.decide import decide
from pilotage.teardown.engine.decision import Act, Action, Decision, Observation
from pilotage.teardown.planning.ledger import HOLD, Ledger
from pilotage.teardown.snapshot.world import Item, State

TICKS_MAX = 400
HOLDS_CONTENTS = ("Namespace", "CustomResourceDefinition")


@dataclass
class Thing:
    """One object."""

    item: Item
    finalizers: list[str]
    owners: list[str]
    deletion: str = ""
    ticks: int = 0
    """Duration for which it has been terminating."""


@dataclass
class Cluster:
    """Cluster in a few lines: deletes, the garbage collector, and finalizer owners."""

    now: dt.datetime
    things: dict[str, Thing] = field(default_factory=dict)
    gone_at: dict[str, dt.datetime] = field(default_factory=dict)
    patience: int = 3
    """Ticks that a finalizer owner takes to remove its finalizer."""
    deleted_at: dict[str, dt.datetime] = field(default_factory=dict)
    """First time at which an action deleted each uid."""

    @classmethod
    def of(cls, items: Iterable[Item], now: dt.datetime) -> Cluster:
        cluster = cls(now)
        for item in items:
            owners = [owner.uid for owner in item.meta.owner_references]
            cluster.things[item.uid] = Thing(item, [*item.meta.finalizers], owners, item.meta.deletion_timestamp)
        return cluster

    def observations(self, ledger: Ledger, hidden: Iterable[str] = ()) -> dict[str, Observation]:
        """Observations of the entries of a ledger; `hidden` ones cannot be read."""
        found = {}
        for entry in ledger.entries:
            thing = self.things.get(entry.uid)
            if entry.uid in hidden:
                found[entry.uid] = Observation(State.UNKNOWN, problem="hidden")
            elif thing is None:
                found[entry.uid] = Observation(State.GONE, gone_at=self.gone_at[entry.uid])
            else:
                state = State.TERMINATING if thing.deletion else State.PRESENT
                found[entry.uid] = Observation(state, tuple(thing.finalizers), tuple(thing.owners), thing.deletion)
        return found

    def perform(self, action: Action) -> None:
        thing = self.things.get(action.entry.uid)
        if thing is None:
            return
        if action.act is Act.DELETE:
            self.deleted_at.setdefault(action.entry.uid, self.now)
            self.delete(action.entry.uid)
        elif action.act is Act.REDRIVE:
            thing.finalizers = [each for each in thing.finalizers if each != FOREGROUND]
        elif action.act is Act.HOLD and not thing.deletion:
            thing.finalizers.append(HOLD)
        elif action.act is Act.RELEASE:
            thing.finalizers.remove(HOLD)
        elif action.act is Act.DISOWN:
            thing.owners = [each for each in thing.owners if each not in action.entry.disown]
        self.bury(action.entry.uid)

    def delete(self, uid: str, propagation: Propagation = Propagation.BACKGROUND) -> None:
        thing = self.things.get(uid)
        if thing is None or thing.deletion:
            return
        thing.deletion = format_time(self.now)
        if propagation is Propagation.FOREGROUND and self.dependents(uid):
            thing.finalizers.append(FOREGROUND)
        self.bury(uid)

    def bury(self, uid: str) -> None:
        thing = self.things.get(uid)
        if thing is None or not thing.deletion or thing.finalizers:
            return
        if thing.item.resource.kind in HOLDS_CONTENTS and self.inside(thing.item):
            return
        del self.things[uid]
        self.gone_at[uid] = self.now

    def dependents(self, uid: str) -> list[str]:
        return [each for each, thing in self.things.items() if uid in thing.owners]

    def inside(self, holder: Item) -> list[str]:
        if holder.resource.kind == "Namespace":
            return [uid for uid, thing in self.things.items() if thing.item.meta.namespace == holder.meta.name]
        plural = holder.meta.name.partition(".")[0]
        return [uid for uid, thing in self.things.items() if thing.item.resource.plural == plural]

    def tick(self) -> None:
        """One second of everybody else."""
        self.now += dt.timedelta(seconds=1)
        for uid in list(self.things):
            thing = self.things.get(uid)
            if thing is None:
                continue
            thing.owners = self.live_owners(thing)
            if thing.deletion:
                self.go_on(uid, thing)

    def live_owners(self, thing: Thing) -> list[str]:
        """The collector: without any owner left it is deleted; with one, the dead references go."""
        live = [each for each in thing.owners if each in self.things]
        if thing.owners and not live:
            self.delete(thing.item.uid)
        staying = [each for each in live if not self.things[each].deletion]
        return staying or live

    def go_on(self, uid: str, thing: Thing) -> None:
        thing.ticks += 1
        if thing.item.resource.kind in HOLDS_CONTENTS:
            for each in self.inside(thing.item):
                self.delete(each)
        if FOREGROUND in thing.finalizers:
            for each in self.dependents(uid):
                dependent = self.things[each]
                dependent.owners = self.live_owners(dependent)
                if uid in dependent.owners:  # else another owner keeps it
                    self.delete(each, Propagation.FOREGROUND)
            if not self.dependents(uid):
                thing.finalizers.remove(FOREGROUND)
        if thing.ticks > self.patience:
            thing.finalizers = [each for each in thing.finalizers if each in (HOLD, FOREGROUND)]
        self.bury(uid)


class Stuck(AssertionError):
    """It does not end; the message says what is waited for."""


def run(
    ledger: Ledger,
    cluster: Cluster,
    *,
    hidden: Mapping[str, int] | None = None,
    look: Callable[[Decision, Mapping[str, Observation]], None] | None = None,
) -> list[Decision]:
    """Decide and act until it is finished, and call `look` with each decision and its inputs.

    `hidden`: number of ticks for which each of these uids cannot be read.
    """
    decisions: list[Decision] = []
    for tick in range(TICKS_MAX):
        unread = [uid for uid, ticks in (hidden or {}).items() if tick < ticks]
        observations = cluster.observations(ledger, unread)
        decision = decide(ledger, observations, {}, cluster.now)
        if look is not None:
            look(decision, observations)
        decisions.append(decision)
        if decision.finished:
            return decisions
        for action in decision.actions:
            cluster.perform(action)
        cluster.tick()
    waits = "\n".join(f"{wait.entry} {wait.cause}: {wait.text}" for wait in decisions[-1].waits)
    raise Stuck(f"after {TICKS_MAX} s:\n{waits}")
