"""``make demo`` tells the story that docs/demo.md shows.

`PILOTAGE_TRANSCRIPT=write` puts what it says now into docs/demo.md.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from demo.__main__ import end
from demo.machine import Machine

TRANSCRIPT = Path(__file__).parents[2] / "docs" / "demo.md"
BLOCK = re.compile(r"(?<=<!-- demo -->\n```\n).*?(?=```\n<!-- /demo -->)", re.DOTALL)

PASSING = re.compile(r"^ +(operator|up|route|shift|gone|detach|drain|stop|remove) .*\d s$")
"""A line about progress: which of them are printed, and how often, depends on timing."""


def tidy(text):
    """Output without the values that differ from run to run: the folder and the port."""
    text = re.sub(r"(file://)?/\S*?/pilotage-demo-\w+", lambda found: f"{found[1] or ''}/tmp/demo", text)
    return re.sub(r"(127\.0\.0\.1:|--port )\d+", r"\g<1>8080", text).strip() + "\n"


def stable(text):
    """The lines that are the same in every run, with numbers, uids and times made equal."""
    lines = [line for line in text.splitlines() if line.strip() and not PASSING.match(line)]
    lines = [re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT[\d:]+Z", "…", line) for line in lines]
    return [" ".join(re.sub(r"\d+(\.\d+)?", "0", line).split()) for line in lines]


@pytest.fixture
def folder():
    """Folder with a short name: it contains sockets."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def test_the_demo_tells_the_story_of_the_readme(folder):
    env = {**os.environ, "TMPDIR": str(folder)}
    answer = subprocess.run([sys.executable, "-m", "demo"], capture_output=True, text=True, check=False, env=env)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    told = tidy(answer.stdout)
    written = TRANSCRIPT.read_text(encoding="utf-8")
    if os.environ.get("PILOTAGE_TRANSCRIPT") == "write":
        TRANSCRIPT.write_text(BLOCK.sub(lambda _: told, written), encoding="utf-8")
        written = TRANSCRIPT.read_text(encoding="utf-8")
    shown = BLOCK.search(written)
    assert shown is not None
    assert stable(told) == stable(shown[0])
    assert re.search(r"^  [1-9]\d* requests, [1-9]\d* of them streams: 0 failed$", told, re.MULTILINE)
    assert "Left: 0 processes, 0 ports, 0 folders." in told
    assert list(folder.iterdir()) == []


def test_the_demo_sees_a_server_that_was_left_behind(folder, monkeypatch):
    """A server has nothing of the data folder in its command line, only its model. No program is needed to see it."""
    monkeypatch.setenv("PATH", str(folder))
    machine = Machine(folder, lambda _: None)
    monkeypatch.setattr(machine, "run", lambda _: "")
    with subprocess.Popen([sys.executable, "-c", "input()", str(folder / "v1.gguf")], stdin=subprocess.PIPE) as left:
        with pytest.raises(SystemExit, match=f"left behind.*{left.pid}"):
            end(machine)
        left.kill()
    end(machine)
