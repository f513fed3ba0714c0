"""The only clock: the running loop's. A loop with virtual time therefore moves everything."""

from __future__ import annotations

import asyncio
import datetime as dt
import time


def monotonic() -> float:
    """Seconds, for durations and deadlines."""
    return asyncio.get_running_loop().time()


def utc_now() -> dt.datetime:
    """The time of day, for what is written down. A loop that has `wall_time` (virtual time) is asked for it."""
    wall_time = getattr(asyncio.get_running_loop(), "wall_time", time.time)
    return dt.datetime.fromtimestamp(wall_time(), dt.UTC)
