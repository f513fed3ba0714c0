"""A watch: what is there (if asked for), then every change as it happens, each as one line of JSON.

Lines are made when its reader takes them, so that a watch that nobody reads holds no more than references to what is
stored, and so that others are served while a long one begins.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pilotage_harbor.admission.conversion import Unconverted
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import pause
from pilotage_harbor.core.objects import as_bytes, as_metadata, from_entry, with_version
from pilotage_harbor.kinds.table import table
from pilotage_harbor.storage.store import ADDED, DELETED, MODIFIED, Compacted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pilotage_harbor.kinds import Kind
    from pilotage_harbor.storage.store import Event, StoredObject, VersionedStore
    from pilotage_harbor.verbs.negotiation import Form
    from pilotage_harbor.verbs.selection import Choice

BOOKMARK_SECONDS = 60.0
SECONDS_DEFAULT = 1800.0
"""Duration of a watch that names none: a client that is gone without a word is not fed for ever."""
BACKLOG_EVENTS_MAX = 10_000
BACKLOG_BYTES_MAX = 32 * 1024 * 1024
"""A client that is further behind what happens is cut off: it will come back and list."""

_TAKEN_AT_ONCE = 500
_TAKEN_BYTES = 256 * 1024
"""Number of lines encoded at once, and their bytes together: it takes some milliseconds."""
_INITIAL_END = {"k8s.io/initial-events-end": "true"}


class _Told(NamedTuple):
    """Subject of a line. `version`: the one that it is told under, if that is not the entry's own."""

    type: str
    entry: StoredObject
    version: int = 0
    event: Event | None = None
    """The event of the store that watches share encoded lines by."""


