"""Which processes there are, and which of them belong to a server of ours.

A process is told by its pid and the moment it began: a pid alone may be another process by now. What a server has
started is found in three ways, because none is enough: it is in the server's session; it has the variable
`PILOTAGE_PROCESS_UID` in its environment, wherever it has gone; or it descends from one that was found.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

MARK = "PILOTAGE_PROCESS_UID"
"""The variable of a server's environment with the uid of its HostProcess."""
OWNER = "PILOTAGE_AGENT"
"""The variable with the folder of the agent that started it."""

_PROC = Path("/proc")
_LINUX = sys.platform == "linux"


class Mark(NamedTuple):
    """What a server and all that it has started carry in their environment."""

    uid: str
    """Of its HostProcess."""
    owner: str
    """The folder of the agent."""

    @property
    def variables(self) -> dict[str, str]:
        """As they are in the environment."""
        return {MARK: self.uid, OWNER: self.owner}


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


def marks(pid: int) -> dict[str, str]:
    """Those of our two variables that it was started with; none where its environment cannot be read."""
    if _LINUX:
        raw = _read(pid, "environ")
        if MARK.encode() not in raw and OWNER.encode() not in raw:
            return {}
        pairs = (word.decode(errors="replace").partition("=") for word in raw.split(b"\0"))
        return {name: value for name, _, value in pairs if name in (MARK, OWNER)}
    import psutil

    try:
        environment = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}
    return {name: value for name, value in environment.items() if name in (MARK, OWNER)}


def family(mark: Mark, leader: tuple[int, str], known: Iterable[Seen] = ()) -> list[Seen]:
    """All that runs of one server: `leader` is its pid and when it began; `known` were found before.

    Its session counts while the leader runs. After that a stranger may have the number.
    """
    there = {seen.pid: seen for seen in everybody() if seen.pid != os.getpid()}
    pid, born = leader
    found = {seen.pid for seen in known if _same(there.get(seen.pid), seen)}
    if pid in there and there[pid].born == born:
        found |= {seen.pid for seen in there.values() if seen.session == pid}
    found |= {each for each in there if each not in found and marks(each) == mark.variables}
    while more := {seen.pid for seen in there.values() if seen.parent in found} - found:
        found |= more
    return [there[each] for each in sorted(found)]


def owned(folder: str) -> dict[str, list[Seen]]:
    """All that was started by the agent of a folder, by the uid of the HostProcess."""
    found: dict[str, list[Seen]] = {}
    for seen in everybody():
        said = marks(seen.pid)
        if said.get(OWNER) == folder and said.get(MARK):
            found.setdefault(said[MARK], []).append(seen)
    return found


def _same(now: Seen | None, before: Seen) -> bool:
    return now is not None and now.born == before.born


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
    """A file of a process; empty where it is gone or not for us. Without `Path`: there are hundreds to read."""
    try:
        with open(f"{_PROC}/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
            return file.readall()
    except OSError:
        return b""


@cache
def _boot() -> str:
    """Which run of the system this is: the start of a process is counted from there."""
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
