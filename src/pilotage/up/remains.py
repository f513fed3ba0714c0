"""What is left of a folder's processes and ports: read from the system itself, not from what we believe."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from typing import TYPE_CHECKING

from pilotage.system import processes
from pilotage.up.layout import MARK, Seen

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def seen(pid: int) -> Seen | None:
    """The process that has this number now; None: none, or one that is dead and not yet buried."""
    found = processes.look(pid)
    return Seen(pid, found.born) if found is not None else None


def alive(process: Seen) -> bool:
    """Whether it is still that one."""
    return processes.runs(*process)


def marked(folder: Path) -> list[Seen]:
    """The processes that carry the folder's mark, but for this one; those that cannot be read are not ours."""
    others = (each for each in processes.everybody() if each.pid != os.getpid())
    return [
        Seen(each.pid, each.born) for each in others if processes.variables(each.pid, (MARK,)) == {MARK: str(folder)}
    ]


def listening(ports: Iterable[int]) -> list[int]:
    """Those of the ports of this machine that somebody answers on."""
    return [port for port in ports if _answers(port)]


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port(wanted: int = 0) -> int:
    """That one if it can be had, else any."""
    for port in (wanted, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise OSError("no free port on 127.0.0.1")


def end(processes: Iterable[Seen], patience: float, *, again: float = 0) -> list[Seen]:
    """Ask each to end, wait, then force those that did not, with all of their group. Returns those that still live.

    `again`: after so many seconds they are asked once more, which every part takes as: hurry.
    """
    left = [each for each in processes if alive(each)]
    steps = [(signal.SIGTERM, patience), (signal.SIGKILL, 5.0)]
    if again:
        steps.insert(0, (signal.SIGTERM, again))
    for number, seconds in steps:
        for each in left:
            _send(each, number)
        until = time.monotonic() + seconds
        while (left := [each for each in left if alive(each)]) and time.monotonic() < until:
            time.sleep(0.02)  # they are not always our children, and only Linux tells of the end of others
    return left


def _send(process: Seen, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        if number == signal.SIGKILL and os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, number)
        else:
            os.kill(process.pid, number)
