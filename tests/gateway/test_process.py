"""``pilotage gateway`` as processes: who outlives whom, how it ends, and what it leaves."""

import asyncio
import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from unittest.mock import Mock

import aiohttp
import msgspec
import psutil
import pytest
import pytest_asyncio
import structlog

from pilotage.api.names import GATEWAY_ROUTES
from pilotage.gateway import supervisor
from pilotage.gateway.accesslog import LOG_BYTES_MAX, rename, rotate
from pilotage.gateway.admin import Admin, AdminTimeout, AdminUnavailable
from pilotage.gateway.child import GatewayChild
from pilotage.gateway.envoy import NoEnvoy, drain, find
from pilotage.gateway.settings import Folder, GatewaySettings
from pilotage.kube import Client, load_config
from pilotage.operator.crds import crds
from pilotage.processes.run_as import NOBODY
from pilotage.up import components
from pilotage.up.components import GATEWAY
from pilotage.up.layout import SOCKETS_PATH_MAX, Layout
from pilotage.up.settings import UpOptions
from tests.api.objects import install
from tests.gateway.gateway_host import GatewayHost, Server, free_port
from tests.harbor.server.test_run import harbor
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")
SECONDS_MAX = 20
LOOK_SECONDS = 0.05
ENVOY, CONTROL = "--drain-time-s", "pilotage.gateway.control"
"""Words by which the children are known."""


class Process(GatewayHost):
    """A running command. Of `GatewayHost` it has what users and clients do."""

    def __init__(self, user, http, port, folder, process):
        self.user, self.http, self.folder, self.process = user, http, Folder(folder), process
        self.port = port
        self.servers = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def child(self, word):
        """The child whose command line has the word."""
        for each in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):
                if any(word in part for part in each.cmdline()):
                    return each
        return None


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """A harbor of its own, with our kind."""
    with harbor(tmp_path_factory.mktemp("api") / "data", "--memory") as (_, _, kubeconfig):
        yield kubeconfig


@pytest.fixture
def folder():
    """Folder that others can enter: pytest's are closed."""
    with tempfile.TemporaryDirectory(prefix="gw-", dir="/tmp") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@contextlib.asynccontextmanager
async def started(api, command, port, run, log):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PILOTAGE_")}
    async with Client.connect(load_config(kubeconfig=str(api))) as user, aiohttp.ClientSession() as http:
        await install(user, [crd for crd in crds() if crd["metadata"]["name"] == str(GATEWAY_ROUTES)])
        with log.open("w") as said:
            process = subprocess.Popen(  # noqa: ASYNC220 - it does not wait
                command, stdout=subprocess.PIPE, stderr=said, env=environment
            )
        made = Process(user, http, port, run, process)
        try:
            async with asyncio.timeout(SECONDS_MAX):
                line = await asyncio.to_thread(process.stdout.readline)
            assert line.decode().strip() == f"gateway: http://127.0.0.1:{port}", log.read_text()
            yield made
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            for each in made.servers:
                await each.stop()


