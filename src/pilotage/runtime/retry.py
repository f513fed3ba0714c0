"""How long to wait before a connection is tried again: exponential, with full jitter from an injected seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


class Backoff:
    """Delays that double from the first to the last; each is spread over once to twice its length."""

    def __init__(self, first: float, last: float, rng: random.Random) -> None:
        self._first = first
        self._last = last
        self._rng = rng
        self._delay = first

    def next(self) -> float:
        """The next delay, in seconds."""
        delay, self._delay = self._delay, min(self._delay * 2, self._last)
        return delay * (1 + self._rng.random())

    def reset(self) -> None:
        """Start over with the first."""
        self._delay = self._first
