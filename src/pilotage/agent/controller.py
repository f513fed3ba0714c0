"""The controller of an agent: each HostProcess of this host, from its placement here until nothing of it is left.

- A deletion comes before everything else (`removal`).
- A process that should run is reconciled step by step (`reconcile_running`); each step says when the next is due.
- An error of the API means "unknown". It stops no server and no probe: what was last wanted still is.
- The status (`status_writer`) is written only when a reader would see something new.
"""

import asyncio
import collections
import contextlib
import sqlite3
from pathlib import Path
from typing import NamedTuple, Self

import structlog

from pilotage.agent import process_status, recovery
from pilotage.agent.eviction import Evictor
from pilotage.agent.health import Prober
from pilotage.agent.host import OwnHostController
from pilotage.agent.intervals import Intervals
from pilotage.agent.journal import AgentJournal, JournalEntry, LifecycleState
from pilotage.agent.launch import process
from pilotage.agent.launch.ports import Ports
from pilotage.agent.memory import MemoryGauge
from pilotage.agent.metrics import AgentMetrics
from pilotage.agent.permission import LaunchRules
from pilotage.agent.pressure import MemoryPressure, PressureLevel
from pilotage.agent.process_state import ProcessState
from pilotage.agent.process_status import DesiredStatus
from pilotage.agent.process_stop import ProcessStop
from pilotage.agent.reconcile_running import Runner
from pilotage.agent.registration import Registrar
from pilotage.agent.removal import Removal
from pilotage.agent.settings import AgentSettings
from pilotage.agent.starter import Starter
from pilotage.agent.status_writer import StatusWriter
from pilotage.api.base import InvalidField
from pilotage.api.host import ProcessSpec
from pilotage.api.names import LABEL_HOST, PROCESS_FINALIZER, PROCESSES
from pilotage.kube import Absent, ApiError, Object, ObjectKey, merge_patch
from pilotage.models.blocking import Blocking
from pilotage.models.store import ModelStore
from pilotage.runtime.controller import Context
from pilotage.runtime.manager import Manager
from pilotage.runtime.types import Reconcile, Result
from pilotage.serving.resources import SLICES

_log = structlog.get_logger(__name__)

NAME = "agent"
WORKERS = 64
"""A probe may wait for its server for a while; an idle worker costs nothing."""
UNKNOWN_SECONDS = 2.0
"""Delay until the next reconcile, when the API did not answer."""


class AgentDependencies(NamedTuple):
    """Dependencies of the controller."""

    settings: AgentSettings
    journal: AgentJournal
    models: ModelStore
    prober: Prober
    pressure: MemoryPressure
    ports: Ports
    gauge: MemoryGauge
    address: str
    api_port: int
    """The port of an API server on this machine; 0 if it is elsewhere."""
    intervals: Intervals
    blocking: Blocking


