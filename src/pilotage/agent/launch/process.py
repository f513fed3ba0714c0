"""Start of a server in a session of its own, notice of its end, and its termination with all that it has started.

A server is not tied to the agent: it goes on when the agent dies, and the next agent finds it by its environment, which
carries its mark (`processes.census`) from its first moment on. On Linux it is the parent of every descendant that has
lost its own: so none gets away from it, whatever it does to its session and its environment, as long as it runs.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pilotage.processes import census, identity
from pilotage.processes.identity import ProcessId, ProcessInfo
from pilotage.processes.run_as import RunAsUser, launched, wrapped
from pilotage.processes.terminate import terminate

_FOUND_BY = (census.PROCESS_UID, census.AGENT_FOLDER, census.UP_FOLDER)
"""Variables by which a process is found, from its first moment on."""
_DESCRIPTOR = 3
OPENED = f"/dev/fd/{_DESCRIPTOR}"
"""Whoever may read a file can open it by this name, also where its path leads through folders that are closed."""
FOLDER = "/"
"""Working folder of a server that runs as another user."""
_LINUX = sys.platform == "linux"
_DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def start(
    argv: Sequence[str], environment: Mapping[str, str], log: Path, user: RunAsUser | None = None, opened: str = ""
) -> ProcessId:
    """Start a program. Raises OSError.

    `user`: the user that it runs as (None: ours). `opened`: a file that it finds open, by the name `OPENED`.
    """
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if user is not None or _LINUX:
        argv = launched(argv, user, folder=FOLDER if user is not None else "", adopts=True)
        environment = wrapped(environment, but=_FOUND_BY)
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
    found = identity.find(pid)
    return found.id if found is not None else ProcessId(pid, "")


def owned(folder: Path) -> dict[str, list[ProcessInfo]]:
    """All processes that the agent of a folder has started, by the uid of their HostProcess."""
    return census.marked_by({census.AGENT_FOLDER: str(folder)}, census.PROCESS_UID)


def reap(pid: int) -> int | None:
    """The exit code of a child of ours, as `subprocess` has it (-15 for SIGTERM); None if it is not known."""
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


class ExitWatcher:
    """Calls back as soon as a process ends. Only Linux can tell; elsewhere the callback is never made."""

    def __init__(self, pid: int, ended: Callable[[], None]) -> None:
        self._descriptor = -1
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self._descriptor = os.pidfd_open(pid)
        if self._descriptor >= 0:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._descriptor, self._notice, ended)

    def close(self) -> None:
        """Stop watching."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _notice(self, ended: Callable[[], None]) -> None:
        self.close()
        ended()


async def end(
    mark: Mapping[str, str],
    leader: ProcessId,
    until: Callable[[], float],
    at: Callable[[str], None] = lambda _: None,
    *,
    just_ended: bool = False,
) -> int:
    """End a server and all that it has started, as `terminate` does. Returns how many had to be killed.

    `just_ended`: the leader ended only a moment ago, so what is left of its session is its own.
    """
    known = census.orphans(leader.pid) if just_ended else ()
    try:
        return await terminate(census.Family(mark, leader), until, known=known, at=at)
    finally:
        reap(leader.pid)
