"""The executor of a ledger: observe, decide, act, and in the end prove. The only one.

What it observes with is an `Observer`: watches of its own, or caches that are shared. How it is paced is up to the
caller: `run` is a loop to the end, for a program that carries out one teardown; `advance` does what can be done now,
for a reconcile, and `prove` is called when nothing is left.

All knowledge that matters is in the ledger and in the cluster: a teardown that was cut off is begun anew with the same
ledger, and goes on.
"""

import asyncio
import contextlib
import datetime as dt
import random
from collections.abc import Callable, Collection

import msgspec

from pilotage.kube import ApiError, Client, Conflict, Forbidden
from pilotage.kube.wire import parse_time
from pilotage.teardown.engine.actions import ObjectGone, perform, refusal
from pilotage.teardown.engine.decision import Act, Action, Decision
from pilotage.teardown.engine.newcomers import searched
from pilotage.teardown.engine.observations import Observations
from pilotage.teardown.engine.observers import POLL_SECONDS, Observer, Reader, WatchObserver
from pilotage.teardown.engine.progress import DecisionReporter, Outcome, Step
from pilotage.teardown.engine.prove import ONE_BY_ONE_MAX, Proof, prove
from pilotage.teardown.engine.run_state import RunState
from pilotage.teardown.planning.ledger import HOLD, Entry, Ledger
from pilotage.teardown.snapshot.world import World

BATCH_SECONDS = 0.02
"""Events are batched for this long, so that a large ledger is decided once per batch and not once per event."""
ROUNDS_MAX = 20
"""Rounds of one `advance`. A ledger has no more steps than phases, each with a hold and a release."""


