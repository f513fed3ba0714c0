"""Starts a server in a session of its own, and ends it with everything that it has started.

It is not tied to the agent: it goes on when the agent dies, and the next agent finds it. What has to be known for that
(`census`) is in its environment from its first moment on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING, NamedTuple

from pilotage.agent.launch import census
from pilotage.runtime import monotonic
from pilotage.system.unprivileged import launched, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pilotage.system.unprivileged import User

LOOK_SECONDS = 0.02
AGAIN_SECONDS = 0.2
KILL_SECONDS = 5.0
"""Whoever is there so long after SIGKILL is held by the system itself: a disk, a driver."""
_SEEN_BY_OTHERS = ("PILOTAGE_UP",)
"""Variables by which others find a process, from its first moment on."""
_DESCRIPTOR = 3
OPENED = f"/dev/fd/{_DESCRIPTOR}"
"""Whoever may read a file can open it by this name, also where its path leads through folders that are closed."""
FOLDER = "/"
"""Where a server of another user runs."""
_DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Begun(NamedTuple):
    """A process that was started."""

    pid: int
    born: str


class StillRunning(Exception):
    """Some processes did not end, not even by SIGKILL."""


def start(
    argv: Sequence[str], environment: Mapping[str, str], log: Path, user: User | None = None, opened: str = ""
) -> Begun:
    """Start a program. OSError if it cannot be.

    `user`: whom it runs as (None: as we do). `opened`: a file that it finds open, and readable by name as `OPENED`.
    """
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if user is not None:
        argv = launched(argv, user, folder=FOLDER)
        environment = wrapped(environment, but=(*census.VARIABLES, *_SEEN_BY_OTHERS))
    pid = os.posix_spawn(
        argv[0],
        list(argv),
        dict(environment),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            *([(os.POSIX_SPAWN_OPEN, _DESCRIPTOR, opened, os.O_RDONLY, 0)] if opened else []),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=_DEFAULT_SIGNALS,  # Python ignores some, and that is inherited
    )
    seen = census.look(pid)
    return Begun(pid, seen.born if seen is not None else "")


def reap(pid: int) -> int | None:
    """How a child of ours ended (as `subprocess` has it: -15 for SIGTERM); None if that is not known."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # it was started by an agent before us
        return None
    return os.waitstatus_to_exitcode(status) if ended else None


def is_ending(pid: int) -> bool:
    """Whether a child of ours has begun to end, and it cannot be said yet how: some of its threads are left.

    Where the system cannot tell (macOS, before Python 3.13), it is taken for ended.
    """
    if not hasattr(os, "waitid"):
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


class Ear:
    """Calls back as soon as a process ends. Where the system cannot tell (it is Linux that can), nothing comes."""

    def __init__(self, pid: int, heard: Callable[[], None]) -> None:
        self._descriptor = -1
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self._descriptor = os.pidfd_open(pid)
        if self._descriptor >= 0:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._descriptor, self._ended, heard)

    def close(self) -> None:
        """Listen no more."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _ended(self, heard: Callable[[], None]) -> None:
        self.close()
        heard()


async def end(
    mark: census.Mark,
    begun: Begun,
    patient_until: Callable[[], float],
    at: Callable[[str], None] = lambda _: None,
    *,
    trusted: bool = False,
) -> int:
    """End a server and all that it has started; it is proven when this returns. Says how many had to be killed.

    They get SIGTERM, then SIGKILL when the time is `patient_until` (asked again and again: it may have changed).
    StillRunning if that does not help. `trusted`: the leader has ended only a moment ago, so what is in its session is
    its own.
    """
    known = _relatives(mark, begun, (), trusted=trusted)
    if not known:
        reap(begun.pid)
        return 0
    at("before SIGTERM")
    _send(begun, known, signal.SIGTERM)
    at("after SIGTERM")
    known = await _wait(mark, begun, known, patient_until)
    if not known:
        return 0
    killed = len(known)
    deadline = monotonic() + KILL_SECONDS
    while known:
        at("before SIGKILL")
        _send(begun, known, signal.SIGKILL)  # again for those that were started in between
        at("after SIGKILL")
        pause = monotonic() + AGAIN_SECONDS
        known = await _wait(mark, begun, known, lambda pause=pause: pause)  # type: ignore[misc]
        killed = max(killed, len(known))
        if known and monotonic() > deadline:
            names = ", ".join(str(seen.pid) for seen in known)
            raise StillRunning(f"process {names} does not end, not even by SIGKILL")
    return killed


async def _wait(
    mark: census.Mark, begun: Begun, known: list[census.Seen], until: Callable[[], float]
) -> list[census.Seen]:
    """Until none of them runs any more, and a look at all processes finds no other; who is left when time is up."""
    while True:
        reap(begun.pid)
        known = [seen for seen in known if census.runs(seen.pid, seen.born)]
        if not known and not (known := _relatives(mark, begun, ())):
            reap(begun.pid)  # it may have ended after it was asked above
            return []
        if monotonic() >= until():
            return _relatives(mark, begun, known)
        await asyncio.sleep(LOOK_SECONDS)


def _relatives(
    mark: census.Mark, begun: Begun, known: Sequence[census.Seen], *, trusted: bool = False
) -> list[census.Seen]:
    if trusted and census.look(begun.pid) is None:
        known = [*known, *(seen for seen in census.everybody() if seen.session == begun.pid)]
    return census.family(mark, (begun.pid, begun.born), known)


def _send(begun: Begun, known: Sequence[census.Seen], number: signal.Signals) -> None:
    """To its whole group, which cannot start anything in between, and to each that has left it."""
    if begun.pid > 0 and any(seen.session == begun.pid for seen in known):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(begun.pid, number)
    for seen in known:
        if (seen.session != begun.pid or _left_group(seen.pid, begun.pid)) and census.runs(seen.pid, seen.born):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(seen.pid, number)


def _left_group(pid: int, group: int) -> bool:
    try:
        return os.getpgid(pid) != group
    except ProcessLookupError:
        return False
