"""Drain time of a server on a Host, with a stand-in for the count of its requests."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from pilotage.agent.intervals import Intervals
from pilotage.agent.journal import JournalEntry, LifecycleState
from pilotage.agent.process_stop import ProcessStop
from pilotage.runtime.clock import uptime
from pilotage_sim.loop import virtual


class Counts:
    """Says one number after the other, and the last one for ever."""

    def __init__(self, *numbers: int | None) -> None:
        self._numbers = [*numbers]

    async def in_flight(self, _: JournalEntry) -> int | None:
        return self._numbers.pop(0) if len(self._numbers) > 1 else self._numbers[0]


async def drained(counts: Counts, *, runtime: str = "llama.cpp", withdrawn: bool = True) -> float:
    """Seconds after which it is stopped."""
    nobody = cast("Any", None)
    stop = ProcessStop(nobody, nobody, cast("Any", counts), Intervals(), nobody)
    began = uptime()
    entry = JournalEntry(
        "u", "default", "chat", LifecycleState.LEAVING, runtime=runtime, registered=True, drain_seconds=30, since=began
    )
    if withdrawn:
        stop._withdrawn.add("u")
    progress = await stop._drain(entry)
    while progress is not None:
        await asyncio.sleep(progress.wait)
        progress = await stop._drain(entry)
    return uptime() - began


@pytest.mark.parametrize(
    ("counts", "options", "seconds"),
    [
        (Counts(0), {}, 1.0),
        (Counts(2, 2, 2, 2, 2, 0), {}, 2.0),
        (Counts(0, 0, 1, 0), {}, 1.6),
        (Counts(2), {}, 30.0),
        (Counts(None), {}, 30.0),
        (Counts(0, 0, None, 0), {}, 1.6),
        (Counts(0), {"withdrawn": False}, 30.0),
        (Counts(None), {"runtime": "custom"}, 1.0),
    ],
    ids=[
        "without requests a moment is given to those that just came",
        "requests under way end",
        "the moment begins anew with each request",
        "requests that do not end have the whole time",
        "a server that does not answer is not taken for idle",
        "nor for a moment",
        "one that is not withdrawn may get requests at any time",
        "one that cannot count finishes its requests after SIGTERM",
    ],
)
@virtual
async def test_the_time_for_requests(counts, options, seconds):
    assert await drained(counts, **options) == pytest.approx(seconds, abs=0.25)
