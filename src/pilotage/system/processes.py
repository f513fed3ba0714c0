"""Processes that run, each told apart from a later one with the same pid.

A process is identified by its pid and the moment it began, in clock ticks since the system was booted, together with
the id of that boot. No wall clock is part of it: a time of day moves when the clock is set, and psutil's
`create_time()` with it.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

_PROC = Path("/proc")
_LINUX = sys.platform == "linux"


class Seen(NamedTuple):
    """A process that runs. Those that have ended and wait to be noticed by their parents (zombies) do not."""

    pid: int
    born: str
    parent: int
    session: int


def look(pid: int) -> Seen | None:
    """One process, if it runs."""
    return _look_linux(pid) if _LINUX else _look_elsewhere(pid)


def runs(pid: int, born: str) -> bool:
    """Whether exactly this process runs."""
    seen = look(pid) if pid > 0 else None
    return seen is not None and seen.born == born


def everybody() -> list[Seen]:
    """All processes that run."""
    if _LINUX:
        pids = [int(each) for each in os.listdir(_PROC) if each.isdecimal()]  # noqa: PTH208 - twice as fast
    else:
        import psutil

        pids = psutil.pids()
    return [seen for pid in pids if (seen := look(pid)) is not None]


def variables(pid: int, names: Collection[str]) -> dict[str, str]:
    """Those of the named variables that a process was started with; none where its environment cannot be read."""
    if _LINUX:
        raw = _read(pid, "environ")
        if not any(name.encode() in raw for name in names):  # nearly all processes: not even decoded
            return {}
        pairs = (word.decode(errors="surrogateescape").partition("=") for word in raw.split(b"\0"))
        return {name: value for name, _, value in pairs if name in names}
    import psutil

    try:
        environment = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}
    return {name: value for name, value in environment.items() if name in names}


def _look_linux(pid: int) -> Seen | None:
    text = _read(pid, "stat")
    if not text:
        return None
    # The name, in parentheses, may hold anything. After it: state, parent, group, session, …; the 20th is the start.
    fields = text[text.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X", b"x"):
        return None
    return Seen(pid, f"{_boot()}:{int(fields[19])}", int(fields[1]), int(fields[3]))


def _read(pid: int, name: str) -> bytes:
    """A file of a process; empty where it is gone or not for us. Without `Path`: there are hundreds to read.

    Raises OSError for all else, such as too many open files: that says nothing about the process.
    """
    try:
        with open(f"{_PROC}/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
            return file.readall()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


@cache
def _boot() -> str:
    """The id of this run of the system: the start of a process is counted from there."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _look_elsewhere(pid: int) -> Seen | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return Seen(pid, f"{process.create_time():.2f}", process.ppid(), os.getsid(pid))
    except (psutil.Error, OSError):
        return None
