"""Connections are shared while they come back quickly, and made where they do not."""

from __future__ import annotations

import asyncio

import pytest

from pilotage.kube.pool import IDLE_SECONDS_MAX, PATIENCE_SECONDS, Pool
from pilotage.kube.transport import TransportError
from pilotage_sim.loop import virtual


class Connection:
    """The parts of a connection that a pool uses."""

    def __init__(self) -> None:
        self.usable = True
        self.idle_since = 0.0

    def abort(self, _: str) -> None:
        self.usable = False


def now() -> float:
    return asyncio.get_running_loop().time()


@virtual
async def test_who_waits_longest_gets_the_connection_that_is_given_back():
    pool, shared = Pool(), Connection()
    waiting = [asyncio.create_task(pool.wait()) for _ in range(3)]
    for read in waiting:  # each uses it for a moment, so the last one waits longer than one would have patience
        await asyncio.sleep(0.9 * PATIENCE_SECONDS)
        pool.give(shared)
        assert await read is shared
    pool.give(shared)
    assert pool.take() is shared
    assert pool.take() is None


@virtual
async def test_when_nothing_is_given_back_a_new_connection_is_due():
    began = now()
    assert await Pool().wait() is None
    assert now() - began == pytest.approx(PATIENCE_SECONDS)


@virtual
async def test_a_connection_that_was_handed_to_somebody_who_left_is_not_lost():
    pool, shared = Pool(), Connection()
    waiting = asyncio.create_task(pool.wait())
    await asyncio.sleep(0)
    pool.give(shared)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert pool.take() is shared


@virtual
async def test_who_gave_up_is_handed_nothing():
    pool, shared = Pool(), Connection()
    assert await pool.wait() is None
    pool.give(shared)
    assert pool.take() is shared


@virtual
async def test_who_waits_is_told_that_the_client_was_closed():
    pool = Pool()
    waiting = asyncio.create_task(pool.wait())
    await asyncio.sleep(0)
    pool.close()
    with pytest.raises(TransportError, match="closed"):
        await waiting


@virtual
async def test_what_was_idle_for_long_or_was_closed_is_not_used_again():
    pool, old, broken, good = Pool(), Connection(), Connection(), Connection()
    pool.give(old)
    await asyncio.sleep(IDLE_SECONDS_MAX + 1)
    assert pool.take() is None
    assert not old.usable
    pool.give(good)
    pool.give(broken)
    broken.usable = False
    assert pool.take() is good


@virtual
async def test_the_first_connections_are_waited_for_while_they_are_made():
    pool, shared = Pool(), Connection()
    pool.coming = 1
    waiting = asyncio.create_task(pool.wait())
    await asyncio.sleep(5 * PATIENCE_SECONDS)
    assert not waiting.done()
    pool.give(shared)
    assert await waiting is shared


@virtual
async def test_first_connections_that_come_to_nothing_are_not_waited_for():
    pool = Pool()
    pool.coming = 1
    waiting = asyncio.create_task(pool.wait())
    await asyncio.sleep(5 * PATIENCE_SECONDS)
    pool.coming = 0
    began = now()
    assert await waiting is None
    assert now() - began <= PATIENCE_SECONDS


@virtual
async def test_later_ones_are_not_waited_for():
    pool, shared = Pool(), Connection()
    pool.give(shared)
    assert pool.take() is shared
    await asyncio.sleep(1)
    pool.coming = 1
    began = now()
    assert await pool.wait() is None
    assert now() - began == pytest.approx(PATIENCE_SECONDS)
