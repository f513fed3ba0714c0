"""Children that are started again, after a pause that grows, until they are stopped."""

import asyncio
import os
import signal
import sys

import pytest

from pilotage.processes.child import Child

SLEEPS = "import time; time.sleep(1000)"


class Delays:
    """No pause, and a record of what was asked."""

    def __init__(self):
        self.asked = []

    def when(self, _item):
        self.asked.append("when")
        return 0.0

    def forget(self, _item):
        self.asked.append("forget")


class Spawn:
    """Starts the script that it is given; raises the error that it is given."""

    def __init__(self, script):
        self.script, self.errors = script, []

    async def __call__(self):
        if self.errors:
            raise self.errors.pop()
        return await asyncio.create_subprocess_exec(sys.executable, "-c", self.script)


@pytest.fixture
async def made():
    """A child, kept running; what is reported of it."""
    spawn, delays, reports, started = Spawn(SLEEPS), Delays(), [], []
    child = Child("sleeper", spawn, delays, steady_seconds=1000)
    await child.start()
    keeping = asyncio.create_task(child.keep(lambda how, _: reports.append(how), started=started.append))
    yield child, spawn, delays, reports, started
    await child.stop(0)
    await keeping


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - other processes change it
            await asyncio.sleep(0.01)


def kill(child):
    os.kill(child.pid, signal.SIGKILL)


async def test_it_is_started_again_as_another_process(made):
    child, _, delays, reports, started = made
    before = child.id
    kill(child)
    await until(lambda: started)
    assert child.id == started[0] != before
    assert (child.starts, reports, delays.asked) == (2, [-9], ["when"])


async def test_a_start_that_fails_is_reported_and_retried(made):
    child, spawn, delays, reports, started = made
    full = OSError(12, "no memory")
    spawn.errors = [full]
    kill(child)
    await until(lambda: started)
    assert (reports, delays.asked) == ([-9, full], ["when", "when"])


async def test_a_long_run_begins_with_the_shortest_pause_again(made):
    child, _, delays, _, started = made
    child._steady_seconds = -1.0
    kill(child)
    await until(lambda: started)
    assert delays.asked == ["forget", "when"]


async def test_it_is_not_started_again_after_a_stop(made):
    child, *_, reports, started = made
    assert await child.stop(10) == -signal.SIGTERM
    await asyncio.sleep(0)
    assert (child.starts, child.id, child.pid, reports, started) == (1, None, None, [], [])
