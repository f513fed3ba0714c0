"""Keeps a log that another process writes from growing for ever.

Who writes it has it open for appending. To begin a new one it is copied and then cut to nothing: the next line goes to
the new end, and nobody has to be told. Lines that come between the two are lost; a pipe would lose none, and would stop
the writer when nobody reads.
"""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def copy_aside(log: Path, bytes_max: int, kept: int = 1) -> bool:
    """Begin a new one if this one is longer. So many earlier ones stay, as ``….1``, ``….2`` and so on.

    Raises OSError where that cannot be done: then nothing was cut, and no earlier one is lost.
    """
    try:
        if log.stat().st_size <= bytes_max:
            return False
    except FileNotFoundError:
        return False
    copy = _copy(log)
    with log.open("r+b") as file:  # who may not cut it finds that out before anything is moved
        try:
            shutil.copyfile(log, copy)
            make_room(log, kept)
            copy.replace(_numbered(log, 1))
        except OSError:
            with contextlib.suppress(OSError):
                copy.unlink()
            raise
        file.truncate(0)
    return True


def make_room(log: Path, kept: int) -> None:
    """Move the earlier ones on, so that there is no ``….1`` any more; of as many as are kept, the oldest goes."""
    for number in range(kept - 1, 0, -1):
        earlier = _numbered(log, number)
        if earlier.exists():
            earlier.replace(_numbered(log, number + 1))


def files_of(log: Path, kept: int = 1) -> list[Path]:
    """All files that a log may have: it, the earlier ones, and a copy that was never finished."""
    return [log, _copy(log), *(_numbered(log, number) for number in range(1, kept + 1))]


def _numbered(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def _copy(log: Path) -> Path:
    return log.with_name(f"{log.name}.new")
