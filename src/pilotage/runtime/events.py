"""Events: short notes on objects that people see in ``kubectl describe``. Never on the path of a reconcile.

The same note on the same object is one Event with a count, written when the count has doubled: a note repeated a
thousand times costs ten writes. Notes are dropped, and counted, rather than kept for ever when the server is away; what
was dropped is not taken for said, so the next such note is written with all that were before it. What the server has
refused is tried again when the count has doubled.
"""

import asyncio
import collections
import random
from typing import NamedTuple

import structlog

from pilotage.kube import (
    EVENTS,
    Absent,
    Client,
    Forbidden,
    Object,
    ObjectKey,
    ObjectRef,
    Throttled,
    Unavailable,
    Uncertain,
    merge_patch,
)
from pilotage.kube.wire import format_micro_time
from pilotage.runtime.clock import monotonic, utc_now
from pilotage.runtime.leader import LeaseLost

_log = structlog.get_logger(__name__)

SERIES_SECONDS = 360.0
WAITING_MAX = 1000
SERIES_MAX = 4096
TRIES = 3
RETRY_SECONDS_MAX = 60.0
"""A server that asks for more is not waited for: other notes wait as well."""
NOTE_BYTES_MAX = 1024


class Note(NamedTuple):
    """Content of an Event: its object, NORMAL or WARNING, the reason in one word, and a sentence."""

    regarding: ObjectRef
    type: str
    reason: str
    message: str


class _Series:
    __slots__ = ("count", "key", "refused", "seen", "waiting", "written")

    def __init__(self) -> None:
        self.count = 0
        self.written = 0
        self.refused = 0
        self.waiting = False
        self.key: ObjectKey | None = None
        self.seen = 0.0


class Recorder:
    """Takes notes at once and writes them one after the other in its own task (`run`)."""

    def __init__(self, client: Client, *, controller: str, instance: str, rng: random.Random) -> None:
        self._client = client
        self._controller = controller
        self._instance = instance
        self._rng = rng
        self._series: collections.OrderedDict[Note, _Series] = collections.OrderedDict()
        self._waiting: asyncio.Queue[Note] = asyncio.Queue(WAITING_MAX)
        self.dropped = 0

    def normal(self, obj: Object, reason: str, message: str) -> None:
        """Record a normal Event."""
        self._note(Note(obj.ref, "Normal", reason, message))

    def warning(self, obj: Object, reason: str, message: str) -> None:
        """Record an Event that a person should know of."""
        self._note(Note(obj.ref, "Warning", reason, message))

    async def run(self) -> None:
        """Write notes until cancelled."""
        while True:
            note = await self._waiting.get()
            try:
                await self._write(note)
            finally:
                self._waiting.task_done()

    async def flush(self) -> None:
        """Wait until everything noted so far is written or given up; `run` must be running."""
        await self._waiting.join()

    def _note(self, note: Note) -> None:
        series = self._series.pop(note, None)
        if series is None or monotonic() - series.seen > SERIES_SECONDS:
            series = _Series()
        self._series[note] = series
        if len(self._series) > SERIES_MAX:
            self._series.popitem(last=False)
        series.count += 1
        series.seen = monotonic()
        if series.waiting or series.count < 2 * max(series.written, series.refused):
            return  # it will be said, or has been, and not often enough since to say it again
        try:
            self._waiting.put_nowait(note)
            series.waiting = True
        except asyncio.QueueFull:
            self.dropped += 1

    async def _write(self, note: Note) -> None:
        series = self._series.get(note)
        if series is None:
            return
        series.waiting = False
        if series.count == series.written:
            return
        for tries_left in reversed(range(TRIES)):
            count = series.count
            try:
                await self._send(note, series)
            except (Unavailable, Throttled) as error:
                pause = max(1 + self._rng.random(), error.retry_after or 0.0)
                if tries_left and pause <= RETRY_SECONDS_MAX:
                    await asyncio.sleep(pause)
                    continue
                self._drop(note, error)
            except (LeaseLost, Uncertain) as error:
                self._drop(note, error)
            except Exception as error:  # noqa: BLE001 - no note is worth a process
                self._drop(note, error)
                series.refused = count
            else:
                series.written = count
            return

    def _drop(self, note: Note, error: Exception) -> None:
        self.dropped += 1
        say = _log.warning if isinstance(error, Forbidden) else _log.info  # nobody gets a permission by waiting
        say("event dropped", object=str(note.regarding), reason=note.reason, error=str(error))

    async def _send(self, note: Note, series: _Series) -> None:
        now = format_micro_time(utc_now())
        if series.key is not None:
            patch = merge_patch({"series": {"count": series.count, "lastObservedTime": now}})
            try:
                await self._client.patch(EVENTS, series.key, patch)
            except Absent:
                pass  # it has aged out: begin a new one
            else:
                return
        namespace = note.regarding.namespace or "default"
        name = f"{note.regarding.name[:230].rstrip('.-')}.{self._rng.getrandbits(64):016x}"
        body = {
            "metadata": {"namespace": namespace, "name": name},
            "eventTime": now,
            "type": note.type,
            "reason": note.reason[:128],
            "note": note.message.encode(errors="replace")[:NOTE_BYTES_MAX].decode(errors="ignore"),
            "action": "Reconcile",
            "regarding": {
                "apiVersion": note.regarding.api_version,
                "kind": note.regarding.kind,
                "namespace": note.regarding.namespace,
                "name": note.regarding.name,
                "uid": note.regarding.uid,
            },
            "reportingController": self._controller,
            "reportingInstance": self._instance[:128],
        }
        if series.count > 1:
            body["series"] = {"count": series.count, "lastObservedTime": now}
        await self._client.create(EVENTS, body)
        series.key = ObjectKey(namespace, name)
