"""Which of the processes that run belong to a server of ours.

A process is told by its pid and the moment it began (`system.processes`). What a server has started is found in three
ways, because none is enough: it is in the server's session; it has the variable `PILOTAGE_PROCESS_UID` in its
environment, wherever it has gone; or it descends from one that was found.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from pilotage.system.processes import Seen, everybody, look, runs, variables

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MARK", "OWNER", "Mark", "Seen", "everybody", "family", "look", "marks", "owned", "runs"]

MARK = "PILOTAGE_PROCESS_UID"
"""The variable of a server's environment with the uid of its HostProcess."""
OWNER = "PILOTAGE_AGENT"
"""The variable with the folder of the agent that started it."""
VARIABLES = (MARK, OWNER)


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


def marks(pid: int) -> dict[str, str]:
    """Those of our two variables that it was started with; none where its environment cannot be read."""
    return variables(pid, (MARK, OWNER))


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
