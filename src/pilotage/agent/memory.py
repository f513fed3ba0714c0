"""Memory that a server will need, and whether the host has it. Pure, apart from `MemoryGauge`, which asks the system.

An estimate, made before the start because afterwards it is too late: the system kills somebody. Whoever knows better
says so in the spec.
"""

import math
from typing import NamedTuple

MIB = 1 << 20
BASE_BYTES = 64 * MIB
"""The program itself."""
OVERHEAD = 1.05
"""Ratio of the memory for weights and buffers to the weights."""
CONTEXT_BYTES = 1.5
"""Times the square root of the number of parameters: what a token of context takes, in 16 bits. Right within a factor
of two for the common models from 1 to 70 billion parameters."""
HEADROOM = 0.05
"""Fraction of the memory that is left to the system."""


class MemoryReading(NamedTuple):
    """The memory of the host, in bytes."""

    total: int
    available: int


def estimate(file_bytes: int, parameters: int | None, context_tokens: int) -> int:
    """Bytes that a server needs for weights of this size."""
    context = CONTEXT_BYTES * math.sqrt(parameters or 0) * context_tokens
    return BASE_BYTES + int(file_bytes * OVERHEAD + context)


def free(reading: MemoryReading, promised: int) -> int:
    """Bytes for new servers when the running ones get what was `promised` to them.

    Both limits count. Weights that are mapped from a file stay "available" to the system, though their server needs
    them; and what others on this machine take is in no promise.
    """
    left = int(reading.total * (1 - HEADROOM)) - promised
    return max(0, min(left, reading.available))


def refusal(need: int, left: int) -> str:
    """Why a server does not fit; empty if it does. The same text as long as the reason is the same."""
    if need <= left:
        return ""
    return f"it needs about {shown(need)} of memory, which this host does not have free"


def shown(number: int) -> str:
    """A size for people."""
    return f"{number / 1024 / MIB:.1f} GiB" if number >= 1024 * MIB else f"{math.ceil(number / MIB)} MiB"


class MemoryGauge:
    """The memory of this machine."""

    def read(self) -> MemoryReading:
        """The memory now."""
        import psutil

        memory = psutil.virtual_memory()
        return MemoryReading(memory.total, memory.available)
