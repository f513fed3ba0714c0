"""A process that is started again when it ends, and that does not outlive the one that started it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from typing import IO, TYPE_CHECKING

import structlog

from pilotage.runtime.clock import monotonic
from pilotage.system import unprivileged
from pilotage.system.unprivileged import User

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_log = structlog.get_logger(__name__)

RESTART_SECONDS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""How long each restart in a row waits; the last one stays."""
STEADY_SECONDS = 10.0
"""Who has run for so long begins with the first again."""
KILL_SECONDS = 2.0


def launched(command: Sequence[str], user: int | None) -> list[str]:
    """The command line that becomes this one, as a user (None: who we are), and that ends with this process."""
    return unprivileged.launched(command, None if user is None else User(user, user), dies_with=os.getpid())


@contextlib.contextmanager
def readable(content: bytes) -> Iterator[IO[bytes]]:
    """A file without a name, for another user to read as standard input: nobody can put another one in its place."""
    with tempfile.TemporaryFile() as file:
        os.fchmod(file.fileno(), 0o444)
        file.write(content)
        file.seek(0)
        yield file


class Child:
    """One program, kept running by `run` until `stop`. `stdin` is what it reads."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        user: int | None = None,
        cwd: str = "/",
        stdin: bytes = b"",
    ) -> None:
        self.name = name
        self.starts = 0
        self._command, self._env, self._user, self._cwd, self._stdin = command, env, user, cwd, stdin
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """Of the process that runs now."""
        return None if self._process is None else self._process.pid

    async def run(self) -> None:
        """Start it, and again whenever it ends; returns after `stop`. OSError if it cannot be started at all."""
        with readable(self._stdin) as stdin:  # once: a disk that is full later keeps nobody from coming back
            await self._keep(stdin)

    async def _keep(self, stdin: IO[bytes]) -> None:
        restarts = 0
        while not self._stopping.is_set():
            began = monotonic()
            self._process = await self._start(stdin)
            self.starts += 1
            code = await self._process.wait()
            self._process = None
            if self._stopping.is_set():
                return
            restarts = 0 if monotonic() - began > STEADY_SECONDS else restarts
            seconds = RESTART_SECONDS[min(restarts, len(RESTART_SECONDS) - 1)]
            restarts += 1
            _log.error("a process ended and is started again", name=self.name, code=code, after_seconds=seconds)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()

    async def stop(self, seconds: float = KILL_SECONDS) -> None:
        """SIGTERM, and SIGKILL after some seconds. It is not started again."""
        self._stopping.set()
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(seconds):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _start(self, stdin: IO[bytes]) -> asyncio.subprocess.Process:
        """In a session of its own: Ctrl-C in a terminal is for us, and we say to others what it means."""
        stdin.seek(0)  # where a system has one position for all who have it open
        return await asyncio.create_subprocess_exec(
            *launched(self._command, self._user),
            stdin=stdin,
            env=dict(self._env),
            cwd=self._cwd,
            start_new_session=True,
        )
