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

_STEP = re.compile(
    r"^(up|route|gone|cordon|detach|drain|quiesce|stop|remove|release) .*  +\d+(\.\d+)? s$\n?", re.MULTILINE
)
"""A line about a step: how many come before its last one depends on timing."""
_WAIT = re.compile(r"^(operator .*|waiting  .* left\)|waiting for .*)$\n?", re.MULTILINE)
"""A line about a wait, which comes only if it lasts."""
_SUFFIX = "[bcdf-hj-np-tv-xz2-9]"
"""Characters of the suffixes that Kubernetes generates."""
_VARYING = {
    r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b": "UID",
    r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|\b20\d{6}-\d{6}\b": "TIME",
    r"(?<=127\.0\.0\.1:)\d+": "PORT",
    r"\b10\.\d+\.\d+\.\d+\b": "IP",
    rf"(?<=-)({_SUFFIX}{{6,10}}-{_SUFFIX}{{5}}|{_SUFFIX}{{8,10}}|{_SUFFIX}{{5}}|[0-9a-f]{{8}})\b": "HASH",
    r"(?<![\w.-])(\d+[dhm])*\d+(\.\d+)? ?(s|m|h|d|ms)\b": "AGE",
}


def stable(said: str) -> list[str]:
    """Lines of an output without what differs from run to run.

    That is: waits, steps before they end and which ends first, uids, times, ages, addresses, generated suffixes, and
    widths of columns.
    """
    ends = {found[1]: found[0] for found in _STEP.finditer(said)}
    lines = _WAIT.sub("", _STEP.sub("", said)).splitlines()
    return [_without_moment(line) for line in (*lines, *sorted(ends.values())) if line.strip()]


def _comes_and_goes(said: str) -> bool:
    """Whether it has lines that are not compared."""
    steps = [found[1] for found in _STEP.finditer(said)]
    return len(steps) != len(set(steps)) or bool(_WAIT.search(said))


def _without_moment(line: str) -> str:
    for pattern, name in _VARYING.items():
        line = re.sub(pattern, name, line)
    return re.sub(r"(?<=\S) +", " ", line).rstrip()


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a page."""

    text: str

    def played(self, run: Callable[[str], str], *, anew: bool = False) -> Page:
        """The page with what its commands print now.

        An output that differs by nothing but the moment stays; if `anew`, only one without lines that come and go.
        """

        def again(found: re.Match[str]) -> str:
            said = run(re.sub(r"^> ", "", found["command"], flags=re.MULTILINE))
            stays = stable(said) == stable(found["said"]) and not (anew and _comes_and_goes(found["said"]))
            return found[0] if stays else f"$ {found['command']}{said}"

        return Page(_BLOCK.sub(lambda block: _COMMAND.sub(again, block[0]), self.text))
