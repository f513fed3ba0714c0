"""Settings of `pilotage up`: remembered, shown, compared with what runs, put into a systemd unit. Nothing starts."""

import configparser
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pilotage.private_files import write_private
from pilotage.processes import identity
from pilotage.up.layout import Layout, UpState
from pilotage.up.settings import UpOptions, flags, remember, remembered

CHOSEN = {"port": 8090, "file_roots": ("/a b", "/c"), "allow_commands": True}
URL = "http://127.0.0.1:8090"


def pilotage(*words, **environment):
    command = [sys.executable, "-m", "pilotage", *map(str, words)]
    return subprocess.run(
        command,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def layout(tmp_path):
    made = Layout(tmp_path / "my data")
    made.make()
    return made


@pytest.fixture
def running(layout):
    """A folder whose supervisor runs, as far as its files say: this process."""
    own = identity.find(os.getpid())
    assert own is not None
    remember(layout, UpOptions(layout.folder, **CHOSEN))
    layout.write_state(UpState(own.id, {"harbor": own.id}, {"harbor": 6443}, URL, ready=True))
    return layout


def test_what_was_chosen_is_remembered_and_what_was_not_stays_open(layout):
    assert remembered(layout) == {}
    remember(layout, UpOptions(layout.folder, **CHOSEN, host="local"))
    assert remembered(layout) == CHOSEN
    assert shlex.join(flags(CHOSEN)) == "--port 8090 --file-roots '/a b' --file-roots /c --allow-commands"
    assert flags({"allow_commands": False}) == ["--no-allow-commands"]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"prot": 1}', b'{"file_roots": 1}'])
def test_a_damaged_memory_is_said_in_one_sentence(layout, content):
    write_private(layout.settings, content)
    answer = pilotage("up", "--data", layout.folder)
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"Error: {layout.settings} cannot be read (")
    assert answer.stderr.endswith("). Remove it and give all options.\n")


def test_a_second_up_with_the_same_settings_says_where_everything_is(running):
    data = ("--data", running.folder)
    for given in ((), ("--port", 8090), ("--api-port", 6443, "--allow-commands"), ("--detach",), ("--status",)):
        answer = pilotage("up", *data, *given)
        assert (answer.returncode, answer.stderr) == (0, "")
        assert f"requests    {URL}/v1\n" in answer.stdout
        assert f"export KUBECONFIG='{running.kubeconfig}'\n" in answer.stdout
        assert f"pilotage down --data '{running.folder}'\n" in answer.stdout, "it could be pasted"
    assert "pilotage down\n" in pilotage("up", PILOTAGE_DATA=str(running.folder)).stdout


def test_a_second_up_with_other_settings_names_them_and_how_to_change_them(running, tmp_path):
    answer = pilotage("up", "--data", running.folder, "--port", 8091, "--host-name", "local", "--file-roots", tmp_path)
    assert (answer.returncode, answer.stdout) == (1, "")
    data = f"--data '{running.folder}'"
    wanted = f"--port 8091 --file-roots {tmp_path}"
    assert answer.stderr == (
        f"Error: {running.folder} is up already with --port 8090 --file-roots '/a b' --file-roots /c. "
        f"Change it with: pilotage down {data} && pilotage up -d {data} {wanted}\n"
    )


def test_its_state_is_there_for_scripts(running):
    answer = pilotage("up", "--status", "--data", running.folder, "-o", "json")
    assert answer.returncode == 0
    assert json.loads(answer.stdout) == {
        "data": str(running.folder),
        "up": True,
        "ready": True,
        "requests": f"{URL}/v1",
        "kubeconfig": str(running.kubeconfig),
        "logs": str(running.logs),
        "settings": {"port": 8090, "file_roots": ["/a b", "/c"], "allow_commands": True},
        "components": {"harbor": {"pid": os.getpid(), "running": True}},
    }


def test_where_nothing_is_up_status_says_so_with_an_exit_code(layout):
    answer = pilotage("up", "--status", "--data", layout.folder)
    assert answer.returncode == 1
    assert answer.stdout == (
        f"Nothing is up in {layout.folder}. Bring it up with: pilotage up -d --data '{layout.folder}'\n"
    )
    answer = pilotage("up", "--status", "--data", layout.folder, "-o", "json")
    assert (answer.returncode, json.loads(answer.stdout)) == (1, {"data": str(layout.folder), "up": False})


def test_a_unit_of_systemd_runs_the_same_command(layout, tmp_path):
    roots = tmp_path / '100% "$HOME"'
    roots.mkdir()
    answer = pilotage("up", "--systemd", "--data", layout.folder, "--port", 8090, "--file-roots", roots)
    assert answer.returncode == 0
    unit = configparser.RawConfigParser()
    unit.read_string(answer.stdout)
    command = unit["Service"]["ExecStart"]
    assert "%" not in command.replace("%%", "")
    assert "$" not in command.replace("$$", "")
    # As systemd reads it: quotes, then specifiers and variables.
    words = [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(command)]
    options = ["--data", str(layout.folder), "--port", "8090", "--file-roots", str(roots)]
    assert words == [sys.executable, "-m", "pilotage", "up", *options]
    assert unit["Service"]["KillMode"] == "mixed"
    assert "enable --now pilotage" in answer.stderr, "the unit alone is on stdout"
    assert not Path(layout.folder, "up.json").exists()
