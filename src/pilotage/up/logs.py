"""Keeps the logs of the parts, and the supervisor's own, from growing for ever: see `runtime.logfiles`."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from pilotage.runtime.logfiles import copy_aside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

BYTES_MAX = 10 * 1024 * 1024
LOOK_SECONDS = 5.0
RETRY_SECONDS = 60.0
"""After one could not be put aside: each attempt may copy all of it."""


def rotate(log: Path) -> None:
    """Put one that is too long aside, as ``….log.1``, in place of the one before. Raises OSError."""
    copy_aside(log, BYTES_MAX)


async def keep_short(logs: Sequence[Path], say: Callable[[str], None]) -> None:
    """Look at them from time to time, until cancelled. What cannot be put aside is said once, and tried on."""
    loop = asyncio.get_running_loop()
    due: dict[Path, float] = {}
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for log in logs:
            if loop.time() < due.get(log, 0.0):
                continue
            try:
                rotate(log)
            except OSError as error:
                if log not in due:
                    with contextlib.suppress(OSError):  # to say it may take the space that is missing
                        say(f"{log} cannot be put aside: {error}")
                due[log] = loop.time() + RETRY_SECONDS
            else:
                due.pop(log, None)
