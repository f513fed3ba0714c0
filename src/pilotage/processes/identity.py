"""Identity of processes: a pid alone may be another process by now.

A process is identified by its pid and the moment it was born, in clock ticks since the system was booted, together with
the id of that boot. No wall clock is part of it: a time of day moves when the clock is set, and psutil's
`create_time()` with it.
"""

import os
import sys
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_LINUX = sys.platform == "linux"


class ProcessId(NamedTuple):
    """One process, and no later one with its pid."""

    pid: int
    born: str
    """The moment of its birth, as its system states it; not a time of day."""


class ProcessInfo(NamedTuple):
    """A running process. A zombie, which has ended and was not yet reaped by its parent, does not run."""

    pid: int
    born: str
    parent: int
    session: int

    @property
    def id(self) -> ProcessId:
        """Its identity."""
        return ProcessId(self.pid, self.born)


def find(pid: int) -> ProcessInfo | None:
    """The running process with this pid; None if there is none."""
    return _find_linux(pid) if _LINUX else _find_elsewhere(pid)


def is_running(process: ProcessId) -> bool:
    """Whether exactly this process runs."""
    found = find(process.pid) if process.pid > 0 else None
    return found is not None and found.born == process.born


def running() -> list[ProcessInfo]:
    """All running processes."""
    if _LINUX:
        pids = [int(each) for each in os.listdir(_PROC) if each.isdecimal()]  # noqa: PTH208 - twice as fast
    else:
        import psutil

        pids = psutil.pids()
    return [found for pid in pids if (found := find(pid)) is not None]


def environment(pid: int, names: Collection[str]) -> dict[str, str]:
    """Those of the named variables that a process was started with; none where its environment cannot be read."""
    if _LINUX:
        raw = _read(pid, "environ")
        if not any(name.encode() in raw for name in names):  # nearly all processes: not even decoded
            return {}
        pairs = (word.decode(errors="surrogateescape").partition("=") for word in raw.split(b"\0"))
        return {name: value for name, _, value in pairs if name in names}
    import psutil

    try:
        variables = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}
    return {name: value for name, value in variables.items() if name in names}


def _find_linux(pid: int) -> ProcessInfo | None:
    text = _read(pid, "stat")
    if not text:
        return None
    # The name, in parentheses, may hold anything. After it: state, parent, group, session, …; the 20th is the start.
    fields = text[text.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X", b"x"):
        return None
    return ProcessInfo(pid, f"{boot_id()}:{int(fields[19])}", int(fields[1]), int(fields[3]))


def _read(pid: int, name: str) -> bytes:
    """A file of a process; empty where it is gone or not readable. Without `Path`: there are hundreds to read.

    Raises OSError for all else, such as too many open files: that says nothing about the process.
    """
    try:
        with open(f"{_PROC}/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
            return file.readall()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


@cache
def boot_id() -> str:
    """The id of this boot of the system; empty where it has none."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _find_elsewhere(pid: int) -> ProcessInfo | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return ProcessInfo(pid, f"{process.create_time():.2f}", process.ppid(), os.getsid(pid))
    except (psutil.Error, OSError):
        return None
