"""Leftovers of a test run: processes and folders that still exist."""

import os
import signal
import subprocess
from pathlib import Path

from controlplane.access import wait_for


def processes_of(folder: str | Path) -> list[str]:
    """The command lines of the living processes that name a run folder."""
    listing = subprocess.run(["ps", "-axww", "-o", "stat=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listing.splitlines() if str(folder) in line and not line.startswith("Z")]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not yet collected by its parent does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def wait_until_nothing_is_left(folder: str | Path) -> None:
    """Wait until no process names the run folder, and it is gone itself."""
    wait_for(f"end of the processes in {folder}", lambda: not processes_of(folder), timeout=15)
    wait_for(f"end of {folder}", lambda: not Path(folder).exists(), timeout=15)


def interruptible() -> None:
    """For `preexec_fn`: let Ctrl-C reach the process, also where the test run itself was started to ignore it (`&`)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def send(process: "subprocess.Popen[str]", number: signal.Signals, *, to_group: bool = False) -> None:
    """Send a signal to a process, or to its whole group, as a terminal does."""
    if to_group:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
