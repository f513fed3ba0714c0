"""The command lines of the components of `up`."""

import pytest

from pilotage.up import components
from pilotage.up.components import AGENT, command
from pilotage.up.layout import Layout
from pilotage.up.settings import UpOptions


@pytest.mark.parametrize("allowed", [False, True], ids=["presets", "any command"])
def test_no_command_of_a_spec_is_run_as_root_because_llama_server_is_out_of_reach(allowed, tmp_path, monkeypatch):
    monkeypatch.setattr(components.os, "geteuid", lambda: 0)
    monkeypatch.setattr(components, "closed_to", lambda *_: tmp_path)
    options = UpOptions(tmp_path, llama_server=tmp_path / "llama-server", allow_commands=allowed)
    program = tmp_path / "llama-server"
    program.touch(0o755)
    line = command(AGENT, options, Layout(tmp_path), {AGENT: 40000})
    assert ("--run-as" in line) is not allowed
    assert ("--allow-commands" in line) is allowed
