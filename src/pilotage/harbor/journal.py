"""The journal of a store in SQLite: one row for each write, and nothing else.

The rows are the database. Those that a later one has superseded stay as long as the history needs them, and are
deleted when it is compacted. A write is one INSERT in WAL mode: once it returns, the row outlives the process, however
that ends. (It outlives a power failure only from the next checkpoint on, which nothing but `synchronous=FULL` and an
fsync for each write could change.)
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from pilotage.harbor.store import Entry, NotKept
from pilotage.kube.wire import Object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
    version INTEGER PRIMARY KEY, storage TEXT NOT NULL, deleted INTEGER NOT NULL, object BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""


class InUse(Exception):
    """Another process has this journal open."""


class SqliteJournal:
    """See `pilotage.harbor.store.Journal`. Raises InUse."""

    def __init__(self, path: Path) -> None:
        path.touch(mode=0o600)  # Secrets are in it
        self._db = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
        try:
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.OperationalError as error:
            self._db.close()
            if "locked" in str(error):
                raise InUse(f"{path} is in use by another process") from None
            raise

    def append(self, version: int, storage: str, entry: Entry, *, deleted: bool) -> None:
        """See `Journal`."""
        try:
            self._db.execute("INSERT INTO log VALUES (?, ?, ?, ?)", (version, storage, deleted, entry.raw))
        except sqlite3.Error as error:
            raise NotKept(str(error)) from error

    def forget(self, versions: Sequence[int], compacted: int) -> None:
        """See `Journal`."""
        self._db.execute("BEGIN")
        try:
            self._db.executemany("DELETE FROM log WHERE version = ?", ((version,) for version in versions))
            self._db.execute("INSERT OR REPLACE INTO facts VALUES ('compacted', ?)", (compacted,))
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # else SQLite has done it; an open one would swallow all later writes
                self._db.execute("ROLLBACK")
            raise

    def load(self) -> tuple[int, Iterable[tuple[str, Entry, bool]]]:
        """See `Journal`."""
        found = self._db.execute("SELECT value FROM facts WHERE name = 'compacted'").fetchone()
        return (found[0] if found else 0), self._rows()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _rows(self) -> Iterator[tuple[str, Entry, bool]]:
        for version, storage, deleted, raw in self._db.execute("SELECT * FROM log ORDER BY version"):
            meta = Object.decode(raw).meta
            entry = Entry(raw, version, meta.namespace, meta.name, meta.uid, meta.labels)
            yield storage, entry, bool(deleted)
