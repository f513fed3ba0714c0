"""Clocks that cannot be set, beside a wall clock that was set."""

import asyncio
import datetime as dt
import time

from pilotage.runtime.clock import Ages, SteadyClock, uptime, utc_now
from pilotage_sim.loop import virtual

DAYS = 2 * 86400.0


def set_clock(seconds):
    loop = asyncio.get_running_loop()
    right = loop.wall_time
    loop.wall_time = lambda: right() + seconds


@virtual
async def test_a_steady_clock_goes_on_from_the_time_of_day_and_is_not_moved():
    clock, began = SteadyClock(), utc_now()
    assert clock.now() == began
    for step in (DAYS, -2 * DAYS):
        set_clock(step)
        await asyncio.sleep(10.0)
    assert (clock.now() - began).total_seconds() == 20.0


@virtual
async def test_the_age_of_a_thing_grows_with_time_and_not_with_the_clock():
    ages, happened = Ages(), utc_now() - dt.timedelta(seconds=30)
    assert ages.age("a", happened) == 30.0
    set_clock(DAYS)
    await asyncio.sleep(5.0)
    assert ages.age("a", happened) == 35.0
    set_clock(-2 * DAYS)
    assert ages.age("a", happened) == 35.0
    assert ages.age("from the future", happened) == 0.0
    assert ages.age("a", happened + dt.timedelta(days=1)) == 0.0, "it has happened again"
    ages.forget("a")
    assert ages.age("a", happened - dt.timedelta(seconds=86400 * 3)) > 86400


async def test_uptime_outlasts_a_process(monkeypatch):
    before = uptime()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert before <= uptime() < before + 60
