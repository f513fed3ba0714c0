"""The controller of Models: fetches their weights, or reports precisely why it cannot.

- Deletion comes before everything else: nothing that is wrong with a Model blocks it. A Model that an endpoint uses
  waits; then its files are removed, and an Event names them.
- Fetches run beside the reconciles (`models.attempts`). The outcome of the last attempt decides the status
  (`model.status`), which is written only when a reader would see something new.
- A permanent error (a missing file, a wrong checksum) is checked again every `RECHECK_SECONDS`, without an error of the
  reconcile and without a write. A transient one (a time-out) is retried with exponential backoff.
"""

import asyncio
from typing import Self

import structlog

from pilotage.api.names import ENDPOINTS, MODEL_FINALIZER, MODELS
from pilotage.controllers.model.fetch_request import left_to_pods, request_of, retains
from pilotage.controllers.model.status import (
    FAILED,
    FETCHING,
    READY,
    Asking,
    DesiredModelStatus,
    FetchState,
    ModelCondition,
    changes,
    deletion_changes,
    files_message,
    in_use,
    is_news,
    named_file,
    not_removed,
    status_of,
)
from pilotage.controllers.model.users import models_of, users_of
from pilotage.kube import Absent, Json, Object, ObjectKey, merge_patch, without_finalizer
from pilotage.models import FetchRequest, Kept, PermanentError, Problem, TransientError
from pilotage.models.attempts import RECHECK_SECONDS, Attempt, Attempts, Fetching
from pilotage.models.credentials import read_credentials
from pilotage.models.fetch import Progress
from pilotage.models.store import ModelStore
from pilotage.runtime.clock import monotonic, utc_now
from pilotage.runtime.controller import Context
from pilotage.runtime.informer import Informer
from pilotage.runtime.instruments import Counters, Levels
from pilotage.runtime.manager import Manager
from pilotage.runtime.types import Reconcile, Result

_log = structlog.get_logger(__name__)

NAME = "models"
WORKERS = 4


