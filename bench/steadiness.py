"""Steadiness of the machine: the same small work again and again, between the measurements.

Other work on the machine, or on the host of a virtual one, slows down a process without showing in its CPU time. A
figure can be off by as much as this work was.
"""

import statistics
import time

ADDITIONS = 200_000

_milliseconds: list[float] = []


def sample() -> None:
    """Do the work once and note the CPU time that it took."""
    started = time.process_time()
    total = 0
    for number in range(ADDITIONS):
        total += number
    _milliseconds.append((time.process_time() - started) * 1e3)


def verdict() -> str:
    """Summary of the measurements so far, as text."""
    low, middle, high = min(_milliseconds), statistics.median(_milliseconds), max(_milliseconds)
    return (
        f"the same work took {low:.0f} to {high:.0f} ms of CPU, {middle:.0f} in the middle; "
        f"an undisturbed machine would show figures down to {low / middle:.0%} of these"
    )
