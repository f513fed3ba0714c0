"""Time limits of a source: by what it delivers, and not by what we do with it."""

import asyncio

import pytest

from pilotage.models import Reason, TransientError
from pilotage.models.limits import Limits, steady
from pilotage_sim.loop import virtual

LIMITS = Limits()


async def pieces(number, size, pause):
    for _ in range(number):
        await asyncio.sleep(pause)
        yield bytes(size)


async def read(chunks, pause=0.0):
    came = 0
    async for chunk in steady(chunks, LIMITS, "it"):
        came += len(chunk)
        await asyncio.sleep(pause)
    return came


@pytest.mark.parametrize(("size", "pause"), [(1, 1.0), (10_000, 1.0), (500_000, 59.0), (1, 3600.0)])
@virtual
async def test_a_source_that_delivers_too_little_is_given_up_after_a_minute_or_two(size, pause):
    began = asyncio.get_running_loop().time()
    with pytest.raises(TransientError) as refused:
        await read(pieces(10_000, size, pause))
    assert refused.value.reason is Reason.TOO_SLOW
    assert asyncio.get_running_loop().time() - began <= 120


@pytest.mark.parametrize(("size", "pause"), [(17_000, 1.0), (1_000_000, 59.0), (1_000_000, 0.0)])
@virtual
async def test_a_source_that_delivers_enough_is_read_to_its_end(size, pause):
    assert await read(pieces(1000, size, pause)) == 1000 * size


@virtual
async def test_the_time_that_we_take_ourselves_does_not_count():
    assert await read(pieces(100, 100, 0.1), pause=30.0) == 10_000


@virtual
async def test_one_attempt_has_its_end():
    began = asyncio.get_running_loop().time()
    with pytest.raises(TransientError) as refused:
        await read(pieces(10**6, 1_000_000, 30.0))
    assert refused.value.reason is Reason.TIMED_OUT
    assert 86_400 <= asyncio.get_running_loop().time() - began <= 86_500
