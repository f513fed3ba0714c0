"""The time budget of expressions: cel-cpp bounds the iterations of a loop, and not what each of them does."""

from __future__ import annotations

import time


class Budget:
    """Processor time, so that a busy machine refuses nothing that an idle one accepts."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.exhausted = False
        """Whether somebody has asked for more than there was."""
        self._deadline = 0.0

    def renew(self) -> None:
        """Begin anew."""
        self.exhausted = False
        self._deadline = time.thread_time() + self._seconds

    def tick(self) -> bool:
        """Go on; ValueError, which ends the iteration, if there is no time left."""
        if self.exhausted or time.thread_time() > self._deadline:
            self.exhausted = True
            raise ValueError("there is no time left")
        return True
