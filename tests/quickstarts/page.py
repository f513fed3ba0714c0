"""A page of docs/quickstarts: Markdown whose console blocks are commands and what they print.

A line that begins with ``$ `` is a command, one that begins with ``> `` continues it, and all others are output. The
last line of an output is ``(exit code N)`` if that is not 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parents[2] / "docs" / "quickstarts"

_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (?P<command>.*\n(?:> .*\n)*)(?P<said>(?:(?!\$ ).*\n)*)", re.MULTILINE)

_STEPS = "operator|up|route|gone|cordon|detach|drain|quiesce|stop|remove|release"
_PROGRESS = re.compile(rf"({_STEPS}) +.*  +\d+(\.\d+)? s|waiting  .* left\)|waiting for .*")
"""A line about progress: which of them are printed, and how often, depends on timing."""
_CONSONANTS = "[bcdf-hj-np-tv-xz2-9]"
"""Characters of the suffixes that Kubernetes generates."""
_VARYING = {
    r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b": "UID",
    r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|\b20\d{6}-\d{6}\b": "TIME",
    r"(?<=-)[0-9a-f]{8}\b": "UID",
    r"(?<=127\.0\.0\.1:)\d+": "PORT",
    r"\b10\.\d+\.\d+\.\d+\b": "IP",
    rf"(?<=-)({_CONSONANTS}{{6,10}}-{_CONSONANTS}{{5}}|{_CONSONANTS}{{8,10}}|{_CONSONANTS}{{5}})\b": "HASH",
    r"(?<![\w.-])(\d+[dhm])*\d+(\.\d+)? ?(s|m|h|d|ms)\b": "AGE",
}


def stable(said: str) -> list[str]:
    """Lines of an output without what differs from run to run.

    That is: progress, uids, times, ages, addresses, generated suffixes, and the widths of columns.
    """
    lines = [line for line in said.splitlines() if line.strip() and not _PROGRESS.fullmatch(line)]
    return [_without_moment(line) for line in lines]


def _without_moment(line: str) -> str:
    for pattern, name in _VARYING.items():
        line = re.sub(pattern, name, line)
    return re.sub(r"(?<=\S) +", " ", line).rstrip()


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a page."""

    text: str

    def played(self, run: Callable[[str], str]) -> Page:
        """The page with what its commands print now. An output that differs by nothing but the moment stays."""

        def again(found: re.Match[str]) -> str:
            said = run(re.sub(r"^> ", "", found["command"], flags=re.MULTILINE))
            return found[0] if stable(said) == stable(found["said"]) else f"$ {found['command']}{said}"

        return Page(_BLOCK.sub(lambda block: _COMMAND.sub(again, block[0]), self.text))
