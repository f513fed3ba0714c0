"""The folder of `pilotage up`: private to its owner."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pilotage.kube import Client, Unavailable, load_config
from pilotage.up import components
from pilotage.up.layout import Layout, NotOurs
from pilotage.up.settings import UpOptions
from pilotage.up.supervisor import Supervisor
from pilotage_harbor.server.credentials import ServerCredentials
from pilotage_sim.loop import virtual


def pilotage(*words):
    return subprocess.run([sys.executable, "-m", "pilotage", *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("flags", [(), ("--detach",)])
def test_up_refuses_a_folder_that_holds_other_things(tmp_path, flags):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("precious")
    ended = pilotage("up", *flags, "--data", str(tmp_path))
    words = f"{tmp_path} holds files that are not Pilotage's (thesis), which needs a folder of its own"
    assert (ended.returncode, ended.stderr) == (1, f"Error: {words}. Choose another --data.\n")
    assert [each.name for each in tmp_path.iterdir()] == ["thesis"]


def test_a_folder_that_is_empty_or_ours_is_taken(tmp_path):
    layout = Layout(tmp_path)
    layout.make()
    layout.make()
    (tmp_path / "up.lock").unlink()
    with pytest.raises(NotOurs, match=r"\(access, logs, models\)"):
        layout.make()


def test_a_lock_that_an_earlier_version_let_a_group_write_to_is_taken(tmp_path):
    layout = Layout(tmp_path)
    layout.make()
    layout.lock.chmod(0o664)
    ended = pilotage("down", "--data", str(tmp_path))
    assert (ended.returncode, ended.stderr) == (0, "")
    layout.lock.chmod(0o664)
    layout.make()
    assert layout.lock.stat().st_mode & 0o777 == 0o600


def test_purge_removes_what_is_ours_and_says_what_it_left(tmp_path):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    layout = Layout(data)
    layout.make()
    (layout.models / "weights").write_text("fetched")
    (data / "thesis").mkdir()
    (data / "thesis" / "chapter1.tex").write_text("precious")
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("precious")
    (data / "harbor").symlink_to(elsewhere)
    ended = pilotage("down", "--purge", "--data", str(data))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == (
        f"Removed what Pilotage kept in {data}. Not Pilotage's, and left there: harbor, thesis."
    )
    assert sorted(str(each.relative_to(data)) for each in data.rglob("*")) == [
        "harbor",
        "thesis",
        "thesis/chapter1.tex",
    ]
    assert (elsewhere / "mine").read_text() == "precious"


def test_purge_removes_the_folder_where_nothing_else_is_in_it(tmp_path):
    layout = Layout(tmp_path / "data")
    layout.make()
    (tmp_path / "data" / ".up.json.17.new").write_text("a draft")
    ended = pilotage("down", "--purge", "--data", str(layout.folder))
    assert ended.stdout.splitlines()[-1].endswith(f"no port listens, {layout.folder} is removed.")
    assert not layout.folder.exists()


@pytest.mark.parametrize("command", ["up", "down"])
def test_a_folder_that_others_can_write_to_is_refused(tmp_path, command):
    """Another user with write access could choose the CA that `up` trusts, and the processes that `down` ends."""
    layout = Layout(tmp_path / "data")
    layout.make()
    layout.folder.chmod(0o777)
    ended = pilotage(command, "--data", str(layout.folder))
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"Error: other users can write to {layout.folder} (chmod go-w ")
    assert not layout.harbor.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("command", [("up",), ("down",), ("harbor",)])
def test_a_folder_of_somebody_else_is_refused(tmp_path, command):
    layout = Layout(tmp_path / "data")
    layout.make()
    os.chown(layout.folder, 65534, 65534)
    ended = pilotage(*command, "--data", str(layout.folder))
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"Error: {layout.folder} belongs to user ")
    assert not (layout.folder / "ca.crt").exists()


async def test_the_api_server_insists_on_its_port(tmp_path):
    """Its clients expect it there. The message names the process that has taken the port meanwhile."""
    said = []
    supervisor = Supervisor(UpOptions(tmp_path / "data"), said.append)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        supervisor._ports["harbor"] = port
        waiting = asyncio.create_task(supervisor._own_port_is_free())
        done, _ = await asyncio.wait({waiting}, timeout=0.2)
        assert not done
    await asyncio.wait_for(waiting, 10)
    assert said == [f"harbor starts when port {port} is free: another process has taken it. End that one."]
    options = UpOptions(Path("/x"), api_port=0)
    assert components.command("harbor", options, Layout(Path("/x")), {"harbor": port})[-2:] == ["--port", str(port)]


@pytest.mark.parametrize("secure", [True, False])
async def test_whoever_takes_the_port_meanwhile_gets_no_token(tmp_path, secure):
    received = []

    async def impostor(reader, writer):
        received.append(await reader.read(4096))
        writer.close()

    tls = ServerCredentials(tmp_path / "impostor").tls() if secure else None
    async with await asyncio.start_server(impostor, "127.0.0.1", 0, ssl=tls) as server:
        port = server.sockets[0].getsockname()[1]
        own = ServerCredentials(tmp_path / "own")
        own.write_kubeconfig(f"https://127.0.0.1:{port}")
        async with Client.connect(load_config(kubeconfig=str(own.kubeconfig))) as client:
            with pytest.raises(Unavailable, match="is not trusted" if secure else "cannot connect"):
                await client.get_path("/api")
    assert own._admin_token.encode() not in b"".join(received)


@virtual
async def test_what_runs_is_written_down_as_soon_as_the_disk_has_room(tmp_path, monkeypatch):
    supervisor = Supervisor(UpOptions(tmp_path), lambda _: None)
    supervisor.layout.make()
    keeping = asyncio.create_task(supervisor._keep_state())
    with monkeypatch.context() as patched:
        patched.setattr("pilotage.up.layout.write_private", _full)
        supervisor._changed.set()
        await asyncio.sleep(60)
        assert supervisor.layout.read_state() is None
    await asyncio.sleep(5)
    assert supervisor.layout.read_state().supervisor.pid == os.getpid()
    keeping.cancel()


def _full(*_):
    raise OSError(28, "No space left on device")
