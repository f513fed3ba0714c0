"""Logs of servers: files that they write to by themselves, so that they go on when the agent is gone.

They are rotated while they are written: see `processes.logfiles`.
"""

from pathlib import Path

from pilotage.processes import logfiles

BYTES_MAX = 16 << 20
KEPT = 2
"""Earlier files: ``….1`` and ``….2``."""
TAIL_BYTES = 16 << 10


def size(path: Path) -> int:
    """Its size in bytes; 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def rotate(path: Path, bytes_max: int = BYTES_MAX) -> bool:
    """Rotate a log that is too long; whether it was. Raises OSError: nothing is lost then."""
    return logfiles.rotate(path, bytes_max, KEPT)


def tail(path: Path, since: int = 0) -> str:
    """Its end, from `since` on; from the beginning if it was rotated meanwhile."""
    try:
        with path.open("rb") as file:
            end = size(path)
            file.seek(max(since if since <= end else 0, end - TAIL_BYTES))
            return file.read(TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""


def remove(path: Path) -> None:
    """Remove a log and the earlier ones."""
    for each in logfiles.files_of(path, KEPT):
        each.unlink(missing_ok=True)