@contextlib.asynccontextmanager
async def gateway(api, folder, *program):
    port, metrics, run = free_port(), free_port(), folder / "run"
    command = [sys.executable, *program, "gateway", "--kubeconfig", str(api), "--run", str(run)]
    command += ["--listen", f"127.0.0.1:{port}", "--metrics-address", f"127.0.0.1:{metrics}"]
    async with started(api, command, port, run, folder / "log") as made:
        made.metrics = f"http://127.0.0.1:{metrics}"
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def running(api, folder):
    async with gateway(api, folder, "-m", "pilotage") as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def attentive(api, folder):
    """The same command with a short interval for its access log: 10 s would be long for a test."""
    program = (
        f"from pilotage.gateway import supervisor; supervisor.CHECK_SECONDS = {LOOK_SECONDS}; import pilotage.__main__"
    )
    async with gateway(api, folder, "-c", program) as made:
        yield made


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run Envoy as another user")
async def test_envoy_is_nobody_where_nobody_gets_to_its_program_or_to_its_folder(api, folder):
    """As `pilotage up` starts it: all is in a folder of root alone, here of a long name, and so is the program."""
    folder.chmod(0o700)
    (folder / "envoy").symlink_to(find())
    layout = Layout(folder / ("d" * SOCKETS_PATH_MAX))
    layout.make()
    layout.access(GATEWAY).symlink_to(api)
    layout.shorten()
    port = free_port()
    options = UpOptions(layout.folder, port, envoy=str(folder / "envoy"))
    command = components.command(GATEWAY, options, layout, {GATEWAY: free_port()})
    async with contextlib.AsyncExitStack() as around:
        around.callback(layout.remove_state)
        running = await around.enter_async_context(started(api, command, port, layout.of(GATEWAY), folder / "log"))
        ns = await running.namespace()
        await running.server(ns, "z-1")
        await running.route(ns, "zed", {"z-1": 100}, models=["zed"])
        proxy, control = running.child(ENVOY), running.child(CONTROL)
        assert (proxy.uids().real, proxy.uids().effective, proxy.gids().real) == (NOBODY, NOBODY, NOBODY)
        assert proxy.cmdline()[0] == str(folder / "envoy")
        assert await running.ask("zed") == (200, {"server": "z-1"})

        control.kill()
        assert await running.ask("zed") == (200, {"server": "z-1"})
        await eventually(lambda: another(running, CONTROL, control.pid), SECONDS_MAX)
        await running.route(ns, "zee", {"z-1": 100}, models=["zee"])
        assert await running.ask("zee") == (200, {"server": "z-1"})

        files = {each.name: each.lstat() for each in layout.of(GATEWAY).iterdir()}
        assert {name for name, found in files.items() if found.st_mode & 0o077} == {"access.log", "measured.log"}
        assert {
            name: files[name].st_uid for name in ("ads.sock", "admin.sock", "access.log", "measured.log")
        } == dict.fromkeys(("ads.sock", "admin.sock", "access.log", "measured.log"), NOBODY)
        assert layout.of(GATEWAY).stat().st_mode & 0o777 == 0o700

        log = running.folder.access_log
        assert await rotate(log, Admin(layout.gateway / "admin.sock"), bytes_max=1)
        assert await running.ask("zed") == (200, {"server": "z-1"})
        assert await eventually(lambda: logged(log, "zed"), SECONDS_MAX)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run Envoy as another user")
async def test_what_needs_root_is_said(folder):
    run = Folder(folder / "run")
    run.path.mkdir(mode=0o700)
    precious = folder / "precious"
    precious.write_text("of root")
    wrapper = folder / "envoy"
    wrapper.write_text(f"#!{folder / 'sh'}\n")
    wrapper.chmod(0o755)
    given = GatewaySettings(str(run.path), access_log=str(run.access_log))
    cases = [
        (find(), given, None),
        (find(), msgspec.structs.replace(given, port=1023), "a port below 1024 needs that"),
        (find(), msgspec.structs.replace(given, access_log=str(folder / "a.log")), "could not write --access-log"),
        (wrapper, given, "another user cannot run it"),
        (folder / "absent", given, "another user cannot run it"),
    ]
    for program, settings, why in cases:
        # As a process could that was started as the user nobody before.
        os.chown(run.path, NOBODY, NOBODY)
        run.access_log.unlink(missing_ok=True)
        run.access_log.symlink_to(precious)
        (run.path / "hard").hardlink_to(precious)
        supervisor._take(run)
        with structlog.testing.capture_logs() as said:
            user = supervisor._unprivileged(program, run, settings)
        assert user == (NOBODY if why is None else None), why
        assert run.path.stat().st_uid == (user or 0)
        assert list(run.path.iterdir()) == []
        assert [each["log_level"] for each in said] == ["warning"] * (why is not None)
        assert why is None or why in said[0]["event"]
        assert (precious.read_text(), precious.stat().st_uid) == ("of root", 0)


async def test_a_disk_that_is_full_keeps_no_program_from_coming_back(monkeypatch, tmp_path):
    told = tmp_path / "told"
    child = GatewayChild("reader", ["/bin/sh", "-c", f"cat /dev/fd/0 >> {told}"], env={}, stdin=b"words;")
    running = asyncio.create_task(child.run())

    async def has(text):
        return told.exists() and told.read_text().startswith(text)

    await eventually(lambda: has("words;"), SECONDS_MAX)
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr("tempfile.TemporaryFile", Mock(side_effect=full))
    again = child.starts + 2
    await eventually(lambda: has("words;" * again), SECONDS_MAX)
    await child.stop()
    await running


