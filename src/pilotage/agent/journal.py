"""The journal of what the agent did or is about to do, written before each act. It survives the agent.

One entry for each HostProcess, by its uid: while an entry is there, something of it may run or be registered, and an
agent that starts looks for it. It goes last, when the rest is proven gone. `Journal.at` names each point between two
acts; nothing happens there, and a test that ends the agent at each of them sees what the next one makes of it.

Beginnings need the disk: what is not written down is not started (`put`). Endings do not: a disk that is full must not
keep a server running, because its logs and weights may be what fills it. So `note` and `forget` count at once, and are
written as soon as the disk takes them (`flush`). An agent that dies before that leaves an older entry, whose process
the next agent finds ended, or finds by its mark.
"""

from __future__ import annotations

import enum
import fcntl
import hashlib
import os
import secrets
import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Self

import msgspec
import structlog

from pilotage.kube import ObjectKey
from pilotage.processes.census import AGENT_FOLDER, PROCESS_UID
from pilotage.processes.identity import ProcessId, boot_id

_log = structlog.get_logger(__name__)

_TABLES = (
    "CREATE TABLE IF NOT EXISTS processes (uid TEXT PRIMARY KEY, entry TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)


class JournalError(Exception):
    """The journal cannot be used; the message is one sentence, and what to do."""


class LifecycleState(enum.StrEnum):
    """States of a process in its life."""

    STARTING = "starting"
    RUNNING = "running"
    """It has been healthy."""
    LEAVING = "leaving"


class JournalEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that is needed to find a process and its EndpointSlice, and to remove both."""

    uid: str
    """Uid of its HostProcess."""
    namespace: str
    name: str
    state: LifecycleState
    endpoint_uid: str = ""
    service: str = ""
    runtime: str = ""
    alias: str = ""
    health: str = ""
    """The path of the health check; empty: a connection is enough."""
    port: int = 0
    pid: int = 0
    """0: it was about to be started."""
    born: str = ""
    """The moment of its birth; see `ProcessId`."""
    log: str = ""
    need: int = 0
    """Estimated memory in bytes."""
    started: float = 0.0
    """Seconds since the epoch, for people."""
    begun: float = 0.0
    """The same by `clock.uptime`, which cannot be set."""
    slice_uid: str = ""
    """The uid of the EndpointSlice, once it is known. Its name is that of the HostProcess."""
    registered: bool = False
    """Whether an EndpointSlice was made, or was about to be."""
    drain_seconds: int = 0
    since: float = 0.0
    """Time at which its stop began, by `clock.uptime`."""
    why: str = ""
    """Why it is stopped."""

    @property
    def key(self) -> ObjectKey:
        """Key of its HostProcess."""
        return ObjectKey(self.namespace, self.name)

    @property
    def process(self) -> ProcessId:
        """Its first process."""
        return ProcessId(self.pid, self.born)

    def but(self, **changes: object) -> JournalEntry:
        """A copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)


