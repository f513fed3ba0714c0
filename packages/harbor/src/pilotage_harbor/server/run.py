"""One API server as a process: from an empty folder to a socket that listens, and back at a signal."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import os
import resource
import signal
from typing import TYPE_CHECKING, NamedTuple

from pilotage.private_files import make_private, open_private
from pilotage_harbor.api import Harbor
from pilotage_harbor.core import Core
from pilotage_harbor.core.offload import Threads
from pilotage_harbor.server.authentication import Authentication
from pilotage_harbor.server.credentials import ServerCredentials
from pilotage_harbor.server.server import Server
from pilotage_harbor.server.slots import CONNECTIONS_MAX
from pilotage_harbor.storage.journal import JournalInUse, SqliteJournal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOST = "127.0.0.1"
_OPEN_FILES_WANTED = 16 * 1024


class Ready(NamedTuple):
    """Address and kubeconfig of a server that accepts requests."""

    url: str
    kubeconfig: Path


async def run(folder: Path, port: int, *, memory: bool, set_aside: bool, on_ready: Callable[[Ready], None]) -> None:
    """Serve until SIGTERM or SIGINT. `port` 0 is the one of the last time if it is free, else any.

    `set_aside`: see `SqliteJournal`. Raises ServerCredentialsError, JournalInUse, NotPrivate or Damaged for a
    folder that cannot be used, OSError for a port that is taken.
    """
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    lock = _lock(folder)
    credentials = ServerCredentials(folder)
    journal = None if memory else SqliteJournal(folder / "harbor.sqlite", set_aside=set_aside)
    threads = Threads()
    try:
        core = Core(journal)
        core.offload = threads
        harbor = Harbor(core, credentials.tokens)
        await harbor.start()
        try:
            authentication = Authentication(credentials.tokens, core.authorizer)
            most = _connections_max(_raise_open_files())
            server = Server(harbor.handle, authentication, tls=credentials.tls(), connections_max=most)
            url = f"https://{HOST}:{await _listen(server, credentials, port)}"
            try:
                credentials.write_kubeconfig(url)
                _tune_gc()
                on_ready(Ready(url, credentials.kubeconfig))
                await told.wait()
            finally:
                await server.stop()
        finally:
            await harbor.stop()
    finally:
        threads.stop()
        if journal is not None:
            journal.close()
        os.close(lock)


def _raise_open_files() -> int:
    """Raise the limit of open files as far as this process may; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(each for each in (hard, _OPEN_FILES_WANTED) if each != resource.RLIM_INFINITY)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # as much as the system lets us have
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return _OPEN_FILES_WANTED if soft == resource.RLIM_INFINITY else soft


def _connections_max(open_files: int) -> int:
    """Number of connections that leaves some files for the journal and for webhooks."""
    return max(min(CONNECTIONS_MAX, open_files - min(256, 32 + open_files // 16)), 1)


def _tune_gc() -> None:
    """Exempt existing objects from garbage collection, and collect young ones (a request makes many) less often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def _lock(folder: Path) -> int:
    """One process per folder, also for those who keep nothing there but their certificates."""
    make_private(folder)
    lock = open_private(folder / "lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise JournalInUse(f"{folder} is in use by another process. Stop that one, or choose another --data.") from None
    return lock


async def _listen(server: Server, credentials: ServerCredentials, port: int) -> int:
    last = credentials.last_port()
    if port == 0 and last is not None:
        with contextlib.suppress(OSError):
            return await server.start(HOST, last)
    return await server.start(HOST, port)
