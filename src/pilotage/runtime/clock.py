"""The only clocks: the running loop's. A loop with virtual time therefore moves all of them.

The time of day can be set. It is for what is written down and compared with what others wrote; how long something
takes is measured by one of the others.
"""

import asyncio
import datetime as dt
import time

_SLEW = dt.timedelta(seconds=0.5)
_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def monotonic() -> float:
    """Seconds, for durations and deadlines."""
    return asyncio.get_running_loop().time()


def uptime() -> float:
    """Seconds since the system was booted, suspended or not: for durations that outlast the process."""
    loop = asyncio.get_running_loop()
    return loop.time() if hasattr(loop, "wall_time") else time.clock_gettime(_UPTIME)


def utc_now() -> dt.datetime:
    """The time of day, for what is written down. A loop that has `wall_time` (virtual time) is asked for it."""
    wall_time = getattr(asyncio.get_running_loop(), "wall_time", time.time)
    return dt.datetime.fromtimestamp(wall_time(), dt.UTC)


class SteadyClock:
    """The time of day as it goes on from the moment that this is made: setting the clock does not move it.

    For one piece of work that compares times of its own, such as how long a drain has lasted. Corrections that are
    too small to matter are followed.
    """

    def __init__(self) -> None:
        self._began, self._began_at = utc_now(), monotonic()

    def now(self) -> dt.datetime:
        """The time."""
        now, steady = utc_now(), self._began + dt.timedelta(seconds=monotonic() - self._began_at)
        return now if abs(now - steady) < _SLEW else steady


class Ages:
    """Ages of events whose time of day is known: by the wall clock at first sight, then by a monotonic clock."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[dt.datetime, float]] = {}

    def age(self, name: str, happened: dt.datetime) -> float:
        """Seconds; not less than 0."""
        known = self._first.get(name)
        if known is None or known[0] != happened:
            age = max(0.0, (utc_now() - happened).total_seconds())
            known = self._first[name] = (happened, monotonic() - age)
        return monotonic() - known[1]

    def forget(self, name: str) -> None:
        """It is over."""
        self._first.pop(name, None)