async def test_a_life_of_the_command(attentive, folder):
    running = attentive
    ns = await running.namespace()
    server = await running.server(ns, "a-1")
    await running.route(ns, "aye", {"a-1": 100}, models=["aye"])
    assert await running.ask("aye") == (200, {"server": "a-1"})
    assert await page(running, "/healthz") == (200, "ok\n")
    assert await page(running, "/readyz") == (200, "ok\n")
    _, shown = await page(running, "/metrics")
    labels = f'{{code="2xx",copies="no",endpoint="aye",namespace="{ns}",service="a-1"}}'
    assert f"pilotage_gateway_requests_total{labels} 1.0" in shown
    assert f'pilotage_gateway_in_flight{{copies="no",endpoint="aye",namespace="{ns}",service="a-1"}} 0.0' in shown
    assert "pilotage_gateway_envoy_up 1.0" in shown
    # Envoy has nothing to complain of, but that it is there before its control plane.
    warnings = [line for line in (folder / "log").read_text().splitlines() if "][warning]" in line]
    assert [line for line in warnings if "ads.sock" not in line] == []

    # Root runs Envoy as the user nobody.
    proxy, control = running.child(ENVOY), running.child(CONTROL)
    assert proxy.uids().real == (NOBODY if os.geteuid() == 0 else os.geteuid())

    # The control plane is killed: traffic continues, it comes back, and applies changes again.
    control.kill()
    assert await running.ask("aye") == (200, {"server": "a-1"})
    await eventually(lambda: another(running, CONTROL, control.pid), SECONDS_MAX)
    await running.route(ns, "bee", {"a-1": 100}, models=["bee"])
    assert await running.ask("bee") == (200, {"server": "a-1"})

    # Envoy is killed: it comes back.
    proxy.kill()
    await eventually(lambda: answers(running, "aye"), SECONDS_MAX)

    # One line of JSON for each request, without its body; a file that is too large is rotated.
    log = running.folder.access_log
    assert await running.ask("aye", secret="hush") == (200, {"server": "a-1"})
    lines = await eventually(lambda: logged(log, "aye"), SECONDS_MAX)
    assert (lines[-1]["cluster"], lines[-1]["status"], lines[-1]["model"]) == (f"{ns}_a-1_80", 200, "aye")
    assert "hush" not in log.read_text()
    os.truncate(log, LOG_BYTES_MAX)
    await eventually(lambda: exists(log.with_name("access.log.1")), SECONDS_MAX)
    await eventually(lambda: exists(log), SECONDS_MAX)
    assert await running.ask("bee") == (200, {"server": "a-1"})
    assert await eventually(lambda: logged(log, "bee"), SECONDS_MAX)  # in a new file

    # SIGTERM in the middle of a stream: no new connection, and the stream ends as it should.
    async with running.http.post(
        f"{running.url}/endpoints/{ns}/aye/", json={"stream": 4, "pause": True}, headers={"Connection": "close"}
    ) as stream:
        await eventually(lambda: begun(server), SECONDS_MAX)
        running.process.send_signal(signal.SIGTERM)
        await eventually(lambda: refused(running), SECONDS_MAX)
        assert running.process.poll() is None
        server.release.set()
        assert (await stream.text()).count("data:") == 4
    assert await asyncio.to_thread(running.process.wait, SECONDS_MAX) == 0
    assert not proxy.is_running()
    assert sorted(each.name for each in running.folder.path.iterdir()) == [
        "access.log",
        "access.log.1",
        "lock",
    ]


async def test_a_second_signal_does_not_wait_and_says_what_was_cut(running):
    ns = await running.namespace()
    server = await running.server(ns, "c-1")
    await running.route(ns, "cut", {"c-1": 100})
    asked = asyncio.create_task(running.post(f"/endpoints/{ns}/cut/", {"hold": True}))
    await eventually(lambda: begun(server), SECONDS_MAX)
    running.process.send_signal(signal.SIGTERM)
    await eventually(lambda: refused(running), SECONDS_MAX)
    running.process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(running.process.wait, SECONDS_MAX) == 1
    with pytest.raises(aiohttp.ClientError):
        await asked


