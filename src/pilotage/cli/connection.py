"""The cluster that a command talks to, and how a command runs."""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from pilotage.teardown.session import Session

P = ParamSpec("P")
R = TypeVar("R")


class ClusterChoice(NamedTuple):
    """The cluster that the options name; None for what they leave open."""

    kubeconfig: str | None
    context: str | None

    @contextlib.asynccontextmanager
    async def session(self, *, name: str = "pilotage", remembering: bool = False) -> AsyncIterator[Session]:
        """Its connections are closed at the end. Raises ConfigError.

        `remembering`: begin with the kinds that were served the last time. Only for who reads with `as_served`.
        """
        from pilotage.kube import Client, Discovery, load_config
        from pilotage.teardown.session import Session

        config = load_config(kubeconfig=self.kubeconfig, context=self.context)
        memory = None
        if remembering:
            from pilotage.kube.discovery_memory import DiscoveryMemory

            memory = DiscoveryMemory.of(config)
        async with Client.connect(config, name=name) as client:
            yield Session(client, Discovery(client, memory), config.server)


def asynchronous(command: Callable[P, Coroutine[Any, Any, int | None]]) -> Callable[P, None]:
    """Run the coroutine of a command to its end; it returns the exit code, None for 0."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        if code := run_briefly(command(*args, **kwargs)):
            sys.exit(code)

    return run


def run_briefly(main: Coroutine[Any, Any, R]) -> R:
    """Run a command that looks and ends: without the garbage collector, which would only look through what stays."""
    import asyncio
    import gc

    gc.disable()
    try:
        return asyncio.run(main)
    finally:
        gc.enable()
