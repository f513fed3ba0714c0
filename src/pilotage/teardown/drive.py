"""Drives a teardown: observe, decide, act, until all is gone, time is up, or it is told to stop.

All knowledge that matters is in the ledger and in the cluster: a teardown that was cut off is begun anew with the same
ledger, and goes on. Watches are opened only for kinds that something is waited for; what goes at once needs none.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from typing import TYPE_CHECKING, NamedTuple

from pilotage.kube import Absent, ApiError, Conflict, Discovery, Forbidden, KindNotServed
from pilotage.kube.wire import parse_time
from pilotage.runtime.clock import monotonic, utc_now
from pilotage.teardown.acting import Gone, perform, refusal
from pilotage.teardown.agenda import Agenda
from pilotage.teardown.decide import is_over
from pilotage.teardown.decision import Cause
from pilotage.teardown.following import Following
from pilotage.teardown.gate import Gate
from pilotage.teardown.gather import readable
from pilotage.teardown.ledger import HOLD, Disposition, Entry
from pilotage.teardown.newcomers import owner_of, searched, take_in
from pilotage.teardown.phases import Phase
from pilotage.teardown.prove import Proof, kind_is_gone, prove
from pilotage.teardown.sights import Sights
from pilotage.teardown.world import GroupKind, State

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from pilotage.kube import Client, Object, Resource
    from pilotage.runtime.informer import Change
    from pilotage.teardown.decision import Action, Decision, Refusal
    from pilotage.teardown.ledger import Ledger
    from pilotage.teardown.world import World

POD = GroupKind("", "Pod")
AT_ONCE = 32
"""How many requests are under way at the same time."""
POLL_SECONDS = 2.0
"""How often an object is read that cannot be watched."""
GATHER_SECONDS = 0.02
"""In a large ledger news come all the time: so long they are gathered, and then decided upon together."""
SHOW_EVERY = dt.timedelta(seconds=0.1)
SHOW_SHARE = 50
"""Showing takes no more than one in so many parts of the time."""
SHOW_AGAIN = dt.timedelta(seconds=1)
"""How often, at most and at least, who shows the progress is told what is waited for."""


class Step(NamedTuple):
    """One thing that happened, for whoever shows the progress."""

    what: str
    """``asked``, ``gone``, ``refused``, ``found``, ``proving``."""
    entry: Entry | None
    at: dt.datetime
    text: str = ""


class Outcome(NamedTuple):
    """How a drive ended. Complete if there is a proof and it holds."""

    ledger: Ledger
    """With what was found on the way."""
    decision: Decision
    proof: Proof | None
    gone_at: dict[str, dt.datetime]
    asked_at: dict[str, dt.datetime]
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether everything is proven gone."""
        return self.proof is not None and self.proof.holds


