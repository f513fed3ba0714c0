"""Drives a teardown: observe, decide, act, until all is gone, time is up, or it is told to stop.

All knowledge that matters is in the ledger and in the cluster: a teardown that was cut off is begun anew with the same
ledger, and goes on. Watches are opened only for kinds that something is waited for; what goes at once needs none.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from typing import TYPE_CHECKING

from pilotage.catalogue import Phase
from pilotage.kube import Absent, ApiError, Conflict, Discovery, Forbidden, GroupKind, KindNotServed
from pilotage.kube.wire import parse_time
from pilotage.teardown.engine.actions import Gone, perform, refusal
from pilotage.teardown.engine.decision import Cause
from pilotage.teardown.engine.newcomers import searched
from pilotage.teardown.engine.priority_semaphore import PrioritySemaphore
from pilotage.teardown.engine.progress import DecisionReporter, Step
from pilotage.teardown.engine.prove import kind_is_gone, prove
from pilotage.teardown.engine.run_state import RunState
from pilotage.teardown.engine.watches import Following
from pilotage.teardown.planning.ledger import HOLD, Disposition
from pilotage.teardown.snapshot.gather import readable
from pilotage.teardown.snapshot.world import State

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from pilotage.kube import Client, Resource
    from pilotage.teardown.engine.decision import Action, Decision
    from pilotage.teardown.engine.observations import Observations
    from pilotage.teardown.engine.progress import Outcome
    from pilotage.teardown.planning.ledger import Entry, Ledger
    from pilotage.teardown.snapshot.world import World

POD = GroupKind("", "Pod")
AT_ONCE = 32
"""How many requests are under way at the same time."""
POLL_SECONDS = 2.0
"""How often an object is read that cannot be watched."""
GATHER_SECONDS = 0.02
"""In a large ledger news come all the time: so long they are gathered, and then decided upon together."""


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
        self._client = client
        self._world = world
        self._on_step = on_step or (lambda _: None)
        self._showing = DecisionReporter(on_decision)
        standing = self._standing = RunState(ledger, on_step=self._on_step, on_ledger=on_ledger or (lambda _: None))
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._gate = PrioritySemaphore(AT_ONCE)
        self._stopping = False
        self.ended = False
        self._following = Following(
            client, rng, world, unfinished=standing.unfinished, take=standing.take, read=self._read
        )

    @property
    def ledger(self) -> Ledger:
        """With what was found on the way."""
        return self._standing.ledger

    @property
    def observations(self) -> Observations:
        """What is known of each entry."""
        return self._standing.observations

    def stop(self) -> None:
        """End soon: no new action is begun."""
        self._stopping = True
        self._standing.changed.set()

    @property
    def stopped(self) -> bool:
        """Whether it was told to end."""
        return self._stopping

    def is_held(self, entry: Entry) -> bool:
        """Whether our finalizer is on it, as far as is known."""
        return HOLD in self.observations.get(entry.uid).finalizers

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
        standing = self._standing
        deadline = parse_time(standing.ledger.started) + dt.timedelta(seconds=standing.ledger.policy.timeout_seconds)
        while True:
            standing.changed.clear()
            now = standing.clock.now()
            over = self._stopping or now >= deadline
            hopeless = True
            for decision in standing.partitions.decide(standing.observations.all, standing.refusals, now):
                standing.note(decision.notes)
                hopeless = hopeless and decision.hopeless
                if not over:
                    self._begin(decision.actions)
                    self._follow(decision)
            self._showing.show(standing.partitions.whole, now, finished=standing.partitions.finished)
            if self._busy:
                await self._news(now, deadline)
            elif standing.partitions.finished:
                self._on_step(Step("proving", None, now))
                proven = standing.ledger
                proof = await prove(self._client, proven, searched(proven, await self._kinds()))
                if standing.take_proof(proof) and standing.ledger is proven:  # it may have grown meanwhile
                    return standing.outcome(proof)
                if over:
                    return standing.outcome(None)
                await asyncio.sleep(POLL_SECONDS if proof.unread else 0.0)
            elif over or (hopeless and standing.partitions.whole().hopeless):
                return standing.outcome(None)
            else:
                await self._news(now, deadline)

    async def _news(self, now: dt.datetime, deadline: dt.datetime) -> None:
        """Wait until something has changed, or a wait has to be looked at again, or shown."""
        moments = (deadline, self._standing.partitions.again(), self._showing.again(now))
        seconds = (min(moment for moment in moments if moment is not None) - now).total_seconds()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.01)):
                await self._standing.changed.wait()
        if self._standing.partitions.is_large:
            await asyncio.sleep(GATHER_SECONDS)

    # Observing

    async def _look_at_first(self) -> None:
        """From what was gathered, or else one read for each entry."""
        world = self._world
        unread: list[Entry] = []
        for entry in self.ledger.entries:
            item = world.get(entry.uid) if world is not None else None
            if item is not None:
                self.observations.see(item.object)
            elif world is not None and world.state(entry.full_name, entry.uid) in (State.GONE, State.FOREIGN):
                self._standing.is_gone(entry, foreign=world.state(entry.full_name, entry.uid) is State.FOREIGN)
            else:
                unread.append(entry)
        await asyncio.gather(*map(self._read, unread))

    async def _read(self, entry: Entry) -> None:
        """One entry, from the API itself."""
        try:
            async with self._gate.passing(Phase.PROVE.rank):
                found = await self._client.get(entry.resource, entry.key, metadata_only=True)
        except ApiError as error:
            kindless = isinstance(error, KindNotServed)
            if isinstance(error, Absent) or (
                kindless and await kind_is_gone(self._client, self.ledger, entry.resource)
            ):
                self._standing.is_gone(entry)
            elif self.observations.unknown(entry.uid, error.message):
                self._standing.touch(entry.uid)
            return
        if found.meta.uid != entry.uid:
            self._standing.is_gone(entry, foreign=True)
        elif self.observations.see(found):
            self._standing.touch(entry.uid)

    async def _read_later(self, entry: Entry) -> None:
        try:
            await asyncio.sleep(POLL_SECONDS)
            await self._read(entry)
        finally:
            self._busy.pop(entry.uid, None)
            self._standing.touch(entry.uid)

    def _follow(self, decision: Decision) -> None:
        """Watch the kinds of all that is waited for and that is under way."""
        for wait in decision.waits:
            entry = wait.entry
            if wait.cause is Cause.ORDER and (self._following.has(entry) or self._goes_at_once(entry)):
                continue
            if wait.cause is Cause.HELD:  # a controller that has not noticed yet may make its parts again
                for part in self._standing.parts.get(entry.uid, ()):
                    self._following.begin(part)
            if wait.cause in (Cause.ROUTER, Cause.HELD):
                continue
            if wait.cause is Cause.UNREADABLE and entry.uid not in self._busy:
                self._busy[entry.uid] = asyncio.create_task(self._read_later(entry), name=f"read {entry}")
                continue
            going = (
                self.observations.get(entry.uid).state is not State.PRESENT or entry.disposition is Disposition.COLLECT
            )
            if going or wait.cause is Cause.REFUSED:
                self._following.begin(entry)

    def _goes_at_once(self, entry: Entry) -> bool:
        """Whether its going is an answer to us, so that nobody has to watch for it. Pods take their time."""
        return self._standing.partitions.hastens and entry.group_kind != POD

    @property
    def problem(self) -> str:
        """Why the API server tells nothing at the moment; empty if it does."""
        return self._following.problem

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
                self._standing.asked_at.setdefault(entry.uid, self._standing.clock.now())
                self._on_step(Step("asked", entry, self._standing.clock.now(), action.act))
                answer = await perform(self._client, action)
        except Gone as gone:
            self._standing.is_gone(entry, foreign=gone.foreign)
        except ApiError as error:
            await self._was_refused(action, error)
        else:
            last = self._standing.refusals.pop(entry.uid, None)
            if answer is None:
                self._standing.is_gone(entry)
            elif not self.observations.see(answer):
                # Somebody undoes it, or it has no effect: not again at once.
                idle = Conflict(f"the API server accepted it, and {entry} is as it was")
                self._standing.refusals[entry.uid] = refusal(action, idle, last, self._standing.clock.now())
        finally:
            self._busy.pop(entry.uid, None)
            self._standing.touch(entry.uid)

    async def _was_refused(self, action: Action, error: ApiError) -> None:
        """Note it, and look: an answer that was lost may have been a success."""
        entry, now = action.entry, self._standing.clock.now()
        last = self._standing.refusals.get(entry.uid)
        self._standing.refusals[entry.uid] = refusal(action, error, last, now)
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
            self._standing.note(
                [f"the kinds that are served could not be read, to search them for new parts: {error.message}"]
            )
            return []


def _rank(entry: Entry) -> int:
    """What is furthest goes first: an endpoint that has begun is finished before the next one begins.

    A Service that is gone is one less that controllers compare with each pod that goes; of a thousand, that is much of
    their work. Nobody waits longer for it: what comes late in an order can go only when its pods are gone, and by then
    all that takes its time has begun.
    """
    return entry.phase.rank
