"""Rotation of the logs of the components and of the supervisor: see `processes.logfiles`."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from pilotage.processes.logfiles import rotate as rotate_file

BYTES_MAX = 10 * 1024 * 1024
CHECK_SECONDS = 5.0
RETRY_SECONDS = 60.0
"""Pause after a rotation that failed: each attempt may copy the whole log."""


def rotate(log: Path) -> None:
    """Rotate a log that is too long to ``….log.1``, in place of the earlier one. Raises OSError."""
    rotate_file(log, BYTES_MAX)


async def keep_short(logs: Sequence[Path], say: Callable[[str], None]) -> None:
    """Rotate the logs that are too long, until cancelled. A failure is reported once and retried."""
    loop = asyncio.get_running_loop()
    due: dict[Path, float] = {}
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        for log in logs:
            if loop.time() < due.get(log, 0.0):
                continue
            try:
                rotate(log)
            except OSError as error:
                if log not in due:
                    with contextlib.suppress(OSError):  # reporting it may need the space that is missing
                        say(f"{log} cannot be rotated, which is retried: {error}")
                due[log] = loop.time() + RETRY_SECONDS
            else:
                due.pop(log, None)
