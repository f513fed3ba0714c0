"""Limits of one source: disk space and time of the fetcher. Set by its operator, never by a Model.

A source need not say how large it is, nor send what it has. So it is judged by what it does: it is written as long as
it is not too large and the disk keeps a reserve, and read as long as it delivers.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from pilotage.models.problems import PermanentError, Reason, TransientError

BYTES_MAX = 250 * 10**9
"""Larger than any single file of weights that is published today."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one source."""

    bytes_max: int = BYTES_MAX
    """Size limit of one file."""
    reserve_bytes: int = 1 << 30
    """Bytes of a disk that are kept free (a twentieth of a small one) for other programs, such as the API server."""
    open_seconds: float = 180.0
    """Time from the first connection to the first byte of the file, redirects included."""
    rate_bytes: int = 16 << 10
    """A source that delivers less than this per second is given up …"""
    rate_seconds: float = 60.0
    """… after so much time of waiting for it …"""
    slow_retry_seconds: float = 300.0
    """… and asked again after so long."""
    whole_seconds: float = 86400.0
    """Time limit of one attempt; the next one goes on where it ended."""


def check_size(size: int | None, limits: Limits, shown: str) -> None:
    """Refuse a file that is too large, by what is known of its size."""
    if size is not None and size > limits.bytes_max:
        raise PermanentError(
            Reason.TOO_LARGE,
            f"{shown} has more than the {limits.bytes_max} bytes that a model may have here",
            "Change spec.source, or let the administrator allow more (--model-bytes-max)",
        )


def check_space(folder: Path, more: int, limits: Limits) -> None:
    """Refuse to write so much more where that would use up the reserve. Blocks."""
    disk = shutil.disk_usage(folder)
    if more > disk.free - min(limits.reserve_bytes, disk.total // 20):
        raise PermanentError(
            Reason.NO_SPACE,
            f"the disk of {folder} has too little space: a part of it is kept free",
            "Free some, or use a larger volume",
        )


async def steady(chunks: AsyncIterator[bytes], limits: Limits, shown: str) -> AsyncIterator[bytes]:
    """The chunks of a source, as long as it delivers. Only the time that it lets us wait counts."""
    loop = asyncio.get_running_loop()
    waited, came = 0.0, 0
    end = loop.time() + limits.whole_seconds
    while True:
        asked = loop.time()
        try:
            async with asyncio.timeout(limits.rate_seconds):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise _slow(limits, shown) from None
        waited += loop.time() - asked
        came += len(chunk)
        if waited >= limits.rate_seconds:
            if came < limits.rate_bytes * waited:
                raise _slow(limits, shown)
            waited, came = 0.0, 0
        yield chunk
        if loop.time() > end:
            raise TransientError(Reason.TIMED_OUT, f"{shown} did not come within {limits.whole_seconds:.0f} s")


def _slow(limits: Limits, shown: str) -> TransientError:
    return TransientError(
        Reason.TOO_SLOW,
        f"{shown} delivers less than {limits.rate_bytes} bytes per second",
        retry_after=limits.slow_retry_seconds,
    )
