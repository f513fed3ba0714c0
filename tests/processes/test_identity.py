"""The identity of a process does not depend on the wall clock."""

import os
import time
from pathlib import Path

import psutil
import pytest

from pilotage.processes import identity
from pilotage.processes.identity import ProcessId, is_running


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the start of a process is read from /proc")
def test_a_process_stays_itself_when_the_clock_is_set(monkeypatch):
    """The system's boot time, as time of day, moves with the clock; psutil counts from there."""
    before = identity.find(os.getpid())
    assert before is not None
    boot = psutil.boot_time()
    monkeypatch.setattr(psutil._pslinux, "boot_time", lambda: boot + 2 * 86400)
    monkeypatch.setattr(time, "time", lambda: boot + 10**7)
    assert identity.find(os.getpid()) == before
    assert is_running(before.id), "pilotage down has to find the supervisor"


def test_another_process_with_that_pid_is_another_one():
    found = identity.find(os.getpid())
    assert found is not None
    assert not is_running(ProcessId(found.pid, found.born + "0"))
    assert not is_running(ProcessId(0, found.born))


def test_variables_are_those_that_it_was_started_with():
    assert identity.environment(os.getpid(), ("PATH",)).keys() <= {"PATH"}
    assert identity.environment(2**22 + 1, ("PATH",)) == {}
