"""The journal of a store in SQLite: one row for each write, and nothing else.

The rows are the database. Those that a later one has superseded stay as long as the history needs them, and are
deleted when it is compacted. A write is one INSERT in WAL mode: once it returns, the row outlives the process, however
that ends. (It outlives a power failure only from the next checkpoint on, which nothing but `synchronous=FULL` and an
fsync for each write could change.)
"""

from __future__ import annotations

import logging
import sqlite3
from typing import TYPE_CHECKING

from pilotage.kube.wire import Object
from pilotage_harbor.storage.reserve import Reserve
from pilotage_harbor.storage.store import NotKept, StoredObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_log = logging.getLogger(__name__)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
    version INTEGER PRIMARY KEY, storage TEXT NOT NULL, deleted INTEGER NOT NULL, object BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""


_FULL = "the disk is full: only deletions, and changes that make nothing larger, are taken"
_DELETING = b'"deletionTimestamp":"'
_BEGINNING_BYTES = 2048
"""Length of the prefix of stored JSON that is searched for it: metadata comes first, and labels come later."""
_SHOWN_MAX = 10


class JournalInUse(Exception):
    """Another process has this journal open."""


class Damaged(Exception):
    """A file that cannot be read: in sentences, with what to do."""


class SqliteJournal:
    """A `pilotage_harbor.storage.store.Journal` in SQLite. Raises JournalInUse, or Damaged; also when it is loaded.

    `set_aside`: rows that cannot be read are moved to a table of their own, and what they were about is as it was
    before them.
    """

    def __init__(self, path: Path, *, set_aside: bool = False) -> None:
        self._path = path
        self._set_aside = set_aside
        self._problem = ""
        path.touch(mode=0o600)  # Secrets are in it
        self._db = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
        try:
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            self._db.close()
            if "locked" in str(error):
                raise JournalInUse(f"{path} is in use by another process") from None
            raise self._damaged(str(error)) from None
        self._reserve = Reserve(path.with_suffix(".reserve"))

    def append(self, version: int, storage: str, entry: StoredObject, *, deleted: bool, before: int) -> None:
        """Write the change to the database, as `Journal.append` says."""
        row = (version, storage, deleted, entry.raw)
        growth = 0 if deleted or _DELETING in entry.raw[:_BEGINNING_BYTES] else len(entry.raw) - before
        if not self._reserve.held and not self._reserve.restore() and not self._reserve.allows(growth):
            raise self._not_kept(_FULL)
        try:
            self._db.execute("INSERT INTO log VALUES (?, ?, ?, ?)", row)
        except sqlite3.Error as error:
            if not _is_full(error) or not self._reserve.held or not self._reserve.allows(growth):
                raise self._not_kept(_FULL if _is_full(error) else str(error)) from error
            self._reserve.give_up()
            _log.warning("%s: %s until there is room again", self._path, _FULL)
            try:
                self._db.execute("INSERT INTO log VALUES (?, ?, ?, ?)", row)
            except sqlite3.Error as still:
                raise self._not_kept(str(still)) from still
        if self._problem != _FULL:
            self._problem = ""

    def problem(self) -> str:
        """Reason why nothing can be stored at the moment; empty if it can."""
        if self._problem == _FULL and self._reserve.restore() and self._reserve.has_room():
            self._problem = ""
        return self._problem

    def _not_kept(self, why: str) -> NotKept:
        self._problem = why
        return NotKept(why)

    def forget(self, versions: Sequence[int], compacted: int) -> None:
        """Delete these rows, as `Journal.forget` says."""
        self._db.execute("BEGIN")
        try:
            self._db.executemany("DELETE FROM log WHERE version = ?", ((version,) for version in versions))
            self._db.execute("INSERT OR REPLACE INTO facts VALUES ('compacted', ?)", (compacted,))
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # else SQLite has done it; an open one would swallow all later writes
                self._db.execute("ROLLBACK")
            raise

    def load(self) -> tuple[int, Iterable[tuple[str, StoredObject, bool]]]:
        """First version and rows, as `Journal.load` says. Damaged rows are moved aside first if that was asked for."""
        try:
            if self._set_aside:
                self._move([*self._unreadable()])
            found = self._db.execute("SELECT value FROM facts WHERE name = 'compacted'").fetchone()
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from None
        return (found[0] if found else 0), self._rows()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _rows(self) -> Iterator[tuple[str, StoredObject, bool]]:
        """Those that can be read; then, if there are others, Damaged."""
        bad: list[str] = []
        try:
            for version, storage, deleted, raw in self._db.execute("SELECT * FROM log ORDER BY version"):
                try:
                    entry = _entry(version, raw)
                except (ValueError, TypeError) as error:
                    bad.append(_about(version, storage, error))
                else:
                    yield storage, entry, bool(deleted)
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from None
        if bad:
            raise self._unread(bad)

    def _unreadable(self) -> Iterator[tuple[int, str]]:
        for version, storage, _, raw in self._db.execute("SELECT * FROM log ORDER BY version"):
            try:
                _entry(version, raw)
            except (ValueError, TypeError) as error:
                yield version, _about(version, storage, error)

    def _move(self, bad: list[tuple[int, str]]) -> None:
        """Away from the rest. History begins anew after them, so that no version is given twice."""
        if not bad:
            return
        self._db.execute("BEGIN")
        self._db.execute("CREATE TABLE IF NOT EXISTS damaged AS SELECT * FROM log LIMIT 0")
        for version, words in bad:
            _log.warning("%s: set aside %s", self._path, words)
            self._db.execute("INSERT INTO damaged SELECT * FROM log WHERE version = ?", (version,))
            self._db.execute("DELETE FROM log WHERE version = ?", (version,))
        newest = "SELECT 'compacted', max(version) FROM (SELECT version FROM log UNION SELECT version FROM damaged)"
        self._db.execute(f"INSERT OR REPLACE INTO facts {newest}")
        self._db.execute("COMMIT")

    def _unread(self, bad: list[str]) -> Damaged:
        shown = "; ".join(bad[:_SHOWN_MAX]) + (" …" if len(bad) > _SHOWN_MAX else "")
        count = "1 row" if len(bad) == 1 else f"{len(bad)} rows"
        return Damaged(
            f"{self._path}: {count} cannot be read: {shown}. Nothing was changed. Restore the file from a copy, or "
            f"start once with `pilotage harbor --data {self._path.parent} --set-damaged-aside`: what these rows are "
            'about is then as it was before them, or absent, and the rows are kept in the table "damaged".'
        )

    def _damaged(self, why: str) -> Damaged:
        return Damaged(
            f"{self._path} cannot be read ({why}). Nothing was changed. Restore it from a copy; "
            f"`sqlite3 {self._path} .recover` prints what is left of it. Without the file, all objects are gone."
        )


def _entry(version: int, raw: bytes) -> StoredObject:
    meta = Object.decode(raw).meta
    return StoredObject(raw, version, meta.namespace, meta.name, meta.uid, meta.labels)


def _about(version: int, storage: str, error: Exception) -> str:
    return f"version {version}, of {storage} ({error})"


def _is_full(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode == sqlite3.SQLITE_FULL