class WatchStream:
    """The `Stream` of one watch. It listens from the moment it is made, so that nothing is missed."""

    status = 200
    finite = False

    def __init__(
        self,
        store: VersionedStore,
        kind: Kind,
        choice: Choice,
        form: Form,
        *,
        bookmarks: bool,
        seconds: float | None,
        now: Callable[[], float],
        on_close: Callable[[WatchStream], None],
    ) -> None:
        self.headers = {"Content-Type": "application/json"}
        self._store = store
        self._now = now
        self.kind = kind
        self._choice = choice
        self._form = form
        self.bookmarks = bookmarks
        self._on_close = on_close
        loop = asyncio.get_running_loop()
        self._ends_at = loop.time() + (seconds or SECONDS_DEFAULT)  # 0 is not said, as with kube-apiserver
        self._bookmark_at = loop.time() + BOOKMARK_SECONDS if bookmarks else None
        self._beginning: Iterator[bytes] = iter(())
        self._news: deque[bytes | _Told] = deque()
        self._behind_bytes = 0
        """Bytes of events that were not taken. Those that the watch begins with do not count."""
        self._more = False
        self._looked_into = 0
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._head_sent = False
        self._stop: Callable[[], None] | None = store.listen(kind.storage, self._heard)

    # How it begins

    def from_version(self, version: int) -> None:
        """Replay what happened after a version."""
        try:
            events = self._store.since(self.kind.storage, version)
        except Compacted:
            words = f"too old resource version: {version} ({self._store.compacted + 1})"
            self._news.append(_line("ERROR", msgspec.json.encode(errors.expired(words).status)))
            self._ended = True
        else:
            self._begin(self._line(told) for event in events if (told := self._told(event)) is not None)

    def from_now(self, *, initial: bool, marked: bool) -> None:
        """Begin with what is there (`initial`), and say where that ends (`marked`)."""
        entries = self._store.entries(self.kind.storage).first() if initial else []
        end = [self._bookmark(_INITIAL_END)] if marked else []
        self._begin(self._initial(entries, end))

    def _initial(self, entries: list[StoredObject], end: list[bytes]) -> Iterator[bytes]:
        for entry in entries:
            if self._choice.looks_into:
                self._looked_into += len(entry.raw)
            yield self._shown(ADDED, entry) if self._choice.includes(entry) else b""
        yield from end

    def _begin(self, lines: Iterable[bytes]) -> None:
        """Encode all lines now if a webhook converts, since it may have to be asked: raises Unconverted."""
        self._beginning = iter([*lines] if self.kind.converted_by_webhook else lines)

    # What its reader does

    async def chunks(self) -> list[bytes]:
        """The next lines, as soon as there are some; empty when the watch has ended."""
        if self._more:
            await pause()
        if asyncio.get_running_loop().time() >= self._ends_at:
            self.end()
        while True:
            if lines := self._take():
                return lines
            if self._more:
                await pause()
            elif self._ended:
                return []
            else:
                await self._wait()

    def _take(self) -> list[bytes]:
        """The next lines, as many as can be made at once; `_more` is whether others are left."""
        lines: list[bytes] = []
        size = self._looked_into = 0
        for _ in range(_TAKEN_AT_ONCE):
            line = next(self._beginning, None)
            if line is None:
                if not self._news:
                    self._more = False
                    return lines
                line = self._next()
            if line:
                lines.append(line)
                size += len(line)
            if size + self._looked_into > _TAKEN_BYTES:
                break
        self._more = True
        return lines

    def _next(self) -> bytes:
        told = self._news.popleft()
        if isinstance(told, bytes):
            self._behind_bytes -= len(told)
            return told
        self._behind_bytes -= len(told.entry.raw)
        return self._line(told)

    def close(self) -> None:
        """Unsubscribe from the store."""
        if self._stop is not None:
            self._stop()
            self._stop = None
            self._on_close(self)

    def end(self) -> None:
        """Send no more than what is there already."""
        self._ended = True
        self.close()
        self._wake()

    def break_off(self) -> None:
        """Send nothing more."""
        self._news.clear()
        self._beginning = iter(())
        self.end()

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        moment = self._ends_at if self._bookmark_at is None else min(self._ends_at, self._bookmark_at)
        timer = loop.call_at(moment, self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            timer.cancel()
        now = loop.time()
        if now >= self._ends_at:
            self.end()
        elif self._bookmark_at is not None and now >= self._bookmark_at and not self._ended:
            self._tell(self._bookmark({}))
            self._bookmark_at = now + BOOKMARK_SECONDS

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # What the store tells it

    def _heard(self, event: Event) -> None:
        try:
            told = self._told(event)
            if told is None:
                return
            self._tell(self._line(told) if self.kind.converted_by_webhook else told)
        except Unconverted:  # nobody can wait here: the client will come back, and ask for it
            self.end()
            return
        if len(self._news) > BACKLOG_EVENTS_MAX or self._behind_bytes > BACKLOG_BYTES_MAX:
            self.break_off()
        self._wake()

    def _tell(self, told: bytes | _Told) -> None:
        self._news.append(told)
        self._behind_bytes += len(told) if isinstance(told, bytes) else len(told.entry.raw)

    def _told(self, event: Event) -> _Told | None:
        """Meaning of an event for this watch. With selectors, an object may come into its sight, or leave it."""
        if not self._choice.selects:
            return _Told(event.type, event.entry, event=event) if self._choice.includes(event.entry) else None
        is_in = event.type != DELETED and self._choice.includes(event.entry)
        was_in = event.old is not None and self._choice.includes(event.old)
        if is_in:
            return _Told(MODIFIED if was_in else ADDED, event.entry)
        if was_in and event.old is not None:
            if event.type == DELETED:
                return _Told(DELETED, event.entry)
            return _Told(DELETED, event.old, event.version)
        return None

    def _line(self, told: _Told) -> bytes:
        if told.event is not None:
            return self._shared(told.event)
        entry = told.entry
        return self._shown(told.type, with_version(entry, told.version) if told.version else entry)

    def _shared(self, event: Event) -> bytes:
        """The line of an event that every watch without selectors sees alike: made for the first of them."""
        view = (self.kind.api_version, self._form)
        line = event.lines.get(view)
        if line is None:
            line = self._shown(event.type, event.entry)
            if self._form.shape != "table":  # the first Table of a watch has the columns
                event.lines[view] = line
        return line

    def _shown(self, type_: str, entry: StoredObject) -> bytes:
        if self._form.shape == "metadata":
            return _line(type_, as_metadata(entry, self._form.version))
        if self._form.shape == "table":
            body = table(self.kind, [from_entry(self.kind, entry)], self._now(), "Metadata")
            body["metadata"] = {"resourceVersion": str(entry.version)}
            if self._head_sent:
                body["columnDefinitions"] = None
            self._head_sent = True
            return _line(type_, msgspec.json.encode(body))
        return _line(type_, as_bytes(self.kind, entry))

    def _bookmark(self, annotations: dict[str, str]) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(self._store.version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        kind, api_version = self.kind.kind, self.kind.api_version
        if self._form.shape == "metadata":
            kind, api_version = "PartialObjectMetadata", f"meta.k8s.io/{self._form.version}"
        body = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
        return _line("BOOKMARK", msgspec.json.encode(body))


def _line(type_: str, raw: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), raw)
