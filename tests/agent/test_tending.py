"""A server that runs: watched, withdrawn while it is sick, started again when it has ended, and quiet otherwise."""

import asyncio
import dataclasses
import os
import signal
import sys
from pathlib import Path

import pytest

from pilotage.agent.health import Prober, Verdict, count, names_of
from pilotage.agent.launch import logs
from pilotage.agent.launch.failures import Failure
from pilotage.agent.launch.process import end, start
from pilotage.agent.pace import Pace
from pilotage.agent.ward import Ward
from pilotage.api.names import LABEL_ENDPOINT_UID, LABEL_HOST, LABEL_REVISION, PROCESSES
from pilotage.kube import EVENTS, ObjectKey, merge_patch
from pilotage.processes import census, terminate
from pilotage.runtime import monotonic
from pilotage.serving.resources import SERVICES, SLICES
from pilotage_sim.loop import virtual
from tests.agent.servers import PLAIN, SICKLY
from tests.agent.test_host import host
from tests.agent.test_starting import quiet
from tests.agent.town import HASTY, NAMESPACE, process_body, python_server
from tests.support.kinds import delete


async def test_a_server_that_dies_is_withdrawn_and_started_again(town):
    await town.start()
    await town.serving()
    first, port = town.pid(), town.status()["port"]
    os.kill(first, signal.SIGKILL)
    await town.until(lambda: town.status()["restarts"] == 1 and town.is_ready())
    assert town.pid() != first
    assert town.status()["port"] != port, "a port may be refused for a while after its use"
    assert town.slice()["ports"][0]["port"] == town.status()["port"]
    assert town.processes() == [town.pid()]
    assert town.metric("pilotage_agent_restarts_total") == 1
    notes = [each["reason"] for each in town.world.objects(EVENTS) if each["regarding"]["kind"] == "HostProcess"]
    assert "Killed" in notes
    assert "Healthy" in notes


async def test_what_a_server_said_while_it_ran_does_not_put_off_its_restart(town):
    """Its words tell why a start failed; one that has served did not lack a file at its start."""
    town.pace = dataclasses.replace(HASTY, lasting=3600.0)
    await town.start()
    complaint = 'import sys; print("no such file or directory", file=sys.stderr, flush=True)\n'
    await town.serving(runtime=python_server(complaint + PLAIN))
    os.kill(town.pid(), signal.SIGKILL)
    await town.until(lambda: town.status()["restarts"] == 1 and town.is_ready(), 10)


async def test_it_is_noticed_at_once_that_a_server_has_died(town):
    """Not at the next check: the system tells."""
    town.pace = dataclasses.replace(HASTY, check=60.0)
    await town.start()
    await town.serving()
    await town.until(lambda: host(town)["status"]["processes"] == 1)  # said a little later
    assert await quiet(town, 0.2) == []  # nothing else wakes it now
    os.kill(town.pid(), signal.SIGKILL)
    await town.until(lambda: town.status()["restarts"] == 1 and town.is_ready(), 10)


