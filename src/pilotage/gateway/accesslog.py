"""Rotation of Envoy's access log: the file is renamed, and Envoy told to open a new one."""

import contextlib
from pathlib import Path

from pilotage.gateway.admin import Admin
from pilotage.processes.logfiles import make_room

LOG_BYTES_MAX = 64 * 1024 * 1024
FILES_MAX = 3
"""Earlier files; access.log.1 is the newest."""
CHECK_SECONDS = 10.0


def rename(log: Path, *, files_max: int = FILES_MAX) -> None:
    """``access.log`` becomes ``access.log.1``, that becomes ``.2``, and so on; the oldest one is removed."""
    if not log.exists():
        raise FileNotFoundError(log)
    make_room(log, files_max)
    log.replace(log.with_name(f"{log.name}.1"))


def due(log: Path, bytes_max: int) -> bool:
    """Whether Envoy needs a new file: the one it has is too large, or it was renamed when Envoy could not be told."""
    try:
        return log.stat().st_size >= bytes_max
    except FileNotFoundError:
        return log.with_name(f"{log.name}.1").exists()


async def rotate(log: Path, admin: Admin, *, bytes_max: int = LOG_BYTES_MAX) -> bool:
    """Rotate the log if it is too large; whether it was. Raises `AdminUnavailable` where Envoy cannot be told.

    Until it is told, Envoy goes on writing to the renamed file: no line is lost.
    """
    if not due(log, bytes_max):
        return False
    with contextlib.suppress(FileNotFoundError):
        rename(log)
    await admin.post("/reopen_logs")
    return True
