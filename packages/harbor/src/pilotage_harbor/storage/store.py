"""Objects in memory, each as its JSON, with one version counter and a history of changes.

One write is one step: it gets the next version, goes to the journal (if there is one) and only then becomes visible.
Nothing here waits, so whoever reads and writes without an `await` in between has done so atomically.

The history is what watches replay and what lists of an earlier version are made from. Its oldest half is dropped
whenever it is full, by the number of its events or by their size; a version from before that is `Compacted`.
"""

from __future__ import annotations

import bisect
import logging
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

HISTORY_EVENTS_MAX = 10_000
HISTORY_BYTES_MAX = 64 * 1024 * 1024

_log = logging.getLogger(__name__)

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Compacted(Exception):
    """The version is no longer in the history."""


class NotKept(Exception):
    """The journal could not take a write (the disk is full, perhaps), so nothing was written."""


class StoredObject(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One object as it is stored."""

    raw: bytes
    version: int
    namespace: str
    name: str
    uid: str
    labels: dict[str, str]


class Event(msgspec.Struct, eq=False):
    """One change. Of a deletion, `entry` is the last state, under the version of the deletion."""

    version: int
    type: str
    storage: str
    entry: StoredObject
    old: StoredObject | None
    lines: dict[object, bytes] = {}
    """The event as watches send it, by their view: encoded once, sent to many."""

    @property
    def size(self) -> int:
        """The bytes of the objects that it keeps in memory; an object that two events share counts in both."""
        return len(self.entry.raw) + (len(self.old.raw) if self.old is not None else 0)


class Journal(Protocol):
    """Durable log that writes go to before they are visible. `load` returns its rows, oldest first."""

    def append(self, version: int, storage: str, entry: StoredObject, *, deleted: bool, before: int) -> None:
        """Keep it, whatever happens to this process after this call returns; or raise NotKept.

        `before` is the size of what it replaces.
        """

    def problem(self) -> str:
        """Reason why nothing can be stored at the moment; empty if it can."""

    def forget(self, versions: Sequence[int], compacted: int) -> None:
        """These rows are superseded; history begins after `compacted`. All of it is done, or it raises."""

    def load(self) -> tuple[int, Iterable[tuple[str, StoredObject, bool]]]:
        """First version of the history, and (storage, entry, deleted) of every row, by version."""


class StorageList:
    """Objects of a storage in order, at one version. What was read of it does not change; `first` must come at once."""

    __slots__ = ("_entries", "_keys")

    def __init__(self, keys: list[str], entries: dict[str, StoredObject]) -> None:
        self._keys = keys
        self._entries = entries

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[StoredObject]:
        return map(self._entries.__getitem__, self._keys)

    def first(self, limit: int = 0) -> list[StoredObject]:
        """The first `limit` of them, or all: each as it is now, whatever is written later."""
        return [*map(self._entries.__getitem__, self._keys[:limit] if limit else self._keys)]


class _Shelf:
    """All objects of one storage. Keys are ``namespace/name``, in the order of etcd's."""

    __slots__ = ("entries", "history", "keys", "listeners")

    def __init__(self) -> None:
        self.entries: dict[str, StoredObject] = {}
        self.keys: list[str] = []
        self.history: list[Event] = []
        self.listeners: list[Callable[[Event], None]] = []


class VersionedStore:
    """Objects, their versions and their history."""

    def __init__(
        self,
        journal: Journal | None = None,
        *,
        history_events_max: int = HISTORY_EVENTS_MAX,
        history_bytes_max: int = HISTORY_BYTES_MAX,
    ) -> None:
        self.version = 1
        self.compacted = 0
        """Versions before this one are not remembered."""
        self._shelves: dict[str, _Shelf] = {}
        self._history: list[Event] = []
        self._history_events_max = history_events_max
        self._history_bytes = 0
        self._history_bytes_max = history_bytes_max
        self._superseded: list[int] = []
        """Versions whose rows the journal was to forget, and could not yet."""
        self._everywhere: list[Callable[[Event], None]] = []
        self._journal = journal
        if journal is not None:
            self._load(journal)

    # Reading

    def get(self, storage: str, namespace: str, name: str) -> StoredObject | None:
        """One object as it is now."""
        shelf = self._shelves.get(storage)
        return shelf.entries.get(f"{namespace}/{name}") if shelf is not None else None

    def count(self, storage: str) -> int:
        """Number of objects in all namespaces."""
        shelf = self._shelves.get(storage)
        return len(shelf.keys) if shelf is not None else 0

    def storages(self) -> list[str]:
        """Those that hold something, or did."""
        return list(self._shelves)

    def entries(self, storage: str, namespace: str = "", after: str = "") -> StorageList:
        """Entries in order: those of one namespace, or of all; only keys greater than `after`."""
        shelf = self._shelf(storage)
        return _in_order(shelf.keys, shelf.entries, namespace, after)

    def entries_at(self, storage: str, version: int, namespace: str = "", after: str = "") -> StorageList:
        """The same as they were at a version; raises Compacted."""
        shelf = self._shelf(storage)
        changes = self._since(shelf, version)
        if not changes:
            return _in_order(shelf.keys, shelf.entries, namespace, after)
        entries = dict(shelf.entries)
        for event in reversed(changes):
            key = f"{event.entry.namespace}/{event.entry.name}"
            if event.old is None:
                entries.pop(key, None)
            else:
                entries[key] = event.old
        return _in_order(sorted(entries), entries, namespace, after)

    def since(self, storage: str, version: int) -> list[Event]:
        """Events after a version; raises Compacted."""
        return self._since(self._shelf(storage), version)

    def problem(self) -> str:
        """Reason why nothing can be written at the moment; empty if it can."""
        return self._journal.problem() if self._journal is not None else ""

    # Writing

    def next_version(self) -> int:
        """The version that the next write will have: it is part of what is written."""
        return self.version + 1

    def put(self, storage: str, entry: StoredObject) -> Event:
        """Add or replace. `entry.version` must be `next_version()`."""
        shelf = self._shelf(storage)
        key = f"{entry.namespace}/{entry.name}"
        old = shelf.entries.get(key)
        if self._journal is not None:
            before = len(old.raw) if old is not None else 0
            self._journal.append(entry.version, storage, entry, deleted=False, before=before)
        shelf.entries[key] = entry
        if old is None:
            _insert(shelf.keys, key)
        return self._happened(shelf, Event(entry.version, MODIFIED if old else ADDED, storage, entry, old))

    def remove(self, storage: str, last: StoredObject) -> Event:
        """Take away. `last` is its last state under `next_version()`."""
        shelf = self._shelf(storage)
        key = f"{last.namespace}/{last.name}"
        old = shelf.entries[key]
        if self._journal is not None:
            self._journal.append(last.version, storage, last, deleted=True, before=len(old.raw))
        del shelf.entries[key]
        del shelf.keys[bisect.bisect_left(shelf.keys, key)]
        return self._happened(shelf, Event(last.version, DELETED, storage, last, old))

    def compact(self, version: int) -> None:
        """Forget what happened up to a version."""
        at = bisect.bisect_right(self._history, version, key=_version)
        gone, self._history = self._history[:at], self._history[at:]
        if not gone:
            return
        self.compacted = gone[-1].version
        self._history_bytes -= sum(event.size for event in gone)
        for storage in {event.storage for event in gone}:
            shelf = self._shelves[storage]
            shelf.history = shelf.history[bisect.bisect_right(shelf.history, version, key=_version) :]
        if self._journal is not None:
            self._superseded += [event.old.version for event in gone if event.old is not None]
            self._superseded += [event.version for event in gone if event.type == DELETED]
            try:
                self._journal.forget(self._superseded, self.compacted)
            except Exception:  # noqa: BLE001 - what was written is written; these rows go with the next ones
                _log.exception("old versions were not deleted from the journal: that is tried again later")
            else:
                self._superseded = []

    # Being told

    def listen(self, storage: str, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call this for every later change of a storage; returns what ends it. It must not raise, nor write."""
        listeners = self._shelf(storage).listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def listen_to_all(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """The same for all storages."""
        self._everywhere.append(listener)
        return lambda: self._everywhere.remove(listener)

    def _shelf(self, storage: str) -> _Shelf:
        shelf = self._shelves.get(storage)
        if shelf is None:
            shelf = self._shelves[storage] = _Shelf()
        return shelf

    def _since(self, shelf: _Shelf, version: int) -> list[Event]:
        if version < self.compacted:
            raise Compacted
        return shelf.history[bisect.bisect_right(shelf.history, version, key=_version) :]

    def _happened(self, shelf: _Shelf, event: Event) -> Event:
        self.version = event.version
        self._remember(shelf, event)
        for listener in (*shelf.listeners, *self._everywhere):
            listener(event)
        if len(self._history) > self._history_events_max or self._history_bytes > self._history_bytes_max:
            self.compact(self._history[len(self._history) // 2].version)
        return event

    def _remember(self, shelf: _Shelf, event: Event) -> None:
        shelf.history.append(event)
        self._history.append(event)
        self._history_bytes += event.size

    def _load(self, journal: Journal) -> None:
        self.compacted, rows = journal.load()
        for storage, entry, deleted in rows:
            shelf = self._shelf(storage)
            key = f"{entry.namespace}/{entry.name}"
            old = shelf.entries.get(key)
            type_ = DELETED if deleted else MODIFIED if old else ADDED
            if deleted:
                shelf.entries.pop(key, None)
            else:
                shelf.entries[key] = entry
            if entry.version > self.compacted:
                self._remember(shelf, Event(entry.version, type_, storage, entry, old))
            self.version = entry.version
        self.version = max(self.version, self.compacted)
        for shelf in self._shelves.values():
            shelf.keys = sorted(shelf.entries)


_version = attrgetter("version")


def _insert(keys: list[str], key: str) -> None:
    if not keys or key > keys[-1]:
        keys.append(key)
    else:
        bisect.insort(keys, key)


def _in_order(keys: list[str], entries: dict[str, StoredObject], namespace: str, after: str) -> StorageList:
    start = max(after, f"{namespace}/") if namespace else after
    at = bisect.bisect_right(keys, start) if start else 0
    end = bisect.bisect_left(keys, f"{namespace}0") if namespace else len(keys)  # "0" follows "/"
    return StorageList(keys[at:end], entries)
