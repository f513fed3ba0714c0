"""Rotation of a log that another process writes.

The writer has it open for appending. So it is copied and then truncated: the next line goes to the new end, and the
writer need not be told. Lines that come between the two are lost; a pipe would lose none, and would block the writer
when nobody reads.
"""

import contextlib
import shutil
from pathlib import Path


def rotate(log: Path, bytes_max: int, kept: int = 1) -> bool:
    """Rotate the log if it is longer than `bytes_max`; whether it was. `kept` earlier ones stay: ``….1``, ``….2``, ….

    Raises OSError: then nothing was truncated, and no earlier one is lost.
    """
    try:
        if log.stat().st_size <= bytes_max:
            return False
    except FileNotFoundError:
        return False
    copy = _copy(log)
    with log.open("r+b") as file:  # without permission to truncate it, nothing is moved
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
    """Renumber the earlier ones, so that ``….1`` is free; of as many as are kept, the oldest is removed."""
    for number in range(kept - 1, 0, -1):
        earlier = _numbered(log, number)
        if earlier.exists():
            earlier.replace(_numbered(log, number + 1))


def files_of(log: Path, kept: int = 1) -> list[Path]:
    """All files of a log: itself, the earlier ones, and a copy that was never finished."""
    return [log, _copy(log), *(_numbered(log, number) for number in range(1, kept + 1))]


def _numbered(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def _copy(log: Path) -> Path:
    return log.with_name(f"{log.name}.new")
