"""Parallel calls with a limit on those in flight."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable


async def in_parallel(call: Callable[[int], Awaitable[object]], numbers: Iterable[int], concurrency: int) -> None:
    """Call with every number, in order, from as many tasks."""
    rest = iter(numbers)

    async def work() -> None:
        for number in rest:
            await call(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
