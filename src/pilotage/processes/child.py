"""Children: programs that are started again whenever they end, after a pause that grows."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from pilotage.processes import identity
from pilotage.processes.census import Processes
from pilotage.processes.identity import ProcessId
from pilotage.processes.terminate import terminate


class RestartDelays(Protocol):
    """The pauses between restarts: `runtime.backoff.ExponentialBackoff` has them."""

    def when(self, item: str, /) -> float:
        """Seconds until the next start, after one more failure."""

    def forget(self, item: str, /) -> None:
        """Begin with the shortest pause again."""


class Child:
    """One program. `start` it, let `keep` start it again until cancelled or stopped, and `stop` it."""

    def __init__(
        self,
        name: str,
        spawn: Callable[[], Awaitable[asyncio.subprocess.Process]],
        delays: RestartDelays,
        steady_seconds: float,
    ) -> None:
        """`spawn` starts one process. After a run of `steady_seconds` the next restart is as quick as the first."""
        self.name = name
        self.starts = 0
        self._spawn = spawn
        self._delays = delays
        self._steady_seconds = steady_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._id: ProcessId | None = None
        self._stopping = asyncio.Event()

    @property
    def id(self) -> ProcessId | None:
        """The process that runs now."""
        return self._id if self._process is not None and self._process.returncode is None else None

    @property
    def pid(self) -> int | None:
        """Its pid."""
        return self.id.pid if self.id is not None else None

    async def start(self) -> ProcessId | None:
        """Start it. None where it ended at once. Raises OSError."""
        self._process = await self._spawn()
        self.starts += 1
        found = identity.find(self._process.pid)
        self._id = found.id if found is not None else None
        return self._id

    async def keep(
        self,
        ended: Callable[[int | OSError, float], None],
        before: Callable[[], Awaitable[None]] | None = None,
        started: Callable[[ProcessId], None] = lambda _: None,
    ) -> None:
        """Start it again whenever it ends, until `stop`.

        `ended` is told how (the exit code, or why a restart failed) and the seconds until the next start, `before` is
        awaited then, and `started` gets the new process.
        """
        loop = asyncio.get_running_loop()
        failure: OSError | None = None
        while not self._stopping.is_set():
            assert self._process is not None, "start it first"
            since = loop.time()
            code = await self._process.wait()
            if self._stopping.is_set():
                return
            if loop.time() - since > self._steady_seconds:
                self._delays.forget(self.name)
            seconds = self._delays.when(self.name)
            ended(failure or code, seconds)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._stopping.wait()
                    return
            failure = None
            try:
                if before is not None:
                    await before()
                if (process := await self.start()) is not None:
                    started(process)
            except OSError as error:
                failure = error

    async def stop(self, seconds: float, hurry: Callable[[], bool] = lambda: False) -> int | None:
        """SIGTERM, repeated in a `hurry`, and SIGKILL after some seconds. It is not started again. The exit code."""
        self._stopping.set()
        if self._process is None:
            return None
        if self.id is not None:
            until = asyncio.get_running_loop().time() + seconds
            await terminate(Processes([self.id]), lambda: until, hurry=hurry)
        return await self._process.wait()
