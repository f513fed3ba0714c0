"""A token bucket on the loop's clock: how often something may happen, and how much of it at once."""

import asyncio


class TokenBucket:
    """`burst` tokens to begin with, `qps` new ones per second, never more than `burst`.

    A token may be taken before it is there: whoever takes it waits until it would have come. Tokens are thus given out
    in the order in which they were asked for.
    """

    __slots__ = ("_burst", "_last_turn", "_qps", "_tokens", "_updated_at")

    def __init__(self, qps: float, burst: int) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"a token bucket needs qps > 0 and burst >= 1, not qps={qps} and burst={burst}")
        self._qps = qps
        self._burst = burst
        # Below zero: tokens that were promised and have not come yet.
        self._tokens = float(burst)
        self._updated_at: float | None = None
        self._last_turn = 0.0

    def reserve(self) -> float:
        """Take a token, for good; returns the seconds to wait before it may be used."""
        now = asyncio.get_running_loop().time()
        if self._updated_at is not None:
            self._tokens = min(float(self._burst), self._tokens + (now - self._updated_at) * self._qps)
        self._updated_at = now
        self._tokens -= 1
        delay = max(0.0, -self._tokens / self._qps)
        self._last_turn = now + delay
        return delay

    async def acquire(self) -> None:
        """Take a token and wait until it may be used; a cancelled wait gives it back if nobody stands behind."""
        delay = self.reserve()
        if not delay:
            return
        turn = self._last_turn
        try:
            await asyncio.sleep(delay)
        except asyncio.CancelledError:
            # Those behind have been told when their turn is; a token given back to them would let a later one jump in.
            if self._last_turn == turn:
                self._tokens += 1
                self._last_turn = turn - 1 / self._qps
            raise
