"""Keeps the logs of the parts, and the supervisor's own, from growing for ever: see `runtime.logfiles`."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from pilotage.runtime.logfiles import put_aside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

BYTES_MAX = 10 * 1024 * 1024
LOOK_SECONDS = 5.0


def rotate(log: Path) -> None:
    """Put one that is too long aside, as ``….log.1``, in place of the one before. Raises OSError."""
    put_aside(log, BYTES_MAX)


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
