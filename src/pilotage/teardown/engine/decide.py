"""The decision: what may be done now, and what is waited for. Pure, and called again and again.

Rules of this file
- What a decision rests on is its arguments: the ledger, what was just observed of each uid, the policy in the ledger,
  and the time. No client, clock, logger or memory. A crash at any point is just another call.
- Nothing is deleted before all it waits for is gone, with what that owns. Gone is what a read has shown to be gone:
  unknown is not, and what could not be read is waited for.
- An object that is not the one in the ledger (another uid under its name) is never acted on.
- No finalizer is removed but our own hold.
- Every entry that is not finished has an action or a wait, and every wait has a cause, an actor, a since and an until.

An entry's way: present -> (held ->) asked to go -> terminating -> gone. A held owner is marked first: from then on its
controller stops making parts, and our finalizer keeps the collector from taking the parts it has. Once it has taken
notice (its own finalizer is gone, or it had its time), they go one by one, and then the owner is let go.
"""

import datetime as dt
from collections.abc import Collection, Mapping
from types import MappingProxyType

from pilotage.catalogue.names import FOREGROUND, ORPHAN
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.registry import known
from pilotage.kube.errors import ErrorClass
from pilotage.kube.wire import parse_time
from pilotage.teardown.engine.decision import Act, Action, Cause, Decision, Observation, Refusal, Wait, Withheld
from pilotage.teardown.planning.ledger import HOLD, Disposition, Entry, Ledger, LedgerIndex
from pilotage.teardown.snapshot.world import State

BUSY_PATIENCE = 12
"""Grace factor for a garbage collector that is making progress."""
READ_AGAIN = dt.timedelta(seconds=2)
NOTICE = dt.timedelta(seconds=2)
"""A controller that runs takes notice of a deletion within milliseconds; one that does not is not waited for longer."""
SKEW = dt.timedelta(seconds=60)
"""Largest difference between our clock and the API server's."""
HOPELESS_SECONDS = 3.0
"""Time for which a refusal by permissions or by admission is retried before it counts as final."""
_NOTHING: Mapping[str, Withheld] = MappingProxyType({})


def decide(
    ledger: Ledger | LedgerIndex,
    observations: Mapping[str, Observation],
    refusals: Mapping[str, Refusal],
    now: dt.datetime,
    *,
    running: Collection[str] | None = None,
    collected: dt.datetime | None = None,
    hasten: bool = False,
    withheld: Mapping[str, Withheld] = _NOTHING,
) -> Decision:
    """Decide what may be done now, and what is waited for. An entry that `observations` does not have is unknown.

    A ledger can be decided in partitions (`partitions.split`). Then `running` says in which namespaces something of the
    whole still runs (`still_running` of the whole), and `collected` when the garbage collector was last seen at work:
    as long as it works, nobody has to do its work. `hasten`: what the collector would take is deleted as soon as its
    owner is gone. `withheld`: the entries, by uid, that must not be deleted yet.
    """
    index = ledger if isinstance(ledger, LedgerIndex) else LedgerIndex(ledger)
    if running is None:
        running = still_running(index.ledger, observations)
    return _Deciding(index, observations, refusals, now, running, collected, hasten, withheld).decision()


def still_running(ledger: Ledger, observations: Mapping[str, Observation]) -> set[str]:
    """The namespaces in which something runs that is to go."""
    return {entry.namespace for entry in ledger.entries if runs(entry) and not is_over(observations.get(entry.uid))}


def runs(entry: Entry) -> bool:
    """Whether it takes traffic, scales or runs, and goes."""
    return entry.phase <= Phase.STOP and entry.disposition is not Disposition.KEEP


def is_over(seen: Observation | None) -> bool:
    """Whether what was meant is not there any more."""
    return seen is not None and seen.state in _OVER


_UNSEEN = Observation(State.UNKNOWN, problem="it was not read")
_OVER = (State.GONE, State.FOREIGN)
_NEVER = (ErrorClass.FORBIDDEN, ErrorClass.INVALID)


