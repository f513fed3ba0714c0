"""Where the agent is root, servers are somebody else: they read their weights, write their log, and nothing of ours."""

import os
from pathlib import Path

import pytest

from pilotage.agent.launch import handing
from pilotage.agent.launch.failures import Failure
from pilotage.agent.settings import load_settings
from pilotage.processes.run_as import SERVER_USER, User, closed_to, find_user, wrapped
from pilotage.runtime.settings import SettingsError
from tests.agent.servers import PLAIN
from tests.agent.town import ask, python_server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start servers as another user")

UID = int(SERVER_USER)
SOMEBODY = User(UID, UID)


def identity(pid):
    """What the system says of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.split() for name, _, value in (line.partition(":") for line in lines)}


async def test_a_server_runs_as_another_user_and_is_adopted_and_stopped_all_the_same(town):
    """llama-server, with weights in a folder that is closed to it."""
    town.strict()
    await town.start()
    await town.serving()
    pid = town.pid()
    found = identity(pid)
    assert found["Uid"] == found["Gid"] == [SERVER_USER] * 4
    assert set(map(int, found["Groups"])) == set(find_user(SERVER_USER).groups), "those of devices, if there are any"
    assert found["NoNewPrivs"] == ["1"]
    assert found["CapEff"] == ["0" * 16]
    assert ask(town.status()["port"])["usage"]["completion_tokens"] == 4
    await town.crash()
    assert town.processes() == [pid]
    await town.start()
    await town.until(lambda: town.is_ready())
    assert town.pid() == pid, "adopted"
    await town.delete()
    await town.until(lambda: town.find() is None)
    town.nothing_is_left()


def shell(script, *args, **more):
    """A server that never answers; what it says is in its log."""
    command = ["/bin/sh", "-c", f"{script}; echo DONE; exec sleep 1000", "server", *map(str, args)]
    return {"name": "custom", "command": command, "args": [], **more}


async def test_a_server_reads_nothing_of_the_agent_or_of_the_api_server(town):
    """Also where the owner lets it run any command."""
    town.strict(allow_commands=True)
    keys = town.folder / "harbor"
    keys.mkdir(0o700)
    secrets = [keys / "ca.key", keys / "kubeconfig", town.settings.data / "agent.sqlite"]
    for path in secrets[:2]:
        path.write_text("PRIVATE KEY")
    await town.start()
    look = 'for each in "$@"; do cat "$each" > /dev/null 2>&1 && echo "READ $each"; done; echo "HOME $HOME $(pwd)"'
    await town.place(runtime=shell(look, *secrets))
    await town.until(lambda: "DONE" in town.logs())
    assert town.logs().splitlines() == ["HOME /nonexistent /", "DONE"]


async def test_root_has_to_be_asked_for(town):
    town.strict(allow_commands=True, run_as="root")
    await town.start()
    await town.serving(runtime=python_server(PLAIN))
    assert identity(town.pid())["Uid"] == ["0"] * 4


async def test_variables_of_a_spec_are_never_those_of_a_process_of_root(town):
    """The one that changes the user is root until it has done so: it must load nothing that a spec names."""
    town.strict(allow_commands=True)
    await town.start()
    evil = [{"name": "LD_PRELOAD", "value": "/nonexistent/evil.so"}]
    await town.place(runtime=shell("exec 2>&1", env=evil))
    await town.until(lambda: "DONE" in town.logs())
    assert town.logs().partition("DONE")[0].count("evil.so") == 1, "the loader of the server says so, and no other"


async def test_weights_that_the_user_of_servers_may_not_read(town):
    town.strict()
    path = town.folder / "private.gguf"
    path.write_bytes(town.model.read_bytes())
    path.chmod(0o600)
    await town.start()
    await town.place(model={"source": f"file://{path}"})
    await town.until(lambda: town.reason() == "NotReadable")
    assert f"cannot read {path}. Let others read it" in town.status()["message"]
    path.chmod(0o644)
    await town.until(lambda: town.is_ready())


async def test_a_program_that_the_user_of_servers_may_not_run(town):
    town.strict(allow_commands=True)
    program = town.folder / "closed" / "server"
    program.parent.mkdir(0o700)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    await town.start()
    await town.place(runtime={"name": "custom", "command": [str(program)], "args": []})
    await town.until(lambda: town.reason() == "NoProgram")
    assert f"cannot run {program}. Install it elsewhere" in town.status()["message"]


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


def test_a_repository_is_for_the_program_to_find():
    for user in (SOMEBODY, None):
        assert handing.weights(user, "org/repository", "vllm") == handing.Weights("org/repository")


def test_a_repository_that_would_be_taken_for_a_folder_of_the_machine(tmp_path, monkeypatch):
    """It would be read past --file-roots: vLLM and TGI look for a folder of that name where they run."""
    (tmp_path / "org" / "repository").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    mine = handing.weights(None, "org/repository", "vllm")
    assert isinstance(mine, Failure)
    assert f"for {tmp_path}/org/repository, which is on this machine" in mine.message
    assert isinstance(handing.weights(SOMEBODY, "usr/bin", "vllm"), Failure)


def test_a_user_is_known_by_name_or_number():
    assert find_user("root").uid == 0
    assert find_user("64999") == User(64999, 64999, find_user("root").groups)
    with pytest.raises(SettingsError, match="there is no user no-such-user"):
        load_settings({"run_as": "no-such-user"})
    assert wrapped({"A": "1", "B": "2"}, but=("B",)) == {"PILOTAGE_ENV_A": "1", "B": "2"}
