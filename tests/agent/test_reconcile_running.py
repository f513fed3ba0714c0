"""A running server: probed, withdrawn while it is unhealthy, restarted when it has ended, and otherwise no writes."""

import asyncio
import dataclasses
import os
import signal
import sys
from pathlib import Path

import pytest

from pilotage.agent.health import Prober, ProbeResult, count, names_of
from pilotage.agent.intervals import Intervals
from pilotage.agent.launch import logs
from pilotage.agent.launch.failures import LaunchFailure
from pilotage.agent.launch.process import end, start
from pilotage.agent.process_state import ProcessState
from pilotage.api.names import LABEL_ENDPOINT_UID, LABEL_HOST, LABEL_REVISION, PROCESSES
from pilotage.kube import EVENTS, ObjectKey, merge_patch
from pilotage.processes import census, terminate
from pilotage.runtime.clock import monotonic
from pilotage.serving.resources import SERVICES, SLICES
from pilotage_sim.loop import virtual
from tests.agent.agent_host import NAMESPACE, SHORT_INTERVALS, process_body, python_server
from tests.agent.servers import PLAIN, SICKLY
from tests.agent.test_host import host_object
from tests.agent.test_starting import quiet
from tests.support.kinds import delete


async def test_a_server_that_dies_is_withdrawn_and_started_again(host):
    await host.start()
    await host.serving()
    first, port = host.pid(), host.status()["port"]
    os.kill(first, signal.SIGKILL)
    await host.until(lambda: host.status()["restarts"] == 1 and host.is_ready())
    assert host.pid() != first
    assert host.status()["port"] != port, "a port may be refused for a while after its use"
    assert host.slice()["ports"][0]["port"] == host.status()["port"]
    assert host.processes() == [host.pid()]
    assert host.metric("pilotage_agent_restarts_total") == 1
    notes = [each["reason"] for each in host.world.objects(EVENTS) if each["regarding"]["kind"] == "HostProcess"]
    assert "Killed" in notes
    assert "Healthy" in notes


async def test_what_a_server_said_while_it_ran_does_not_put_off_its_restart(host):
    """Its words tell why a start failed; one that has served did not lack a file at its start."""
    host.intervals = dataclasses.replace(SHORT_INTERVALS, permanent_failure=3600.0)
    await host.start()
    complaint = 'import sys; print("no such file or directory", file=sys.stderr, flush=True)\n'
    await host.serving(runtime=python_server(complaint + PLAIN))
    os.kill(host.pid(), signal.SIGKILL)
    await host.until(lambda: host.status()["restarts"] == 1 and host.is_ready(), 10)


async def test_it_is_noticed_at_once_that_a_server_has_died(host):
    """The operating system reports it, before the next check."""
    host.intervals = dataclasses.replace(SHORT_INTERVALS, probe=60.0)
    await host.start()
    await host.serving()
    await host.until(lambda: host_object(host)["status"]["processes"] == 1)  # said a little later
    assert await quiet(host, 0.2) == []  # nothing else wakes it now
    os.kill(host.pid(), signal.SIGKILL)
    await host.until(lambda: host.status()["restarts"] == 1 and host.is_ready(), 10)


