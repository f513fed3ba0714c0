import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controlplane.access import wait_for
from controlplane.processes import ProcessError, Supervisor
from tests.controlplane.leftovers import interruptible, is_alive, send, wait_until_nothing_is_left

SLEEP = ["sleep", "1000"]
ENV = {"PATH": os.environ["PATH"]}

# A run that starts a process with a child of its own, prints its folder, and waits.
RUN = """
import os, time
from controlplane.processes import Supervisor
with Supervisor() as supervisor:
    argv = ["sh", "-c", "sleep 1000 & wait", str(supervisor.folder)]
    print(supervisor.pid, supervisor.start("parent", argv, env=os.environ), supervisor.folder, flush=True)
    time.sleep(1000)
"""


@contextmanager
def run() -> Iterator[tuple["subprocess.Popen[str]", int, int, Path]]:
    """The process, the id of its supervisor, the id of what that started, and the run folder."""
    with subprocess.Popen(
        [sys.executable, "-c", RUN],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        preexec_fn=interruptible,
    ) as process:
        assert process.stdout
        supervisor, started, folder = process.stdout.readline().split()
        try:
            yield process, int(supervisor), int(started), Path(folder)
        finally:
            process.kill()


def test_closing_ends_the_processes_and_what_they_started_and_removes_the_folder() -> None:
    with Supervisor() as supervisor:
        pid = supervisor.start("parent", ["sh", "-c", "sleep 1000 & echo $!; wait"], env=ENV)
        child = int(wait_for("child", lambda: supervisor.log("parent").read_text()))
        assert supervisor.is_running("parent")
    assert not is_alive(pid)
    wait_for("end of the child", lambda: not is_alive(child))
    assert not is_alive(supervisor.pid)
    assert not supervisor.folder.exists()


def test_only_the_logs_stay_when_they_are_to_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Supervisor() as supervisor:
        (supervisor.folder / "secret.key").touch()
        (supervisor.folder / "etcd").mkdir()
        supervisor.start("speaker", ["echo", "hello"], env=ENV)
        wait_for("end of echo", lambda: supervisor.exit_code("speaker") == 0)
        supervisor.keep_logs()
    assert list(supervisor.folder.iterdir()) == [supervisor.logs]
    assert supervisor.log("speaker").read_text() == "hello\n"


def test_a_process_can_be_stopped_and_ended_alone() -> None:
    with Supervisor() as supervisor:
        frozen = supervisor.start("frozen", SLEEP, env=ENV)
        other = supervisor.start("other", SLEEP, env=ENV)
        supervisor.signal("frozen", signal.SIGSTOP)
        supervisor.kill("frozen")
        assert not is_alive(frozen)
        assert is_alive(other)
        assert not supervisor.is_running("frozen")


THREADS = """
import hashlib, threading
def work():
    while True:
        hashlib.sha256(bytes(1 << 22)).digest()
for _ in range(16):
    threading.Thread(target=work).start()
"""


def states(pid: int) -> set[str]:
    """States of the threads of a process: R runs, S sleeps, T is stopped."""
    stats = Path(f"/proc/{pid}/task").glob("*/stat")
    return {stat.read_text().rpartition(")")[2].split()[0] for stat in stats}


def test_a_process_that_was_told_to_stop_stands_with_all_its_threads_each_time() -> None:
    with Supervisor() as supervisor:
        busy = supervisor.start("busy", [sys.executable, "-c", THREADS], env=ENV)
        wait_for("its threads", lambda: len(list(Path(f"/proc/{busy}/task").iterdir())) == 17)
        for _ in range(10):
            supervisor.signal("busy", signal.SIGSTOP)
            assert states(busy) == {"T"}
            supervisor.signal("busy", signal.SIGCONT)
            wait_for("it to go on", lambda: states(busy) != {"T"})


def test_the_exit_code_tells_how_a_process_ended() -> None:
    with Supervisor() as supervisor:
        supervisor.start("failing", ["sh", "-c", "exit 3"], env=ENV)
        wait_for("end of sh", lambda: supervisor.exit_code("failing") is not None)
        assert supervisor.exit_code("failing") == 3


def test_a_program_that_is_not_there_is_named() -> None:
    with Supervisor() as supervisor, pytest.raises(ProcessError, match="no-such-program"):
        supervisor.start("absent", ["no-such-program"], env=ENV)


def test_a_process_that_is_not_there_is_named() -> None:
    with Supervisor() as supervisor, pytest.raises(ProcessError, match="there is no process 'absent'"):
        supervisor.kill("absent")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("to_group", [False, True], ids=["alone", "group"])
def test_nothing_is_left_however_the_run_ends(number: signal.Signals, to_group: bool) -> None:
    with run() as (process, supervisor, started, folder):
        assert is_alive(started)
        send(process, number, to_group=to_group)
        process.wait()
        wait_until_nothing_is_left(folder)
        assert not is_alive(started)
        wait_for("end of the supervisor", lambda: not is_alive(supervisor))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's death")
def test_the_processes_do_not_outlive_a_supervisor_that_was_killed() -> None:
    with Supervisor() as supervisor:
        pid = supervisor.start("sleeper", SLEEP, env=ENV)
        os.kill(supervisor.pid, signal.SIGKILL)
        wait_for("end of the sleeper", lambda: not is_alive(pid))
        with pytest.raises(ProcessError, match="the supervisor is gone"):
            supervisor.is_running("sleeper")
    assert not supervisor.folder.exists()
