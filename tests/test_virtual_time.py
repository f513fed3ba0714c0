"""The loops that other tests rely on."""

import asyncio
import random
import re
import time

import pytest

from pilotage_sim.loop import VIRTUAL_EPOCH, DeadlockError, LivelockError, VirtualTimeLoop, run_virtual, virtual
from tests.virtual_time import WarpLoop, run_warp, warp

DAY = 86_400.0


def test_a_virtual_year_takes_no_time_and_loses_no_precision() -> None:
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        await asyncio.sleep(365 * DAY + 0.1)
        return loop.time(), loop.wall_time()

    began = time.monotonic()
    assert run_virtual(main()) == (365 * DAY + 0.1, VIRTUAL_EPOCH + 365 * DAY + 0.1)
    assert time.monotonic() - began < 5


def test_a_virtual_timer_runs_exactly_at_its_time() -> None:
    async def main() -> tuple[list[float], list[float]]:
        loop, seen = asyncio.get_running_loop(), list[float]()
        rng = random.Random(1)
        times = [rng.uniform(0, 1e6) for _ in range(1000)]
        for when in times:
            loop.call_at(when, lambda: seen.append(loop.time()))
        await asyncio.sleep(1e6)
        return seen, sorted(times)

    seen, times = run_virtual(main())
    assert seen == times


def test_a_virtual_run_is_the_same_every_time() -> None:
    def trace(seed: int) -> list[tuple[float, int]]:
        rng = random.Random(seed)
        seen: list[tuple[float, int]] = []

        async def worker(number: int) -> None:
            for _ in range(20):
                await asyncio.sleep(rng.choice([0, 0.1, 1, 1, 60]))
                seen.append((asyncio.get_running_loop().time(), number))

        async def main() -> None:
            await asyncio.gather(*(worker(number) for number in range(5)))

        run_virtual(main())
        return seen

    assert trace(1) == trace(1)
    assert trace(1) != trace(2)
    assert trace(1) == sorted(trace(1), key=lambda entry: entry[0])


def test_a_cancelled_timer_does_not_move_the_clock() -> None:
    @virtual
    async def main() -> float:
        loop = asyncio.get_running_loop()
        loop.call_later(5, lambda: None).cancel()
        await asyncio.sleep(7)
        return loop.time()

    assert main() == 7


def test_waiting_in_vain_is_an_error_that_names_who_waits() -> None:
    async def waits_for_ever() -> None:
        await asyncio.sleep(3)
        await asyncio.get_running_loop().create_future()

    with pytest.raises(DeadlockError, match=r"(?s)deadlock at virtual time 3:.*test_virtual_time\.py:\d+"):
        run_virtual(waits_for_ever())


def test_a_deadlock_report_shows_how_each_task_came_to_wait() -> None:
    async def inner(event: asyncio.Event) -> None:
        await event.wait()

    async def outer() -> None:
        event = asyncio.Event()
        waiting = asyncio.create_task(inner(event), name="waits for the event")
        await waiting

    with pytest.raises(DeadlockError) as caught:
        run_virtual(outer())
    report = str(caught.value)
    assert re.search(r"Task-\d+ \(1\) waits for the end of waits for the event\n +in .*outer", report)
    assert re.search(r"waits for the event \(1\) waits for Future\n +in .*inner.*\n +in Event.wait", report)


def test_never_waiting_is_an_error_that_names_who_is_busy() -> None:
    async def spins() -> None:
        while True:  # noqa: ASYNC110 - that is the point
            await asyncio.sleep(0)

    with pytest.raises(LivelockError, match=r"(?s)at virtual time 0 the program is busy.*spins"):
        run_virtual(spins())


def test_tasks_of_a_set_are_cancelled_in_the_same_order_every_time() -> None:
    async def waits(number: int, seen: list[int]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(number)

    async def main() -> list[int]:
        seen: list[int] = []
        tasks = {asyncio.create_task(waits(number, seen)) for number in range(50)}
        ballast.append([object() for _ in range(len(ballast) * 37)])  # other addresses in every run
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return seen

    ballast: list[list[object]] = []
    assert all(run_virtual(main()) == run_virtual(main()) for _ in range(5))


def test_io_between_two_sockets_is_no_deadlock() -> None:
    async def main() -> bytes:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.read(5))
            writer.close()
            await writer.wait_closed()

        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello")
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return answer

    assert run_virtual(main()) == b"hello"


def test_warp_passes_every_timer_in_order_and_waits_for_the_answers_of_a_server() -> None:
    """A client that asks once an hour, with a time-out of a minute that must never be what comes first."""

    async def main() -> tuple[list[str], float]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                writer.write(line)
            writer.close()
            await writer.wait_closed()

        async def client(port: int) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for hour in range(1, 25):
                await asyncio.sleep(3600 - (loop.time() - began) % 3600)
                writer.write(f"{hour} {(loop.time() - began) // 3600:.0f}\n".encode())
                async with asyncio.timeout(60):
                    seen.append((await reader.readline()).decode().strip())
            writer.close()
            await writer.wait_closed()

        loop = asyncio.get_running_loop()
        assert isinstance(loop, WarpLoop)
        began, wall_began, seen = loop.time(), loop.wall_time(), list[str]()
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            task = asyncio.create_task(client(server.sockets[0].getsockname()[1]))
            await warp(DAY + 1)
            await task
        return seen, (loop.wall_time() - wall_began) - (loop.time() - began)

    seen, drift = run_warp(main())
    assert seen == [f"{hour} {hour}" for hour in range(1, 25)]
    assert abs(drift) < 1


def test_warp_does_not_outrun_a_slow_answer_when_told_that_one_is_awaited() -> None:
    async def main() -> str:
        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            await asyncio.to_thread(time.sleep, 0.15)  # outside of the loop's time, as a real server is
            writer.write(b"late\n")
            writer.close()
            await writer.wait_closed()

        async def client(port: int) -> str:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"?\n")
            try:
                async with asyncio.timeout(30):
                    return (await reader.readline()).decode()
            except TimeoutError:
                return "timed out"
            finally:
                writer.close()
                await writer.wait_closed()

        async with await asyncio.start_server(slow, "127.0.0.1", 0) as server:
            task = asyncio.create_task(client(server.sockets[0].getsockname()[1]))
            await warp(3600, busy=lambda: not task.done())
            return await task

    assert run_warp(main()) == "late\n"