@virtual
async def test_each_pause_before_a_restart_is_twice_the_last_until_it_was_well_for_a_while():
    state, intervals = ProcessState(), Intervals()

    def pause(permanent=False):
        state.fail(LaunchFailure("Exited", "it ended", permanent), intervals, ran=True)
        return state.due - monotonic()

    assert [pause() for _ in range(10)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert pause(permanent=True) == intervals.permanent_failure
    state.healthy(intervals)
    await asyncio.sleep(intervals.steady - 1)
    state.healthy(intervals)
    assert pause() == 300, "not for long enough"
    state.healthy(intervals)
    await asyncio.sleep(intervals.steady)
    state.healthy(intervals)
    assert [pause(), pause()] == [1, 2]


async def test_a_server_that_hangs_is_withdrawn_and_comes_back(host):
    """SIGSTOP: it is alive, and does not answer."""
    host.intervals = dataclasses.replace(SHORT_INTERVALS, unhealthy=60.0)
    host.prober = Prober("127.0.0.1", seconds_max=0.3)
    await host.start()
    await host.serving()
    pid = host.pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        await host.until(lambda: host.status()["phase"] == "Unhealthy" and host.conditions().get("ready") is False)
        assert "does not answer" in host.status()["message"]
    finally:
        os.kill(pid, signal.SIGCONT)
    await host.until(lambda: host.is_ready())
    assert host.pid() == pid
    assert host.status()["restarts"] == 0


async def test_a_server_that_stays_sick_is_started_again(host):
    flag = host.folder / "sick"
    runtime = python_server(SICKLY)
    runtime["command"].append(str(flag))
    await host.start()
    await host.serving(runtime=runtime, drainSeconds=0)
    first = host.pid()
    flag.touch()
    await host.until(lambda: host.status()["phase"] == "Unhealthy")
    assert host.status()["message"] == "/ answers 500."
    await host.until(lambda: host.reason() == "Unhealthy" and host.processes() not in ([], [first]))
    flag.unlink()
    await host.until(lambda: host.is_ready())
    assert host.status()["restarts"] >= 1


async def test_a_healthy_server_costs_no_write(host):
    await host.start()
    await host.serving()
    await host.until(lambda: host_object(host)["status"]["processes"] == 1)  # said a little later
    assert await quiet(host, 1.0) == []
    assert host.metric('pilotage_agent_health_checks_total{result="healthy"}') >= 4
    assert host.metric('pilotage_agent_processes{phase="Running"}') == 1


async def test_a_slice_that_somebody_changed_or_deleted_is_put_right(host):
    await host.start()
    await host.serving()
    key = ObjectKey(NAMESPACE, "chat-1-0")
    body = host.slice()["endpoints"]
    body[0]["conditions"]["ready"] = False  # as the operator does for a host that it has not heard of
    await host.client.patch(SLICES, key, merge_patch({"endpoints": body}))
    await host.until(lambda: host.is_ready())
    before = host.slice()["metadata"]["uid"]
    await delete(host.client, SLICES, await host.client.get(SLICES, key))
    await host.until(lambda: host.is_ready() and host.slice()["metadata"]["uid"] != before)
    await host.until(lambda: host.status()["sliceUid"] == host.slice()["metadata"]["uid"])


async def test_a_slice_says_whose_it_is(host):
    await host.start()
    uid = await host.serving()
    made = host.slice()
    assert made["metadata"]["labels"] == {
        "kubernetes.io/service-name": "chat-1",
        "endpointslice.kubernetes.io/managed-by": "pilotage.dev",
        "app.kubernetes.io/managed-by": "pilotage",
        "pilotage.dev/process-uid": uid,
        LABEL_HOST: host.name,
        LABEL_ENDPOINT_UID: "e0e0",
        LABEL_REVISION: "1",
    }
    owner = made["metadata"]["ownerReferences"][0]
    service = host.world.find(SERVICES, ObjectKey(NAMESPACE, "chat-1"))
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (
        service["metadata"]["uid"],
        False,
        False,
    )
    assert made["ports"] == [{"name": "http", "port": host.status()["port"], "protocol": "TCP"}]


async def test_one_that_takes_its_time_to_end_is_asked_how_when_it_has(host):
    """The first thread of a server can be gone while others are not, and its exit code is unknown until then."""
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
    host.intervals = dataclasses.replace(SHORT_INTERVALS, grace=20.0)
    await host.start()
    await host.serving(runtime=python_server(slow_end + PLAIN), drainSeconds=0)
    first = host.pid()
    os.kill(first, signal.SIGUSR1)
    await host.until(lambda: host.status()["restarts"] == 1 and host.is_ready())
    notes = [each["reason"] for each in host.world.objects(EVENTS) if each["regarding"]["kind"] == "HostProcess"]
    assert "Killed" in notes
    assert "Exited" not in notes


async def test_a_process_of_another_host_is_left_alone(host):
    await host.start()
    body = process_body("other", host.model, host.name)
    body["spec"]["host"] = "elsewhere"
    await host.client.create(PROCESSES, body, namespace=NAMESPACE)
    await host.serving()
    assert host.status("other") == {}


async def test_logs_are_rotated_under_a_server_that_writes(host):
    """The server continues to write to the same file, and nothing grows without bound."""
    path = host.folder / "it.log"
    write = "import time\nwhile True: print('x' * 100, flush=True); time.sleep(0.0005)"
    environment = {"PILOTAGE_AGENT": str(host.settings.data), "PILOTAGE_PROCESS_UID": "u"}
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


async def test_the_log_of_a_server_that_is_looked_after_does_not_grow_without_end(host):
    talk = PLAIN.replace("def do_GET(self):", "def do_GET(self):\n        print('asked', flush=True)")
    await host.start()
    await host.serving(runtime=python_server(talk), drainSeconds=0)
    pid, path = host.pid(), Path(host.status()["logFile"])
    os.truncate(path, logs.BYTES_MAX + 1)  # as if it had talked so much
    await host.until(lambda: path.with_name(f"{path.name}.1").exists() and 0 < logs.size(path) < logs.BYTES_MAX)
    await host.until(lambda: path.read_bytes().startswith(b"asked\n"))
    assert host.pid() == pid, "it was not told, and goes on"
    await host.delete()
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()


async def test_a_log_that_cannot_be_rotated_does_not_affect_its_server(host, capsys):
    await host.start()
    await host.serving(runtime=python_server(PLAIN), drainSeconds=0)
    pid, path = host.pid(), Path(host.status()["logFile"])
    in_the_way = path.with_name(f"{path.name}.new")
    in_the_way.mkdir()
    os.truncate(path, logs.BYTES_MAX + 1)
    os.kill(pid, signal.SIGKILL)
    await host.until(lambda: host.status()["restarts"] == 1 and host.is_ready())
    assert logs.size(path) > logs.BYTES_MAX, "nothing is cut that was not copied"
    in_the_way.rmdir()
    await host.until(lambda: logs.size(path) < logs.BYTES_MAX)
    assert capsys.readouterr().out.count("a log cannot be rotated") == 1


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


async def test_requests_that_wait_in_a_server_count_as_well(host):
    """All metrics of its runtime: a request in the queue would be lost as much as one that is worked on."""
    script = """
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"vllm:num_requests_running 2\\nvllm:num_requests_waiting 1\\n" if self.path == "/metrics" else b""
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""
    await host.start()
    await host.serving(runtime=python_server(script))
    entry = host.running.journal.entries()[0]
    async with Prober("127.0.0.1") as prober:
        assert await prober.in_flight(entry.but(runtime="vllm")) == 3
        assert await prober.in_flight(entry.but(runtime="tgi")) is None, "it has other metrics"
        assert await prober.in_flight(entry) is None, "a custom server has none that we know"


async def test_a_stranger_on_its_port_is_no_sign_of_health(host):
    """It answers 200, our process lives, and the model is another."""
    await host.start()
    await host.serving()
    entry = host.running.journal.entries()[0]
    async with Prober("127.0.0.1") as prober:
        assert (await prober.check(entry)).result is ProbeResult.HEALTHY
        stranger = await prober.check(entry.but(alias="another"))
        assert stranger.result is ProbeResult.FOREIGN
        assert "something else answers (tiny)" in stranger.why
        assert (await prober.check(entry.but(born="another"))).result is ProbeResult.DEAD


def test_who_answers_is_read_from_its_models():
    assert names_of(b'{"data": [{"id": "a"}, {"id": "b"}]}') == ["a", "b"]
    assert names_of(b"<html>") == []


async def test_a_server_that_ends_while_it_is_looked_at_leaves_no_zombie(tmp_path, monkeypatch):
    mark = {census.PROCESS_UID: "uid", census.AGENT_FOLDER: str(tmp_path)}
    begun = start(["/bin/sleep", "1000"], mark, tmp_path / "log")
    os.kill(begun.pid, signal.SIGSTOP)  # SIGTERM has to wait
    real = terminate.is_running

    def is_running(process):
        """Kill the process first: by the time that it is examined, it has ended."""
        os.kill(process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return real(process)

    monkeypatch.setattr(terminate, "is_running", is_running)
    assert await end(mark, begun, lambda: monotonic() + 5) == 0
    with pytest.raises(ChildProcessError):
        os.waitpid(begun.pid, os.WNOHANG)  # noqa: ASYNC222 - it does not wait
