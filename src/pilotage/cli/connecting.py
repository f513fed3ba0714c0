"""What commands that look at a cluster have in common: their options, the connection, and how their errors read.

The options are decorators, each a few lines of help that read the same in every command. Only click is imported here;
the rest comes when a command runs.
"""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec, TypeVar

import click

from pilotage.cli.errors import OneLine, one_sentence

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from pilotage.kube import Client, Discovery

P = ParamSpec("P")
R = TypeVar("R")


class Connection(NamedTuple):
    """A cluster, and what it serves."""

    client: Client
    discovery: Discovery
    server: str
    """Its address."""


class BadTarget(OneLine):
    """What was typed, or the file that was given, means nothing here."""

    exit_code = 2


def cluster_options(command: Callable[P, R]) -> Callable[P, R]:
    """``--kubeconfig`` and ``--context``, as `kubeconfig` and `context`."""
    for option in (
        click.option("--context", metavar="NAME", help="The context to use instead of the current one."),
        click.option(
            "--kubeconfig", metavar="FILE", help="The kubeconfig to use instead of $KUBECONFIG or ~/.kube/config."
        ),
    ):
        command = option(command)
    return command


def namespace_options(command: Callable[P, R]) -> Callable[P, R]:
    """``-n`` and ``-A``, as `namespace` (empty: that of the context) and `all_namespaces`. They exclude each other."""
    for option in (
        click.option(
            "-A", "--all-namespaces", is_flag=True, callback=_not_with_namespace, help="Look in all namespaces."
        ),
        click.option(
            "-n",
            "--namespace",
            metavar="NAME",
            default="",
            is_eager=True,  # before -A, which looks at it
            help="The namespace to look in instead of the context's.",
        ),
    ):
        command = option(command)
    return command


def output_option(command: Callable[P, R]) -> Callable[P, R]:
    """``-o``, as `output`."""
    choice = click.Choice(["text", "json"])
    return click.option("-o", "--output", type=choice, default="text", show_default=True)(command)


def files_option(text: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """``-f``, any number of times, as `files`: a tuple of paths, and ``-`` for stdin. `text` is its help."""
    return click.option("-f", "--filename", "files", metavar="FILE", multiple=True, callback=_sources, help=text)


def plain_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Print in one sentence what went wrong: with what was typed or with a file (exit code 2), or as `one_sentence`."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except Exception as error:
            from pilotage.teardown.planning.arguments import TargetError
            from pilotage.teardown.snapshot.dump import DumpError  # not before: most commands end well

            if isinstance(error, DumpError | TargetError):
                raise BadTarget(str(error)) from error
            raise

    return one_sentence(run)


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
) -> AsyncIterator[Connection]:
    """The cluster that the options name; its connections are closed at the end. Raises ConfigError.

    `remembering`: begin with the kinds that were served the last time. Only for who reads with `as_served`.
    """
    from pilotage.kube import Client, Discovery, load_config

    config = load_config(kubeconfig=kubeconfig, context=context)
    memory = None
    if remembering:
        from pilotage.kube.discovery_memory import DiscoveryMemory

        memory = DiscoveryMemory.of(config)
    async with Client.connect(config) as client:
        yield Connection(client, Discovery(client, memory), config.server)


def _not_with_namespace(context: click.Context, _: click.Parameter, all_namespaces: bool) -> bool:
    if all_namespaces and context.params.get("namespace"):
        raise click.UsageError("-n and -A exclude each other.")
    return all_namespaces


def _sources(_: click.Context, __: click.Parameter, files: tuple[str, ...]) -> tuple[Path | Literal["-"], ...]:
    return tuple("-" if file == "-" else Path(file) for file in files)
