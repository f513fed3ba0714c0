"""Servers of an agent that is root run as another user: they read their weights, write their log, nothing of ours."""

import os
from pathlib import Path

import pytest

from pilotage.agent.launch import other_user
from pilotage.agent.launch.failures import LaunchFailure
from pilotage.agent.settings import load_settings
from pilotage.processes.run_as import SERVER_USER, RunAsUser, closed_to, find_user, wrapped
from pilotage.runtime.settings import SettingsError
from tests.agent.agent_host import ask, python_server
from tests.agent.servers import PLAIN

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start servers as another user")

UID = int(SERVER_USER)
SOMEBODY = RunAsUser(UID, UID)


def identity(pid):
    """Facts of the system about a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.split() for name, _, value in (line.partition(":") for line in lines)}


async def test_a_server_runs_as_another_user_and_is_adopted_and_stopped_all_the_same(host):
    """llama-server, with weights in a folder that is closed to it."""
    host.strict()
    await host.start()
    await host.serving()
    pid = host.pid()
    found = identity(pid)
    assert found["Uid"] == found["Gid"] == [SERVER_USER] * 4
    assert set(map(int, found["Groups"])) == set(find_user(SERVER_USER).groups), "those of devices, if there are any"
    assert found["NoNewPrivs"] == ["1"]
    assert found["CapEff"] == ["0" * 16]
    assert ask(host.status()["port"])["usage"]["completion_tokens"] == 4
    await host.crash()
    assert host.processes() == [pid]
    await host.start()
    await host.until(lambda: host.is_ready())
    assert host.pid() == pid, "adopted"
    await host.delete()
    await host.until(lambda: host.find() is None)
    host.nothing_is_left()


def shell(script, *args, **more):
    """A server that never answers; what it says is in its log."""
    command = ["/bin/sh", "-c", f"{script}; echo DONE; exec sleep 1000", "server", *map(str, args)]
    return {"name": "custom", "command": command, "args": [], **more}


async def test_a_server_reads_nothing_of_the_agent_or_of_the_api_server(host):
    """The rule holds also where the owner lets it run any command."""
    host.strict(allow_commands=True)
    keys = host.folder / "harbor"
    keys.mkdir(0o700)
    secrets = [keys / "ca.key", keys / "kubeconfig", host.settings.data / "agent.sqlite"]
    for path in secrets[:2]:
        path.write_text("PRIVATE KEY")
    await host.start()
    look = 'for each in "$@"; do cat "$each" > /dev/null 2>&1 && echo "READ $each"; done; echo "HOME $HOME $(pwd)"'
    await host.place(runtime=shell(look, *secrets))
    await host.until(lambda: "DONE" in host.logs())
    assert host.logs().splitlines() == ["HOME /nonexistent /", "DONE"]


async def test_root_has_to_be_asked_for(host):
    host.strict(allow_commands=True, run_as="root")
    await host.start()
    await host.serving(runtime=python_server(PLAIN))
    assert identity(host.pid())["Uid"] == ["0"] * 4


async def test_variables_of_a_spec_are_never_those_of_a_process_of_root(host):
    """The one that changes the user is root until it has done so: it must load nothing that a spec names."""
    host.strict(allow_commands=True)
    await host.start()
    evil = [{"name": "LD_PRELOAD", "value": "/nonexistent/evil.so"}]
    await host.place(runtime=shell("exec 2>&1", env=evil))
    await host.until(lambda: "DONE" in host.logs())
    assert host.logs().partition("DONE")[0].count("evil.so") == 1, "the loader of the server says so, and no other"


async def test_weights_that_the_user_of_servers_may_not_read(host):
    host.strict()
    path = host.folder / "private.gguf"
    path.write_bytes(host.model.read_bytes())
    path.chmod(0o600)
    await host.start()
    await host.place(model={"source": f"file://{path}"})
    await host.until(lambda: host.reason() == "NotReadable")
    assert f"cannot read {path}. Let others read it" in host.status()["message"]
    path.chmod(0o644)
    await host.until(lambda: host.is_ready())


async def test_a_program_that_the_user_of_servers_may_not_run(host):
    host.strict(allow_commands=True)
    program = host.folder / "closed" / "server"
    program.parent.mkdir(0o700)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    await host.start()
    await host.place(runtime={"name": "custom", "command": [str(program)], "args": []})
    await host.until(lambda: host.reason() == "NoProgram")
    assert f"cannot run {program}. Install it elsewhere" in host.status()["message"]


def test_what_is_closed_to_a_user(tmp_path):
    top = tmp_path / "top"
    path = top / "folder" / "file"
    path.parent.mkdir(parents=True)
    path.touch(0o640)
    for each in (tmp_path, *tmp_path.parents):
        if each.stat().st_uid == 0 and not each.stat().st_mode & 1:
            assert closed_to(SOMEBODY, path, os.R_OK) is not None
    assert closed_to(SOMEBODY, path, os.R_OK, folders=False) == path
    os.chown(path, 0, UID)
    assert closed_to(SOMEBODY, path, os.R_OK, folders=False) is None
    assert closed_to(SOMEBODY, path, os.X_OK, folders=False) == path


def test_a_file_in_a_closed_folder_is_given_open_to_programs_that_read_it_themselves(tmp_path):
    """Others start processes of their own, which do not have it open."""
    path = tmp_path / "closed" / "weights"
    path.parent.mkdir(0o700)
    path.touch(0o644)
    for runtime in ("llama.cpp", "custom"):
        assert other_user.weights(SOMEBODY, str(path), runtime) == other_user.ReadableWeights(
            other_user.OPENED, str(path)
        )
    for runtime in ("vllm", "sglang", "tgi"):
        refused = other_user.weights(SOMEBODY, str(path), runtime)
        assert isinstance(refused, LaunchFailure)
        assert refused.reason == "NotReadable"


def test_a_repository_is_for_the_program_to_find():
    for user in (SOMEBODY, None):
        assert other_user.weights(user, "org/repository", "vllm") == other_user.ReadableWeights("org/repository")


def test_a_repository_that_would_be_taken_for_a_folder_of_the_machine(tmp_path, monkeypatch):
    """It would be read past --file-roots: vLLM and TGI search for a folder of that name in their working directory."""
    (tmp_path / "org" / "repository").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    mine = other_user.weights(None, "org/repository", "vllm")
    assert isinstance(mine, LaunchFailure)
    assert f"for {tmp_path}/org/repository, which is on this machine" in mine.message
    assert isinstance(other_user.weights(SOMEBODY, "usr/bin", "vllm"), LaunchFailure)


def test_a_user_is_known_by_name_or_number():
    assert find_user("root").uid == 0
    assert find_user("64999") == RunAsUser(64999, 64999, find_user("root").groups)
    with pytest.raises(SettingsError, match="there is no user no-such-user"):
        load_settings({"run_as": "no-such-user"})
    assert wrapped({"A": "1", "B": "2"}, but=("B",)) == {"PILOTAGE_ENV_A": "1", "B": "2"}
