"""One teardown under way: look, decide, act, and look again. The engine decides; this is its hands and eyes here.

What is remembered (what was seen gone, what was refused) only saves requests: a takedown that begins anew with the
same ledger, after a crash, comes to the same end.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import TYPE_CHECKING

import msgspec

from pilotage.api.names import GATEWAY_ROUTES
from pilotage.catalogue import Phase, is_built_in
from pilotage.controllers.late import late_parts
from pilotage.controllers.letting_go import Held, LettingGo
from pilotage.kube import Absent, ApiError, Conflict, KindNotServed, ObjectKey
from pilotage.runtime.clock import SteadyClock
from pilotage.teardown.engine.actions import Gone, perform, refusal
from pilotage.teardown.engine.decide import decide, is_over
from pilotage.teardown.engine.decision import Act, Cause, Wait
from pilotage.teardown.engine.observations import Observations
from pilotage.teardown.engine.progress import Outcome
from pilotage.teardown.engine.prove import DEFINITIONS, Read, prove
from pilotage.teardown.planning.ledger import Disposition, LedgerIndex
from pilotage.traffic.contract import ExpectedRoute, Programming
from pilotage.traffic.drain import DrainLimits, cut_short, undrained

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.controllers.caches import Caches, Seen
    from pilotage.controllers.seals import Identity
    from pilotage.kube import Client, Resource
    from pilotage.teardown.engine.decision import Action, Decision, Observation, Refusal
    from pilotage.teardown.engine.prove import Proof
    from pilotage.teardown.planning.ledger import Entry, Ledger
    from pilotage.traffic.contract import ProxyObserver, RouteStatus

ROUNDS_MAX = 20
"""A ledger has no more steps than phases, each with a hold and a release: who needs more is looked at again later."""


REFUSED_SECONDS = 5.0
"""Until a route is tried again that cannot be changed."""

ONE_BY_ONE_MAX = 20
"""A namespace may have a thousand endpoints: a list of all their pods for the proof of a few would be dear."""


class Takedown:
    """See the module."""

    def __init__(
        self, ledger: Ledger, client: Client, caches: Caches, observer: ProxyObserver, whose: Identity, *, pods: str
    ) -> None:
        """`pods`: the labels of all that runs for it; without labels nothing does."""
        self.ledger = ledger
        self.clock = SteadyClock()
        """So that no step of the clock shortens the time that requests are given to end."""
        self.late: list[Seen] = []
        """What has to be in the ledger before it goes on."""
        self.asked_at: dict[str, dt.datetime] = {}
        self.gone_at: dict[str, dt.datetime] = {}
        self.notes: list[str] = []
        self._client = client
        self._caches = caches
        self._observer = observer
        self._index = LedgerIndex(ledger)
        self._sights = Observations()
        self._cached: set[str] = set()
        """What was in a cache at some time: if it is not any more, it is gone."""
        self._refusals: dict[str, Refusal] = {}
        self._collected: dt.datetime | None = None
        self._detached_at: dt.datetime | None = None
        self._route_status: RouteStatus | None = None
        self._letting_go = LettingGo(client, caches)
        self._drained = False
        self._whose = whose
        self._pods = pods
        self._none_late = not pods
        self.awaits_proxies = False
        """Whether it waits for what only a look at the proxies will show."""

    def grow(self, ledger: Ledger) -> None:
        """Go on with a ledger that has more entries."""
        self.ledger = ledger
        self._index = LedgerIndex(ledger)

    def forget(self) -> None:
        """Look at everything afresh the next time."""
        self._sights = Observations()
        self._cached = set()

    @property
    def left(self) -> int:
        """How many are not gone, as far as is known."""
        return sum(not is_over(self._sights.all.get(entry.uid)) for entry in self.ledger.going)

    async def advance(self) -> Decision:
        """Do all that may be done now. An ApiError if it cannot be seen whether something still runs."""
        self.late = []
        await self._look()
        for _ in range(ROUNDS_MAX):
            decision = await self._decide()
            if not self._none_late and self._leaves_what_runs(decision):
                known = {entry.uid for entry in self.ledger.entries}
                self.late = await late_parts(self._client, self._caches, self._whose, self._pods, known)
                self._none_late = not self.late
                if self.late:
                    break
            if not decision.actions:
                break
            await asyncio.gather(*map(self._perform, decision.actions))
        return decision

    def _leaves_what_runs(self, decision: Decision) -> bool:
        """Whether nothing that runs is known to be left, and what it may have needed is about to go, or has gone."""
        going = self.ledger.going
        if any(entry.phase is Phase.STOP and not is_over(self._sights.all.get(entry.uid)) for entry in going):
            return False
        if decision.finished:
            return any(entry.phase >= Phase.STOP for entry in going)
        return any(action.entry.phase > Phase.STOP for action in decision.actions)

    async def prove(self) -> Proof:
        """Read everything afresh. What is there after all is known from then on."""
        proof = await prove(self._client, self.ledger, one_by_one_max=ONE_BY_ONE_MAX)
        for uid in [*proof.unread]:
            entry = self._index.entries[uid]
            read = await self._without_definition(entry.resource)
            if isinstance(read, Read):
                del proof.unread[uid]
                proof.gone[uid] = read
            elif read:
                proof.unread[uid] += f"; {read}"
        for obj in proof.there:
            self._sights.contradict(obj)
            self.gone_at.pop(obj.meta.uid, None)
        if self._routes and not self._let_go:
            await self._ask_proxies()
        return proof

    def outcome(self, decision: Decision, proof: Proof | None) -> Outcome:
        """For the receipt."""
        ledger = self.ledger
        seen = {entry.uid for entry in self._routes} if self._let_go else set[str]()
        if proven := seen | self._letting_go.proven:  # what was to be waited for blindly was seen
            entries = tuple(
                msgspec.structs.replace(entry, unverified="") if entry.uid in proven else entry
                for entry in ledger.entries
            )
            ledger = msgspec.structs.replace(ledger, entries=entries)
        return Outcome(ledger, decision, proof, self.gone_at, self.asked_at, tuple(self.notes))

    # Observing

    async def _look(self) -> None:
        unread = []
        for entry in self.ledger.entries:
            if is_over(self._sights.all.get(entry.uid)):
                continue
            found = self._caches.get(entry.resource, entry.key)
            if found is not None and found.meta.uid == entry.uid:
                self._cached.add(entry.uid)
                self._sights.see(found)
            elif entry.uid in self._cached and self._caches.serves(entry.resource):
                self._is_gone(entry, foreign=found is not None)
            else:
                unread.append(entry)
        await asyncio.gather(*map(self._read, unread))

    async def _read(self, entry: Entry) -> None:
        """One entry that no cache shows: it may be too new for them, or gone."""
        try:
            found = await self._client.get(entry.resource, entry.key, metadata_only=True)
        except Absent:
            self._is_gone(entry)
        except KindNotServed as error:
            read = await self._without_definition(entry.resource)
            if isinstance(read, Read):
                self._is_gone(entry)
            else:
                self._sights.unknown(entry.uid, f"{error.message}; {read}" if read else error.message)
        except ApiError as error:
            self._sights.unknown(entry.uid, error.message)
        else:
            if found.meta.uid != entry.uid:
                self._is_gone(entry, foreign=True)
            else:
                self._sights.see(found)

    async def _without_definition(self, resource: Resource) -> Read | str:
        """The read that shows that a custom kind has no definition: a definition outlives all objects of its kind.

        Else why that is not shown; empty where there is nothing to say.
        """
        if is_built_in(resource.group):
            return ""
        key = ObjectKey("", f"{resource.plural}.{resource.group}")
        try:
            await self._client.get(DEFINITIONS, key, metadata_only=True)
        except Absent:
            return Read(f"GET {DEFINITIONS.path('', key.name)}", self.clock.now())
        except ApiError as error:
            return error.message
        return ""

    def _is_gone(self, entry: Entry, *, foreign: bool = False) -> None:
        now = self.clock.now()
        if self._sights.gone(entry.uid, now, foreign=foreign):
            self.gone_at.setdefault(entry.uid, now)
            self._refusals.pop(entry.uid, None)
            if entry.disposition is Disposition.COLLECT:
                self._collected = now

    # Deciding

    async def _decide(self) -> Decision:
        observations = await self._with_passage(self._sights.all)
        decision = decide(self._index, observations, self._refusals, self.clock.now(), collected=self._collected)
        decision = await self._held_back(decision)
        self.notes += (note for note in decision.notes if note not in self.notes)
        return decision

    async def _held_back(self, decision: Decision) -> Decision:
        """The same without the deletes of GatewayRoutes that the gateway has not let go of: those are waited for."""
        now = self.clock.now()
        waits: dict[str, Wait] = {}
        draining = True
        services = [entry.name for entry in self.ledger.going if entry.resource.kind == "Service"]
        for act, entry in decision.actions:
            if act is not Act.DELETE or entry.resource != GATEWAY_ROUTES:
                continue
            try:
                held = await self._letting_go.held(entry, services, self.ledger.policy.drain_seconds)
            except ApiError as error:
                held = Held(f"it cannot be taken out of traffic: {error.message}", REFUSED_SECONDS, draining=False)
            if held is not None:
                again = now + dt.timedelta(seconds=held.again)
                draining = draining and held.draining
                waits[entry.uid] = Wait(
                    entry, Cause.ROUTER, "the gateway", held.text, self._index.started, self._index.until, again
                )
        if not waits:
            return decision._replace(notes=(*decision.notes, *self._letting_go.notes))
        return decision._replace(
            phase=Phase.DRAIN if draining and decision.phase is Phase.DETACH else decision.phase,
            actions=tuple(each for each in decision.actions if each.entry.uid not in waits),
            waits=(*waits.values(), *decision.waits),
        )

    async def _with_passage(self, observations: Mapping[str, Observation]) -> Mapping[str, Observation]:
        """What is known of routes that are gone, with what the proxies say about them."""
        if proven := self._letting_go.proven & {
            uid for uid, observation in observations.items() if is_over(observation)
        }:
            observations = {**observations, **{uid: observations[uid]._replace(settled=True) for uid in proven}}
        routes, self.awaits_proxies = self._routes, False
        if not routes or not all(is_over(observations.get(entry.uid)) for entry in routes):
            return observations
        waiting = any(
            not is_over(observations.get(entry.uid)) for entry in self.ledger.going if entry.phase > Phase.DETACH
        )
        settled, text = (True, "") if not waiting else await self._settled()
        if settled is None:
            return observations
        self.awaits_proxies = not settled
        return {
            **observations,
            **{entry.uid: observations[entry.uid]._replace(settled=settled, problem=text) for entry in routes},
        }

    @property
    def _routes(self) -> list[Entry]:
        """Those that only a look at proxies can prove."""
        return [
            entry for entry in self.ledger.going if entry.phase is Phase.DETACH and entry.resource != GATEWAY_ROUTES
        ]

    @property
    def _let_go(self) -> bool:
        """Whether the proxies were seen without the routes."""
        return self._route_status is not None and self._route_status.programming is Programming.PROGRAMMED

    async def _ask_proxies(self) -> RouteStatus | None:
        services = {entry.name for entry in self.ledger.going if entry.resource.kind == "Service"}
        if services:
            nothing = ExpectedRoute(self._routes[0].namespace, "", "", (), frozenset(services))
            self._route_status = await self._observer.observe(nothing)
        return self._route_status

    async def _settled(self) -> tuple[bool | None, str]:
        """Whether proxies have let go of what goes, and nothing is under way to it. None: nobody can tell."""
        if self._drained:
            return True, ""
        status = await self._ask_proxies()
        if status is None:
            return None, ""
        if status.programming is not Programming.PROGRAMMED:
            self._detached_at = None
            return False, status.text
        now = self.clock.now()
        self._detached_at = self._detached_at or now
        since = (now - self._detached_at).total_seconds()
        wait = undrained(status.in_flight, since, DrainLimits(self.ledger.policy.drain_seconds))
        self._drained = wait is None
        if wait is not None:
            return False, wait.countdown
        if note := cut_short(status.in_flight):
            self.notes.append(note)
        return True, ""

    # Acting

    async def _perform(self, action: Action) -> None:
        entry, now = action.entry, self.clock.now()
        try:
            self.asked_at.setdefault(entry.uid, now)
            answer = await perform(self._client, action)
        except Gone as gone:
            self._is_gone(entry, foreign=gone.foreign)
        except ApiError as error:
            self._refusals[entry.uid] = refusal(action, error, self._refusals.get(entry.uid), self.clock.now())
        else:
            last = self._refusals.pop(entry.uid, None)
            if answer is None:
                self._is_gone(entry)
            elif not self._sights.see(answer):
                # Somebody undoes it, or it has no effect: not again at once.
                idle = Conflict(f"the API server accepted it, and {entry} is as it was")
                self._refusals[entry.uid] = refusal(action, idle, last, self.clock.now())