async def test_what_is_taken_is_said_in_one_sentence_and_nothing_outlives_the_command(running, api, folder):
    def said(*arguments):
        command = [sys.executable, "-m", "pilotage", "gateway", "--kubeconfig", str(api), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        return done.returncode, done.stderr

    listen = f"127.0.0.1:{running.port}"
    same_port = await asyncio.to_thread(said, "--run", str(folder / "other"), "--listen", listen)
    assert (same_port[0], "cannot be used" in same_port[1], "--listen" in same_port[1]) == (1, True, True)
    same_folder = await asyncio.to_thread(said, "--run", str(folder / "run"), "--listen", "127.0.0.1:0")
    assert (same_folder[0], "in use by another gateway" in same_folder[1]) == (1, True)
    long = await asyncio.to_thread(said, "--run", str(folder / ("x" * 100)), "--listen", "127.0.0.1:0")
    assert (long[0], "too long for a socket" in long[1]) == (1, True)

    other = ("--run", str(folder / "other"), "--listen", "127.0.0.1:0")
    metrics = await asyncio.to_thread(said, *other, "--metrics-address", listen)
    assert (metrics[0], "cannot be used" in metrics[1], "--metrics-address" in metrics[1]) == (1, True, True)
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    open_to_all = await asyncio.to_thread(said, "--run", str(shared), "--listen", "127.0.0.1:0")
    assert (open_to_all[0], "other users can write to" in open_to_all[1]) == (1, True)
    named = await asyncio.to_thread(said, *other[:3], "somewhere:8080")
    assert (named[0], "'somewhere' is no IP address" in named[1]) == (2, True)

    proxy, control = running.child(ENVOY), running.child(CONTROL)
    running.process.kill()
    _, alive = await asyncio.to_thread(psutil.wait_procs, [proxy, control], SECONDS_MAX)
    assert alive == []


async def test_envoy_is_found_by_setting_on_path_and_in_the_wheel(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    wheel = find()
    assert wheel.parts[-2:] == ("_bin", "envoy")
    mine = tmp_path / "envoy"
    mine.write_text("#!/bin/true\n")
    mine.chmod(0o755)
    assert find() == mine
    assert find(str(wheel)) == wheel
    mine.write_text(f"#!{sys.executable}\nfrom envoy._main import main\nmain()\n")
    assert find() == wheel, "a script that only starts the wheel's is no program that another user could run"
    with pytest.raises(NoEnvoy, match="--envoy"):
        find("/nowhere/envoy")


async def test_files_rename_are_numbered_and_the_oldest_goes(tmp_path):
    log = tmp_path / "access.log"
    for number in range(5):
        log.write_text(str(number))
        rename(log)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {
        "access.log.1": "4",
        "access.log.2": "3",
        "access.log.3": "2",
    }


async def test_a_file_that_envoy_was_not_told_of_is_no_end_of_the_looking(tmp_path, monkeypatch):
    """Envoy may just be away: then it writes on to the rotated file, and is told at the next check."""
    monkeypatch.setattr(supervisor, "CHECK_SECONDS", 0.0)
    log, told = tmp_path / "access.log", asyncio.Event()
    log.touch()
    os.truncate(log, LOG_BYTES_MAX)

    class Away:
        """Unavailable at first; then it reopens the file as it is told."""

        def __init__(self):
            self.asked = []

        async def post(self, target):
            self.asked.append(target)
            if len(self.asked) == 1:
                raise AdminUnavailable("Envoy cannot be asked")
            log.touch()
            told.set()

    envoy = Away()
    with structlog.testing.capture_logs() as said:
        looking = asyncio.create_task(supervisor._rotate(log, envoy))
        async with asyncio.timeout(SECONDS_MAX):
            await told.wait()
        looking.cancel()
    assert envoy.asked == ["/reopen_logs"] * 2
    assert [(each["event"], each["why"]) for each in said] == [
        ("the access log could not be rotated", "Envoy cannot be asked")
    ]
    assert {each.name: each.stat().st_size for each in tmp_path.iterdir()} == {
        "access.log": 0,
        "access.log.1": LOG_BYTES_MAX,
    }


async def exists(path):
    return path.exists()


async def page(running, path):
    def read():
        with urllib.request.urlopen(f"{running.metrics}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()

    return await asyncio.to_thread(read)


async def another(running, word, pid):
    found = running.child(word)
    return found is not None and found.pid != pid


async def answers(running, model):
    try:
        return await running.ask(model) == (200, {"server": "a-1"})
    except (OSError, aiohttp.ClientError):
        return False


async def refused(running):
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", running.port)
    except OSError:
        return True
    writer.close()
    return False


async def begun(server: Server):
    return any(b"stream" in each or b"hold" in each for each in server.bodies)


async def logged(log, endpoint):
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return lines if any(each["endpoint"] == endpoint for each in lines) else None


async def test_an_envoy_that_is_slow_to_answer_is_not_taken_for_one_without_requests():
    class Busy:
        """An Envoy whose first answers do not come in time."""

        def __init__(self):
            self.said = [
                AdminTimeout("no answer"),
                b"",
                AdminTimeout("no answer"),
                b"",
                b"http.gateway.downstream_rq_active: 2\n",
                b": 0",
            ]
            self.asked = []

        async def get(self, target):
            self.asked.append(target)
            answer = self.said.pop(0)
            if isinstance(answer, AdminTimeout):
                raise answer
            return answer

        post = get

    busy = Busy()
    assert await drain(busy, 60, asyncio.Event()) == 0
    assert busy.said == []
    assert busy.asked[:4] == ["/healthcheck/fail", "/healthcheck/fail", "/drain_listeners", "/drain_listeners"]
    busy.said = [AdminTimeout("no answer")]
    assert await drain(busy, 0, asyncio.Event()) == 1
