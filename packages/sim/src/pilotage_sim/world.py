"""A world: harbor in memory, in virtual time, with clients for whoever lives in it, and a trace of all writes.

Everything that is drawn by lot (uids, generated names, how long a request is under way) comes from one seed, so two
worlds of the same seed in which the same programs run have the same trace. A world lives on a virtual loop
(`pilotage_sim.loop`); `Harbor` itself does not know that.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Self

from pilotage.kube import Client
from pilotage.runtime.clock import utc_now
from pilotage_harbor.api import Harbor
from pilotage_harbor.apimachinery.calls import ServerResponse, whole
from pilotage_harbor.apimachinery.users import AUTHENTICATED, MASTERS, UserInfo
from pilotage_harbor.core import Core
from pilotage_harbor.core.objects import from_entry
from pilotage_sim.initial_state import InitialState
from pilotage_sim.trace import Trace
from pilotage_sim.transport import DirectTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pilotage.kube import Json, ObjectKey, Resource
    from pilotage_harbor.apimachinery.calls import Call, Stream

LATENCY_SECONDS = (0.0005, 0.005)
"""Latency of one way, in seconds: drawn between these."""

WRITES_MAX = 2000
"""Writes after which a world that should become quiet is given up."""

HEARTBEATS = ("leases.coordination.k8s.io", "events", "events.events.k8s.io")
"""Heartbeats of healthy processes: these writes do not count as a change of the world."""


class NotSettled(Exception):
    """The world is not quiet: writes continue. The message ends with the last lines of the trace."""


class _Observed(Harbor):
    """Harbor, with every write noted, and with those who may answer in its place."""

    def __init__(self, core: Core, trace: Trace) -> None:
        self.trace = trace
        self.interceptors: list[Callable[[Call], ServerResponse | None]] = []
        super().__init__(core)

    async def handle(self, call: Call) -> ServerResponse | Stream:
        """Answer a call, unless an interceptor answers it first."""
        answered = (each(call) for each in self.interceptors)
        answer = next((each for each in answered if each is not None), None) or await whole(await super().handle(call))
        if isinstance(answer, ServerResponse):
            self.trace.record(call, answer)
        return answer


class SimulatedWorld:
    """Harbor, clients and a trace. Use it with ``async with``, on a virtual loop."""

    def __init__(self, seed: int = 0, *, latency: tuple[float, float] = LATENCY_SECONDS) -> None:
        self.seed = seed
        self.rng = random.Random(seed)  # noqa: S311 - chance in a game, no secrets
        self.trace = Trace()
        self.core = Core(InitialState(), now=lambda: utc_now().timestamp(), seed=self.rng.getrandbits(64))
        self.harbor = _Observed(self.core, self.trace)
        self._latency = latency
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self.harbor.start(begun=True)  # `InitialState` has it all
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.harbor.stop()

    # Who lives in it

    def transport(self, user: str, groups: Iterable[str] = (MASTERS,)) -> DirectTransport:
        """A way to harbor for a user; who is in no group but `AUTHENTICATED` may do what RBAC says."""
        rng = random.Random(self.rng.getrandbits(64))  # noqa: S311 - as above
        low, high = self._latency
        latency = (lambda: rng.uniform(low, high)) if high > 0 else None
        return DirectTransport(self.harbor, UserInfo(user, groups=(*groups, AUTHENTICATED)), latency=latency)

    def client(self, user: str, *, namespace: str = "default", groups: Iterable[str] = (MASTERS,)) -> Client:
        """A client for a user, who is also the field manager."""
        return Client(self.transport(user, groups), namespace=namespace, name=user.rpartition(":")[2])

    def live(self, program: asyncio._CoroutineLike[None], name: str) -> asyncio.Task[None]:
        """Let a program run until the world ends. One that fails fails `check`."""
        task = asyncio.get_running_loop().create_task(program, name=name)
        self._tasks.append(task)
        return task

    def check(self) -> None:
        """Raise what a program of `live` has failed with, if one has."""
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def intercept(self, answer: Callable[[Call], ServerResponse | None]) -> Callable[[], None]:
        """Let somebody else answer some calls (None: not this one); returns what ends it."""
        self.harbor.interceptors.append(answer)
        return lambda: self.harbor.interceptors.remove(answer)

    # What is true in it

    def objects(self, resource: Resource, namespace: str = "") -> list[Json]:
        """All objects of a kind as they are stored at this moment, without asking anybody."""
        kind = self.core.registry.kind(resource.group, resource.version, resource.plural)
        if kind is None:
            return []
        return [from_entry(kind, entry) for entry in self.core.store.entries(kind.storage, namespace)]

    def find(self, resource: Resource, key: ObjectKey) -> Json | None:
        """One object, or None."""
        found = self.objects(resource, key.namespace)
        return next((obj for obj in found if obj["metadata"]["name"] == key.name), None)

    def snapshot(self, namespaces: Iterable[str] = ()) -> dict[str, Json]:
        """All objects (of these namespaces, or all), by storage and key; heartbeats are left out."""
        wanted = set(namespaces)
        return {
            f"{storage} {entry.namespace}/{entry.name}": obj
            for storage in sorted(self.core.store.storages())
            if storage not in HEARTBEATS and (kind := self.core.registry.storage(storage)) is not None
            for entry in self.core.store.entries(storage)
            if not wanted or entry.namespace in wanted
            for obj in (from_entry(kind, entry),)
        }

    def version_before(self, storage: str, changes: int, key: str = "") -> int:
        """The version just before the last so many changes of a storage, or of one object in it; 0 if unknown."""
        events = self.core.store.since(storage, self.core.store.compacted)
        if key:
            events = [event for event in events if f"{event.entry.namespace}/{event.entry.name}" == key]
        return events[-changes].version - 1 if len(events) >= changes else 0

    # Waiting

    def last_change(self) -> float:
        """Time of the last write, heartbeats aside."""
        for write in reversed(self.trace.writes):
            if write.applied and write.resource.partition("/")[0] not in HEARTBEATS:
                return write.at
        return 0.0

    async def settle(self, quiet: float = 60.0, limit: float = 3600.0) -> None:
        """Wait until nothing was written for `quiet` seconds; NotSettled if that takes too long."""
        loop = asyncio.get_running_loop()
        began, writes = loop.time(), len(self.trace.writes)
        while loop.time() < (end := max(self.last_change(), began) + quiet):
            written = len(self.trace.writes) - writes
            if loop.time() - began > limit or written > WRITES_MAX:
                tail = "\n".join(self.trace.lines[-20:])
                seconds = loop.time() - began
                raise NotSettled(f"after {seconds:g} s and {written} writes somebody still writes:\n{tail}")
            await asyncio.sleep(min(end - loop.time(), 1.0))
        self.check()

    async def until(self, condition: Callable[[], object], limit: float = 3600.0) -> None:
        """Wait until a condition on the stored objects holds: it is asked after every write, and every second."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit
        while not condition():
            self.check()
            if loop.time() > deadline:
                tail = "\n".join(self.trace.lines[-20:])
                raise NotSettled(f"after {limit:g} s it still is not so:\n{tail}")
            await self._change(1.0)

    async def _change(self, seconds: float) -> None:
        """Wait for the next write, but no longer than that."""
        changed = asyncio.Event()
        stop = self.core.store.listen_to_all(lambda _: changed.set())
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            return
        finally:
            stop()