class Executor:
    """Carries out one teardown. Either `run` it once, or `advance` it until it is finished, and then `prove` it."""

    def __init__(
        self,
        observer: Observer,
        *,
        on_decision: Callable[[Decision], None] | None = None,
        one_by_one_max: int = ONE_BY_ONE_MAX,
    ) -> None:
        """`one_by_one_max` is that of `prove`."""
        self.state = observer.state
        self._observer = observer
        self._reader = observer.reader
        self._client = observer.reader.client
        self._reporter = DecisionReporter(on_decision)
        self._one_by_one_max = one_by_one_max
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._verified: Collection[str] = ()
        self._stopping = False
        self.ended = False

    @property
    def ledger(self) -> Ledger:
        """The ledger, with what was found on the way."""
        return self.state.ledger

    @property
    def observations(self) -> Observations:
        """The last observation of each entry."""
        return self.state.observations

    @property
    def problem(self) -> str:
        """Why the API server tells nothing at the moment; empty if it does."""
        return self._observer.problem

    def is_held(self, entry: Entry) -> bool:
        """Whether our finalizer is on an entry, as far as is known."""
        return HOLD in self.observations.get(entry.uid).finalizers

    def outcome(self, proof: Proof | None) -> Outcome:
        """Result of the teardown. Routes that were seen to be gone from the proxies are verified."""
        state, ledger = self.state, self.state.ledger
        if self._verified:
            entries = tuple(
                msgspec.structs.replace(entry, unverified="") if entry.uid in self._verified else entry
                for entry in ledger.entries
            )
            ledger = msgspec.structs.replace(ledger, entries=entries)
        return Outcome(ledger, state.partitions.whole(), proof, state.gone_at, state.asked_at, state.notes)

    # Pacing: one pass of a reconcile

    async def advance(self) -> Decision:
        """Do all that can be done now; returns the decision that is left, in which every wait has its cause.

        An ApiError if the observer cannot tell whether something still runs.
        """
        state = self.state
        await self._observer.look()
        state.partitions.recall()
        for _ in range(ROUNDS_MAX):
            await self._observer.settle()
            decision = self._decide()
            if not await self._observer.admit(decision):
                break
            admitted = {(act, entry.uid) for act, entry in decision.actions if not self._is_withheld(act, entry)}
            decision = self._decide()  # what is withheld has become a wait, unless its time is over by now
            actions = [action for action in decision.actions if (action.act, action.entry.uid) in admitted]
            if not actions:
                break
            await asyncio.gather(*map(self._perform, actions))
        return decision

    def _is_withheld(self, act: Act, entry: Entry) -> bool:
        return act is Act.DELETE and entry.uid in self.state.withheld

    def _decide(self) -> Decision:
        self.state.decide(self.state.clock.now())
        return self.state.partitions.whole()

    # Pacing: a loop to the end

    def stop(self) -> None:
        """End `run` soon: what is under way is finished, and no new action is begun."""
        self._stopping = True
        self.state.changed.set()

    @property
    def stopped(self) -> bool:
        """Whether it was told to end."""
        return self._stopping

    async def run(self) -> Outcome:
        """Run until all is proven gone, the policy's time is up, or `stop`."""
        try:
            await self._observer.look()
            return await self._run()
        finally:
            self.ended = True
            tasks = [*self._busy.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, self._observer.close(), return_exceptions=True)

    async def _run(self) -> Outcome:
        state = self.state
        deadline = parse_time(state.ledger.started) + dt.timedelta(seconds=state.ledger.policy.timeout_seconds)
        while True:
            state.changed.clear()
            await self._observer.settle()
            now = state.clock.now()
            over = self._stopping or now >= deadline
            hopeless = True
            for decision in state.decide(now):
                hopeless = hopeless and decision.hopeless
                if not over and await self._observer.admit(decision):
                    self._begin(decision)
                    self._observer.follow(decision)
            self._reporter.show(state.partitions.whole, now, finished=state.partitions.finished)
            if self._busy:
                await self._news(now, deadline)
            elif state.partitions.finished:
                state.on_step(Step("proving", None, now))
                ledger, proof = state.ledger, await self.prove()
                if proof.holds and state.ledger is ledger:  # it may have grown meanwhile
                    return self.outcome(proof)
                if over:
                    return self.outcome(None)
                await asyncio.sleep(POLL_SECONDS if proof.unread else 0.0)
            elif over or (hopeless and state.partitions.whole().hopeless):
                return self.outcome(None)
            else:
                await self._news(now, deadline)

    async def _news(self, now: dt.datetime, deadline: dt.datetime) -> None:
        """Wait until something has changed, or a wait has to be looked at again, or shown."""
        moments = (deadline, self.state.partitions.again(), self._reporter.again(now))
        seconds = (min(moment for moment in moments if moment is not None) - now).total_seconds()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.01)):
                await self.state.changed.wait()
        if self.state.partitions.is_large:
            await asyncio.sleep(BATCH_SECONDS)

    def _begin(self, decision: Decision) -> None:
        for action in decision.actions:
            act, entry = action
            over = self.state.is_over(entry)  # it went while the decision was admitted
            if not over and entry.uid not in self._busy and not self._is_withheld(act, entry):
                self._busy[entry.uid] = asyncio.create_task(self._finish(action))

    async def _finish(self, action: Action) -> None:
        try:
            await self._perform(action)
        finally:
            self._busy.pop(action.entry.uid, None)
            self.state.touch(action.entry.uid)

    # Acting

    async def _perform(self, action: Action) -> None:
        state, entry = self.state, action.entry
        try:
            # An endpoint that has begun is finished before the next one begins. A Service that is gone is one less that
            # controllers compare with each pod that goes; of a thousand, that is much of their work.
            async with self._reader.places.passing(entry.phase.rank):
                if self._stopping:
                    return
                state.asked_at.setdefault(entry.uid, state.clock.now())
                state.on_step(Step("asked", entry, state.clock.now(), action.act))
                answer = await perform(self._client, action)
        except ObjectGone as gone:
            state.is_gone(entry, foreign=gone.foreign)
        except ApiError as error:
            await self._was_refused(action, error)
        else:
            last = state.refusals.pop(entry.uid, None)
            if answer is None:
                state.is_gone(entry)
            elif not state.see(answer):
                # Somebody undoes it, or it has no effect: not again at once.
                idle = Conflict(f"the API server accepted it, and {entry} is as it was")
                state.refusals[entry.uid] = refusal(action, idle, last, state.clock.now())
        state.touch(entry.uid)

    async def _was_refused(self, action: Action, error: ApiError) -> None:
        """Note it, and look: an answer that was lost may have been a success."""
        state, entry, now = self.state, action.entry, self.state.clock.now()
        last = state.refusals.get(entry.uid)
        state.refusals[entry.uid] = refusal(action, error, last, now)
        if last is None or last.message != error.message:
            state.on_step(Step("refused", entry, now, f"{action.act}: {error.message}"))
        if not isinstance(error, Forbidden):
            await self._reader.read(entry)

    # Proving

    async def prove(self) -> Proof:
        """Read everything afresh. What is there after all, or was found, has to go before the next proof."""
        ledger = self.state.ledger
        search = searched(ledger, await self._observer.kinds())
        proven = self.state.proven
        proof = await prove(self._client, ledger, search, one_by_one_max=self._one_by_one_max, proven=proven)
        self.state.take_proof(proof)
        self._verified = await self._observer.verified()
        return proof


def watching(
    client: Client,
    ledger: Ledger,
    *,
    rng: random.Random,
    world: World | None = None,
    on_step: Callable[[Step], None] | None = None,
    on_decision: Callable[[Decision], None] | None = None,
    on_ledger: Callable[[Ledger], None] | None = None,
) -> Executor:
    """An executor with watches of its own. `world` is what was gathered for the plan, if that was just now."""
    reader = Reader(client, RunState(ledger, on_step=on_step, on_ledger=on_ledger))
    return Executor(WatchObserver(reader, rng=rng, world=world), on_decision=on_decision)
