"""Waiting for the world to be in a state, without sleeping past it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pilotage.kube import Client, Object, ObjectKey, Resource

T = TypeVar("T")


async def until(
    client: Client, resource: Resource, key: ObjectKey, condition: Callable[[Object | None], object], seconds: int = 20
) -> Object | None:
    """Watch one object until the condition holds for it (for None where there is none), or raise TimeoutError."""
    selector = f"metadata.name={key.name}"
    listed = await client.list(resource, key.namespace, fields=selector)
    current = listed.items[0] if listed.items else None
    if condition(current):
        return current
    version = listed.resource_version
    async with client.watch(
        resource, key.namespace, resource_version=version, fields=selector, seconds=seconds
    ) as watch:
        async for event in watch:
            if event.type == "BOOKMARK":
                continue
            current = None if event.type == "DELETED" else event.object
            if condition(current):
                return current
    raise TimeoutError(f"after {seconds} s, {resource} {key} is still {current}")


async def eventually(attempt: Callable[[], Awaitable[T | None]], seconds: float = 20) -> T:
    """Try again and again until something true comes back: for what cannot be watched, such as discovery."""
    async with asyncio.timeout(seconds):
        while True:
            if result := await attempt():
                return result
            await asyncio.sleep(0.02)


def soon(condition: Callable[[], object], what: str, seconds: float = 30) -> None:
    """The same for tests without an event loop; `what` should be the case, for the failure."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds} s it is not so that {what}"
        time.sleep(0.02)
