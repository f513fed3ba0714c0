"""The cluster that a command talks to, and how a command runs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from pilotage.teardown.session import Session

R = TypeVar("R")


def run_briefly(main: Coroutine[Any, Any, R]) -> R:
    """Run a command that looks and ends: without the garbage collector, which would only look through what stays."""
    import asyncio
    import gc

    gc.disable()
    try:
        return asyncio.run(main)
    finally:
        gc.enable()


@contextlib.asynccontextmanager
async def connected(
    kubeconfig: str | None, context: str | None, *, remembering: bool = False
) -> AsyncIterator[Session]:
    """The cluster that the options name; its connections are closed at the end. Raises ConfigError.

    `remembering`: begin with the kinds that were served the last time. Only for who reads with `as_served`.
    """
    from pilotage.kube import Client, Discovery, load_config
    from pilotage.teardown.session import Session

    config = load_config(kubeconfig=kubeconfig, context=context)
    memory = None
    if remembering:
        from pilotage.kube.discovery_memory import DiscoveryMemory

        memory = DiscoveryMemory.of(config)
    async with Client.connect(config) as client:
        yield Session(client, Discovery(client, memory), config.server)
