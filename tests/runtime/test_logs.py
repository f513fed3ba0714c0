"""The form of the logs: for programs, unless a person looks on or has said so."""

import json
import subprocess
import sys

import pytest

PROGRAM = (
    "import structlog\n"
    "from pilotage.runtime import configure_logging\n"
    "configure_logging()\n"
    "structlog.get_logger().info('made fast', berth=7)\n"
)


def logged(monkeypatch: pytest.MonkeyPatch, said: str) -> str:
    monkeypatch.setenv("PILOTAGE_LOGS", said)
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return done.stderr


@pytest.mark.parametrize("said", ["", "json", "nonsense"])
def test_a_file_gets_json(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    line = json.loads(logged(monkeypatch, said))
    assert (line["event"], line["berth"], line["level"]) == ("made fast", 7, "info")


def test_a_person_who_asks_for_it_gets_text_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    line = logged(monkeypatch, "text")
    assert "made fast" in line
    assert "berth=7" in line
    assert "\x1b" not in line
