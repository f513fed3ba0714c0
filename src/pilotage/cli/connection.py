"""The cluster that a command talks to, and how a command runs."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import sys
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from pilotage.kube.config import ClusterConfig
    from pilotage.teardown.session import Session
    from pilotage.up.layout import Layout

_CONTEXT_OPTIONS = {"pilotage": "--context", "kubectl": "--context", "flux": "--context", "helm": "--kube-context"}
"""The option of a program that names the context; each of them has --kubeconfig, too."""
_ELSEWHERE = ("agent", "install", "up")
"""Commands of ours that have no cluster, or run on a machine with a kubeconfig of its own."""
_JOINED = re.compile(r"( && | \| )(?=(?:[^']*'[^']*')*[^']*$)")
"""Operators between the commands of a line, outside of quotes."""

P = ParamSpec("P")
R = TypeVar("R")


@dataclasses.dataclass(slots=True)
class ClusterChoice:
    """The cluster that the options name; None for what they leave open."""

    kubeconfig: str | None
    context: str | None
    machine: Layout | None = dataclasses.field(default=None, init=False)
    """The running `pilotage up` that a session was opened with, because nothing else is set up."""

    @contextlib.asynccontextmanager
    async def session(
        self, *, name: str = "pilotage", remembering: bool = False, changes: bool = False
    ) -> AsyncIterator[Session]:
        """Its connections are closed at the end. Raises ConfigError.

        `remembering`: begin with the kinds that were served the last time. Only for who reads with `as_served`.
        `changes`: the command may change something, so a person is told which cluster that is if nothing named it.
        """
        from pilotage.kube import Client, Discovery
        from pilotage.teardown.session import Session

        config = self._config()
        if changes and self.machine is not None and sys.stderr.isatty():
            from pilotage.cli.output.text import note

            note(f"No kubeconfig is set up: using `pilotage up` in {self.machine.folder}.")
        memory = None
        if remembering:
            from pilotage.kube.discovery_memory import DiscoveryMemory

            memory = DiscoveryMemory.of(config)
        async with Client.connect(config, name=name) as client:
            yield Session(client, Discovery(client, memory), config.server)

    def complete(self, command: str) -> str:
        """A suggested command with the options that named the cluster here, so that it acts there when it is pasted."""
        return "".join(self._completed(part) for part in _JOINED.split(command))

    def _completed(self, command: str) -> str:
        """One command of a line: a program that takes no such options is left as it is."""
        from shlex import quote

        program, _, rest = command.partition(" ")
        context = _CONTEXT_OPTIONS.get(program) if rest.partition(" ")[0] not in _ELSEWHERE else None
        # Our own commands find a running `pilotage up` as this one did; others do not.
        found = str(self.machine.kubeconfig) if self.machine is not None and program != "pilotage" else None
        given = {"--kubeconfig": self.kubeconfig or found, context: self.context} if context else {}
        return command + "".join(f" {option} {quote(value)}" for option, value in given.items() if value)

    def _config(self) -> ClusterConfig:
        """The configuration that is set up as for kubectl; that of a running `pilotage up` where there is none."""
        from pilotage.kube import load_config
        from pilotage.kube.errors import NothingConfigured

        try:
            return load_config(kubeconfig=self.kubeconfig, context=self.context)
        except NothingConfigured:
            self.machine = _machine()
            if self.machine is None:
                raise
            return load_config(kubeconfig=str(self.machine.kubeconfig))

    def hint(self) -> str:
        """A sentence on a running `pilotage up` where another cluster is used, with a space before it; else empty."""
        from shlex import quote

        from pilotage.kube import ConfigError, load_config
        from pilotage.kube.errors import NothingConfigured

        machine = _machine()
        if machine is None:
            return ""
        try:
            used = load_config(kubeconfig=self.kubeconfig, context=self.context).server
            same = used == load_config(kubeconfig=str(machine.kubeconfig)).server
        except ConfigError as error:
            same = isinstance(error, NothingConfigured)
        how = f"export KUBECONFIG={quote(str(machine.kubeconfig))}"
        return "" if same else f" `pilotage up` runs on this machine, and is not what was asked. To use it: {how}"


def _machine() -> Layout | None:
    """The folder of `pilotage up` that commands mean where none is named, if it is ours alone and up."""
    from pilotage.private_files import check_private, read_private
    from pilotage.up.layout import Layout, default_folder

    layout = Layout(default_folder())
    try:
        check_private(layout.folder)
        check_private(layout.harbor)
        read_private(layout.kubeconfig)
    except OSError:
        return None
    return layout if layout.running() is not None else None


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