class Drive:
    """One teardown. `run` it once; `stop` it at any time: what is under way is finished, and nothing new begun."""

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        *,
        rng: random.Random,
        world: World | None = None,
        on_step: Callable[[Step], None] | None = None,
        on_decision: Callable[[Decision], None] | None = None,
        on_ledger: Callable[[Ledger], None] | None = None,
    ) -> None:
        """`world` is what was gathered for the plan, if that was just now. `on_ledger` is told when it has grown."""
        self.ledger = ledger
        self.sights = Sights()
        self._client = client
        self._world = world
        self._on_step = on_step or (lambda _: None)
        self._on_decision = on_decision
        self._show_next = dt.datetime.min.replace(tzinfo=dt.UTC)
        self._agenda = Agenda(ledger)
        self._on_ledger = on_ledger or (lambda _: None)
        self._entries = ledger.by_uid()
        self._parts = _by_owner(ledger)
        self._refusals: dict[str, Refusal] = {}
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._gate = Gate(AT_ONCE)
        self._changed = asyncio.Event()
        self._stopping = False
        self.ended = False
        self._following = Following(client, rng, world, unfinished=self._unfinished, take=self._take, read=self._read)
        self._asked: dict[str, dt.datetime] = {}
        self._gone: dict[str, dt.datetime] = {}
        self._notes: list[str] = []

    def stop(self) -> None:
        """End soon: no new action is begun."""
        self._stopping = True
        self._changed.set()

    @property
    def stopped(self) -> bool:
        """Whether it was told to end."""
        return self._stopping

    def is_held(self, entry: Entry) -> bool:
        """Whether our finalizer is on it, as far as is known."""
        return HOLD in self.sights.get(entry.uid).finalizers

    async def run(self) -> Outcome:
        """Until all is proven gone, the policy's time is up, or `stop`."""
        try:
            await self._look_at_first()
            return await self._run()
        finally:
            self.ended = True
            tasks = [*self._busy.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, self._following.close(), return_exceptions=True)

    async def _run(self) -> Outcome:
        deadline = parse_time(self.ledger.started) + dt.timedelta(seconds=self.ledger.policy.timeout_seconds)
        while True:
            self._changed.clear()
            now = utc_now()
            over = self._stopping or now >= deadline
            hopeless = True
            for decision in self._agenda.decide(self.sights.all, self._refusals, now):
                self._note(decision.notes)
                hopeless = hopeless and decision.hopeless
                if not over:
                    self._begin(decision.actions)
                    self._follow(decision)
            self._show(now)
            if self._busy:
                await self._news(now, deadline)
            elif self._agenda.finished:
                self._on_step(Step("proving", None, now))
                proven = self.ledger
                proof = await prove(self._client, proven, searched(proven, await self._kinds()))
                if self._take_proof(proof) and self.ledger is proven:  # it may have grown meanwhile
                    return self._outcome(proof)
                if over:
                    return self._outcome(None)
                await asyncio.sleep(POLL_SECONDS if proof.unread else 0.0)
            elif over or (hopeless and self._agenda.whole().hopeless):
                return self._outcome(None)
            else:
                await self._news(now, deadline)

    def _outcome(self, proof: Proof | None) -> Outcome:
        return Outcome(self.ledger, self._agenda.whole(), proof, self._gone, self._asked, tuple(self._notes))

    def _show(self, now: dt.datetime) -> None:
        """Tell who shows it what is done and waited for, but not more often than anybody can read, or than is cheap."""
        if self._on_decision is not None and (now >= self._show_next or self._agenda.finished):
            began = monotonic()
            self._on_decision(self._agenda.whole())
            self._show_next = now + max(SHOW_EVERY, SHOW_SHARE * dt.timedelta(seconds=monotonic() - began))

    async def _news(self, now: dt.datetime, deadline: dt.datetime) -> None:
        """Wait until something has changed, or a wait has to be looked at again, or shown."""
        moments = [moment for moment in (deadline, self._agenda.again()) if moment is not None]
        if self._on_decision is not None:
            moments.append(now + SHOW_AGAIN)
        seconds = (min(moments) - now).total_seconds()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.01)):
                await self._changed.wait()
        if self._agenda.is_large:
            await asyncio.sleep(GATHER_SECONDS)

    def _changed_is(self, uid: str) -> None:
        """Something is new about an object: its part is decided again."""
        self._agenda.touch(uid, self.sights.all.get(uid))
        self._changed.set()

    # Observing

    async def _look_at_first(self) -> None:
        """From what was gathered, or else one read for each entry."""
        world = self._world
        unread: list[Entry] = []
        for entry in self.ledger.entries:
            item = world.get(entry.uid) if world is not None else None
            if item is not None:
                self.sights.see(item.object)
            elif world is not None and world.state(entry.full_name, entry.uid) in (State.GONE, State.FOREIGN):
                self._is_gone(entry, foreign=world.state(entry.full_name, entry.uid) is State.FOREIGN)
            else:
                unread.append(entry)
        await asyncio.gather(*map(self._read, unread))

    async def _read(self, entry: Entry) -> None:
        """One entry, from the API itself."""
        try:
            async with self._gate.passing(Phase.PROVE):
                found = await self._client.get(entry.resource, entry.key, metadata_only=True)
        except ApiError as error:
            kindless = isinstance(error, KindNotServed)
            if isinstance(error, Absent) or (
                kindless and await kind_is_gone(self._client, self.ledger, entry.resource)
            ):
                self._is_gone(entry)
            elif self.sights.unknown(entry.uid, error.message):
                self._changed_is(entry.uid)
            return
        if found.meta.uid != entry.uid:
            self._is_gone(entry, foreign=True)
        elif self.sights.see(found):
            self._changed_is(entry.uid)

    async def _read_later(self, entry: Entry) -> None:
        try:
            await asyncio.sleep(POLL_SECONDS)
            await self._read(entry)
        finally:
            self._busy.pop(entry.uid, None)
            self._changed_is(entry.uid)

    def _is_gone(self, entry: Entry, *, foreign: bool = False) -> None:
        now = utc_now()
        if self.sights.gone(entry.uid, now, foreign=foreign):
            self._gone.setdefault(entry.uid, now)
            self._refusals.pop(entry.uid, None)
            self._changed_is(entry.uid)
            if entry.disposition is not Disposition.KEEP:
                self._on_step(Step("gone", entry, now, "another object has its name" if foreign else ""))

    def _follow(self, decision: Decision) -> None:
        """Watch the kinds of all that is waited for and that is under way."""
        for wait in decision.waits:
            entry = wait.entry
            if wait.cause is Cause.ORDER and (self._following.has(entry) or self._goes_at_once(entry)):
                continue
            if wait.cause is Cause.HELD:  # a controller that has not noticed yet may make its parts again
                for part in self._parts.get(entry.uid, ()):
                    self._following.begin(part)
            if wait.cause in (Cause.ROUTER, Cause.HELD):
                continue
            if wait.cause is Cause.UNREADABLE and entry.uid not in self._busy:
                self._busy[entry.uid] = asyncio.create_task(self._read_later(entry), name=f"read {entry}")
                continue
            going = self.sights.get(entry.uid).state is not State.PRESENT or entry.disposition is Disposition.COLLECT
            if going or wait.cause is Cause.REFUSED:
                self._following.begin(entry)

    def _goes_at_once(self, entry: Entry) -> bool:
        """Whether its going is an answer to us, so that nobody has to watch for it. Pods take their time."""
        return self._agenda.hastens and entry.group_kind != POD

    def _unfinished(self, kind: GroupKind) -> list[Entry]:
        entries = (entry for entry in self.ledger.entries if entry.group_kind == kind)
        return [entry for entry in entries if not is_over(self.sights.all.get(entry.uid))]

    @property
    def problem(self) -> str:
        """Why the API server tells nothing at the moment; empty if it does."""
        return self._following.problem

    def _take(self, resource: Resource, change: Change) -> None:
        """One event of a watch."""
        obj = change.object
        entry = self._entries.get(obj.meta.uid)
        if change.new is None:
            if entry is not None:
                self._is_gone(entry)
            return
        if entry is not None:
            if self.sights.see(obj):
                self._changed_is(entry.uid)
            return
        owner = owner_of(obj, self._entries) if obj.meta.owner_references else None
        if owner is not None:
            self._found(resource, obj, owner)

    def _found(self, resource: Resource, obj: Object, owner: Entry) -> None:
        """Something that appeared after the plan was made, and that belongs to it."""
        self.ledger, entry = take_in(self.ledger, resource, obj, owner)
        self._entries = self.ledger.by_uid()
        self._parts = _by_owner(self.ledger)
        self._agenda = Agenda(self.ledger)
        for uid, sight in self.sights.all.items():
            self._agenda.touch(uid, sight)
        self._on_ledger(self.ledger)
        self.sights.see(obj)
        self._on_step(Step("found", entry, utc_now(), entry.reason))
        self._changed.set()

    # Acting

    def _begin(self, actions: Iterable[Action]) -> None:
        for action in actions:
            uid = action.entry.uid
            if uid not in self._busy:
                self._busy[uid] = asyncio.create_task(self._perform(action))

    async def _perform(self, action: Action) -> None:
        entry = action.entry
        try:
            async with self._gate.passing(_rank(entry)):
                if self._stopping:
                    return
                self._asked.setdefault(entry.uid, utc_now())
                self._on_step(Step("asked", entry, utc_now(), action.act))
                answer = await perform(self._client, action)
        except Gone as gone:
            self._is_gone(entry, foreign=gone.foreign)
        except ApiError as error:
            await self._was_refused(action, error)
        else:
            last = self._refusals.pop(entry.uid, None)
            if answer is None:
                self._is_gone(entry)
            elif not self.sights.see(answer):
                # Somebody undoes it, or it has no effect: not again at once.
                idle = Conflict(f"the API server accepted it, and {entry} is as it was")
                self._refusals[entry.uid] = refusal(action, idle, last, utc_now())
        finally:
            self._busy.pop(entry.uid, None)
            self._changed_is(entry.uid)

    async def _was_refused(self, action: Action, error: ApiError) -> None:
        """Note it, and look: an answer that was lost may have been a success."""
        entry, now = action.entry, utc_now()
        last = self._refusals.get(entry.uid)
        self._refusals[entry.uid] = refusal(action, error, last, now)
        if last is None or last.message != error.message:
            self._on_step(Step("refused", entry, now, f"{action.act}: {error.message}"))
        if not isinstance(error, Forbidden):
            await self._read(entry)

    # Proving

    async def _kinds(self) -> list[Resource]:
        """All kinds, as far as is known: those that were read for the plan, or else those that are served."""
        if self._world is not None:
            return [reading.resource for reading in self._world.kinds.values()]
        try:
            return readable(await Discovery(self._client).surface(), None, frozenset())
        except ApiError as error:
            self._note([f"the kinds that are served could not be read, to search them for new parts: {error.message}"])
            return []

    def _take_proof(self, proof: Proof) -> bool:
        """Whether it holds. What it shows to be there after all goes back into the game."""
        for obj in proof.there:
            if obj.meta.uid in self._entries:
                self.sights.contradict(obj)
                self._gone.pop(obj.meta.uid, None)
                self._changed_is(obj.meta.uid)
        self._note(
            f"{self._entries[uid]} could not be read to prove it gone: {problem}"
            for uid, problem in proof.unread.items()
        )
        self._note(proof.unsearched)
        for resource, obj in proof.newcomers:
            owner = owner_of(obj, self._entries)
            if owner is not None and obj.meta.uid not in self._entries:
                self._found(resource, obj, owner)
        return proof.holds

    def _note(self, notes: Iterable[str]) -> None:
        for note in notes:
            if note not in self._notes:
                self._notes.append(note)


def _rank(entry: Entry) -> int:
    """What is furthest goes first: an endpoint that has begun is finished before the next one begins.

    A Service that is gone is one less that controllers compare with each pod that goes; of a thousand, that is much of
    their work. Nobody waits longer for it: what comes late in an order can go only when its pods are gone, and by then
    all that takes its time has begun.
    """
    return int(entry.phase)


def _by_owner(ledger: Ledger) -> dict[str, list[Entry]]:
    """What goes, by the uid of what it is a part of."""
    found: dict[str, list[Entry]] = {}
    for entry in ledger.going:
        if entry.owner:
            found.setdefault(entry.owner, []).append(entry)
    return found
