"""Ending real processes: in order, all of them, and only them."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from pilotage.processes import census, identity, terminate
from pilotage.processes.census import Family, Marked, Processes
from pilotage.processes.identity import ProcessId, ProcessInfo, is_running
from pilotage.processes.terminate import StillRunning

MARK = "PILOTAGE_TEST_MARK"
READY = "print('ready', flush=True); "
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
SLEEP = "time.sleep(1000)"
SECOND_TERM = (
    "import signal, sys, time; left = [2]\n"
    "def heard(*_):\n"
    "    left[0] -= 1\n"
    "    left[0] or sys.exit(4)\n"
    "signal.signal(signal.SIGTERM, heard); " + READY + "\nwhile True: time.sleep(0.01)"
)
CHILDREN = (
    DEAF + "import os\n"
    "for leave in (lambda: None, lambda: os.setpgid(0, 0), os.setsid):\n"
    "    if os.fork() == 0:\n"
    "        leave(); os.environ.clear(); time.sleep(1000)\n" + READY + SLEEP
)


@pytest.fixture
def mark(tmp_path):
    return {MARK: str(tmp_path)}


@pytest.fixture
def run(mark):
    """Starts a script in a session of its own, with the mark; everything is killed in the end."""
    started = []

    def run(script, **more):
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            env=mark,
            stdout=subprocess.PIPE,
            **({"start_new_session": True} | more),
        )
        started.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process

    yield run
    for each in census.marked(mark):
        os.kill(each.pid, signal.SIGKILL)
    for process in started:
        process.stdout.close()
        process.kill()
        process.wait()


def id_of(process):
    return identity.find(process.pid).id


def soon(seconds):
    until = asyncio.get_running_loop().time() + seconds
    return lambda: until


async def test_a_process_that_heeds_sigterm_is_not_killed(run, mark):
    process = run("import time; " + READY + SLEEP)
    steps = []
    assert await terminate.terminate(Marked(mark), soon(10), at=steps.append) == 0
    assert process.wait() == -signal.SIGTERM
    assert steps == ["before SIGTERM", "after SIGTERM"]


async def test_one_that_does_not_is_killed_when_time_is_up(run, mark):
    process = run(DEAF + READY + SLEEP)
    assert await terminate.terminate(Processes([id_of(process)]), soon(0.1)) == 1
    assert process.wait() == -signal.SIGKILL


async def test_of_a_family_nothing_is_left_wherever_it_has_gone_and_nothing_else_is_touched(run, mark):
    """Its children have no mark in their environment; one is in another group, one in another session."""
    process = run(CHILDREN)
    other = run("import time; " + READY + SLEEP)
    family = Family(mark, id_of(process))
    members = [each for each in family.members() if each.pid != other.pid]
    assert len(members) == 4
    only = Family({MARK: "none"}, id_of(process))  # by its session and by descent
    assert await terminate.terminate(only, soon(0.1)) == 4
    assert not any(is_running(each.id) for each in members)
    assert other.poll() is None


async def test_what_is_started_meanwhile_is_found_too(run, mark):
    """The process starts another one at SIGTERM, in another session, and ends."""
    run(
        "import os, signal, time\n"
        "def replace(*_):\n"
        "    if os.fork():\n"
        "        os._exit(0)\n"
        "    os.setsid()\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    os.execv('/bin/sleep', ['sleep', '1000'])\n"
        "signal.signal(signal.SIGTERM, replace); " + READY + "\nwhile True: time.sleep(0.01)"
    )
    assert await terminate.terminate(Marked(mark), soon(1)) == 1
    assert census.marked(mark) == []


async def test_a_process_that_got_the_pid_of_another_is_left_alone(run, mark):
    process = run("import time; " + READY + SLEEP)
    assert await terminate.terminate(Processes([ProcessId(process.pid, "another boot")]), soon(0.1)) == 0
    stranger = Family({MARK: "none"}, ProcessId(process.pid, "another boot"))
    assert await terminate.terminate(stranger, soon(0.1)) == 0
    assert process.poll() is None


async def test_a_session_without_its_leader_counts_only_where_it_has_just_ended(run, mark):
    process = run("import os, time\nif os.fork():\n    " + READY + "os._exit(0)\nos.environ.clear(); time.sleep(1000)")
    leader = ProcessId(process.pid, "gone")
    process.wait()
    family = Family({MARK: "none"}, leader)
    assert family.members() == []
    orphans = census.orphans(process.pid)
    assert len(orphans) == 1
    assert await terminate.terminate(family, soon(5), known=orphans) == 0
    assert not is_running(orphans[0].id)
    assert census.orphans(0) == []
    assert census.orphans(os.getpid()) == [], "it runs"


async def test_in_a_hurry_sigterm_is_repeated(run, mark):
    process = run(SECOND_TERM)
    hurry = [False]
    ending = asyncio.create_task(terminate.terminate(Processes([id_of(process)]), soon(20), hurry=lambda: hurry[0]))
    done, _ = await asyncio.wait({ending}, timeout=3 * terminate.HURRY_SECONDS)
    assert not done, "one SIGTERM is not enough"
    hurry[0] = True
    assert await ending == 0
    assert process.wait() == 4


async def test_the_deadline_may_move(run, mark):
    process = run(DEAF + READY + SLEEP)
    loop = asyncio.get_running_loop()
    until = [loop.time() + 1000]
    loop.call_later(0.1, until.__setitem__, 0, 0.0)
    assert await terminate.terminate(Processes([id_of(process)]), lambda: until[0]) == 1


async def test_what_survives_sigkill_is_named(monkeypatch):
    monkeypatch.setattr(terminate, "KILL_SECONDS", 0.0)
    monkeypatch.setattr(terminate, "KILL_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(terminate, "is_running", lambda _: True)
    monkeypatch.setattr(terminate, "_send", lambda *_: None)

    class Held:
        leader = None

        def members(self, _known=()):
            return [ProcessInfo(7, "", 1, 7)]

    with pytest.raises(StillRunning, match="process 7 does not end, not even by SIGKILL"):
        await terminate.terminate(Held(), lambda: 0.0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to become another user")
def test_a_sigkill_that_is_not_permitted_is_said(run, monkeypatch):
    """Of a process of root, by one who is not."""
    monkeypatch.setattr(terminate, "KILL_SECONDS", 0.1)
    process = id_of(run("import time; " + READY + SLEEP))
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.setuid(65534)
        try:
            asyncio.run(terminate.terminate(Processes([process]), lambda: 0.0))
        except StillRunning as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    assert text == (
        f"process {process.pid} does not end: we may not send SIGKILL to {process.pid}, which runs as another user. "
        "End it as that user, or as root"
    )
    assert is_running(process)
