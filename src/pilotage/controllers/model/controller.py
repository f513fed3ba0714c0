"""The controller of Models: sees to it that the weights are here, or says precisely why they are not.

- Deletion comes before everything else: whatever is wrong with a Model must not keep it here. A Model that an endpoint
  uses waits; then its files go, and it says which.
- The look at the source goes on beside the reconciles (`model_attempts`). How it ended decides the status
  (`model_status`), which is written only when a reader would see something new.
- What lasts (a missing file, a wrong checksum) is checked again every `RECHECK_SECONDS`, without an error and without a
  write. What passes (a time-out) is tried again with growing pauses.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

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
    in_use,
    is_news,
    named_file,
    not_removed,
    status_of,
    what_became,
)
from pilotage.controllers.model.users import models_of, users_of
from pilotage.kube import Absent, ObjectKey, merge_patch, without_finalizer
from pilotage.models import Kept, PermanentError, Problem, TransientError
from pilotage.models.attempts import RECHECK_SECONDS, Attempt, Attempts, Fetching
from pilotage.models.credentials import read_credentials
from pilotage.runtime import Result, monotonic, utc_now
from pilotage.runtime.instruments import Counters, Levels

if TYPE_CHECKING:
    from pilotage.kube import Json, Object
    from pilotage.models import FetchRequest
    from pilotage.models.fetch import Progress
    from pilotage.models.store import ModelStore
    from pilotage.runtime import Context, Informer, Manager, Reconcile

_log = structlog.get_logger(__name__)

NAME = "models"
WORKERS = 4


class Models:
    """See the module. Made before the manager runs; use it with ``async with`` around `Manager.run`."""

    def __init__(
        self, manager: Manager, keeping: ModelStore, *, by_pods: bool = False, protect: bool = True, namespace: str = ""
    ) -> None:
        """`by_pods`: nothing is fetched here, pods do it. `protect`: what ServingEndpoints use does not go."""
        self._keeping = keeping
        self._by_pods = by_pods
        self._endpoints: Informer | None = manager.informer(ENDPOINTS, namespace=namespace) if protect else None
        self._started = manager.started
        self._swept = asyncio.Event()
        self._sweeping: asyncio.Task[None] | None = None
        self._known: dict[ObjectKey, str] = {}
        """The uids of those that were seen: what is left of one whose finalizer was taken off is found by it."""
        self._phases: dict[ObjectKey, str] = {}
        to = manager.metrics.registry
        self._checks = Counters("pilotage_model_checks", "Looks at sources by how they ended", ["result"], to)
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
        """See `Reconcile`."""
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
        """Begin a look at the source where one is due; say how the last one ended, or how far this one is."""
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
            # Only now: until the new file was here, somebody may have read the old one.
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
            kept = await self._keeping.keep(request, credentials, count)
        except Problem as problem:
            result = problem.reason.value
            raise
        else:
            result = READY
            return kept
        finally:
            self._checks.labels(result).value += 1

    async def _hold(self, model: Object) -> Object:
        """Before anything is fetched that would have to be removed again."""
        if MODEL_FINALIZER in model.meta.finalizers:
            return model
        finalizers = [*model.meta.finalizers, MODEL_FINALIZER]
        patch = merge_patch({"metadata": {"finalizers": finalizers}}, resource_version=model.meta.resource_version)
        return await self._client.patch(MODELS, model.key, patch)

    # Its end

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
        """Who uses it: by the cache, and if that knows nobody, by a fresh read, which alone can prove it."""
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
        """Remove what was fetched for an earlier spec, when the status does not speak of this one yet."""
        status = _status(model)
        if status.get("observedGeneration") == model.meta.generation and (status.get("path") or "") == path:
            return
        try:
            await self._release(model, model.meta.uid, but=request)
        except OSError as error:
            _log.warning("a former file of a Model stays until the Model goes", error=str(error))

    async def _let_go_of_vanished(self, key: ObjectKey, model: Object | None) -> None:
        """Clean up after one that went without us: its finalizer was taken off by hand."""
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
        """Let go of its cached files (`but` those of one request), and say what became of them."""
        told = await self._keeping.release(uid, retain=retain, but=but)
        if not told:
            return
        removed = [file for file in told if not file.kept_for]
        _log.info(
            "model files", removed=[*map(named_file, removed)], kept=[file.path for file in told if file.kept_for]
        )
        if model is not None:
            reason = "CacheRemoved" if removed else "CacheKept"
            self._events.normal(model, reason, what_became(told))

    # What is said

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
        """Keep `pilotage_models` right."""
        before = self._phases.pop(key, "")
        if before:
            self._levels.labels(before).value -= 1
        if phase:
            self._phases[key] = phase
            self._levels.labels(phase).value += 1

    async def _sweep(self) -> None:
        """Once, when all Models are known and before any is looked at: remove what belongs to none of them."""
        await self._started.wait()
        try:
            told = await self._keeping.sweep({model.meta.uid for model in self._store.list()})
            if told:
                _log.info("model files without a Model", removed=[*map(named_file, told)])
        except OSError as error:
            _log.warning("the cache of models cannot be swept", error=str(error))
        finally:
            self._swept.set()


def _underway(model: Object, attempt: Attempt[FetchRequest]) -> FetchState | None:
    """What to say about a look that has not ended; None: what is said already is still true."""
    if attempt.last is not None and attempt.shown is not None:
        return attempt.shown
    is_new = model.get("status", "observedGeneration") != model.meta.generation
    return Asking() if attempt.slow and is_new else None


def _status(model: Object) -> Json:
    status = model.get("status")
    return status if isinstance(status, dict) else {}
