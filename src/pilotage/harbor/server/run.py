"""One API server as a process: from an empty folder to a socket that listens, and back at a signal."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import os
import signal
from typing import TYPE_CHECKING, NamedTuple

from pilotage.harbor.api import Harbor
from pilotage.harbor.core import Core
from pilotage.harbor.journal import InUse, SqliteJournal
from pilotage.harbor.server.authentication import Authentication
from pilotage.harbor.server.credentials import Credentials
from pilotage.harbor.server.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOST = "127.0.0.1"


class Ready(NamedTuple):
    """Where it is, and how to get in."""

    url: str
    kubeconfig: Path


async def run(folder: Path, port: int, *, memory: bool, on_ready: Callable[[Ready], None]) -> None:
    """Serve until SIGTERM or SIGINT. `port` 0 is the one of the last time if it is free, else any.

    Raises CredentialsError or InUse for a folder that cannot be used, OSError for a port that is taken.
    """
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    lock = _lock(folder)
    credentials = Credentials(folder)
    journal = None if memory else SqliteJournal(folder / "harbor.sqlite")
    try:
        core = Core(journal)
        harbor = Harbor(core, credentials.tokens)
        await harbor.start()
        try:
            authentication = Authentication(credentials.tokens, core.authorizer)
            server = Server(harbor.handle, authentication, tls=credentials.tls())
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
        if journal is not None:
            journal.close()
        os.close(lock)


def _tune_gc() -> None:
    """What is there now will never be garbage; young objects, of which each request makes many, are looked at less."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def _lock(folder: Path) -> int:
    """One process per folder, also for those who keep nothing there but their certificates."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise InUse(f"{folder} is in use by another process. Stop that one, or choose another --data.") from None
    return lock


async def _listen(server: Server, credentials: Credentials, port: int) -> int:
    last = credentials.last_port()
    if port == 0 and last is not None:
        with contextlib.suppress(OSError):
            return await server.start(HOST, last)
    return await server.start(HOST, port)
