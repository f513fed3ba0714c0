"""The logs of servers: files that they write to by themselves, so that they go on when the agent is gone.

They are kept short while they are written: see `runtime.logfiles`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.runtime.logfiles import copy_aside, files_of

if TYPE_CHECKING:
    from pathlib import Path

BYTES_MAX = 16 << 20
KEPT = 2
"""So many earlier files stay, as ``….1`` and ``….2``."""
TAIL_BYTES = 16 << 10


def size(path: Path) -> int:
    """How long it is; 0 where it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def rotate(path: Path, bytes_max: int = BYTES_MAX) -> bool:
    """Begin a new one if this one is too long. Raises OSError where it cannot: nothing is lost then."""
    return copy_aside(path, bytes_max, KEPT)


def tail(path: Path, since: int = 0) -> str:
    """The end of it, from `since` on; where a new one was begun meanwhile, of all of that."""
    try:
        with path.open("rb") as file:
            end = size(path)
            file.seek(max(since if since <= end else 0, end - TAIL_BYTES))
            return file.read(TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""


def remove(path: Path) -> None:
    """It and the earlier ones."""
    for each in files_of(path, KEPT):
        each.unlink(missing_ok=True)
