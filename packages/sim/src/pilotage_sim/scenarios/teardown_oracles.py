"""Invariants of a teardown, whatever has gone wrong in it: functions over its history, each returning sentences.

What happened is the trace, which has every write and who made it, and a `History`, which has every object that was
removed and every finalizer that was taken off.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pilotage.teardown.planning.ledger import HOLD, Disposition
from pilotage.teardown.snapshot.world import State

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Sequence

    from pilotage.kube import Json
    from pilotage.teardown.engine.decision import Decision, Observation
    from pilotage.teardown.engine.receipt import Receipt
    from pilotage.teardown.planning.ledger import Ledger
    from pilotage_harbor.storage.store import Event
    from pilotage_sim.trace import Trace, Write
    from pilotage_sim.world import SimulatedWorld

RANKS: Mapping[str, int] = {
    "ingresses.networking.k8s.io": 1,
    "horizontalpodautoscalers.autoscaling": 1,
    "deployments.apps": 2,
    "replicasets.apps": 2,
    "pods": 2,
    "services": 3,
    "configmaps": 3,
    "secrets": 3,
    "poddisruptionbudgets.policy": 3,
    "persistentvolumeclaims": 3,
}
"""Ranks of parts that serve together: none is deleted while one of a lower rank exists."""


class Made(NamedTuple):
    """An object of a story."""

    storage: str
    namespace: str
    name: str
    uid: str
    owners: tuple[str, ...]
    at: float

    def __str__(self) -> str:
        return f"{self.storage} {self.namespace}/{self.name}"


class Release(NamedTuple):
    """Finalizers that one write took off an object."""

    at: float
    uid: str
    finalizers: frozenset[str]


class History:
    """The history of a world's objects, from the moment at which this is created."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.removed: dict[str, float] = {}
        """Time of removal, by uid."""
        self.made: dict[str, Made] = {}
        self.releases: list[Release] = []
        world.core.store.listen_to_all(self._happened)

    def _happened(self, event: Event) -> None:
        now, entry = asyncio.get_running_loop().time(), event.entry
        new = _metadata(entry.raw)
        if event.type == "DELETED":
            self.removed[entry.uid] = now
            new = {**new, "finalizers": []}
        elif entry.uid not in self.made:
            owners = tuple(owner["uid"] for owner in new.get("ownerReferences") or [])
            self.made[entry.uid] = Made(event.storage, entry.namespace, entry.name, entry.uid, owners, now)
        if event.old is not None:
            old = _metadata(event.old.raw)
            lost = frozenset(old.get("finalizers") or []) - frozenset(new.get("finalizers") or [])
            if lost:
                self.releases.append(Release(now, entry.uid, lost))

    def below(self, uid: str) -> set[str]:
        """All that was ever owned by an object, directly or not."""
        found: set[str] = set()
        open_ = {uid}
        while open_:
            open_ = {made.uid for made in self.made.values() if made.uid not in found and open_ & {*made.owners}}
            found |= open_
        return found


class _Top(msgspec.Struct):
    metadata: dict[str, Any]


_top = msgspec.json.Decoder(_Top)


def _metadata(raw: bytes) -> Json:
    return _top.decode(raw).metadata


def everything_is_gone(history: History, uids: Iterable[str]) -> list[str]:
    """All of these were removed."""
    return [f"{history.made[uid]} is still there" for uid in uids if uid not in history.removed]


def only_the_ledgers(trace: Trace, who: str, saved_at: Mapping[str, float]) -> list[str]:
    """Nothing was written to a uid before it was in the saved ledger. `saved_at`: since when it is, by uid."""
    return [
        f"a write to what is not in the ledger: {write}"
        for write in _writes(trace, who)
        if write.at < saved_at.get(write.uid, float("inf"))
    ]


def only_our_finalizer(trace: Trace, history: History, who: str) -> list[str]:
    """No patch took a finalizer off but our hold."""
    patches = {(write.at, write.uid) for write in _writes(trace, who) if write.verb in ("patch", "update")}
    return [
        f"the finalizers {', '.join(sorted(release.finalizers - {HOLD}))} of {history.made[release.uid]} were taken off"
        for release in history.releases
        if (release.at, release.uid) in patches and release.finalizers - {HOLD}
    ]


