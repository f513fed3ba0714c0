"""``pilotage up`` and ``down``: the real processes, with a real llama-server and a real Envoy."""

import asyncio
import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from demo import __main__ as demo
from pilotage.kube import load_config
from pilotage.processes.identity import is_running
from pilotage.processes.ports import is_listening
from pilotage.processes.run_as import NOBODY, SERVER_USER
from pilotage.up import leftovers, logs
from pilotage.up.layout import Layout
from tests.support.waiting import soon


def bring_up(machine):
    machine.run(f"pilotage up --detach --port {machine.port} --file-roots {machine.folder}")


def begin_to_bring_up(machine):
    """Bring up, as far as its first part runs; returns who waits for the rest, too."""
    command = [sys.executable, "-m", "pilotage", "up", "--detach", "--port", str(machine.port)]
    command += ["--file-roots", str(machine.folder)]
    waiting = subprocess.Popen(command, env=machine.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    soon(lambda: Layout(machine.data).read_state(), "the first part runs")
    return waiting


def deploy(machine, name="assistant", model="v1", args=()):
    """Deploy with one thread: a model as small as this gets no faster with more, which only wait for each other."""
    words = " ".join(f"--arg {word}" for word in ("--threads", "1", *args))
    model = f"file://{machine.folder}/{model}.gguf"
    machine.run(f"pilotage deploy {name} --model {model} {words}")


def programs(machine, name):
    """The processes of a machine that are such a program."""
    found = [psutil.Process(each.pid) for each in leftovers.find(Layout(machine.data), None).processes]
    return [each for each in found if "".join(each.cmdline()[:1]).endswith(f"/{name}")]


def servers(machine):
    """The llama-servers that run for a machine."""
    return programs(machine, "llama-server")


def envoys(machine):
    """The Envoys that run for a machine."""
    return programs(machine, "envoy")


def kill(layout, part):
    """Kill a part, and wait until it runs again."""
    before = layout.read_state().components[part]
    os.kill(before.pid, signal.SIGKILL)
    soon(lambda: (now := layout.read_state().components[part]) != before and is_running(now), f"{part} runs again")


def keep(machine, monkeypatch, capsys):
    """Play the end of ``python -m demo --keep`` on a machine that is up; returns how to take it down."""
    with monkeypatch.context() as patched:
        patched.setattr(sys, "argv", ["demo", "--keep"])
        patched.setattr(tempfile, "mkdtemp", lambda **_: str(machine.folder))
        patched.setattr(demo, "Machine", lambda *_: machine)
        patched.setattr(demo, "story", lambda _: None)
        demo.main()
    return capsys.readouterr().out.partition("It stays up. Take it down with: ")[2]


def test_what_was_deployed_is_there_again_after_down_and_up(machine, monkeypatch, capsys):
    bring_up(machine)
    said = (machine.data / "logs" / "operator.log").read_text()
    assert said
    assert "{" not in said.splitlines()[0], "it is for people"
    assert f"requests    {machine.url}/v1" in machine.run("pilotage up --detach"), "it is up already, which is fine"
    said = machine.run("pilotage up --port 1", expected=(1,))
    assert f"is up already with --port {machine.port}. Change it with: pilotage down && pilotage up -d --port 1" in said
    log = Layout(machine.data).logs / "up.log"
    assert "gateway is ready" in log.read_text(), "who comes second writes over nothing"
    written = [each for each in log.parent.iterdir() if each.suffix == ".log"]
    for each in written:
        os.truncate(each, logs.BYTES_MAX + 1)  # more than it may have; its writer continues after that
    (envoy,) = envoys(machine)
    assert envoy.uids().real == (NOBODY if os.geteuid() == 0 else os.geteuid())
    take_down = keep(machine, monkeypatch, capsys)
    assert machine.ask("assistant").startswith("I am the first version.")
    whom = {each.uids().real for each in servers(machine)}
    assert whom == ({int(SERVER_USER)} if os.geteuid() == 0 else {os.geteuid()}), "it can read nothing of ours"
    with pytest.raises(
        SystemExit, match=r"left behind: ServingEndpoint default/assistant, .*Service default/assistant"
    ):
        asyncio.run(demo.check_objects(machine))
    assert may_list_endpoints(machine) == {"agent": False, "gateway": False, "operator": True}
    assert {each.stem for each in written} == {"up", "harbor", "operator", "agent", "gateway"}
    for each in written:
        soon(lambda log=each: log.stat().st_size < logs.BYTES_MAX, f"{each} is rotated while it is written")
        assert each.with_suffix(".log.1").stat().st_size > logs.BYTES_MAX
    assert "No process is left" in machine.run("pilotage down --now")
    assert '"model":"assistant"' in (machine.data / "gateway" / "access.log").read_text(), "the log of requests stays"
    assert "agent has ended with 4:" in log.read_text(), "its exit code says that it was hurried"
    assert servers(machine) == []
    assert leftovers.find(Layout(machine.data), None).processes == []

    # `down` may have another folder for temporary files than `up` had.
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:
        machine.env["TMPDIR"] = temporary
        said = machine.run("pilotage up --detach")
        assert f"As the last time: --port {machine.port} --file-roots {machine.folder}\n" in said
        soon(lambda: machine.answers("assistant"), "the endpoint serves again")
        assert len([*Path(temporary).glob("pilotage-*")]) == 1
        machine.env["TMPDIR"] = str(machine.folder)
        said = subprocess.run(take_down, shell=True, env=machine.env, capture_output=True, text=True, check=True).stdout
        assert [*Path(temporary).glob("pilotage-*")] == []
    assert "deleting ServingEndpoint default/assistant" in said
    assert not machine.folder.exists()
    assert not is_listening(machine.port)


def may_list_endpoints(machine):
    """Components that get an answer to that, with their own key."""
    answers = {}
    for part in ("agent", "gateway", "operator"):
        kubeconfig = Layout(machine.data).access(part)
        assert kubeconfig.stat().st_mode & 0o077 == 0
        command = [sys.executable, "-m", "pilotage", "list", "-A", "--kubeconfig", str(kubeconfig)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        assert answer.returncode == 0 or "forbidden" in answer.stderr, answer.stderr
        answers[part] = answer.returncode == 0
    return answers


def test_parts_that_are_killed_are_started_again_and_down_finds_what_a_killed_supervisor_left(machine):
    layout = Layout(machine.data)
    with begin_to_bring_up(machine) as waiting:
        waiting.send_signal(signal.SIGINT)
    soon(lambda: layout.read_state().ready, "it comes up, though nobody waits any more")
    deploy(machine)
    for part in ("operator", "agent", "gateway", "harbor"):
        (server,) = servers(machine)
        kill(layout, part)
        soon(lambda: machine.answers("assistant"), "requests are answered")
        assert [each.pid for each in servers(machine)] == [server.pid], f"{part}: the server was started anew"
    server.kill()
    soon(lambda: server.pid not in {each.pid for each in servers(machine)}, "the server is gone")
    soon(lambda: machine.answers("assistant"), "the agent, which the new API server lets in, has started another")
    before = layout.read_state().components
    for part in before.values():
        os.kill(part.pid, signal.SIGKILL)
    soon(
        lambda: all(now != before[part] and is_running(now) for part, now in layout.read_state().components.items()),
        "all of them run again",
    )
    soon(lambda: "server: " in machine.run("pilotage version", expected=(0, 3)), "the API answers again")
    deploy(machine, "after")
    assert machine.ask("after").startswith("I am the first version.")
    note = layout.read_state()
    os.kill(note.supervisor.pid, signal.SIGKILL)
    (machine.data / "up.json").unlink()
    bring_up(machine)  # it ends the processes that it finds, though no file names them
    soon(lambda: machine.answers("assistant"), "the endpoint serves again")
    assert [part for part, seen in note.components.items() if is_running(seen)] == []
    note = layout.read_state()
    os.kill(note.supervisor.pid, signal.SIGKILL)
    machine.run("pilotage down --now")
    assert servers(machine) == []
    assert [part for part, seen in note.components.items() if is_running(seen)] == []


def test_who_waits_is_told_when_the_supervisor_dies_and_down_looks_for_the_port_of_the_part_that_lived_on(machine):
    layout = Layout(machine.data)
    with begin_to_bring_up(machine) as waiting:
        soon(lambda: "harbor" in layout.read_state().ports, "the API server listens")
        note = layout.read_state()
        os.kill(note.supervisor.pid, signal.SIGKILL)
        try:
            said, _ = waiting.communicate(timeout=20)
        finally:
            waiting.kill()
    assert (waiting.returncode, said) == (1, "Error: it ended with -9.\n")
    harbor = note.components["harbor"]
    assert is_running(harbor)

    os.kill(harbor.pid, signal.SIGKILL)
    soon(lambda: not is_running(harbor), "it is gone")
    port = urlsplit(load_config(kubeconfig=str(layout.kubeconfig)).server).port
    assert port is not None
    with socket.create_server(("127.0.0.1", port)):
        said = machine.run("pilotage down --now", expected=(1,))
    assert f"not all has ended: ports {port}. Run `pilotage down` again" in said


def test_a_port_that_is_taken_is_said_and_nothing_is_left(machine):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", machine.port))
        taken.listen()
        said = machine.run(f"pilotage up --detach --port {machine.port}", expected=(1,))
    assert f"port {machine.port} is taken. Choose another --port." in said
    assert leftovers.find(Layout(machine.data), None).processes == []


def test_down_without_up_says_so_and_removes_nothing(tmp_path):
    (tmp_path / "mine").write_text("precious")
    command = [sys.executable, "-m", "pilotage", "down", "--purge", "--data", str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout == f"Nothing was brought up in {tmp_path}.\n"
    assert (tmp_path / "mine").read_text() == "precious"


def test_down_leaves_alone_what_is_just_being_brought_up(tmp_path):
    layout = Layout(tmp_path / "data")
    layout.make()
    with layout.lock.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = [sys.executable, "-m", "pilotage", "down", "--purge", "--data", str(layout.folder)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (
        1,
        f"Error: {layout.folder} is being brought up. Try again in a moment.\n",
    )
    assert layout.logs.exists()


def test_a_folder_that_cannot_be_made_is_said_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "pilotage", "up", "--detach", "--data", str(tmp_path / "file" / "data")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr.startswith("Error: ")
    assert answer.stderr.endswith("Choose another --data.\n")
