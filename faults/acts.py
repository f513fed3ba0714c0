"""Faults: how each is inflicted on a system and, where it does not heal by itself, removed again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from faults.cases import DAYS, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from faults.cases import Case
    from faults.system import System

FREEZE_SECONDS = 60.0
SHORTAGE_SECONDS = 20.0
"""Duration of a full disk, or of a component without descriptors."""


def inflict(system: System, case: Case, freeze_seconds: float = FREEZE_SECONDS) -> None:
    """Returns when the fault is over, from when on recovery counts. A part that is not there has nothing to suffer."""
    if case.fault in (Fault.FORWARD, Fault.BACK):
        system.set_clock(DAYS * 86400.0 if case.fault is Fault.FORWARD else -DAYS * 86400.0)
        return
    if case.fault is Fault.DISK:
        with _full(system):
            time.sleep(SHORTAGE_SECONDS)
        return
    process = system.process(case.part)
    if process is None:
        return
    with contextlib.suppress(ProcessLookupError):
        if case.fault is Fault.KILL:
            os.kill(process.pid, signal.SIGKILL)
        elif case.fault is Fault.FREEZE:
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(freeze_seconds)
            os.kill(process.pid, signal.SIGCONT)
        else:
            _without_descriptors(process)


def _without_descriptors(process: psutil.Process) -> None:
    """Let it have no more of them than it has now."""
    limits = Path(f"/proc/{process.pid}/limits").read_text(encoding="utf-8")
    soft, hard = (int(each) for each in limits.partition("Max open files")[2].split()[:2])
    used = max(int(each) for each in os.listdir(f"/proc/{process.pid}/fd")) + 1  # noqa: PTH208 - numbers
    _limit(process, min(used, hard), hard).check_returncode()
    time.sleep(SHORTAGE_SECONDS)
    with contextlib.suppress(psutil.NoSuchProcess):
        _limit(process, soft, hard)


def _limit(process: psutil.Process, soft: int, hard: int) -> subprocess.CompletedProcess[bytes]:
    """Set the limit as the owner of the process: not even root may do it to another user's in every container."""
    command = ["prlimit", "--pid", str(process.pid), f"--nofile={soft}:{hard}"]
    user, group = process.uids().real, process.gids().real
    return subprocess.run(command, user=user, group=group, extra_groups=[], capture_output=True, check=False)


@contextlib.contextmanager
def _full(system: System) -> Iterator[None]:
    """Its disk, to the last byte."""
    ballast = system.layout.folder / "ballast"
    piece = b"\0" * 65536
    with ballast.open("wb", buffering=0) as file:
        while piece:
            try:
                file.write(piece)
            except OSError:
                piece = piece[: len(piece) // 2]
    try:
        yield
    finally:
        ballast.unlink()
