"""The format of the logs: for programs, unless a terminal is attached or a setting says otherwise."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from pilotage.runtime.logs import configure_logging
from pilotage.terminal import Guarded

PROGRAM = (
    "import structlog\n"
    "from pilotage.runtime.logs import configure_logging\n"
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


class Terminal(io.BytesIO):
    """Output to a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def own_logging() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.mark.usefixtures("own_logging")
def test_hostile_text_does_nothing_to_a_terminal_and_our_colours_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", Guarded(screen, "utf-8"))
    configure_logging(json=False)
    evil = "x\x1b[2J\x1b]52;c;aGk=\x07\x9b1A\u202e\rFORGED\nFORGED"
    log = structlog.get_logger()
    log.warning(evil, text=evil, word="\x1b[2J", many=[evil])
    try:
        raise ValueError(evil)
    except ValueError:
        log.exception("it failed")
    sys.stderr.flush()
    said = screen.getvalue().decode()
    assert "\x1b[1m" in said
    plain = re.sub(r"\x1b\[[0-9]{1,2}m", "", said)
    assert {each for each in plain if not each.isprintable()} == {"\n"}
    first, *_ = plain.splitlines()
    assert first.count("FORGED") == 6


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_log_that_cannot_be_written_stops_nobody() -> None:
    program = (
        "import structlog\n"
        "from pilotage.runtime.logs import configure_logging\n"
        "configure_logging()\n"
        "structlog.get_logger().warning('a disk is full')\n"
        "print('done')"
    )
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=full, check=False)
    assert ran.stdout == b"done\n"
