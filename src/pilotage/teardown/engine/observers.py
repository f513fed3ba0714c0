"""Observers: how an executor learns what becomes of the entries of a ledger.

Every observer reports to the same `RunState`; what it does not show is read by the same `Reader`, with the same rule
for what is gone. `WatchObserver` has watches of its own, for a program that carries out one teardown and ends. The
operator's observer, on caches that all its teardowns share, is in `controllers.teardown`.
"""

import asyncio
import contextlib
import heapq
import random
from collections.abc import AsyncIterator, Collection
from functools import partial

from pilotage.catalogue.phase import Phase
from pilotage.kube import Absent, ApiError, Client, Discovery, GroupKind, Resource
from pilotage.runtime.informer import Informer
from pilotage.teardown.engine.decision import Cause, Decision
from pilotage.teardown.engine.prove import definition_gone, read_of
from pilotage.teardown.engine.run_state import RunState
from pilotage.teardown.planning.ledger import Disposition, Entry
from pilotage.teardown.snapshot.gather import readable
from pilotage.teardown.snapshot.world import State, World

POD = GroupKind("", "Pod")
AT_ONCE = 32
"""Maximum number of concurrent requests."""
POLL_SECONDS = 2.0
"""Interval at which an object is read that cannot be watched."""
NAMESPACES_ONE_BY_ONE_MAX = 3
"""A kind in more namespaces than this is watched in all of them at once."""


