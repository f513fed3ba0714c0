"""The journal of what the agent did or is about to do, written before each act. It survives the agent.

One entry for each HostProcess, by its uid: while an entry is there, something of it may run or be registered, and an
agent that starts looks for it. It goes last, when the rest is proven gone. `Journal.at` names each point between two
acts; nothing happens there, and a test that ends the agent at each of them sees what the next one makes of it.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import os
import secrets
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Self

import msgspec

from pilotage.kube import ObjectKey
from pilotage.processes.census import AGENT_FOLDER, PROCESS_UID
from pilotage.processes.identity import ProcessId

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
    """One file in one folder, for one agent at a time. Every write is on the disk when it returns."""

    def __init__(self, folder: Path, at: Callable[[str], None] = lambda _: None) -> None:
        """JournalError if the folder is in use, or the file is no journal."""
        self.at = at
        self._folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _lock(folder)
        except OSError as error:
            raise JournalError(f"{folder} cannot be used ({error.strerror}). Choose another --data.") from error
        path = folder / "agent.sqlite"
        try:
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            for table in _TABLES:
                self._database.execute(table)
            rows = self._database.execute("SELECT entry FROM processes").fetchall()
            self._entries = {entry.uid: entry for (text,) in rows for entry in (_decoder.decode(text),)}
            self.identity = self._own_identity()
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
        """Close the file and release the lock."""
        self._database.close()
        with contextlib.suppress(OSError):
            os.close(self._lock)

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
        """Write an entry. `what` names the act."""
        self.at(f"before noting {what}")
        row = (entry.uid, msgspec.json.encode(entry).decode())
        self._database.execute("INSERT OR REPLACE INTO processes VALUES (?, ?)", row)
        self._entries[entry.uid] = entry
        self.at(f"after noting {what}")
        return entry

    def forget(self, uid: str) -> None:
        """Remove an entry: it is proven that nothing of the process is left."""
        self.at("before forgetting")
        self._database.execute("DELETE FROM processes WHERE uid = ?", (uid,))
        self._entries.pop(uid, None)
        self.at("after forgetting")

    def _own_identity(self) -> str:
        """The identity of the agent of this folder: the same after a restart."""
        self._database.execute("INSERT OR IGNORE INTO about VALUES ('identity', ?)", (secrets.token_hex(8),))
        found: str = self._database.execute("SELECT value FROM about WHERE name = 'identity'").fetchone()[0]
        return found


_decoder = msgspec.json.Decoder(JournalEntry)


def _lock(folder: Path) -> int:
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise JournalError(f"{folder} is in use by another agent. Stop that one, or choose another --data.") from None
    return lock
