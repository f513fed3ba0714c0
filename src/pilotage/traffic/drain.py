"""The drain clock: whether requests that are under way to something that goes have ended, or have had their time.

One rule for every drain: a route that shifts, a route that a teardown removes, a GatewayRoute, and a server on a Host.

- Zero in flight counts only after a grace period: a request whose head came just before is counted only when its body
  goes on to the server.
- An unknown count (None) is never zero: requests that nobody counts are given time instead.
- After the drain timeout nothing is waited for any more, whatever is under way.

No clock and no client here: the caller measures. One that was restarted and has forgotten begins with 0 and waits
longer.
"""

from typing import NamedTuple

GRACE_SECONDS = 1.0
SECONDS_MIN = 0.01
"""A wait is no shorter: the rest that sums of fractions leave would be waited for again and again, and not pass."""


class DrainLimits(NamedTuple):
    """Durations of one drain, in seconds."""

    drain_seconds: float
    """The drain timeout: requests that are under way longer than this are cut."""
    grace_seconds: float = GRACE_SECONDS
    """Time without a request before zero in flight is believed."""
    uncounted_seconds: float | None = None
    """The time for requests that nobody counts. None: the whole drain timeout."""


class TrafficWait(NamedTuple):
    """A reason to wait before traffic is taken any further."""

    text: str
    seconds: float
    """Seconds after which it ends by itself, or the caller has to check again."""

    @property
    def countdown(self) -> str:
        """The text with the time that is left. It changes each second: not for a status that is written at once."""
        return f"{self.text}; {self.seconds:.0f} s left"


def undrained(
    in_flight: int | None, detached_seconds: float, limits: DrainLimits, *, idle_seconds: float | None = None
) -> TrafficWait | None:
    """The reason why the drain is not over yet; None: it is.

    `in_flight` is the number of requests under way, None where it is unknown. `detached_seconds` says how long ago
    nothing new was sent any more; `idle_seconds` for how long no requests have been seen, where that is tracked.
    """
    idle = detached_seconds if idle_seconds is None else idle_seconds
    left = limits.drain_seconds - detached_seconds
    if left <= 0:
        return None
    if in_flight:
        text = "1 request is" if in_flight == 1 else f"{in_flight} requests are"
        return TrafficWait(f"{text} still under way", max(left, SECONDS_MIN))
    if in_flight is None:
        text = "requests under way are not counted; they are given time"
        pause = limits.drain_seconds if limits.uncounted_seconds is None else limits.uncounted_seconds
    else:
        text = "no requests are under way; a moment is given to those that just came"
        pause = limits.grace_seconds
    pause = min(left, pause - idle)
    return None if pause <= 0 else TrafficWait(text, max(pause, SECONDS_MIN))


def cut_short(in_flight: int | None) -> str:
    """The note about a drain that has ended with requests under way; empty where none were seen."""
    if not in_flight:
        return ""
    text = "1 request was" if in_flight == 1 else f"{in_flight} requests were"
    return f"{text} still under way when the time to drain was over"
