"""The controller of an agent: each HostProcess of this host, from the moment it is placed here until nothing is left.

- A deletion comes before everything else, and goes the one way down (`takedown`).
- What is wanted is tended (`tending`): one look at a time, which says when the next one is due.
- An error of the API is "unknown". It stops no server, and no look at one: what was last known to be wanted still is.
- What is said (`process_status`) is written only when a reader would see something new.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import structlog

from pilotage.agent import process_status, restart
from pilotage.agent.easing import ease
from pilotage.agent.journal import State
from pilotage.agent.launch import logs, process
from pilotage.agent.permission import Rules
from pilotage.agent.pressure import Level
from pilotage.agent.process_status import Said
from pilotage.agent.registration import Registrar
from pilotage.agent.saying import Speaker
from pilotage.agent.starting import Starter
from pilotage.agent.takedown import Takedown, Why, nothing
from pilotage.agent.tally import Tally
from pilotage.agent.tending import Tending, leaving
from pilotage.agent.ward import Ward
from pilotage.api.base import InvalidField
from pilotage.api.host import ProcessSpec
from pilotage.api.names import LABEL_HOST, PROCESS_FINALIZER, PROCESSES
from pilotage.catalogue import Phase
from pilotage.kube import Absent, ApiError, ObjectKey, merge_patch, without_finalizer
from pilotage.processes.identity import ProcessId
from pilotage.processes.terminate import StillRunning
from pilotage.runtime import Result, monotonic
from pilotage.serving.resources import SLICES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pilotage.agent.health import Prober
    from pilotage.agent.host import HostKeeper
    from pilotage.agent.journal import Entry, Journal
    from pilotage.agent.launch.ports import Ports
    from pilotage.agent.memory import Gauge
    from pilotage.agent.pace import Pace
    from pilotage.agent.pressure import Pressure
    from pilotage.agent.settings import AgentSettings
    from pilotage.agent.takedown import Progress
    from pilotage.kube import Object
    from pilotage.models.blocking import Blocking
    from pilotage.models.store import ModelStore
    from pilotage.runtime import Context, Manager, Reconcile

_log = structlog.get_logger(__name__)

NAME = "agent"
WORKERS = 64
"""A look at a server may wait for it for a while; they cost nothing."""
UNKNOWN_SECONDS = 2.0
"""When the API did not answer."""


class Means(NamedTuple):
    """What an agent works with."""

    settings: AgentSettings
    journal: Journal
    keeping: ModelStore
    prober: Prober
    pressure: Pressure
    ports: Ports
    gauge: Gauge
    address: str
    api_port: int
    """Of an API server on this machine; 0 if it is elsewhere."""
    pace: Pace
    blocking: Blocking


class Agent:
    """See the module. Made before the manager runs; use it with ``async with`` around `Manager.run`."""

    def __init__(self, manager: Manager, means: Means, host: HostKeeper) -> None:
        self._means = means
        self._name = means.settings.name
        self._journal = means.journal
        self._pace = means.pace
        self._host = host
        self._started = manager.started
        self._wards: dict[str, Ward] = {}
        self._locks: collections.defaultdict[str, asyncio.Lock] = collections.defaultdict(asyncio.Lock)
        self._swept = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._tally = Tally(manager.metrics.registry)
        label = f"{LABEL_HOST}={self._name}"
        self._slices = manager.informer(SLICES, labels=label)
        watches = [(self._slices, lambda obj: (obj.key,))]
        processes = manager.informer(PROCESSES, labels=label)
        self.controller = manager.add(NAME, processes, self._make, workers=WORKERS, watches=watches)
        host.processes = lambda: sum(entry.state is State.RUNNING for entry in self._journal.entries())
        host.memory = lambda: (self._starter.total(), self._starter.free())

    def _make(self, context: Context) -> Reconcile:
        settings, journal, keeping, prober, _, ports, gauge, address, api_port, pace, _ = self._means
        self._client, self._store, self._events = context.client, context.store, context.events
        self._speaker = Speaker(self._client, self._events, self._tally, address)
        self._registrar = Registrar(self._client, self._slices.store, journal, self._name, address, self._host.sure)
        self._takedown = Takedown(journal, self._registrar, prober, pace, self._tally)
        self._starter = Starter(
            settings,
            journal,
            keeping,
            ports,
            pace,
            gauge=gauge,
            rng=context.rng,
            client=self._client,
            rules=lambda: Rules.of(settings, self._host.allowed_namespaces, api_port),
        )
        self._tending = Tending(journal, self._starter, self._registrar, prober, self._takedown, pace, self._tally)
        return self.reconcile

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._take_stock()), asyncio.create_task(self._ease())]
        return self

    async def fails(self) -> None:
        """Waits until something that has to go on all the time has failed, and raises that: a bug."""
        await asyncio.gather(*self._tasks)

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._starter.close()
        for ward in self._wards.values():
            ward.deafen()

    @property
    def hurried(self) -> bool:
        """Whether nobody waits for requests any more."""
        return self._takedown.hurry

    def hurry(self) -> None:
        """Do not wait for requests any more."""
        self._takedown.hurry = True

    # One HostProcess

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """See `Reconcile`. It never raises an ApiError: the next look must not wait for the API's sake."""
        await self._swept.wait()
        obj = self._store.get(key)
        try:
            waits = [await self._former(entry) for entry in self._journal.of(key) if not _is(obj, entry.uid)]
            if obj is None:
                self._tally.show(key, "")
                await self._sweep(key)
            elif not self._stopping or obj.meta.terminating:
                async with self._locks[obj.meta.uid]:
                    waits.append(await self._deal(obj))
        except (ApiError, OSError, sqlite3.Error) as error:
            _log.warning("not known, or not done; looked at again", process=str(key), error=str(error))
            return Result(requeue_after=UNKNOWN_SECONDS)
        due = [wait for wait in waits if wait is not None]
        return Result(requeue_after=min(due)) if due else None

    async def _deal(self, obj: Object) -> float | None:
        """With one that is there. Its lock is held."""
        restarts = obj.get("status", "restarts", default=0) or 0
        ward = self._wards.setdefault(obj.meta.uid, Ward(restarts=restarts))
        if obj.meta.terminating:
            return await self._leave(obj)
        if obj.get("spec", "host") != self._name:
            return None  # labelled by mistake; whoever places it says both
        obj = await self._hold(obj)
        spec = _spec(obj)
        if isinstance(spec, Said):
            await self._speaker.say(obj, spec)
            return None
        look = await self._tending.tend(obj, spec, ward, lambda: self.controller.queue.add(obj.key), self._held())
        if look.said is not None:
            if obj.get("status", "memoryBytes", default=None) is None and look.said.entry is not None:
                await self._reckon()
            await self._speaker.say(obj, look.said, ward.restarts)
        return look.seconds

    async def _reckon(self) -> None:
        """Say what is free: before a process says what it has of that, and when that is over."""
        with contextlib.suppress(ApiError):  # it says so later
            await self._host.publish()

    async def _hold(self, obj: Object) -> Object:
        """Before anything runs that would have to be ended."""
        if PROCESS_FINALIZER in obj.meta.finalizers:
            return obj
        finalizers = [*obj.meta.finalizers, PROCESS_FINALIZER]
        patch = merge_patch({"metadata": {"finalizers": finalizers}}, resource_version=obj.meta.resource_version)
        return await self._client.patch(PROCESSES, obj.key, patch)

    def _held(self) -> str:
        """Why nothing new is started now."""
        pressed = self._means.pressure.level > Level.NORMAL
        return "This host is short of memory; it starts when that is over." if pressed else ""

    # Its end

    async def _leave(self, obj: Object) -> float | None:
        """It is deleted. Its lock is held."""
        uid = obj.meta.uid
        await self._starter.drop(uid)
        entry = self._journal.get(uid)
        if entry is None:
            if PROCESS_FINALIZER in obj.meta.finalizers:
                await self._release(obj)
            self._forget(uid)
            return None
        progress = await self._down(entry, Why.DELETED, lambda: self._release(obj))
        if progress.done:
            return None
        await self._speaker.say(obj, leaving(progress, entry, Why.DELETED))
        return progress.wait

    async def _release(self, obj: Object) -> None:
        """Nothing of it runs: its weights go, if nobody else uses them, and its logs; then its finalizer."""
        await self._means.keeping.release(obj.meta.uid)
        logs.remove(self._starter.log_of(obj))
        self._journal.at("before the finalizer goes")
        with contextlib.suppress(Absent):
            newest = await self._client.get(PROCESSES, obj.key)  # its status was written meanwhile
            patch = without_finalizer(newest, PROCESS_FINALIZER) if newest.meta.uid == obj.meta.uid else None
            if patch is not None:
                await self._client.patch(PROCESSES, obj.key, patch)
        self._journal.at("after the finalizer went")

    async def _former(self, entry: Entry) -> float | None:
        """An entry whose HostProcess the cache does not have: gone, if a fresh read says so, and only then."""
        async with self._locks[entry.uid]:
            current = self._journal.get(entry.uid)
            if current is None:
                return None
            found: Object | None = None
            with contextlib.suppress(Absent):
                found = await self._client.get(PROCESSES, entry.key)
            if found is not None and _is(found, entry.uid) and found.get("spec", "host") == self._name:
                _log.warning("a HostProcess has lost its label, and goes on", process=str(entry.key))
                return await self._deal(found)
            await self._starter.drop(entry.uid)

            async def release() -> None:
                await self._means.keeping.release(entry.uid)
                logs.remove(Path(entry.log))

            progress = await self._down(current, Why.VANISHED, release)
            return None if progress.done else progress.wait

    async def _down(self, entry: Entry, why: Why, release: Callable[[], Awaitable[None]] = nothing) -> Progress:
        """One step of the one way down."""
        ward = self._wards.get(entry.uid)
        just_ended = ward is not None and ward.just_ended
        progress = await self._takedown.advance(entry, why, just_ended=just_ended, release=release)
        if progress.done:
            self._forget(entry.uid)
            await self._reckon()
        return progress

    def _forget(self, uid: str) -> None:
        ward = self._wards.pop(uid, None)
        if ward is not None:
            ward.deafen()
        self._speaker.forget(uid)
        self._locks.pop(uid, None)

    async def _sweep(self, key: ObjectKey) -> None:
        """A slice of ours whose HostProcess is gone, and that is in no journal."""
        found = self._slices.store.get(key)
        if found is not None and not self._journal.of(key):
            await self._registrar.sweep(found)

    # The start and the end of the agent

    async def _take_stock(self) -> None:
        """Once, when all HostProcesses are known and before any is looked at."""
        await self._started.wait()
        wanted = {obj.meta.uid for obj in self._store.list() if not obj.meta.terminating}
        entries = self._journal.entries()
        own = {entry.uid for entry in entries}
        running = await self._means.blocking(process.owned, self._means.settings.data)
        found = restart.sort(entries, wanted, running)
        if entries or found.stray:
            _log.info("found", adopted=len(found.adopted), to_stop=len(found.stopped), stray=len(found.stray))
        until = monotonic() + self._pace.grace
        for uid in found.stray:
            with contextlib.suppress(StillRunning):
                await process.end(self._journal.mark(uid), ProcessId(0, ""), lambda: until)
        with contextlib.suppress(OSError):
            await self._means.keeping.sweep({obj.meta.uid for obj in self._store.list()} | own)
            self._starter.sweep_logs([*map(self._starter.log_of, self._store.list()), *(Path(e.log) for e in entries)])
        self._swept.set()
        for key in {entry.key for entry in entries} | {each.key for each in self._slices.store.list()}:
            self.controller.queue.add(key)

    async def _ease(self) -> None:
        await self._swept.wait()
        await ease(
            self._means.pressure,
            self._host,
            self._journal,
            self._wards,
            self._store,
            self._events,
            self._tally,
            self.controller.queue.add,
            self._means.settings,
            self._pace.pressure,
        )

    async def shutdown(self) -> list[str]:
        """Take everything down, as far as it can be proven; says what could not be.

        Requests that are under way have the time that their process gives them, unless `hurry` is called. The
        HostProcesses stay, and say so; the next agent starts them again.
        """
        self._stopping = self._host.stopping = True
        with contextlib.suppress(ApiError):
            await self._host.publish()
        unproven = await asyncio.gather(*(self._shut(entry) for entry in self._journal.entries()))
        return [each for each in unproven if each]

    async def _shut(self, entry: Entry) -> str:
        """Until it is down, or until the API has not answered for too long; says what is not proven then."""
        give_up: float | None = None
        while True:
            async with self._locks[entry.uid]:
                current = self._journal.get(entry.uid)
                if current is None:
                    await self._say_stopped(entry)
                    return ""
                progress = await self._down(current, Why.SHUTDOWN)
            if progress.done:
                continue
            if progress.phase > Phase.DRAIN:
                give_up = give_up or monotonic() + self._pace.leave
                if monotonic() >= give_up:
                    return f"{entry.key}: {progress.text}"
            await asyncio.sleep(min(progress.wait, 0.5))

    async def _say_stopped(self, entry: Entry) -> None:
        obj = self._store.get(entry.key)
        if obj is not None and _is(obj, entry.uid) and not obj.meta.terminating:
            message = "The agent of its host has stopped. It starts again with the agent."
            with contextlib.suppress(ApiError):
                await self._speaker.say(obj, Said(process_status.PENDING, "AgentStopped", message))


def _is(obj: Object | None, uid: str) -> bool:
    return obj is not None and obj.meta.uid == uid


def _spec(obj: Object) -> ProcessSpec | Said:
    try:
        return ProcessSpec.read(obj.get("spec"))
    except InvalidField as error:
        return Said(process_status.FAILED, "InvalidSpec", f"{error.below('spec')} cannot be used: {error.reason}.")
