"""Termination: SIGTERM, wait, SIGKILL, and the proof that nothing runs any more.

Processes that are not children of ours are ended, too, and only Linux tells of the end of others: so they are polled.
A group is signalled as a whole, because it cannot start anything in between; those that have left it one by one.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from pilotage.processes.identity import ProcessId, ProcessInfo, is_running

POLL_SECONDS = 0.02
HURRY_SECONDS = 0.3
"""Pause between two SIGTERMs in a hurry: of two that are sent at once the system keeps one."""
KILL_AGAIN_SECONDS = 0.2
"""Pause between two SIGKILLs, for processes that were started in between."""
KILL_SECONDS = 5.0
"""A process that runs so long after SIGKILL is held by the system itself: a disk, a driver."""


class StillRunning(Exception):
    """Some processes did not end: not even by SIGKILL, or because we may not send it to those that are `refused`."""

    def __init__(self, processes: Sequence[ProcessInfo], refused: Collection[int] = ()) -> None:
        self.processes = tuple(processes)
        pids = ", ".join(str(each.pid) for each in processes)
        said = f"process {pids} does not end, not even by SIGKILL"
        if forbidden := ", ".join(str(each.pid) for each in processes if each.pid in refused):
            why = f"we may not send SIGKILL to {forbidden}, which runs as another user"
            said = f"process {pids} does not end: {why}. End it as that user, or as root"
        super().__init__(said)


class TerminationTarget(Protocol):
    """Processes to end: see `census`."""

    @property
    def leader(self) -> ProcessId | None:
        """The process whose whole group gets each signal, if there is one."""

    def members(self, known: Sequence[ProcessInfo] = ()) -> list[ProcessInfo]:
        """Those that run; `known` were found before."""


async def terminate(
    target: TerminationTarget,
    until: Callable[[], float],
    *,
    hurry: Callable[[], bool] = lambda: False,
    known: Sequence[ProcessInfo] = (),
    at: Callable[[str], None] = lambda _: None,
) -> int:
    """End all members of the target; that nothing of it runs is proven when this returns. The number of those killed.

    They get SIGTERM, and SIGKILL when the loop's clock reaches `until` (asked again and again: it may change). While
    `hurry` is true, SIGTERM is repeated, which every program of ours takes for: do not wait for requests. `at` is told
    each step before and after it. Raises StillRunning.
    """
    members = target.members(known)
    if not members:
        return 0
    at("before SIGTERM")
    _send(members, signal.SIGTERM, target.leader)
    at("after SIGTERM")
    members = await _wait(target, members, until, hurry)
    killed, deadline = len(members), _now() + KILL_SECONDS
    while members:
        at("before SIGKILL")
        _send(members, signal.SIGKILL, target.leader)
        at("after SIGKILL")
        again = _now() + KILL_AGAIN_SECONDS
        members = await _wait(target, members, lambda again=again: again)  # type: ignore[misc]
        killed = max(killed, len(members))
        if members and _now() > deadline:
            raise StillRunning(members, [each.pid for each in members if _is_refused(each)])
    return killed


async def _wait(
    target: TerminationTarget,
    members: list[ProcessInfo],
    until: Callable[[], float],
    hurry: Callable[[], bool] = lambda: False,
) -> list[ProcessInfo]:
    """Wait until none of them runs and a new census finds no other; returns those that are left when time is up."""
    again = _now() + HURRY_SECONDS
    while True:
        members = [each for each in members if is_running(each.id)]
        if not members and not (members := target.members()):
            return []
        now = _now()
        if now >= until():
            return target.members(members)
        if now >= again:
            again = now + HURRY_SECONDS
            if hurry():
                _send(members, signal.SIGTERM, target.leader)
        await asyncio.sleep(POLL_SECONDS)


def _send(members: Sequence[ProcessInfo], number: signal.Signals, leader: ProcessId | None) -> None:
    """Signal the leader's group, with SIGKILL also groups that members lead, and each member outside of them."""
    groups = {each.pid for each in members if number == signal.SIGKILL and _group(each) == each.pid}
    if leader is not None and any(each.session == leader.pid for each in members):
        groups.add(leader.pid)
    single = [each for each in members if _group(each) not in {None, *groups}]
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    for each in single:
        if is_running(each.id):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each.pid, number)


def _is_refused(process: ProcessInfo) -> bool:
    """Whether a process runs and we may not signal it."""
    try:
        os.kill(process.pid, 0)
    except PermissionError:
        return is_running(process.id)
    except ProcessLookupError:
        pass
    return False


def _group(process: ProcessInfo) -> int | None:
    """The process group of a process; None if it does not run any more."""
    try:
        return os.getpgid(process.pid) if is_running(process.id) else None
    except ProcessLookupError:
        return None


def _now() -> float:
    return asyncio.get_running_loop().time()
