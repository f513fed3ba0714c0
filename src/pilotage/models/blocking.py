"""Blocking file I/O: in a thread, so that the loop stays free. In virtual time: at once."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Blocking(Protocol):
    """Calls a function that blocks, and returns its result."""

    async def __call__(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""


async def in_thread(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call it in a thread: the usual way."""
    return await asyncio.to_thread(function, *args, **kwargs)


async def inline(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call it directly, for loops without threads: those of virtual time."""
    return function(*args, **kwargs)
