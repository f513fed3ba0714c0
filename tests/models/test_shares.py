"""A few places for the work of many: each namespace gets its share, and nothing is lost on the way."""

import asyncio
import random

import pytest

from pilotage.models.shares import Shares
from pilotage_sim.loop import virtual


class Works:
    """Work that takes its time, and begins again when it lost its place."""

    def __init__(self, shares):
        self._shares = shares
        self.now = []
        self.most = 0
        self.cancelled = 0

    def begin(self, share, seconds):
        return asyncio.create_task(self._shares.run(share, lambda: self._work(share, seconds)))

    async def _work(self, share, seconds):
        self.now.append(share)
        self.most = max(self.most, len(self.now))
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.now.remove(share)
        return share


@virtual
async def test_one_alone_has_all_places():
    works = Works(Shares(4))
    await asyncio.gather(*(works.begin("a", 10.0) for _ in range(8)))
    assert (works.most, works.cancelled) == (4, 0)
    assert asyncio.get_running_loop().time() == 20.0


@virtual
async def test_who_holds_more_makes_room_at_once_until_all_hold_the_same():
    works = Works(Shares(4))
    tasks = [works.begin("a", 1e6) for _ in range(6)]
    await asyncio.sleep(1)
    tasks += [works.begin("b", 1e6) for _ in range(6)]
    await asyncio.sleep(1)
    assert sorted(works.now) == ["a", "a", "b", "b"]
    tasks += [works.begin("c", 1e6) for _ in range(6)]
    await asyncio.sleep(1)
    assert {works.now.count(each) for each in "abc"} == {1, 2}
    assert works.most == 4
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert works.now == []


@virtual
async def test_where_each_holds_one_a_place_is_given_up_after_a_turn():
    works = Works(Shares(2, turn_seconds=100.0))
    tasks = [works.begin(share, 1e6) for share in "ab"]
    await asyncio.sleep(60)
    tasks.append(works.begin("c", 1e6))
    await asyncio.sleep(39)
    assert sorted(works.now) == ["a", "b"]
    await asyncio.sleep(2)
    assert "c" in works.now
    served = set()
    for _ in range(300):
        await asyncio.sleep(1)
        served |= set(works.now)
    assert served == {"a", "b", "c"}
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@virtual
async def test_a_namespace_does_not_take_turns_with_itself():
    works = Works(Shares(1, turn_seconds=10.0))
    await asyncio.gather(*(works.begin("a", 1000.0) for _ in range(3)))
    assert works.cancelled == 0


@virtual
async def test_what_is_cancelled_gives_its_place_back_whether_it_works_or_waits():
    works = Works(Shares(1))
    first, second, third = (works.begin("a", 10.0) for _ in range(3))
    await asyncio.sleep(1)
    second.cancel()
    first.cancel()
    assert await third == "a"
    assert asyncio.get_running_loop().time() == 11.0


@virtual
async def test_what_fails_says_so_and_gives_its_place_back():
    shares = Shares(1)

    async def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await shares.run("a", fail)
    assert await Works(shares).begin("a", 1.0) == "a"


@pytest.mark.parametrize("seed", range(20))
def test_everything_is_done_in_the_end(seed):
    rng = random.Random(seed)

    @virtual
    async def play():
        works = Works(Shares(3, turn_seconds=20.0))
        tasks, gone = [], []
        for _ in range(60):
            tasks.append(works.begin(rng.choice("abcde"), rng.choice([0.0, 1.0, 5.0, 15.0])))
            if rng.random() < 0.2:
                gone.append(rng.choice(tasks))
                gone[-1].cancel()
            await asyncio.sleep(rng.choice([0.0, 0.0, 0.5, 3.0]))
        async with asyncio.timeout(10_000):
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert works.now == []
        assert works.most <= 3
        for task, end in zip(tasks, ended, strict=True):
            assert isinstance(end, str) or task in gone

    play()