@virtual
async def test_each_pause_before_a_restart_is_twice_the_last_until_it_was_well_for_a_while():
    ward, pace = Ward(), Pace()

    def pause(lasting=False):
        ward.fail(Failure("Exited", "it ended", lasting), pace, ran=True)
        return ward.due - monotonic()

    assert [pause() for _ in range(10)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert pause(lasting=True) == pace.lasting
    ward.is_well(pace)
    await asyncio.sleep(pace.steady - 1)
    ward.is_well(pace)
    assert pause() == 300, "not for long enough"
    ward.is_well(pace)
    await asyncio.sleep(pace.steady)
    ward.is_well(pace)
    assert [pause(), pause()] == [1, 2]


async def test_a_server_that_hangs_is_withdrawn_and_comes_back(town):
    """SIGSTOP: it is alive, and does not answer."""
    town.pace = dataclasses.replace(HASTY, sick=60.0)
    town.prober = Prober("127.0.0.1", seconds_max=0.3)
    await town.start()
    await town.serving()
    pid = town.pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        await town.until(lambda: town.status()["phase"] == "Unhealthy" and town.conditions().get("ready") is False)
        assert "does not answer" in town.status()["message"]
    finally:
        os.kill(pid, signal.SIGCONT)
    await town.until(lambda: town.is_ready())
    assert town.pid() == pid
    assert town.status()["restarts"] == 0


async def test_a_server_that_stays_sick_is_started_again(town):
    flag = town.folder / "sick"
    runtime = python_server(SICKLY)
    runtime["command"].append(str(flag))
    await town.start()
    await town.serving(runtime=runtime, drainSeconds=0)
    first = town.pid()
    flag.touch()
    await town.until(lambda: town.status()["phase"] == "Unhealthy")
    assert town.status()["message"] == "/ answers 500."
    await town.until(lambda: town.reason() == "Unhealthy" and town.processes() not in ([], [first]))
    flag.unlink()
    await town.until(lambda: town.is_ready())
    assert town.status()["restarts"] >= 1


async def test_a_healthy_server_costs_no_write(town):
    await town.start()
    await town.serving()
    await town.until(lambda: host(town)["status"]["processes"] == 1)  # said a little later
    assert await quiet(town, 1.0) == []
    assert town.metric('pilotage_agent_health_checks_total{result="healthy"}') >= 4
    assert town.metric('pilotage_agent_processes{phase="Running"}') == 1


async def test_a_slice_that_somebody_changed_or_deleted_is_put_right(town):
    await town.start()
    await town.serving()
    key = ObjectKey(NAMESPACE, "chat-1-0")
    body = town.slice()["endpoints"]
    body[0]["conditions"]["ready"] = False  # as the operator does for a host that it has not heard of
    await town.client.patch(SLICES, key, merge_patch({"endpoints": body}))
    await town.until(lambda: town.is_ready())
    before = town.slice()["metadata"]["uid"]
    await delete(town.client, SLICES, await town.client.get(SLICES, key))
    await town.until(lambda: town.is_ready() and town.slice()["metadata"]["uid"] != before)
    await town.until(lambda: town.status()["sliceUid"] == town.slice()["metadata"]["uid"])


async def test_a_slice_says_whose_it_is(town):
    await town.start()
    uid = await town.serving()
    made = town.slice()
    assert made["metadata"]["labels"] == {
        "kubernetes.io/service-name": "chat-1",
        "endpointslice.kubernetes.io/managed-by": "pilotage.dev",
        "app.kubernetes.io/managed-by": "pilotage",
        "pilotage.dev/process-uid": uid,
        LABEL_HOST: town.host,
        LABEL_ENDPOINT_UID: "e0e0",
        LABEL_REVISION: "1",
    }
    owner = made["metadata"]["ownerReferences"][0]
    service = town.world.find(SERVICES, ObjectKey(NAMESPACE, "chat-1"))
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (
        service["metadata"]["uid"],
        False,
        False,
    )
    assert made["ports"] == [{"name": "http", "port": town.status()["port"], "protocol": "TCP"}]


async def test_one_that_takes_its_time_to_end_is_asked_how_when_it_has(town):
    """The first thread of a server can be gone while others are not, and nobody can tell then what has ended it."""
    slow_end = """
import ctypes, os, platform, signal, threading, time
def kill_it():
    time.sleep(0.6)
    os.kill(os.getpid(), signal.SIGKILL)
def leave(*_):
    threading.Thread(target=kill_it).start()
    ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)
signal.signal(signal.SIGUSR1, leave)
"""
    town.pace = dataclasses.replace(HASTY, grace=20.0)
    await town.start()
    await town.serving(runtime=python_server(slow_end + PLAIN), drainSeconds=0)
    first = town.pid()
    os.kill(first, signal.SIGUSR1)
    await town.until(lambda: town.status()["restarts"] == 1 and town.is_ready())
    notes = [each["reason"] for each in town.world.objects(EVENTS) if each["regarding"]["kind"] == "HostProcess"]
    assert "Killed" in notes
    assert "Exited" not in notes


async def test_a_process_of_another_host_is_left_alone(town):
    await town.start()
    body = process_body("other", town.model, town.host)
    body["spec"]["host"] = "elsewhere"
    await town.client.create(PROCESSES, body, namespace=NAMESPACE)
    await town.serving()
    assert town.status("other") == {}


async def test_logs_are_rotated_under_a_server_that_writes(town):
    """It goes on writing to the same file, and nothing grows without end."""
    path = town.folder / "it.log"
    write = "import time\nwhile True: print('x' * 100, flush=True); time.sleep(0.0005)"
    environment = {"PILOTAGE_AGENT": str(town.settings.data), "PILOTAGE_PROCESS_UID": "u"}
    start([sys.executable, "-c", write], environment, path)
    rotated = 0
    async with asyncio.timeout(20):
        while rotated < 4 or logs.size(path) < 500:
            if logs.rotate(path, 5_000):
                rotated += 1
                assert logs.size(path) < 5_000
            await asyncio.sleep(0.005)
    assert sorted(each.name for each in path.parent.glob("it.log*")) == ["it.log", "it.log.1", "it.log.2"]
    assert path.read_bytes().startswith(b"x"), "a file that is cut has no hole before its next line"
    logs.remove(path)
    assert [*path.parent.glob("it.log*")] == []


async def test_the_log_of_a_server_that_is_looked_after_does_not_grow_without_end(town):
    talk = PLAIN.replace("def do_GET(self):", "def do_GET(self):\n        print('asked', flush=True)")
    await town.start()
    await town.serving(runtime=python_server(talk), drainSeconds=0)
    pid, path = town.pid(), Path(town.status()["logFile"])
    os.truncate(path, logs.BYTES_MAX + 1)  # as if it had talked so much
    await town.until(lambda: path.with_name(f"{path.name}.1").exists() and 0 < logs.size(path) < logs.BYTES_MAX)
    await town.until(lambda: path.read_bytes().startswith(b"asked\n"))
    assert town.pid() == pid, "it was not told, and goes on"
    await town.delete()
    await town.until(lambda: town.find() is None)
    town.nothing_is_left()


async def test_a_log_that_cannot_be_put_aside_keeps_nobody_from_looking_after_its_server(town, capsys):
    await town.start()
    await town.serving(runtime=python_server(PLAIN), drainSeconds=0)
    pid, path = town.pid(), Path(town.status()["logFile"])
    in_the_way = path.with_name(f"{path.name}.new")
    in_the_way.mkdir()
    os.truncate(path, logs.BYTES_MAX + 1)
    os.kill(pid, signal.SIGKILL)
    await town.until(lambda: town.status()["restarts"] == 1 and town.is_ready())
    assert logs.size(path) > logs.BYTES_MAX, "nothing is cut that was not copied"
    in_the_way.rmdir()
    await town.until(lambda: logs.size(path) < logs.BYTES_MAX)
    assert capsys.readouterr().out.count("a log cannot be put aside") == 1


def test_the_tail_of_a_log_begins_where_it_is_asked_to(tmp_path):
    path = Path(tmp_path, "log")
    path.write_text("before\nafter\n")
    assert logs.tail(path, 7) == "after\n"
    assert logs.tail(path, 100) == "before\nafter\n", "it was cut since: all of it came after"
    assert logs.tail(tmp_path / "none") == ""


def test_requests_under_way_are_counted_or_unknown():
    names = ("llamacpp:requests_processing", "llamacpp:requests_deferred")
    text = "# HELP x\nllamacpp:requests_processing 2\nllamacpp:requests_deferred 1\n"
    assert count(text, names) == 3
    assert count("llamacpp:requests_processing 0\n", names) is None
    assert count("", names) is None
    labelled = 'vllm:num_requests_running{model="a"} 1.0\nvllm:num_requests_running{model="b"} 2.0\n'
    assert count(labelled, ("vllm:num_requests_running",)) == 3


async def test_a_stranger_on_its_port_is_no_sign_of_health(town):
    """It answers 200, our process lives, and the model is another."""
    await town.start()
    await town.serving()
    entry = town.running.journal.entries()[0]
    async with Prober("127.0.0.1") as prober:
        assert (await prober.check(entry)).verdict is Verdict.HEALTHY
        stranger = await prober.check(entry.but(alias="another"))
        assert stranger.verdict is Verdict.STRANGER
        assert "something else answers (tiny)" in stranger.why
        assert (await prober.check(entry.but(born="another"))).verdict is Verdict.DEAD


def test_who_answers_is_read_from_its_models():
    assert names_of(b'{"data": [{"id": "a"}, {"id": "b"}]}') == ["a", "b"]
    assert names_of(b"<html>") == []


async def test_a_server_that_ends_while_it_is_looked_at_leaves_no_zombie(tmp_path, monkeypatch):
    mark = {census.PROCESS_UID: "uid", census.AGENT_FOLDER: str(tmp_path)}
    begun = start(["/bin/sleep", "1000"], mark, tmp_path / "log")
    os.kill(begun.pid, signal.SIGSTOP)  # SIGTERM has to wait
    real = terminate.is_running

    def is_running(process):
        """By the time that anybody looks, it has ended."""
        os.kill(process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return real(process)

    monkeypatch.setattr(terminate, "is_running", is_running)
    assert await end(mark, begun, lambda: monotonic() + 5) == 0
    with pytest.raises(ChildProcessError):
        os.waitpid(begun.pid, os.WNOHANG)  # noqa: ASYNC222 - it does not wait
