"""The controller of `Teardown`: the one path by which anything that was made for an endpoint goes.

Its ledger is written into the status before anything is deleted, and the receipt after everything is proven gone. A
finished record stays for a while and then removes itself.

A record acts in its own namespace alone, and on proven parts of its target: who may create one, or write its status,
can do no more with it than that. Only the operator's own namespace has records about others.
"""

import datetime as dt
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import structlog

from pilotage.api.names import ANNOTATION_SEAL, LABEL_ENDPOINT_UID, LABEL_KEPT, TEARDOWN_DONE, TEARDOWNS
from pilotage.api.teardown import Teardown
from pilotage.controllers.caches import Caches, Seen
from pilotage.controllers.proof import Known, of_target, refused
from pilotage.controllers.seals import kept_for
from pilotage.controllers.teardown.foreign_references import ForeignReferences
from pilotage.controllers.teardown.ledger import find_parts, first_ledger, grown_ledger, parts_now, unproven
from pilotage.controllers.teardown.observer import CacheObserver, pods_of
from pilotage.controllers.teardown.progress import ProgressWriter, conditions_of
from pilotage.kube import Absent, ApiError, Foreign, Json, Object, ObjectKey, Propagation, merge_patch
from pilotage.kube.wire import format_time, parse_time
from pilotage.runtime.clock import Ages, utc_now
from pilotage.runtime.conditions import set_condition
from pilotage.runtime.controller import Context
from pilotage.runtime.store import Store
from pilotage.runtime.types import Reconcile, Result, TerminalError
from pilotage.teardown.engine.decision import Decision
from pilotage.teardown.engine.executor import Executor
from pilotage.teardown.engine.observers import POLL_SECONDS, Reader
from pilotage.teardown.engine.receipt import cluster_uid, conclude
from pilotage.teardown.engine.run_state import RunState
from pilotage.teardown.engine.saved import LedgerRefused, check_saved
from pilotage.teardown.planning.ledger import Ledger
from pilotage.teardown.snapshot.fields import counted
from pilotage.traffic.contract import ProxyObserver

_log = structlog.get_logger(__name__)

REFUSED_SECONDS = 30.0
"""Interval at which a refused ledger is checked again: the objects that it names may be gone by then."""
LOOK_SECONDS = 0.25
"""Interval at which a proxy is asked that still has the route."""
READ_SECONDS_MAX = 30.0
POINTERS_MAX = 5
ONE_BY_ONE_MAX = 20
"""A namespace may have a thousand endpoints: a list of all their pods for the proof of a few would be dear."""


class TeardownOptions(NamedTuple):
    """The inputs of the controller."""

    caches: Caches
    proxies: ProxyObserver
    endpoints: Store
    namespace: str
    """The operator's own: records there may be about any namespace."""
    server: str


def teardowns(around: TeardownOptions) -> Callable[[Context], Reconcile]:
    """The factory for `Manager.add`."""

    def make(context: Context) -> Reconcile:
        return TeardownController(context, around).reconcile

    return make


class _Run(NamedTuple):
    """A Teardown that is under way here."""

    executor: Executor
    observer: CacheObserver

    @property
    def state(self) -> RunState:
        return self.executor.state


