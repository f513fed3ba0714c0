"""Waiting for a state: never for a time."""

import asyncio
from collections.abc import Callable

SECONDS_MAX = 60
POLL_SECONDS = 0.02


async def eventually(condition: Callable[[], bool]) -> None:
    """Return once the condition holds; TimeoutError if it does not within a minute."""
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():  # noqa: ASYNC110 - the state is another process's, which raises no event here
            await asyncio.sleep(POLL_SECONDS)