class Models:
    """The controller. Create it before the manager runs, and use it with ``async with`` around `Manager.run`."""

    def __init__(
        self, manager: Manager, weights: ModelStore, *, by_pods: bool = False, protect: bool = True, namespace: str = ""
    ) -> None:
        """`by_pods`: pods fetch, not the operator. `protect`: a Model that a ServingEndpoint uses is not deleted."""
        self._weights = weights
        self._by_pods = by_pods
        self._endpoints: Informer | None = manager.informer(ENDPOINTS, namespace=namespace) if protect else None
        self._started = manager.started
        self._swept = asyncio.Event()
        self._sweeping: asyncio.Task[None] | None = None
        self._known: dict[ObjectKey, str] = {}
        """Uids of the Models that were seen: the files of one whose finalizer was stripped are found by it."""
        self._phases: dict[ObjectKey, str] = {}
        to = manager.metrics.registry
        self._checks = Counters("pilotage_model_checks", "Checks of sources by outcome", ["result"], to)
        self._bytes = Counters("pilotage_model_fetched_bytes", "Bytes of models that were fetched", [], to)
        self._levels = Levels("pilotage_models", "Models by phase", ["phase"], to)
        self._attempts: Attempts[FetchRequest] = Attempts(self._look, manager.rng)
        watches = [(self._endpoints, models_of)] if self._endpoints is not None else []
        informer = manager.informer(MODELS, namespace=namespace)
        self.controller = manager.add(NAME, informer, self._make, workers=WORKERS, watches=watches)

    async def __aenter__(self) -> Self:
        self._sweeping = asyncio.create_task(self._sweep(), name="sweep the cache of models")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.wait({self._sweeping})
        await self._attempts.close()

    def _make(self, context: Context) -> Reconcile:
        self._client, self._store, self._events = context.client, context.store, context.events
        return self.reconcile

    # One Model

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Reconcile one Model."""
        await self._swept.wait()
        model = self._store.get(key)
        await self._let_go_of_vanished(key, model)
        if model is None:
            self._count(key, "")
            return None
        if model.meta.terminating:
            return await self._leave(model)
        model = await self._hold(model)
        self._known[key] = model.meta.uid
        request = request_of(model)
        if isinstance(request, PermanentError):
            await self._attempts.drop(model.meta.uid)
            await self._say(model, request)
            return Result(requeue_after=RECHECK_SECONDS)
        if (pods := left_to_pods(request, everything=self._by_pods)) is not None:
            await self._attempts.drop(model.meta.uid)
            await self._let_go_of_former(model, None, "")
            await self._say(model, pods)
            return None
        return await self._follow(model, request)

    async def _follow(self, model: Object, request: FetchRequest) -> Result | None:
        """Begin an attempt where one is due; report the outcome of the last one, or the progress of this one."""
        attempt = self._attempts.get(request.user)
        if (
            attempt is None
            or attempt.request != request
            or (attempt.outcome is not None and attempt.due <= monotonic())
        ):
            await self._attempts.begin(request.user, request, lambda: self.controller.queue.add(model.key))
            return None
        if attempt.outcome is None:
            if (state := _underway(model, attempt)) is not None:
                await self._say(model, state)
            return None
        if isinstance(attempt.outcome, Kept):
            # Only now: until the new file was there, the old one may have been in use.
            await self._let_go_of_former(model, request, attempt.outcome.path)
        await self._say(model, attempt.outcome, attempt.shown)
        return Result(requeue_after=max(0.0, attempt.due - monotonic()))

    async def _look(self, request: FetchRequest, progress: Progress) -> Kept:
        """The work of an attempt."""
        before: int | None = None

        def count(done: int, total: int | None) -> None:
            nonlocal before
            self._bytes.labels().value += max(0, done - (done if before is None else before))
            before = done
            progress(done, total)

        result = "Cancelled"
        try:
            credentials = await read_credentials(self._client, request.namespace, request.secret)
            kept = await self._weights.keep(request, credentials, count)
        except Problem as problem:
            result = problem.reason.value
            raise
        else:
            result = READY
            return kept
        finally:
            self._checks.labels(result).value += 1

    async def _hold(self, model: Object) -> Object:
        """Add the finalizer, before anything is fetched that would have to be removed again."""
        if MODEL_FINALIZER in model.meta.finalizers:
            return model
        finalizers = [*model.meta.finalizers, MODEL_FINALIZER]
        patch = merge_patch({"metadata": {"finalizers": finalizers}}, resource_version=model.meta.resource_version)
        return await self._client.patch(MODELS, model.key, patch)

    # Deletion

    async def _leave(self, model: Object) -> Result | None:
        await self._attempts.drop(model.meta.uid)
        if MODEL_FINALIZER not in model.meta.finalizers:
            return None
        if users := await self._users(model.key):
            await self._say_why_it_stays(model, in_use(users))
            return None  # an endpoint that changes wakes it
        try:
            await self._release(model, model.meta.uid, retain=retains(model))
        except OSError as error:
            why = f"{error.filename or 'A cached file'} cannot be removed: {error.strerror}"
            await self._say_why_it_stays(model, not_removed(why))
            return Result(requeue_after=RECHECK_SECONDS)
        patch = without_finalizer(model, MODEL_FINALIZER)
        if patch is not None:
            try:
                await self._client.patch(MODELS, model.key, patch)
            except Absent:
                _log.debug("gone already")
        self._known.pop(model.key, None)
        return None

    async def _users(self, key: ObjectKey) -> list[str]:
        """The endpoints that use a Model: by the cache, or by a fresh read, which alone proves that there are none."""
        if self._endpoints is None:
            return []
        return users_of(key, self._endpoints.store.list(key.namespace)) or users_of(
            key, (await self._client.list(ENDPOINTS, key.namespace)).items
        )

    async def _say_why_it_stays(self, model: Object, said: ModelCondition) -> None:
        old = _status(model)
        patch = deletion_changes(old, said, model.meta.generation, utc_now())
        self._count(model.key, "Deleting")
        if patch is not None:
            await self._write(model, patch)
            self._events.warning(model, said.reason, said.message)

    async def _let_go_of_former(self, model: Object, request: FetchRequest | None, path: str) -> None:
        """Remove the files of an earlier spec, unless the status is about the present one already."""
        status = _status(model)
        if status.get("observedGeneration") == model.meta.generation and (status.get("path") or "") == path:
            return
        try:
            await self._release(model, model.meta.uid, but=request)
        except OSError as error:
            _log.warning("a former file of a Model stays until the Model is deleted", error=str(error))

    async def _let_go_of_vanished(self, key: ObjectKey, model: Object | None) -> None:
        """Remove the files of a Model that vanished: its finalizer was stripped by hand."""
        uid = self._known.get(key)
        if uid is None or (model is not None and model.meta.uid == uid):
            return
        await self._attempts.drop(uid)
        try:
            await self._release(None, uid)
        except OSError as error:
            _log.warning("files of a Model that is gone stay until the next start", error=str(error))
        del self._known[key]

    async def _release(
        self, model: Object | None, uid: str, *, retain: bool | None = None, but: FetchRequest | None = None
    ) -> None:
        """Release its cached files, `but` those of one request, and report them."""
        told = await self._weights.release(uid, retain=retain, but=but)
        if not told:
            return
        removed = [file for file in told if not file.kept_for]
        _log.info(
            "model files", removed=[*map(named_file, removed)], kept=[file.path for file in told if file.kept_for]
        )
        if model is not None:
            reason = "CacheRemoved" if removed else "CacheKept"
            self._events.normal(model, reason, files_message(told))

    # Status and Events

    async def _say(self, model: Object, state: FetchState, progress: Fetching | None = None) -> None:
        status, old = status_of(state, progress), _status(model)
        self._count(model.key, status.phase)
        patch = changes(old, status, model.meta.generation, utc_now())
        if patch is None:
            return
        await self._write(model, patch)
        if is_news(old, status):
            self._note(model, status, state)

    def _note(self, model: Object, status: DesiredModelStatus, state: FetchState) -> None:
        said = status.available
        if status.phase == FAILED or isinstance(state, TransientError):
            self._events.warning(model, said.reason, said.message)
        elif status.phase in (READY, FETCHING):
            self._events.normal(model, said.reason, said.message)

    async def _write(self, model: Object, status: Json) -> None:
        patch = merge_patch({"status": status}, resource_version=model.meta.resource_version)
        try:
            await self._client.patch(MODELS, model.key, patch, subresource="status")
        except Absent:
            _log.debug("gone already")

    def _count(self, key: ObjectKey, phase: str) -> None:
        """Update the metric `pilotage_models`."""
        before = self._phases.pop(key, "")
        if before:
            self._levels.labels(before).value -= 1
        if phase:
            self._phases[key] = phase
            self._levels.labels(phase).value += 1

    async def _sweep(self) -> None:
        """Remove files that belong to no Model: once, when all Models are known and before any is reconciled."""
        await self._started.wait()
        try:
            told = await self._weights.sweep({model.meta.uid for model in self._store.list()})
            if told:
                _log.info("model files without a Model", removed=[*map(named_file, told)])
        except OSError as error:
            _log.warning("the cache of models cannot be swept", error=str(error))
        finally:
            self._swept.set()


def _underway(model: Object, attempt: Attempt[FetchRequest]) -> FetchState | None:
    """The state of an attempt that has not ended; None where the status is still true."""
    if attempt.last is not None and attempt.shown is not None:
        return attempt.shown
    is_new = model.get("status", "observedGeneration") != model.meta.generation
    return Asking() if attempt.slow and is_new else None


def _status(model: Object) -> Json:
    status = model.get("status")
    return status if isinstance(status, dict) else {}