class TeardownController:
    """Reconciles Teardowns."""

    def __init__(self, context: Context, around: TeardownOptions) -> None:
        caches = around.caches
        self._client = context.client
        self._store = context.store
        self._events = context.events
        self._caches = caches
        self._proxies = around.proxies
        self._endpoints = around.endpoints
        self._home = around.namespace
        self._server = around.server
        self._cluster = ""
        """Its identity, once it was read."""
        self._references = ForeignReferences(context.client, caches)
        self._running: dict[str, _Run] = {}
        self._uids: dict[ObjectKey, str] = {}
        """The uids of those, by their keys."""
        self._progress = ProgressWriter(context.client)
        self._ages = Ages()
        """Ages of finished records: they do not expire because the clock was set."""

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Reconcile one Teardown."""
        record = self._store.get(key)
        if record is None or record.meta.terminating:
            self._forget(self._uids.pop(key, ""))
            return None
        teardown = Teardown.read(record.to_dict())
        target = teardown.spec.target
        if record.meta.namespace not in (target.namespace, self._home):
            raise TerminalError(
                "ForeignTarget",
                f"teardown/{record.meta.name} -n {record.meta.namespace} is about namespace {target.namespace}, and a "
                "Teardown acts in its own namespace only: nothing is touched. Delete it; create one in "
                f"{target.namespace}, or delete the endpoint there.",
            )
        if teardown.status.phase == TEARDOWN_DONE:
            return await self._outlive(record, teardown)
        try:
            await self._caches.seals.unlock(self._client)
            return await self._drive(record, teardown, of_target(target, self._endpoints))
        except ApiError as error:
            await self._progress.blocked(record, error)
            raise

    async def _drive(self, record: Object, teardown: Teardown, whose: Known) -> Result | None:
        run = self._running.get(record.meta.uid)
        if run is None:
            saved = teardown.status.ledger
            if saved is None:
                parts, stays = await find_parts(self._client, self._caches, whose, teardown.spec)
                beside = await self._references.beside(whose.namespace)
                labelled = unproven(self._caches, whose, parts) if teardown.spec.all_parts else []
                remarks = (*_remarks(record, teardown), *stays)
                ledger = first_ledger(teardown.spec, parts, labelled, beside, utc_now(), remarks=remarks)
                record = await self._begin(record, teardown, ledger)
            else:
                try:
                    ledger = await self._proven(whose, _read_back(saved), kept_for(teardown.spec.target.name))
                except LedgerRefused as error:
                    await self._progress.refuse(record, str(error))
                    return Result(requeue_after=REFUSED_SECONDS)
            run = self._running[record.meta.uid] = self._run(teardown, whose, ledger)
            self._uids[record.key] = record.meta.uid
        record = await self._grow(record, teardown, whose, run, [])
        decision = await run.executor.advance()
        while run.observer.uncached:
            record = await self._grow(record, teardown, whose, run, run.observer.uncached)
            decision = await run.executor.advance()
        if not decision.finished:
            pauses = [
                await self._progress.show(record, teardown, run.state, decision),
                _pause(decision, run.state.clock.now()),
            ]
            pauses += [LOOK_SECONDS] if run.observer.awaits_proxies else []
            pauses += [POLL_SECONDS] if run.observer.is_blind else []
            return Result(requeue_after=min(pauses))
        return await self._finish(record, teardown, run, decision)

    def _run(self, teardown: Teardown, whose: Known, ledger: Ledger) -> _Run:
        reader = Reader(self._client, RunState(ledger, hasten=False))
        pods = pods_of(teardown.spec, ledger)
        leaving = teardown.spec.all_parts
        observer = CacheObserver(reader, self._caches, self._proxies, whose, pods=pods, leaving=leaving)
        return _Run(Executor(observer, one_by_one_max=ONE_BY_ONE_MAX), observer)

    async def _proven(self, whose: Known, ledger: Ledger, kept: str) -> Ledger:
        """A ledger that somebody else may have written. LedgerRefused if something that goes by it is not proven.

        What was to be kept and is not proven is left out, so that nothing is done to it. It may have been proven by an
        owner that goes, and from which this teardown has detached it. `kept`: see `refused`.
        """
        check_saved(ledger)
        for entry in ledger.going:
            if cause := await refused(self._client, self._caches, whose, entry):
                raise LedgerRefused(cause)
        causes = {
            entry.uid: await refused(self._client, self._caches, whose, entry, kept=kept) for entry in ledger.kept
        }
        if not any(causes.values()):
            return ledger
        entries = tuple(entry for entry in ledger.entries if not causes.get(entry.uid))
        remarks = (*ledger.remarks, *(f"{cause}; it stays" for cause in causes.values() if cause))
        left = msgspec.structs.replace(ledger, entries=entries, remarks=remarks)
        check_saved(left)  # nothing waits for what is left out
        return left

    async def _grow(self, record: Object, teardown: Teardown, whose: Known, run: _Run, uncached: list[Seen]) -> Object:
        """Write down what has appeared since, and what no cache has shown."""
        parts = [*parts_now(self._caches, whose, teardown.spec, run.state.ledger), *uncached]
        grown = grown_ledger(run.state.ledger, parts, utc_now(), whose.namespace)
        saved = record.get("status", "ledger", "entries", default=[])
        if grown is run.state.ledger and len(saved) == len(grown.entries):  # a proof may have found more
            return record
        if grown is not run.state.ledger:
            run.state.grow(grown)
        return await self._progress.write(record, {"ledger": msgspec.to_builtins(grown)})

    async def _begin(self, record: Object, teardown: Teardown, ledger: Ledger) -> Object:
        """Nothing is deleted before it is written down what will be."""
        target = teardown.spec.target
        _log.info("teardown begins", target=f"{target.kind.lower()}/{target.name}", objects=len(ledger.going))
        status = {
            "phase": "cordon",
            "started": format_time(utc_now()),
            "left": len(ledger.going),
            "ledger": msgspec.to_builtins(ledger),
        }
        begun = await self._progress.write(record, status)
        if ledger.pointers:
            texts = "; ".join(pointer.text for pointer in ledger.pointers[:POINTERS_MAX])
            more = len(ledger.pointers) - POINTERS_MAX
            texts += f"; and {more} more" if more > 0 else ""
            self._events.warning(record, "StillReferenced", f"It stays, and will point at nothing: {texts}.")
        return begun

    async def _finish(self, record: Object, teardown: Teardown, run: _Run, decision: Decision) -> Result | None:
        proof = await run.executor.prove()
        if proof.unread:
            reason = next(iter(proof.unread.values()))
            await self._progress.show(
                record, teardown, run.state, decision, f"{len(proof.unread)} cannot be read: {reason}"
            )
            return Result(requeue_after=LOOK_SECONDS * 8)
        if not proof.holds:
            return Result(requeue_after=LOOK_SECONDS)
        await self._let_go_of_kept(run, teardown)
        now = utc_now()
        self._cluster = self._cluster or await cluster_uid(self._client)
        final = conclude(run.executor.outcome(proof), self._server, now, self._cluster)
        conditions = set_condition(
            conditions_of(record),
            "Complete",
            status=True,
            reason="ProvenGone",
            message=_result_text(run.state.ledger),
            generation=record.meta.generation,
            now=now,
        )
        status: Json = {
            "phase": TEARDOWN_DONE,
            "finished": format_time(now),
            "left": 0,
            "gone": len(run.state.ledger.going),
            "waitingFor": None,
            "waits": [],
            "ledger": None,
            "receipt": msgspec.to_builtins(final),
        }
        if conditions is not None:
            status["conditions"] = [each for each in conditions if each["type"] != "Blocked"]
        await self._progress.write(record, status)
        self._forget(record.meta.uid)
        return Result(requeue_after=float(teardown.spec.ttl_seconds_after_finished))

    async def _let_go_of_kept(self, run: _Run, teardown: Teardown) -> None:
        """Relabel what is kept: it is nobody's part any more, and its label says whose it was."""
        target = teardown.spec.target
        if not teardown.spec.all_parts:
            return  # it still belongs to an endpoint that is there
        for entry in run.state.ledger.kept:
            metadata = {
                "uid": entry.uid,
                "labels": {LABEL_ENDPOINT_UID: None, LABEL_KEPT: target.name},
                "annotations": {
                    ANNOTATION_SEAL: self._caches.seals.seal(entry.resource, entry.key, kept_for(target.name))
                },
            }
            patch = merge_patch({"metadata": metadata})
            try:
                await self._client.patch(entry.resource, entry.key, patch)
            except (Absent, Foreign):
                _log.warning("something that was to be kept is gone", object=str(entry))

    async def _outlive(self, record: Object, teardown: Teardown) -> Result | None:
        """A finished record goes when its time is over."""
        self._forget(record.meta.uid)
        ended = parse_time(teardown.status.finished) if teardown.status.finished else utc_now()
        left = teardown.spec.ttl_seconds_after_finished - self._ages.age(record.meta.uid, ended)
        if left > 0:
            return Result(requeue_after=left)
        self._ages.forget(record.meta.uid)
        await self._client.delete(TEARDOWNS, record.key, uid=record.meta.uid, propagation=Propagation.BACKGROUND)
        return None

    def _forget(self, uid: str) -> None:
        self._running.pop(uid, None)
        self._progress.forget(uid)


