"""The manager: one process's client, caches, controllers, Lease and health server, started and stopped in order.

Start: health server, caches, wait until they are synced, tune the garbage collector, Lease, controllers; a program that
keeps its Lease by itself names what the controllers wait for (`wait_for`). Stop: no new
reconcile, running ones end (bounded), Events are written, the Lease is given up, the rest is cancelled. A Lease that is
lost ends everything at once: from that moment no write of a controller is sent, whatever its reconcile still does.
"""

import asyncio
import contextlib
import random
import socket
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import structlog

from pilotage.kube import Client, Object, ObjectKey, Resource
from pilotage.runtime.controller import Context, Controller
from pilotage.runtime.events import Recorder
from pilotage.runtime.health import HealthServer
from pilotage.runtime.informer import Informer
from pilotage.runtime.leader import Election, Leader, LeaseLost
from pilotage.runtime.metrics import MeteredTransport, Metrics
from pilotage.runtime.process import tune_gc
from pilotage.runtime.types import Reconcile

_log = structlog.get_logger(__name__)

STOP_SECONDS_MAX = 15.0
"""Time for reconciles to end: with that for Events and the Lease, well within the 30 s that a Pod has by default."""

FLUSH_SECONDS_MAX = 5.0


class Address(NamedTuple):
    """Host and port that the health server listens on."""

    host: str = "127.0.0.1"
    port: int = 0