def nothing_early(trace: Trace, history: History, who: str, bundle: Iterable[str]) -> list[str]:
    """Check that nothing is deleted while an object of an earlier phase exists that serves together with it."""
    members = [history.made[uid] for uid in bundle]
    problems = []
    for write in _deletes(trace, who):
        made = history.made.get(write.uid)
        rank = RANKS.get(made.storage) if made is not None and made in members else None
        if rank is not None:
            problems += [
                f"at {write.at:.3f} {made} was deleted, and {other} was still there"
                for other in members
                if RANKS.get(other.storage, rank) < rank and not _was_gone(history, other.uid, write.at)
            ]
    return problems


def owner_last(trace: Trace, history: History, who: str, owner: str, parts: Iterable[str]) -> list[str]:
    """An owner whose parts go in order is held, then marked; then its parts go (of these); then it is let go."""
    problems = []
    deletes = _deletes(trace, who)
    marked = next((write.at for write in deletes if write.uid == owner), None)
    parts = history.below(owner) & {*parts}
    if marked is None:
        return [f"{history.made[owner]} was never deleted by {who}"]
    problems += [
        f"{history.made[write.uid]} was deleted before {history.made[owner]} was marked"
        for write in deletes
        if write.uid in parts and write.at <= marked
    ]
    released = [each.at for each in history.releases if each.uid == owner and HOLD in each.finalizers]
    if not released:
        return [*problems, f"{history.made[owner]} was never held"]
    problems += [
        f"{history.made[owner]} was let go, and {history.made[part]} was still there"
        for part in sorted(parts)
        if not _was_gone(history, part, released[0])
    ]
    return problems


def explained(
    ledger: Ledger, observations: Mapping[str, Observation], decision: Decision, now: dt.datetime
) -> list[str]:
    """Every entry that is not finished is acted on or waited for; every wait has a cause, an actor, since and until."""
    acted = {action.entry.uid for action in decision.actions}
    waited = {wait.entry.uid for wait in decision.waits}
    problems = [
        f"nobody does anything about {entry}, and nothing is waited for"
        for entry in ledger.entries
        if entry.disposition is not Disposition.KEEP and entry.uid not in acted | waited
        if entry.uid not in observations or observations[entry.uid].state not in (State.GONE, State.FOREIGN)
    ]
    for wait in decision.waits:
        if not (wait.cause and wait.actor and wait.text):
            problems.append(f"a wait without a cause, an actor or a text: {wait}")
        if wait.since > now or wait.until < wait.since:
            problems.append(f"a wait from {wait.since} until {wait.until}, at {now}: {wait.entry}: {wait.text}")
    if not decision.finished and not decision.actions and not decision.blockers:
        problems.append(f"nothing is done, and nothing is a reason for that: {decision.waits}")
    return problems


def true_receipt(receipt: Receipt, there: Iterable[str]) -> list[str]:
    """Objects that it calls gone are gone, each with the read that proves it; those that it calls kept are there."""
    uids = {*there}
    problems = [] if receipt.result == "complete" else [f"the receipt says {receipt.result}"]
    for record in receipt.objects:
        if record.state == "gone" and (record.uid in uids or record.proof is None):
            problems.append(f"the receipt says that {record} is gone; proof: {record.proof}")
        elif record.state == "kept" and record.uid not in uids:
            problems.append(f"the receipt says that {record} was kept, and it is gone")
        elif record.state not in ("gone", "kept"):
            problems.append(f"the receipt says of {record}: {record.state}")
    return problems


def quiet_since(trace: Trace, who: str, at: float) -> list[str]:
    """Nothing was written any more."""
    return [f"a write after the end: {write}" for write in trace.writes if write.who == who and write.at > at]


def _writes(trace: Trace, who: str) -> Sequence[Write]:
    return [write for write in trace.writes if write.who == who and write.applied]


def _deletes(trace: Trace, who: str) -> Sequence[Write]:
    return [write for write in _writes(trace, who) if write.verb == "delete"]


def _was_gone(history: History, uid: str, at: float) -> bool:
    return history.removed.get(uid, float("inf")) < at
