"""Census: which running processes belong together.

A process of ours carries variables in its environment from its first moment on, its mark. What a server has started is
found in three ways, because none is enough: it is in the server's session; it has the server's mark in its environment,
wherever it has gone; or it descends from one that was found.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pilotage.processes import identity
from pilotage.processes.identity import ProcessId, ProcessInfo

UP_FOLDER = "PILOTAGE_UP"
"""Variable with the folder of the `pilotage up` that a process belongs to, whichever component started it."""
AGENT_FOLDER = "PILOTAGE_AGENT"
"""Variable with the folder of the agent that started a server."""
PROCESS_UID = "PILOTAGE_PROCESS_UID"
"""Variable with the uid of a server's HostProcess."""


def marked(mark: Mapping[str, str]) -> list[ProcessInfo]:
    """Running processes with these variables in their environment, except this one; unreadable ones are not ours."""
    return [each for each in _others() if _carries(each.pid, mark)]


def marked_by(mark: Mapping[str, str], name: str) -> dict[str, list[ProcessInfo]]:
    """The same, by the value of another variable; those without it are left out."""
    found: dict[str, list[ProcessInfo]] = {}
    for each in identity.running():
        variables = identity.environment(each.pid, (*mark, name))
        value = variables.pop(name, "")
        if value and variables == mark:
            found.setdefault(value, []).append(each)
    return found


class Processes(NamedTuple):
    """Processes that are known one by one."""

    ids: Collection[ProcessId]
    leader: ProcessId | None = None

    def members(self, _known: Sequence[ProcessInfo] = ()) -> list[ProcessInfo]:
        """Those that run."""
        found = (identity.find(each.pid) for each in self.ids)
        return [each for each in found if each is not None and each.id in self.ids]


class Marked(NamedTuple):
    """All processes that carry a mark, except this one."""

    mark: Mapping[str, str]
    leader: ProcessId | None = None

    def members(self, _known: Sequence[ProcessInfo] = ()) -> list[ProcessInfo]:
        """Those that run."""
        return marked(self.mark)


class Family(NamedTuple):
    """A server, which leads a session, and everything that it has started."""

    mark: Mapping[str, str]
    leader: ProcessId

    def members(self, known: Sequence[ProcessInfo] = ()) -> list[ProcessInfo]:
        """Those that run; `known` were found before.

        The session counts while the leader runs. After that its number may be another's.
        """
        there = {each.pid: each for each in _others()}
        found = {each.pid for each in known if each.pid in there and there[each.pid].id == each.id}
        pid = self.leader.pid
        if pid in there and there[pid].id == self.leader:
            found |= {each.pid for each in there.values() if each.session == pid}
        found |= {each for each in there if each not in found and _carries(each, self.mark)}
        while more := {each.pid for each in there.values() if each.parent in found} - found:
            found |= more
        return [there[each] for each in sorted(found)]


def orphans(leader: int) -> list[ProcessInfo]:
    """The rest of the session of a process that ended a moment ago: later its number may be another's."""
    if leader <= 0 or identity.find(leader) is not None:
        return []
    return [each for each in _others() if each.session == leader]


def _others() -> list[ProcessInfo]:
    return [each for each in identity.running() if each.pid != os.getpid()]


def _carries(pid: int, mark: Mapping[str, str]) -> bool:
    return identity.environment(pid, mark) == mark
