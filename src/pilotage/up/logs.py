"""Keeps the logs of the parts, and the supervisor's own, from growing for ever.

Who writes one has it open for appending. To begin a new one it is copied and then cut to nothing: the next line goes to
the new end, and nobody has to be told. Lines that come between the two are lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

BYTES_MAX = 10 * 1024 * 1024
LOOK_SECONDS = 5.0


def rotate(log: Path) -> None:
    """Put one that is too long aside, as ``….log.1``, in place of the one before. Raises OSError."""
    try:
        if log.stat().st_size <= BYTES_MAX:
            return
    except FileNotFoundError:
        return
    shutil.copyfile(log, log.with_name(f"{log.name}.1"))
    os.truncate(log, 0)


async def keep_short(logs: Sequence[Path], say: Callable[[str], None]) -> None:
    """Look at them from time to time, until cancelled. What cannot be put aside is said once, and tried on."""
    said: set[Path] = set()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for log in logs:
            try:
                rotate(log)
            except OSError as error:
                if log not in said:
                    said.add(log)
                    with contextlib.suppress(OSError):  # to say it may take the space that is missing
                        say(f"{log} is too long and cannot be put aside: {error}")
            else:
                said.discard(log)
