"""The gateway's children, Envoy and its control plane: kept running, and ended by the kernel with their parent."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO

import structlog

from pilotage.processes import run_as
from pilotage.processes.child import Child
from pilotage.processes.run_as import RunAsUser
from pilotage.runtime.backoff import ExponentialBackoff

_log = structlog.get_logger(__name__)

RESTART_SECONDS_MIN, RESTART_SECONDS_MAX = 0.05, 5.0
STEADY_SECONDS = 10.0
"""Length of a run after which the next restart waits for the shortest time again."""
KILL_SECONDS = 2.0


def launched(command: Sequence[str], user: int | None) -> list[str]:
    """The command line that becomes this one, as a user (None: ours), and that ends with this process."""
    return run_as.launched(command, None if user is None else RunAsUser(user, user), dies_with=os.getpid())


@contextlib.contextmanager
def readable(content: bytes) -> Iterator[IO[bytes]]:
    """A file without a name, for another user to read as standard input: nobody can replace it."""
    with tempfile.TemporaryFile() as file:
        os.fchmod(file.fileno(), 0o444)
        file.write(content)
        file.seek(0)
        yield file


class GatewayChild(Child):
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
        delays = ExponentialBackoff[str](RESTART_SECONDS_MIN, RESTART_SECONDS_MAX)
        super().__init__(name, self._spawn_one, delays, STEADY_SECONDS)
        self._command, self._env, self._user, self._cwd, self._content = command, env, user, cwd, stdin
        self._stdin: IO[bytes] | None = None

    async def run(self) -> None:
        """Start it, and again whenever it ends; returns after `stop`. OSError if the first start fails."""
        with readable(self._content) as self._stdin:  # once: a disk that is full later prevents no restart
            await self.start()
            await self.keep(self._report)

    async def stop(self, seconds: float = KILL_SECONDS, hurry: Callable[[], bool] = lambda: False) -> int | None:
        """SIGTERM, and SIGKILL after some seconds. It is not started again."""
        return await super().stop(seconds, hurry)

    def _report(self, how: int | OSError, seconds: float) -> None:
        _log.error("a process ended and is started again", name=self.name, code=str(how), after_seconds=seconds)

    async def _spawn_one(self) -> asyncio.subprocess.Process:
        """Start it in a session of its own: Ctrl-C in a terminal is for the parent, which stops children in order."""
        assert self._stdin is not None
        self._stdin.seek(0)  # some systems have one position for all who have it open
        return await asyncio.create_subprocess_exec(
            *launched(self._command, self._user),
            stdin=self._stdin,
            env=dict(self._env),
            cwd=self._cwd,
            start_new_session=True,
        )
