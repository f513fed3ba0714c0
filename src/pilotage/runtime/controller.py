"""A controller: one queue of keys, the workers that reconcile them, and what becomes of each outcome.

`pilotage.runtime.types` states the contract with `Reconcile`. The loop is client-go's; what is added is the terminal
error (one condition, one Event, silence), and that a controller's own writes do not wake it (`writes`).
"""

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import structlog

from pilotage.kube import (
    Absent,
    ApiError,
    Client,
    Conflict,
    KindNotServed,
    Object,
    ObjectKey,
    Resource,
    Throttled,
    merge_patch,
)
from pilotage.runtime.clock import utc_now
from pilotage.runtime.conditions import find_condition, set_condition
from pilotage.runtime.events import Recorder
from pilotage.runtime.informer import Change, Informer
from pilotage.runtime.leader import LeaseLost
from pilotage.runtime.metrics import Metrics, QueueMetrics
from pilotage.runtime.queue import Queue, ShutDown
from pilotage.runtime.store import Store
from pilotage.runtime.types import Reconcile, Reconciling, Result, TerminalError, reconciling
from pilotage.runtime.writes import OwnWrites

_log = structlog.get_logger(__name__)

STALLED = "Stalled"
"""The condition of a terminal error, as kstatus knows it. It belongs to this module: no reconcile should write it."""

INITIAL_PRIORITY = -100
"""Priority of objects that existed at the start: they wait for those that change now, as in controller-runtime."""
NEW_PRIORITY = -10
"""Priority of objects that were just created: what has begun is finished first, or a thousand begin and none ends."""
DELETED_PRIORITY = 10
"""Priority of objects that are being deleted: somebody waits for that, and it frees what others need."""


class Context(NamedTuple):
    """Dependencies of a reconcile: a client whose writes are its controller's, its cache, Events, randomness."""

    client: Client
    store: Store
    events: Recorder
    rng: random.Random


def owner_keys(resource: Resource) -> Callable[[Object], Iterable[ObjectKey]]:
    """A mapper: from an object to its controlling owner, if that is of this resource."""

    def keys(obj: Object) -> Iterable[ObjectKey]:
        owner = obj.meta.controller
        if owner is not None and owner.kind == resource.kind and owner.api_version == resource.api_version:
            yield ObjectKey(obj.meta.namespace if resource.namespaced else "", owner.name)

    return keys