class PrioritySemaphore:
    """A semaphore with `width` places, whose waiters are served by rank, the highest first."""

    def __init__(self, width: int) -> None:
        self._free = width
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._number = 0

    @contextlib.asynccontextmanager
    async def passing(self, rank: int) -> AsyncIterator[None]:
        """Wait for a place, and hold it; a higher rank gets one earlier."""
        if self._free and not self._waiting:
            self._free -= 1
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._number += 1
            heapq.heappush(self._waiting, (-rank, self._number, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave()  # it was given a place in the same moment
                raise
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        while self._waiting:
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Reader:
    """Reads single entries from the API server into the state."""

    def __init__(self, client: Client, state: RunState) -> None:
        self.client = client
        self.state = state
        self.places = PrioritySemaphore(AT_ONCE)
        """Semaphore of all requests for this teardown; later phases go first."""

    async def read(self, entry: Entry) -> None:
        """Read one entry. Absent is gone; an error is not, except as `prove` says of a kind that is not served."""
        try:
            async with self.places.passing(Phase.PROVE.rank):
                found = await self.client.get(entry.resource, entry.key, metadata_only=True)
        except Absent:
            self.state.is_gone(entry, proof=read_of(entry))
        except ApiError as error:
            proof = await definition_gone(self.client, self.state.ledger, entry.resource, error)
            if isinstance(proof, str):
                self.state.is_unknown(entry, proof)
            else:
                self.state.is_gone(entry, proof=proof)
        else:
            if found.meta.uid != entry.uid:
                self.state.is_gone(entry, foreign=True)
            else:
                self.state.see(found)


class Observer:
    """Base of all observers, which observes nothing by itself: a hook for each moment of an execution."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.state = reader.state

    @property
    def problem(self) -> str:
        """Why nothing is observed at the moment; empty if all is well."""
        return ""

    async def look(self) -> None:
        """Bring what is known of all entries up to date."""

    async def settle(self) -> None:
        """Find out, before each decision, whether anything acts as if what is gone were still there."""

    async def admit(self, decision: Decision) -> bool:
        """Whether a decision may be carried out now. What of it has to wait is withheld in the state."""
        del decision
        return True

    def follow(self, decision: Decision) -> None:
        """Observe, from now on, what a decision waits for."""

    async def kinds(self) -> Collection[Resource]:
        """The kinds that the proof searches for what was made from entries since."""
        return ()

    async def verified(self) -> Collection[str]:
        """The uids of entries whose going was seen where the plan could not promise that: routes, in proxies."""
        return ()

    async def close(self) -> None:
        """Observe nothing any more."""


class WatchObserver(Observer):
    """Watches of its own, opened only for kinds that something is waited for; what goes at once needs none."""

    def __init__(self, reader: Reader, *, rng: random.Random, world: World | None = None) -> None:
        """`world` is what was gathered for the plan, if that was just now."""
        super().__init__(reader)
        self._world = world
        self._reads: dict[str, asyncio.Task[None]] = {}
        """Pending reads of entries that are read again in a while, by uid."""
        self._watches = Watches(reader, rng, world)

    @property
    def problem(self) -> str:
        """Why the API server tells nothing at the moment; empty if it does."""
        return self._watches.problem

    async def look(self) -> None:
        """Observe every entry, from the gathered world, or else by one read each."""
        world = self._world
        unread: list[Entry] = []
        for entry in self.state.ledger.entries:
            item = world.get(entry.uid) if world is not None else None
            if item is not None:
                self.state.see(item.object)
            elif world is not None and world.state(entry.full_name, entry.uid) in (State.GONE, State.FOREIGN):
                self.state.is_gone(entry, foreign=world.state(entry.full_name, entry.uid) is State.FOREIGN)
            else:
                unread.append(entry)
        await asyncio.gather(*map(self.reader.read, unread))

    def follow(self, decision: Decision) -> None:
        """Watch the kinds of all that is waited for and that is under way."""
        state = self.state
        for wait in decision.waits:
            entry = wait.entry
            if wait.cause is Cause.ORDER and (self._watches.has(entry) or self._goes_at_once(entry)):
                continue
            if wait.cause is Cause.HELD:  # a controller that has not noticed yet may make its parts again
                for part in state.parts.get(entry.uid, ()):
                    self._watches.begin(part)
            if wait.cause in (Cause.ROUTER, Cause.HELD):
                continue
            if wait.cause is Cause.UNREADABLE and entry.uid not in self._reads:
                self._reads[entry.uid] = asyncio.create_task(self._read_later(entry), name=f"read {entry}")
                continue
            is_present = state.observations.get(entry.uid).state is State.PRESENT
            if not is_present or entry.disposition is Disposition.COLLECT or wait.cause is Cause.REFUSED:
                self._watches.begin(entry)

    def _goes_at_once(self, entry: Entry) -> bool:
        """Whether its going is an answer to us, so that nobody has to watch for it. Pods take their time."""
        return self.state.partitions.hastens and entry.group_kind != POD

    async def _read_later(self, entry: Entry) -> None:
        try:
            await asyncio.sleep(POLL_SECONDS)
            await self.reader.read(entry)
        finally:
            self._reads.pop(entry.uid, None)
            self.state.touch(entry.uid)

    async def kinds(self) -> Collection[Resource]:
        """All kinds, as far as is known: those that were read for the plan, or else those that are served."""
        if self._world is not None:
            return [reading.resource for reading in self._world.kinds.values()]
        try:
            return readable(await Discovery(self.reader.client).surface(), None, frozenset())
        except ApiError as error:
            self.state.note(
                [f"the kinds that are served could not be read, to search them for new parts: {error.message}"]
            )
            return ()

    async def close(self) -> None:
        """Watch nothing any more."""
        reads = [*self._reads.values()]
        for task in reads:
            task.cancel()
        await asyncio.gather(*reads, self._watches.close(), return_exceptions=True)


class Watches:
    """Watches of the kinds that a teardown waits for, each begun when it is needed, and single reads beside them.

    Nothing is watched that nobody waits for. A watch goes on from what was gathered for the plan, where that is the
    same collection, and so costs no list of its own.
    """

    def __init__(self, reader: Reader, rng: random.Random, world: World | None) -> None:
        self._reader = reader
        self._state = reader.state
        self._rng = rng
        self._world = world
        self._watched: dict[tuple[GroupKind, str], Informer] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def problem(self) -> str:
        """Why the API server tells nothing at the moment; empty if it does."""
        problems = (informer.problem for informer in self._watched.values())
        return next((problem.message for problem in problems if problem is not None), "")

    def has(self, entry: Entry) -> bool:
        """Whether its kind is watched where it is."""
        kind = entry.group_kind
        return (kind, entry.namespace) in self._watched or (kind, "") in self._watched

    def begin(self, entry: Entry) -> None:
        """Watch the kind of an entry from now on."""
        if self.has(entry):
            return
        kind = entry.group_kind
        namespaces = {each.namespace for each in self._state.unfinished(kind)}
        place = entry.namespace if len(namespaces) <= NAMESPACES_ONE_BY_ONE_MAX else ""
        informer = Informer(self._reader.client, entry.resource, rng=self._rng, namespace=place, metadata_only=True)
        self._seed(informer, entry.resource, place)
        informer.add_handler(partial(self._state.take, entry.resource))
        self._watched[kind, place] = informer
        self._tasks.append(asyncio.create_task(self._keep(informer, kind, place), name=f"watch {kind} {place}"))

    async def close(self) -> None:
        """Watch nothing any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _seed(self, informer: Informer, resource: Resource, place: str) -> None:
        world = self._world
        reading = world.kinds.get(resource.group_kind) if world is not None else None
        if world is None or reading is None or reading.problem or not reading.resource_version:
            return
        if world.namespaces == ({place} if place else frozenset()):
            items = world.of(resource.group, resource.kind, place or None)
            informer.seed([item.object for item in items], reading.resource_version)

    async def _keep(self, informer: Informer, kind: GroupKind, place: str) -> None:
        """The informer, and single reads where it tells nothing.

        Of what the first list lacks no event will come. And who may not list may still be allowed to look.
        """
        running = asyncio.create_task(informer.run())
        compared = False
        try:
            while not running.done():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await informer.synced.wait()
                if informer.problem is not None or (informer.synced.is_set() and not compared):
                    compared = informer.synced.is_set()
                    await asyncio.gather(*map(self._reader.read, self._not_shown(informer, kind, place)))
                await asyncio.sleep(POLL_SECONDS)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def _not_shown(self, informer: Informer, kind: GroupKind, place: str) -> list[Entry]:
        """The unfinished entries that the cache of their kind does not have, or may have wrong."""
        shown = set() if informer.problem is not None else {obj.meta.uid for obj in informer.store.list()}
        return [
            entry
            for entry in self._state.unfinished(kind)
            if entry.uid not in shown and (not place or entry.namespace == place)
        ]
