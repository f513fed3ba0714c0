"""A watch: what is there (if asked for), then every change as it happens, each as one line of JSON."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from pilotage.harbor import errors
from pilotage.harbor.store import ADDED, DELETED, MODIFIED, Compacted
from pilotage.harbor.table import table
from pilotage.harbor.verbs.objects import as_bytes, as_metadata, from_entry, with_version
from pilotage.harbor.webhooks.conversion import Unconverted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage.harbor.kinds import Kind
    from pilotage.harbor.store import Entry, Event, Store
    from pilotage.harbor.verbs.accept import Form
    from pilotage.harbor.verbs.choosing import Choice

BOOKMARK_SECONDS = 60.0
SECONDS_DEFAULT = 1800.0
"""How long a watch lasts that does not say it: a client that is gone without a word is not fed for ever."""
BACKLOG_EVENTS_MAX = 10_000
BACKLOG_BYTES_MAX = 32 * 1024 * 1024
"""A client that is further behind what happens is cut off: it will come back and list."""

_INITIAL_END = {"k8s.io/initial-events-end": "true"}


class Watching:
    """See `pilotage.harbor.calls.Stream`. It listens from the moment it is made, so that nothing is missed."""

    status = 200

    def __init__(
        self,
        store: Store,
        kind: Kind,
        choice: Choice,
        form: Form,
        *,
        bookmarks: bool,
        seconds: float | None,
        now: Callable[[], float],
        on_close: Callable[[Watching], None],
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
        self._lines: list[bytes] = []
        self._behind_events = self._behind_bytes = 0
        """What has happened since its reader last took something. How it begins does not count: that has to be said."""
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._head_sent = False
        self._stop: Callable[[], None] | None = store.listen(kind.storage, self._heard)

    # How it begins

    def from_version(self, version: int) -> None:
        """Replay what happened after a version."""
        try:
            for event in self._store.since(self.kind.storage, version):
                if line := self._line_of(event):
                    self._lines.append(line)
        except Compacted:
            words = f"too old resource version: {version} ({self._store.compacted + 1})"
            self._lines.append(_line("ERROR", msgspec.json.encode(errors.expired(words).status)))
            self._ended = True

    def from_now(self, *, initial: bool, marked: bool) -> None:
        """Begin with what is there (`initial`), and say where that ends (`marked`)."""
        if initial:
            for entry in self._store.entries(self.kind.storage):
                if self._choice.includes(entry):
                    self._lines.append(self._shown(ADDED, entry))
        if marked:
            self._lines.append(self._bookmark(_INITIAL_END))

    # What its reader does

    async def chunks(self) -> list[bytes]:
        """See `Stream`."""
        if asyncio.get_running_loop().time() >= self._ends_at:
            self.end()
        while not self._lines:
            if self._ended:
                return []
            await self._wait()
        lines, self._lines = self._lines, []
        self._behind_events = self._behind_bytes = 0
        return lines

    def close(self) -> None:
        """See `Stream`."""
        if self._stop is not None:
            self._stop()
            self._stop = None
            self._on_close(self)

    def end(self) -> None:
        """Send no more than what is there already."""
        self._ended = True
        self.close()
        self._wake()

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
            self._lines.append(self._bookmark({}))
            self._bookmark_at = now + BOOKMARK_SECONDS

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # What the store tells it

    def _heard(self, event: Event) -> None:
        try:
            line = self._line_of(event)
        except Unconverted:  # nobody can wait here: the client will come back, and ask for it
            self.end()
            return
        if line is None:
            return
        self._lines.append(line)
        self._behind_events += 1
        self._behind_bytes += len(line)
        if self._behind_events > BACKLOG_EVENTS_MAX or self._behind_bytes > BACKLOG_BYTES_MAX:
            self._lines.clear()
            self.end()
        self._wake()

    def _line_of(self, event: Event) -> bytes | None:
        if self._choice.selects:
            return self._selected(event)
        return self._shared(event) if self._choice.includes(event.entry) else None

    def _shared(self, event: Event) -> bytes:
        """The line of an event that every watch without selectors sees alike: made for the first of them."""
        view = (self.kind.api_version, self._form)
        line = event.lines.get(view)
        if line is None:
            line = self._shown(event.type, event.entry)
            if self._form.shape != "table":  # the first Table of a watch has the columns
                event.lines[view] = line
        return line

    def _selected(self, event: Event) -> bytes | None:
        """What an event is to a watch with selectors: an object may come into its sight, or leave it."""
        is_in = event.type != DELETED and self._choice.includes(event.entry)
        was_in = event.old is not None and self._choice.includes(event.old)
        if is_in:
            return self._shown(MODIFIED if was_in else ADDED, event.entry)
        if was_in and event.old is not None:
            last = event.entry if event.type == DELETED else with_version(event.old, event.version)
            return self._shown(DELETED, last)
        return None

    def _shown(self, type_: str, entry: Entry) -> bytes:
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
