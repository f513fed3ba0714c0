"""The logs of servers: files that they write to by themselves, so that they go on when the agent is gone.

A server has its file open for appending. To rotate it, it is copied and then cut to nothing: the server's next line
goes to the new end, and it never has to be told. Lines that come between the two are lost; a pipe would lose none, and
would stop the server when nobody reads.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

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
    """Begin a new one if this one is too long."""
    if size(path) <= bytes_max:
        return False
    for number in range(KEPT - 1, 0, -1):
        older = _numbered(path, number)
        if older.exists():
            older.replace(_numbered(path, number + 1))
    shutil.copyfile(path, _numbered(path, 1))
    with path.open("r+b") as file:
        file.truncate(0)
    return True


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
    for each in (path, *(_numbered(path, number) for number in range(1, KEPT + 1))):
        each.unlink(missing_ok=True)


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