class Controller:
    """Reconciles the objects of one informer; woken by them, and by whatever `watch` adds."""

    def __init__(
        self,
        name: str,
        informer: Informer,
        make: Callable[[Context], Reconcile],
        *,
        client: Client,
        events: Recorder,
        metrics: Metrics,
        rng: random.Random,
        workers: int,
        informers: Callable[[Resource], Iterable[Informer]],
        may_write: Callable[[], None],
    ) -> None:
        """`informers` finds the caches of a resource, for read-your-writes; `may_write` raises without the Lease."""
        self.name = name
        self.informer = informer
        self.queue: Queue[ObjectKey] = Queue(observer=QueueMetrics(metrics, name))
        self._writes = OwnWrites(informer.resource, self._wake, informers=informers, may_write=may_write)
        self._client = client.guarded_by(self._writes, name=name)
        self._events = events
        self._ended = {
            result: metrics.reconciles.labels(name, result)
            for result in ("success", "requeue_after", "error", "terminal_error")
        }
        self._rng = rng
        self._workers = workers
        self._watches: list[tuple[Informer, Callable[[Object], Iterable[ObjectKey]]]] = []
        self._stopping = False
        self._reconcile = make(Context(self._client, informer.store, events, rng))

    def watch(self, informer: Informer, keys: Callable[[Object], Iterable[ObjectKey]]) -> None:
        """Wake for changes of another kind too: `keys` maps an object, as it was and as it is, to keys of ours."""
        self._watches.append((informer, keys))

    async def run(self) -> None:
        """Work until `stop`; returns when the reconciles that were running have ended."""
        self.informer.add_handler(self._writes.on_change)
        for informer, keys in self._watches:
            informer.add_handler(self._mapped(keys))
        async with asyncio.TaskGroup() as workers:
            for number in range(self._workers):
                workers.create_task(self._work(), name=f"{self.name}-{number}")

    def stop(self) -> None:
        """Begin no new reconcile."""
        self._stopping = True
        self.queue.shut_down()

    def _wake(self, change: Change) -> None:
        self.queue.add(change.object.key, _priority(change))

    def _mapped(self, keys: Callable[[Object], Iterable[ObjectKey]]) -> Callable[[Change], None]:
        def wake(change: Change) -> None:
            priority = INITIAL_PRIORITY if change.initial else 0
            for obj in (change.old, change.new):
                for key in keys(obj) if obj is not None else ():
                    self.queue.add(key, priority)

        return wake

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except ShutDown:
                return
            try:
                if not self._stopping:
                    await self._once(key)
            finally:
                self.queue.done(key)

    async def _once(self, key: ObjectKey) -> None:
        """One reconcile, and what follows from its outcome. Nothing but cancellation escapes."""
        reconciling.set(Reconciling(self.name, key, self._rng.getrandbits(64)))
        try:
            try:
                result = await self._reconcile(key)
            except TerminalError as error:
                await self._stall(key, error)
                self.queue.forget(key)
                self._ended["terminal_error"].value += 1
            else:
                await self._unstall(key)
                self._finished(key, result)
        except LeaseLost as error:
            _log.warning("stopped", why=str(error))
        except Exception as error:  # noqa: BLE001 - any bug of a reconcile is retried, seen and counted
            self._failed(key, error)

    def _finished(self, key: ObjectKey, result: Result | None) -> None:
        self.queue.forget(key)
        if result is not None and result.requeue_after is not None:
            self.queue.add_after(key, result.requeue_after)
            self._ended["requeue_after"].value += 1
        else:
            self._ended["success"].value += 1

    def _failed(self, key: ObjectKey, error: Exception) -> None:
        self._ended["error"].value += 1
        if isinstance(error, Conflict):
            _log.debug("read again", error=str(error))  # the ordinary price of optimistic locking
        elif isinstance(error, ApiError):
            _log.warning("reconcile failed", error=str(error), error_class=error.error_class.value)
        else:
            _log.exception("reconcile failed", error=repr(error))
        asked = error.retry_after if isinstance(error, Throttled) else None
        self.queue.add_rate_limited(key, at_least=asked or 0.0)

    async def _stall(self, key: ObjectKey, error: TerminalError) -> None:
        """Say it once: the condition, and an Event only when the condition was new."""
        _log.warning("terminal error", reason=error.reason, error=error.message)
        obj = self.informer.store.get(key)
        if obj is not None and await self._set_stalled(obj, status=True, reason=error.reason, message=error.message):
            self._events.warning(obj, error.reason, error.message)

    async def _unstall(self, key: ObjectKey) -> None:
        obj = self.informer.store.get(key)
        if obj is None or b'"Stalled"' not in obj.raw:  # most objects: not even decoded
            return
        stalled = find_condition(_conditions(obj), STALLED)
        if stalled is not None and stalled.get("status") == "True":
            await self._set_stalled(obj, status=False, reason="Reconciled", message="")

    async def _set_stalled(self, obj: Object, *, status: bool, reason: str, message: str) -> bool:
        conditions = set_condition(
            _conditions(obj),
            STALLED,
            status=status,
            reason=reason,
            message=message,
            generation=obj.meta.generation,
            now=utc_now(),
        )
        if conditions is None:
            return False
        patch = merge_patch({"status": {"conditions": conditions}}, resource_version=obj.meta.resource_version)
        try:
            await self._client.patch(self.informer.resource, obj.key, patch, subresource="status")
        except Absent:
            return False
        except KindNotServed:
            _log.warning("the condition cannot be written: no status subresource", resource=str(self.informer.resource))
        return True


def _priority(change: Change) -> int:
    """The priority of an object after a change of its own."""
    if change.object.meta.terminating:
        return DELETED_PRIORITY
    if change.initial:
        return INITIAL_PRIORITY
    return NEW_PRIORITY if change.old is None else 0


def _conditions(obj: Object) -> list[dict[str, Any]]:
    conditions = obj.get("status", "conditions")
    return conditions if isinstance(conditions, list) else []