def _is_denied(message: str) -> bool:
    """Whether admission answered no, whatever status it chose. A webhook that does not answer may do so later."""
    return "denied the request" in message or ("ValidatingAdmissionPolicy" in message and "denied request" in message)


class _Deciding:
    """One decision in the making."""

    def __init__(
        self,
        index: LedgerIndex,
        observations: Mapping[str, Observation],
        refusals: Mapping[str, Refusal],
        now: dt.datetime,
        running: Collection[str],
        collected: dt.datetime | None,
        hasten: bool,
        withheld: Mapping[str, Withheld],
    ) -> None:
        self.observations = observations
        self.refusals = refusals
        self.now = now
        self.running = running
        self.last_collected = collected
        self.hasten = hasten
        self.withheld = withheld
        self.index = index
        self.entries = index.entries
        self.labels = index.labels
        self.started = index.started
        self.until = index.until
        self.stalled = index.stalled
        self.parts = index.parts
        self.keepsakes = index.keepsakes
        self.actions: list[Action] = []
        self.waits: list[Wait] = []
        self.notes: list[str] = []
        self._over: dict[str, bool] = {}

    def decision(self) -> Decision:
        phases = []
        for entry in self.index.ledger.entries:
            if entry.disposition is Disposition.KEEP:
                if self.keep(entry):
                    phases.append(entry.phase)
            elif self.seen(entry).state not in _OVER:
                phases.append(self.step(entry))
        phase = min(phases, default=Phase.PROVE)
        return Decision(phase, tuple(self.actions), tuple(self.waits), tuple(self.notes), self.hopeless())

    def hopeless(self) -> bool:
        blockers = [wait for wait in self.waits if wait.blocks]
        return not self.actions and bool(blockers) and all(map(self.is_in_vain, blockers))

    def is_in_vain(self, wait: Wait) -> bool:
        """Whether time changes nothing: it is forbidden, or all that would let go of it was not seen to run."""
        if wait.cause is Cause.FINALIZER and wait.entry.abandoned:
            return {*self.seen(wait.entry).finalizers} <= {FOREGROUND, ORPHAN, *wait.entry.abandoned}
        return self.is_forbidden(wait)

    def is_forbidden(self, wait: Wait) -> bool:
        refusal = self.refusals.get(wait.entry.uid)
        if wait.cause is not Cause.REFUSED or refusal is None:
            return False
        if refusal.error_class not in _NEVER and not _is_denied(refusal.message):
            return False
        return (self.now - refusal.first).total_seconds() >= HOPELESS_SECONDS

    def step(self, entry: Entry) -> Phase:
        """Act on an entry that is not gone, or wait; returns the phase it is in."""
        seen = self.seen(entry)
        if seen.state is State.UNKNOWN:
            self.unreadable(entry, seen)
        elif seen.state is State.TERMINATING:
            self.terminating(entry, seen)
        elif (
            entry.disposition is Disposition.COLLECT
            and not self.is_held(entry.owner)
            and not self.is_left_running(entry)
        ):
            self.collected(entry)
        else:
            return self.present(entry, seen)
        return entry.phase

    def present(self, entry: Entry, seen: Observation) -> Phase:
        holder = self.entries.get(entry.owner)
        if holder is not None and self.seen(holder).state not in (State.TERMINATING, *_OVER):
            self.wait(entry, Cause.ORDER, self.labels[holder.uid], f"{self.labels[holder.uid]} is marked first")
            return entry.phase
        if holder is not None and (due := self.unnoticed_until(holder)) is not None:
            owner = holder.finalizer_owner or "the controller that put it there"
            names = ", ".join(self.others(holder))
            text = f"finalizer {names} on {holder}: {owner} might not know yet and bring this back"
            self.wait(entry, Cause.FINALIZER, owner, text, until=due, again=due)
            return entry.phase
        if blocker := self.first_unsettled(entry):
            return self.wait_for(entry, blocker)
        if entry.last and entry.namespace in self.running:
            self.wait(entry, Cause.ORDER, "what runs there", "goes when nothing runs in its namespace any more")
            return entry.phase
        if entry.hold and HOLD not in seen.finalizers and not self.cannot_hold(entry):
            self.act(Act.HOLD, entry)
            return Phase.CORDON
        self.act(Act.DELETE, entry)
        if entry.hold:
            return Phase.CORDON
        withheld = self.withheld.get(entry.uid)
        return Phase.DRAIN if withheld is not None and withheld.draining else entry.phase

    def wait_for(self, entry: Entry, blocker: Entry) -> Phase:
        """Wait for something that has to go first, or whose going has to settle."""
        seen = self.seen(blocker)
        gone_at = seen.gone_at
        if seen.state in _OVER and seen.settled is False:
            again = self.now + READ_AGAIN
            self.wait(
                entry,
                Cause.ROUTER,
                "the router",
                f"{blocker} is gone; {seen.problem}",
                since=gone_at,
                again=again,
            )
            return Phase.DRAIN
        settled_at = gone_at + dt.timedelta(seconds=blocker.settle_seconds) if gone_at else self.until
        if self.seen(blocker).state in _OVER and self.now < settled_at:
            text = f"{blocker} is gone; what it sent is given {blocker.settle_seconds:g} s to end"
            self.wait(entry, Cause.ROUTER, "the router", text, since=gone_at, until=settled_at, again=settled_at)
            return Phase.DRAIN
        first = "is let go" if blocker.disposition is Disposition.KEEP else "goes"
        label = self.labels[blocker.uid]
        self.wait(entry, Cause.ORDER, label, f"{label} {first} first")
        return entry.phase

    def collected(self, entry: Entry) -> None:
        """The collector takes it, once its owner goes. If it does not, we delete it."""
        owner = self.entries.get(entry.owner)
        seen = self.seen(owner) if owner is not None else Observation(State.GONE)
        if owner is not None and seen.state in (State.PRESENT, State.UNKNOWN):
            label = self.labels[owner.uid]
            self.wait(entry, Cause.ORDER, label, f"goes with {label}")
            return
        left = seen.gone_at or (self.moment(seen.deletion) if seen.deletion else self.started)
        if owner is not None and seen.state is State.TERMINATING and FOREGROUND not in seen.finalizers:
            due = left + NOTICE if runs(entry) and self.is_kept_workload(owner, seen) else None
            taken_down = known(owner.group_kind).takes_down
            text = f"the controller of {owner} takes it down" if taken_down else f"goes when {owner} is gone"
            self.wait(entry, Cause.ORDER, str(owner), text, again=due)
        elif self.is_hastened(entry, owner, seen) or self.now >= (due := self.collection_due(left)):
            self.act(Act.DELETE, entry)
        else:
            text = f"the collector has not deleted it yet; {owner} went" if owner else "its owner is gone"
            self.wait(entry, Cause.COLLECTOR, "kube-controller-manager", text, since=left, again=due)

    def is_left_running(self, entry: Entry) -> bool:
        """Whether a part runs, and its owner is a workload that a finalizer of others keeps.

        The collector does not take the part then, and it serves on. The owner's controller has stopped making parts:
        so we delete it, in order. What does not run, such as a volume, may be what the finalizer is for.
        """
        if not runs(entry):
            return False
        owner = self.entries.get(entry.owner)
        seen = self.seen(owner) if owner is not None else _UNSEEN
        if owner is None or seen.state is not State.TERMINATING or not self.is_kept_workload(owner, seen):
            return False
        return bool(seen.deletion) and self.now >= self.moment(seen.deletion) + NOTICE

    def is_kept_workload(self, owner: Entry, seen: Observation) -> bool:
        kind = known(owner.group_kind)
        finalizers = {*seen.finalizers} - {HOLD}
        return kind.workload and bool(kind.makes and finalizers) and not finalizers & {FOREGROUND, ORPHAN}

    def is_hastened(self, entry: Entry, owner: Entry | None, seen: Observation) -> bool:
        """Whether we delete a part at once whose owner is gone: nobody else owns it, and no other has that name.

        A controller that takes parts down has done so before its object went; that is yet to be seen here.
        """
        if not self.hasten or seen.state is not State.GONE:
            return False
        if owner is not None and known(owner.group_kind).takes_down:
            return False
        return all(uid in self.entries for uid in self.seen(entry).owners)

    def collection_due(self, since: dt.datetime) -> dt.datetime:
        """Deadline of the garbage collector for an object: later, while it is seen at work elsewhere."""
        busy = max(since, self.last_collected or since)
        return min(busy + self.stalled, since + BUSY_PATIENCE * self.stalled)

    def terminating(self, entry: Entry, seen: Observation) -> None:
        since = self.moment(seen.deletion, seen.grace_seconds) if seen.deletion else self.now
        if HOLD in seen.finalizers:
            part = next((part for part in self.parts.get(entry.uid, ()) if not self.over(part)), None)
            if part is None:
                self.act(Act.RELEASE, entry)
            else:
                self.wait(entry, Cause.HELD, "pilotage", f"its parts go first; {part} is left", since=since)
            return
        if entry.group_kind.kind == "Namespace" and not entry.group_kind.group:
            self.wait(entry, Cause.NAMESPACE, "kube-controller-manager", "the namespace is being emptied", since=since)
            return
        others = [name for name in seen.finalizers if name not in (FOREGROUND, ORPHAN)]
        if others:
            text = f"finalizer {', '.join(others)}"
            self.wait(
                entry, Cause.FINALIZER, entry.finalizer_owner or "the controller that put it there", text, since=since
            )
        elif FOREGROUND in seen.finalizers:
            self.in_foreground(entry, since)
        elif ORPHAN in seen.finalizers:
            text = "its dependents are being orphaned"
            self.wait(entry, Cause.COLLECTOR, "kube-controller-manager", text, since=since)
        elif entry.group_kind.kind == "Pod" and not entry.group_kind.group:
            # Of a pod the timestamp is the end of its grace, not its begin.
            begun = since - dt.timedelta(seconds=seen.grace_seconds)
            left = max(0.0, (since - self.now).total_seconds())
            text = f"{left:.0f} s of grace left" if left else "its grace is over; the kubelet has not confirmed its end"
            self.wait(entry, Cause.GRACE, "the kubelet", text, since=begun)
        else:
            self.wait(entry, Cause.COLLECTOR, "the API server", "it is being removed", since=since)

    def in_foreground(self, entry: Entry, since: dt.datetime) -> None:
        part = next((part for part in self.parts.get(entry.uid, ()) if not self.over(part)), None)
        if part is not None:
            self.wait(entry, Cause.COLLECTOR, "kube-controller-manager", f"{part} goes first", since=since)
        elif self.now >= (pushed := self.collection_due(since)):
            self.act(Act.REDRIVE, entry)
        else:
            text = "its foreground deletion ends"
            self.wait(entry, Cause.COLLECTOR, "kube-controller-manager", text, since=since, until=pushed, again=pushed)

    def keep(self, entry: Entry) -> bool:
        """Disown a kept entry from owners that go; returns whether that is still to be done."""
        seen = self.seen(entry)
        if entry.disown and seen.state is State.UNKNOWN:
            self.unreadable(entry, seen)
            return True
        if self.is_owned(entry):
            self.act(Act.DISOWN, entry)
            return True
        return False

    def is_owned(self, kept: Entry) -> bool:
        """Whether what stays still has an owner that goes. What is going already cannot be kept."""
        seen = self.seen(kept)
        return seen.state is State.PRESENT and any(uid in seen.owners for uid in kept.disown)

    def unreadable(self, entry: Entry, seen: Observation) -> None:
        again = self.now + READ_AGAIN
        self.wait(entry, Cause.UNREADABLE, "the API server", f"it cannot be read: {seen.problem}", again=again)

    # What the world is like

    def seen(self, entry: Entry) -> Observation:
        return self.observations.get(entry.uid, _UNSEEN)

    def over(self, entry: Entry) -> bool:
        """Whether an entry and all its parts are gone."""
        known = self._over.get(entry.uid)
        if known is None:
            self._over[entry.uid] = True  # an owner that owns itself in a circle does not wait for itself
            known = self.seen(entry).state in _OVER and all(self.over(part) for part in self.parts.get(entry.uid, ()))
            self._over[entry.uid] = known
        return known

    def settled(self, entry: Entry) -> bool:
        """Whether it is over, and its going has had the time it is given."""
        if not self.over(entry):
            return False
        seen = self.seen(entry)
        if seen.settled is not None:
            return seen.settled
        if not entry.settle_seconds:
            return True
        gone_at = seen.gone_at
        return gone_at is not None and self.now >= gone_at + dt.timedelta(seconds=entry.settle_seconds)

    def first_unsettled(self, entry: Entry) -> Entry | None:
        """The first entry that it has to wait for, if any: also a kept one that would be collected with it."""
        for kept in self.keepsakes.get(entry.uid, ()):
            if self.is_owned(kept) or self.seen(kept).state is State.UNKNOWN:
                return kept
        waited = (self.entries.get(uid) for uid in entry.after)
        return next((each for each in waited if each is not None and not self.settled(each)), None)

    def others(self, holder: Entry) -> list[str]:
        """The finalizers of an owner that its own controller, which runs as far as is known, takes off."""
        passed = (HOLD, FOREGROUND, ORPHAN, *holder.abandoned)
        return [name for name in self.seen(holder).finalizers if name not in passed]

    def unnoticed_until(self, holder: Entry) -> dt.datetime | None:
        """Time until which the controller of a held owner may remove its finalizer. None: it has, or had its time.

        Until then it may be in the middle of making parts anew, and not know yet that they go.
        """
        seen = self.seen(holder)
        if seen.state is not State.TERMINATING or HOLD not in seen.finalizers or not seen.deletion:
            return None
        due = self.moment(seen.deletion) + NOTICE
        return due if self.others(holder) and self.now < due else None

    def moment(self, text: str, ahead_seconds: float = 0.0) -> dt.datetime:
        """A time that the API server has written down; `ahead_seconds` of it may be to come.

        One that lies further ahead was written before its clock was set back, or ours. Nothing waits until then: it
        counts as long past.
        """
        found = parse_time(text)
        if found <= self.now + SKEW + dt.timedelta(seconds=ahead_seconds):
            return found
        return min(self.started, self.now - SKEW)

    def is_held(self, uid: str) -> bool:
        """Whether our finalizer is on an owner that goes: the collector does not take its parts, so we do."""
        seen = self.observations.get(uid, _UNSEEN)
        return seen.state is State.TERMINATING and HOLD in seen.finalizers

    def cannot_hold(self, entry: Entry) -> bool:
        """Whether our hold was refused for good: then it goes without, and the receipt says so."""
        refusal = self.refusals.get(entry.uid)
        if refusal is not None and refusal.act is Act.DELETE:
            return True  # it came this far without, and that is noted
        if refusal is None or refusal.act is not Act.HOLD or refusal.error_class not in _NEVER:
            return False
        if (self.now - refusal.first).total_seconds() < HOPELESS_SECONDS:
            return False
        self.notes.append(f"{entry} could not be held, so its parts may go in any order: {refusal.message}")
        return True

    # What comes of it

    def act(self, act: Act, entry: Entry) -> None:
        """Do it, unless it is withheld, or was refused a moment ago: then wait."""
        withheld = self.withheld.get(entry.uid) if act is Act.DELETE else None
        if withheld is not None and self.now < withheld.retry:
            self.wait(entry, Cause.ROUTER, withheld.actor, withheld.text, again=withheld.retry)
            return
        refusal = self.refusals.get(entry.uid)
        if refusal is not None and refusal.act is act and self.now < refusal.retry:
            text = f"{act} was refused ({refusal.error_class}): {refusal.message}"
            self.wait(entry, Cause.REFUSED, "the API server", text, since=refusal.first, again=refusal.retry)
            return
        self.actions.append(Action(act, entry))

    def wait(
        self,
        entry: Entry,
        cause: Cause,
        actor: str,
        text: str,
        *,
        since: dt.datetime | None = None,
        until: dt.datetime | None = None,
        again: dt.datetime | None = None,
    ) -> None:
        self.waits.append(Wait(entry, cause, actor, text, since or self.started, until or self.until, again))