def _read_back(saved: Json) -> Ledger:
    """The ledger in a status. TerminalError for what no operator has written."""
    try:
        return msgspec.convert(saved, Ledger)
    except msgspec.ValidationError as error:
        raise TerminalError(
            "LedgerUnreadable", f"status.ledger: {error}. Delete this Teardown: another one takes its place."
        ) from error


def _result_text(ledger: Ledger) -> str:
    gone, kept = counted(len(ledger.going), "object is", "objects are"), counted(len(ledger.kept), "is", "are")
    return f"{gone} proven gone, {kept} kept."


def _remarks(record: Object, teardown: Teardown) -> tuple[str, ...]:
    """A remark where no order is kept: in another namespace than its target a record is only where that one goes."""
    namespace = teardown.spec.target.namespace
    if record.meta.namespace == namespace:
        return ()
    return (
        f"namespace/{namespace} was being deleted, which deletes all that is in it at once: no order was kept there",
    )


def _pause(decision: Decision, now: dt.datetime) -> float:
    """Seconds until the next reconcile, though nothing may have happened."""
    if decision.actions:  # they were not admitted
        return LOOK_SECONDS
    moments = [wait.again for wait in decision.waits if wait.again is not None]
    pause = min(((moment - now).total_seconds() for moment in moments), default=READ_SECONDS_MAX)
    return min(max(pause, LOOK_SECONDS), READ_SECONDS_MAX)