class Manager:
    """Add controllers, then `run`. All randomness comes from `seed`, all time from the loop."""

    def __init__(
        self,
        client: Client,
        *,
        name: str = "pilotage",
        seed: int | None = None,
        election: Election | None = None,
        address: Address | None = None,
        stop_seconds_max: float = STOP_SECONDS_MAX,
    ) -> None:
        """Manager of controllers; without `election` it has no Lease, without `address` no health server."""
        self.metrics = Metrics()
        self.rng = random.Random(seed)  # noqa: S311 - jitter and names, no secrets
        self.client = client.through(lambda transport: MeteredTransport(transport, self.metrics))
        self.started = asyncio.Event()
        self.port = 0
        self._name = name
        self._address = address
        self._stop_seconds_max = stop_seconds_max
        self._leader = Leader(self.client, election, self.rng) if election else None
        self._gated = self.client.guarded_by(_Gate(self._may_write))
        instance = election.identity if election else f"{name}-{socket.gethostname()}"
        self._recorder = Recorder(self._gated, controller=f"pilotage.dev/{name}", instance=instance, rng=self.rng)
        self._informers: dict[tuple[Resource, str, str, str, bool], Informer] = {}
        self._controllers: list[Controller] = []
        self._by_resource: dict[Resource, list[Informer]] = {}
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._awaited: tuple[str, asyncio.Event] | None = None
        self.metrics.events_dropped.set_function(lambda: self._recorder.dropped)
        if election is not None:
            self.metrics.leader.labels(str(election.lease)).set_function(self._is_leader)

    def informer(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        optional: bool = False,
    ) -> Informer:
        """The shared cache of a kind, made at the first call. `optional`: nobody minds if the kind is not served."""
        wanted = (resource, namespace, labels, fields, metadata_only)
        if wanted not in self._informers:
            informer = self._informers[wanted] = Informer(
                self.client,
                resource,
                rng=self.rng,
                namespace=namespace,
                labels=labels,
                fields=fields,
                metadata_only=metadata_only,
                optional=optional,
            )
            caches = self._by_resource.setdefault(resource, [])
            caches.append(informer)
            self.metrics.cached.labels(str(resource)).set_function(lambda: sum(len(each.store) for each in caches))
        informer = self._informers[wanted]
        informer.optional = informer.optional and optional
        return informer

    def add(
        self,
        name: str,
        informer: Informer,
        make: Callable[[Context], Reconcile],
        *,
        workers: int = 1,
        watches: Iterable[tuple[Informer, Callable[[Object], Iterable[ObjectKey]]]] = (),
    ) -> Controller:
        """A controller for the objects of an informer; `watches` wake it too, each with its mapper to keys.

        ValueError for an informer of metadata only: a controller has to know the status that it may write.
        """
        if informer.metadata_only:
            raise ValueError(f"{name}: a controller needs whole objects, not their metadata alone")
        controller = Controller(
            name,
            informer,
            make,
            client=self.client,
            events=self._recorder,
            metrics=self.metrics,
            rng=self.rng,
            workers=workers,
            informers=self._caches_of,
            may_write=self._may_write,
        )
        for watched, keys in watches:
            controller.watch(watched, keys)
        self._controllers.append(controller)
        return controller

    def wait_for(self, event: asyncio.Event, what: str) -> None:
        """Start no controller before an event; until then /readyz says `what` is waited for."""
        self._awaited = what, event

    def stop(self) -> None:
        """Ask `run` to end. The second call does not wait for running reconciles."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def run(self) -> None:
        """Run until `stop`. Raises LeaseLost if the Lease was lost; a bug in one of its own tasks ends it too."""
        health = await self._serve()
        try:
            async with asyncio.TaskGroup() as group:
                background = [group.create_task(informer.run()) for informer in self._informers.values()]
                background.append(group.create_task(self._recorder.run()))
                lost = await self._work()
                for task in background:
                    task.cancel()
        finally:
            if health is not None:
                await health.stop()
        if lost is not None:
            raise lost

    async def _work(self) -> LeaseLost | None:
        """Run from the first sync to the end of the last reconcile; returns how the Lease was lost, if it was."""
        stop = asyncio.create_task(self._stop.wait())
        tasks: set[asyncio.Task[object]] = {stop}
        try:
            ready = asyncio.create_task(self._ready())
            tasks.add(ready)
            await asyncio.wait({ready, stop}, return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                ready.result()
                return await self._control(stop, tasks)
            return None
        finally:
            await _cancel(tasks)
            if self._leader is not None:
                await self._leader.release()

    async def _ready(self) -> None:
        if self._awaited is not None:
            await self._awaited[1].wait()
        for informer in self._informers.values():
            await informer.synced.wait()
        tune_gc()  # now: the caches are loaded, and most of what they hold will stay
        if self._leader is not None:
            await self._leader.acquire()

    async def _control(self, stop: asyncio.Task[Literal[True]], tasks: set[asyncio.Task[object]]) -> LeaseLost | None:
        control = asyncio.create_task(self._run_controllers())
        keep = asyncio.create_task(self._keep_lease())
        tasks |= {control, keep}
        self.started.set()
        await asyncio.wait({control, keep, stop}, return_when=asyncio.FIRST_COMPLETED)
        if stop.done() and not keep.done():
            await self._drain(control, keep)
        if keep.done():
            return keep.result()
        if control.done():
            control.result()
        return None

    async def _run_controllers(self) -> None:
        async with asyncio.TaskGroup() as group:
            for controller in self._controllers:
                group.create_task(controller.run(), name=controller.name)
        await self._stop.wait()

    async def _keep_lease(self) -> LeaseLost | None:
        try:
            await (self._leader.keep() if self._leader is not None else asyncio.Event().wait())
        except LeaseLost as lost:
            return lost
        return None

    async def _drain(self, control: asyncio.Task[None], keep: asyncio.Task[LeaseLost | None]) -> None:
        """Let running reconciles end, as long as the Lease holds and nobody is in a hurry."""
        for controller in self._controllers:
            controller.stop()
        hurry = asyncio.create_task(self._hurry.wait())
        try:
            await asyncio.wait(
                {control, keep, hurry}, timeout=self._stop_seconds_max, return_when=asyncio.FIRST_COMPLETED
            )
            if not control.done():
                _log.warning("reconciles are cut off")
            if keep.done():
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS_MAX):
                    await self._recorder.flush()
        finally:
            await _cancel({hurry})

    async def _serve(self) -> HealthServer | None:
        if self._address is None:
            return None
        from pilotage.runtime.health import HealthServer  # a web server, for those who want one

        health = HealthServer(self.metrics, unready=self._unready)
        await health.start(*self._address)
        self.port = health.port
        return health

    def _unready(self) -> list[str]:
        if self._awaited is not None and not self._awaited[1].is_set():
            return [self._awaited[0]]
        wrong = [f"{i.resource}: {i.problem}" for i in self._informers.values() if i.problem is not None]
        return wrong or [f"{i.resource}: not listed yet" for i in self._informers.values() if not i.synced.is_set()]

    def _is_leader(self) -> int:
        try:
            self._may_write()
        except LeaseLost:
            return 0
        return 1

    def _may_write(self) -> None:
        if self._leader is not None:
            self._leader.check()

    def _caches_of(self, resource: Resource) -> list[Informer]:
        return self._by_resource.get(resource, [])


class _Gate:
    """A write guard that does nothing but ask whether writing is allowed."""

    def __init__(self, may_write: Callable[[], None]) -> None:
        self._may_write = may_write

    def before(self, _resource: Resource, _key: ObjectKey) -> None:
        self._may_write()

    def allowed(self) -> None:
        self._may_write()

    def after(self, _resource: Resource, _key: ObjectKey, _written: Object | None) -> None:
        pass


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
