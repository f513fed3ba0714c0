"""The token bucket, on a virtual clock."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.kube.ratelimit import TokenBucket
from pilotage_sim.loop import run_virtual, virtual


@virtual
async def test_a_burst_is_free_and_the_rest_comes_one_by_one() -> None:
    bucket = TokenBucket(qps=4, burst=3)
    assert [bucket.reserve() for _ in range(6)] == [0, 0, 0, 0.25, 0.5, 0.75]


@virtual
async def test_tokens_come_back_with_time_up_to_the_burst() -> None:
    bucket = TokenBucket(qps=4, burst=2)
    assert [bucket.reserve() for _ in range(3)] == [0, 0, 0.25]
    await asyncio.sleep(0.5)
    assert [bucket.reserve() for _ in range(2)] == [0, 0.25]
    await asyncio.sleep(1000)
    assert [bucket.reserve() for _ in range(3)] == [0, 0, 0.25]


@virtual
async def test_acquire_waits_its_turn_in_the_order_of_asking() -> None:
    bucket, loop = TokenBucket(qps=2, burst=1), asyncio.get_running_loop()
    turns: list[tuple[int, float]] = []

    async def ask(number: int) -> None:
        await bucket.acquire()
        turns.append((number, loop.time()))

    await asyncio.gather(*(ask(number) for number in range(4)))
    assert turns == [(0, 0), (1, 0.5), (2, 1), (3, 1.5)]


@virtual
async def test_a_cancelled_wait_gives_its_token_back_unless_others_stand_behind() -> None:
    bucket, loop = TokenBucket(qps=1, burst=1), asyncio.get_running_loop()
    await bucket.acquire()
    second, third, fourth = (asyncio.create_task(bucket.acquire()) for _ in range(3))
    await asyncio.sleep(0.5)
    fourth.cancel()
    third.cancel()
    await asyncio.wait([third, fourth])
    await second
    assert loop.time() == 1
    await bucket.acquire()
    assert loop.time() == 2, "the turns of the third and the fourth were given back"

    fifth, sixth = (asyncio.create_task(bucket.acquire()) for _ in range(2))
    await asyncio.sleep(0.5)
    fifth.cancel()
    await asyncio.wait([fifth])
    await bucket.acquire()
    assert sixth.done()
    assert loop.time() == 5, "the sixth was told to wait until 4, and nobody else may come at that time"


@given(
    pauses=st.lists(st.integers(0, 64).map(lambda n: n / 32), max_size=40),
    qps=st.sampled_from([1, 2, 8]),
    burst=st.integers(1, 5),
)
@settings(deadline=None, derandomize=True)
def test_no_stretch_of_time_sees_more_than_the_rate_and_the_burst_allow(
    pauses: list[float], qps: int, burst: int
) -> None:
    async def turns() -> list[float]:
        bucket, loop = TokenBucket(qps, burst), asyncio.get_running_loop()
        seen = []
        for pause in pauses:
            await asyncio.sleep(pause)
            seen.append(loop.time() + bucket.reserve())
        return seen

    seen = run_virtual(turns())
    assert seen == sorted(seen)
    for i, begin in enumerate(seen):
        for j in range(i, len(seen)):
            assert j - i + 1 <= burst + (seen[j] - begin) * qps


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_bucket_that_would_never_give_anything_is_refused(qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="qps > 0 and burst >= 1"):
        TokenBucket(qps, burst)
