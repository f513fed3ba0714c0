"""Progress on stderr, so that stdout holds only what was measured."""

import sys
import time

_started = time.monotonic()


def say(what: str) -> None:
    """One line, with the time since the start."""
    print(f"{time.monotonic() - _started:5.0f} s  {what}", file=sys.stderr, flush=True)
