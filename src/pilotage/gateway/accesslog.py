"""Keeps Envoy's access log from growing for ever: the file is put aside, and Envoy told to open a new one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pilotage.runtime.logfiles import make_room

if TYPE_CHECKING:
    from pathlib import Path

    from pilotage.gateway.admin import Admin

LOG_BYTES_MAX = 64 * 1024 * 1024
FILES_MAX = 3
"""Of those put aside: access.log.1 is the newest."""
LOOK_SECONDS = 10.0


def put_aside(log: Path, *, files_max: int = FILES_MAX) -> None:
    """``access.log`` becomes ``access.log.1``, that becomes ``.2``, and so on; the oldest one goes."""
    if not log.exists():
        raise FileNotFoundError(log)
    make_room(log, files_max)
    log.replace(log.with_name(f"{log.name}.1"))


def due(log: Path, bytes_max: int) -> bool:
    """Whether Envoy needs a new file: the one it has is too large, or was put aside when it could not be told."""
    try:
        return log.stat().st_size >= bytes_max
    except FileNotFoundError:
        return log.with_name(f"{log.name}.1").exists()


async def rotate(log: Path, admin: Admin, *, bytes_max: int = LOG_BYTES_MAX) -> bool:
    """Put it aside if it is too large; whether it was. Raises `Silent` where Envoy cannot be told.

    Until it is told, Envoy goes on writing to the file that was put aside: no line is lost.
    """
    if not due(log, bytes_max):
        return False
    with contextlib.suppress(FileNotFoundError):
        put_aside(log)
    await admin.post("/reopen_logs")
    return True
