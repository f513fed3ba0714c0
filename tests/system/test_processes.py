"""A process is the same one whatever the clock says."""

import os
import time
from pathlib import Path

import psutil
import pytest

from pilotage.system import processes
from pilotage.up import remains


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the start of a process is read from /proc")
def test_a_process_stays_itself_when_the_clock_is_set(monkeypatch):
    """The system's boot time, as time of day, moves with the clock; psutil counts from there."""
    before, known = processes.look(os.getpid()), remains.seen(os.getpid())
    assert before is not None
    assert known is not None
    boot = psutil.boot_time()
    monkeypatch.setattr(psutil._pslinux, "boot_time", lambda: boot + 2 * 86400)
    monkeypatch.setattr(time, "time", lambda: boot + 10**7)
    assert processes.look(os.getpid()) == before
    assert processes.runs(before.pid, before.born)
    assert remains.alive(known), "pilotage down has to find the supervisor"


def test_another_process_with_that_number_is_another_one():
    seen = processes.look(os.getpid())
    assert seen is not None
    assert not processes.runs(seen.pid, seen.born + "0")
    assert not processes.runs(0, seen.born)


def test_variables_are_those_that_it_was_started_with():
    assert processes.variables(os.getpid(), ("PATH",)).keys() <= {"PATH"}
    assert processes.variables(2**22 + 1, ("PATH",)) == {}