class AgentController:
    """Made before the manager runs; use it with ``async with`` around `Manager.run`."""

    def __init__(self, manager: Manager, dependencies: AgentDependencies, host: OwnHostController) -> None:
        self._dependencies = dependencies
        self._name = dependencies.settings.name
        self._journal = dependencies.journal
        self._intervals = dependencies.intervals
        self._host = host
        self._started = manager.started
        self._states: dict[str, ProcessState] = {}
        self._locks: collections.defaultdict[str, asyncio.Lock] = collections.defaultdict(asyncio.Lock)
        self._recovered = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._metrics = AgentMetrics(manager.metrics.registry)
        label = f"{LABEL_HOST}={self._name}"
        self._slices = manager.informer(SLICES, labels=label)
        watches = [(self._slices, lambda obj: (obj.key,))]
        processes = manager.informer(PROCESSES, labels=label)
        self.controller = manager.add(NAME, processes, self._make, workers=WORKERS, watches=watches)
        host.processes = lambda: sum(entry.state is LifecycleState.RUNNING for entry in self._journal.entries())
        host.memory = lambda: (self._starter.total(), self._starter.free())

    def _make(self, context: Context) -> Reconcile:
        settings, journal, models, prober, pressure, ports, gauge, address, api_port, intervals, _ = self._dependencies
        client, self._store = context.client, context.store
        self._client = client
        self._status = StatusWriter(client, context.events, self._metrics, address)
        self._registrar = Registrar(client, self._slices.store, journal, self._name, address, self._host.require_lease)
        self._process_stop = ProcessStop(journal, self._registrar, prober, intervals, self._metrics)
        self._starter = Starter(
            settings,
            journal,
            models,
            ports,
            intervals,
            gauge=gauge,
            rng=context.rng,
            client=client,
            rules=lambda: LaunchRules.of(settings, self._host.allowed_namespaces, api_port),
        )
        self._runner = Runner(
            journal, self._starter, self._registrar, prober, self._process_stop, intervals, self._metrics
        )
        self._removal = Removal(
            client,
            self._store,
            journal,
            models,
            self._starter,
            self._process_stop,
            self._status,
            self._host,
            self._states,
            self._locks,
        )
        self._evictor = Evictor(
            pressure, self._host, journal, self._states, self._store, context.events, self._metrics, settings
        )
        return self.reconcile

    async def __aenter__(self) -> Self:
        work = (self._recover(), self._evict(), self._flush_journal())
        self._tasks = [asyncio.create_task(each) for each in work]
        return self

    async def fails(self) -> None:
        """Wait until a background task has failed, which is a bug, and raise its error."""
        await asyncio.gather(*self._tasks)

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._starter.close()
        for state in self._states.values():
            state.stop_watching()

    @property
    def hurried(self) -> bool:
        """Whether requests are not waited for any more."""
        return self._process_stop.hurry

    def hurry(self) -> None:
        """Do not wait for requests any more."""
        self._process_stop.hurry = True

    # One HostProcess

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Reconcile one key. It never raises an ApiError: the next probe must not wait for the API."""
        await self._recovered.wait()
        obj = self._store.get(key)
        try:
            waits = [await self._former(entry) for entry in self._journal.of(key) if not _is(obj, entry.uid)]
            if obj is None:
                self._metrics.show(key, "")
                await self._sweep(key)
            elif not self._stopping or obj.meta.terminating:
                async with self._locks[obj.meta.uid]:
                    waits.append(await self._reconcile(obj))
        except (ApiError, OSError, sqlite3.Error) as error:
            _log.warning("reconcile failed and is retried", process=str(key), error=str(error))
            return Result(requeue_after=UNKNOWN_SECONDS)
        due = [wait for wait in waits if wait is not None]
        return Result(requeue_after=min(due)) if due else None

    async def _reconcile(self, obj: Object) -> float | None:
        """One step for a HostProcess that exists; its lock is held. The seconds until the next."""
        restarts = obj.get("status", "restarts", default=0) or 0
        state = self._states.setdefault(obj.meta.uid, ProcessState(restarts=restarts))
        if obj.meta.terminating:
            return await self._removal.deleted(obj)
        if obj.get("spec", "host") != self._name:
            return None  # labelled by mistake; the operator writes both
        obj = await self._hold(obj)
        spec = _spec(obj)
        if isinstance(spec, DesiredStatus):
            await self._status.write(obj, spec)
            return None
        outcome = await self._runner.run(
            obj, spec, state, lambda: self.controller.queue.add(obj.key), self._start_blocked()
        )
        if outcome.status is not None:
            if obj.get("status", "memoryBytes", default=None) is None and outcome.status.entry is not None:
                with contextlib.suppress(ApiError):  # the Host's status is written again later
                    await self._host.publish()  # less is free, before a process says what it takes of it
            await self._status.write(obj, outcome.status, state.restarts)
        return outcome.seconds

    async def _hold(self, obj: Object) -> Object:
        """Add the finalizer, before anything runs that would have to be ended."""
        if PROCESS_FINALIZER in obj.meta.finalizers:
            return obj
        finalizers = [*obj.meta.finalizers, PROCESS_FINALIZER]
        patch = merge_patch({"metadata": {"finalizers": finalizers}}, resource_version=obj.meta.resource_version)
        return await self._client.patch(PROCESSES, obj.key, patch)

    def _start_blocked(self) -> str:
        """Why nothing is started now; empty if it may be."""
        pressed = self._dependencies.pressure.level > PressureLevel.NORMAL
        return "This host is short of memory; it starts when that is over." if pressed else ""

    async def _former(self, entry: JournalEntry) -> float | None:
        """An entry whose HostProcess the cache does not have: gone only if a fresh read says so."""
        async with self._locks[entry.uid]:
            current = self._journal.get(entry.uid)
            if current is None:
                return None
            found: Object | None = None
            with contextlib.suppress(Absent):
                found = await self._client.get(PROCESSES, entry.key)
            if found is not None and _is(found, entry.uid) and found.get("spec", "host") == self._name:
                _log.warning("a HostProcess has lost its label; it still runs", process=str(entry.key))
                return await self._reconcile(found)
            return await self._removal.vanished(current)

    async def _sweep(self, key: ObjectKey) -> None:
        """Delete a slice of ours whose HostProcess is gone and that is in no journal."""
        found = self._slices.store.get(key)
        if found is not None and not self._journal.of(key):
            await self._registrar.sweep(found)

    # The start and the end of the agent

    async def _recover(self) -> None:
        """Once, when all HostProcesses are known and before any is reconciled."""
        await self._started.wait()
        processes = self._store.list()
        wanted = {obj.meta.uid for obj in processes if not obj.meta.terminating}
        entries = self._journal.entries()
        running = await self._dependencies.blocking(process.owned, self._dependencies.settings.data)
        recovered = recovery.classify(entries, wanted, running)
        recovery.log(recovered)
        await recovery.end_stray(self._journal, recovered.stray, self._intervals.grace)
        with contextlib.suppress(OSError):
            known = {obj.meta.uid for obj in self._store.list()} | {entry.uid for entry in entries}
            await self._dependencies.models.sweep(known)
            used = [*map(self._starter.log_of, self._store.list()), *(Path(entry.log) for entry in entries)]
            self._starter.sweep_logs(used)
        self._recovered.set()
        for key in {entry.key for entry in entries} | {each.key for each in self._slices.store.list()}:
            self.controller.queue.add(key)

    async def _evict(self) -> None:
        await self._recovered.wait()
        await self._evictor.run(self.controller.queue.add, self._intervals.pressure)

    async def _flush_journal(self) -> None:
        """Write what a full disk has kept out of the journal, once there is room again."""
        while True:
            await asyncio.sleep(self._intervals.service)
            self._journal.flush()

    async def shutdown(self) -> list[str]:
        """Stop every process, as far as it can be proven; returns what could not be.

        The HostProcesses stay, and their status says so; the next agent starts them again. See `Removal.shut_down`.
        """
        self._stopping = self._host.stopping = True
        with contextlib.suppress(ApiError):
            await self._host.publish()
        entries = self._journal.entries()
        unproven = await asyncio.gather(
            *(self._removal.shut_down(entry, self._intervals.shutdown) for entry in entries)
        )
        return [each for each in unproven if each]


def _is(obj: Object | None, uid: str) -> bool:
    return obj is not None and obj.meta.uid == uid


def _spec(obj: Object) -> ProcessSpec | DesiredStatus:
    try:
        return ProcessSpec.read(obj.get("spec"))
    except InvalidField as error:
        message = f"{error.below('spec')} cannot be used: {error.reason}."
        return DesiredStatus(process_status.FAILED, "InvalidSpec", message)