class AgentJournal:
    """One file in one folder, for one agent at a time. What `put` has written is on the disk when it returns."""

    def __init__(self, folder: Path, at: Callable[[str], None] = lambda _: None) -> None:
        """JournalError if the folder is in use, or the file is no journal."""
        self.at = at
        self.problem = ""
        """Why something is not on the disk yet, in a phrase; empty if everything is."""
        self._folder = folder
        self._unwritten: set[str] = set()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _lock(folder)
        except OSError as error:
            raise JournalError(f"{folder} cannot be used ({error.strerror}). Choose another --data.") from error
        path = folder / "agent.sqlite"
        try:
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.execute("PRAGMA locking_mode=EXCLUSIVE")  # without a file in shared memory, a full disk
            self._database.execute("PRAGMA journal_mode=WAL")  # can still be read from
            self._database.execute("PRAGMA synchronous=FULL")
            for table in _TABLES:
                self._database.execute(table)
            rows = self._database.execute("SELECT entry FROM processes").fetchall()
            self._entries = {entry.uid: entry for (text,) in rows for entry in (_decoder.decode(text),)}
            self.identity = self._own_identity()
            """The same after a restart, and in a copy of the folder."""
            self.place = _place(self._lock)
            """The same after a restart, and another one in a copy of the folder and after a reboot."""
        except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
            os.close(self._lock)
            raise JournalError(
                f"{path} cannot be read ({error}). Move it away: servers that run are found without it, and stopped."
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and release the lock. Idempotent."""
        if self._lock < 0:
            return
        self.flush()
        self._database.close()
        os.close(self._lock)
        self._lock = -1  # the number may be another file's from now on

    def mark(self, uid: str) -> dict[str, str]:
        """The variables in the environment of a server of this journal, by which it is found."""
        return {PROCESS_UID: uid, AGENT_FOLDER: str(self._folder)}

    def get(self, uid: str) -> JournalEntry | None:
        """One entry."""
        return self._entries.get(uid)

    def entries(self) -> list[JournalEntry]:
        """All of them."""
        return [*self._entries.values()]

    def of(self, key: ObjectKey) -> list[JournalEntry]:
        """The entries of one name: several where a HostProcess was deleted and created again."""
        return [entry for entry in self._entries.values() if entry.key == key]

    def put(self, entry: JournalEntry, what: str) -> JournalEntry:
        """Write an entry, before the act that `what` names. Raises sqlite3.Error; then nothing has changed."""
        self.at(f"before noting {what}")
        self._write(entry.uid, entry)
        self._entries[entry.uid] = entry
        self._unwritten.discard(entry.uid)
        self.at(f"after noting {what}")
        return entry

    def note(self, entry: JournalEntry, what: str) -> JournalEntry:
        """Record what has happened, or has to happen in any case; on the disk as soon as it takes it."""
        self.at(f"before noting {what}")
        self._entries[entry.uid] = entry
        self._unwritten.add(entry.uid)
        self.flush()
        self.at(f"after noting {what}")
        return entry

    def forget(self, uid: str) -> None:
        """Remove an entry: it is proven that nothing of the process is left. On the disk as `note`."""
        self.at("before forgetting")
        self._entries.pop(uid, None)
        self._unwritten.add(uid)
        self.flush()
        self.at("after forgetting")

    def flush(self) -> None:
        """Write what the disk did not take before; `problem` says whether it does now."""
        try:
            for uid in [*self._unwritten]:
                self._write(uid, self._entries.get(uid))
                self._unwritten.discard(uid)
        except sqlite3.Error as error:
            if not self.problem:
                _log.error(
                    "the journal cannot be written, which is retried", folder=str(self._folder), error=str(error)
                )
            self.problem = self.unwritable(error)
        else:
            self.problem = ""

    def unwritable(self, error: sqlite3.Error) -> str:
        """A phrase for people about a write that failed."""
        return f"the journal in {self._folder} cannot be written ({error})"

    def _write(self, uid: str, entry: JournalEntry | None) -> None:
        if entry is None:
            self._database.execute("DELETE FROM processes WHERE uid = ?", (uid,))
        else:
            row = (uid, msgspec.json.encode(entry).decode())
            self._database.execute("INSERT OR REPLACE INTO processes VALUES (?, ?)", row)

    def _own_identity(self) -> str:
        """The identity of the agent of this folder: the same after a restart."""
        found = self._database.execute("SELECT value FROM about WHERE name = 'identity'").fetchone()
        if found is None:
            found = (secrets.token_hex(8),)
            self._database.execute("INSERT INTO about VALUES ('identity', ?)", found)
        return str(found[0])


_decoder = msgspec.json.Decoder(JournalEntry)


def _place(lock: int) -> str:
    """A digest of this boot of this machine and of the file that is locked: only one agent has it at a time."""
    found = os.fstat(lock)
    text = f"{boot_id() or uuid.getnode()} {found.st_dev} {found.st_ino}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _lock(folder: Path) -> int:
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise JournalError(f"{folder} is in use by another agent. Stop that one, or choose another --data.") from None
    return lock
