"""Options and arguments that several commands share: decorators, so that each reads the same everywhere.

Only click is imported here; the rest comes when a command runs.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

import click

P = ParamSpec("P")
R = TypeVar("R")


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
        click.option("-A", "--all-namespaces", is_flag=True, callback=_not_with_namespace, help="All namespaces."),
        click.option(
            "-n",
            "--namespace",
            metavar="NAME",
            default="",
            is_eager=True,  # before -A, which looks at it
            help="The namespace instead of the context's.",
        ),
    ):
        command = option(command)
    return command


def namespace_option(command: Callable[P, R]) -> Callable[P, R]:
    """``-n``, as `namespace`: empty for that of the context."""
    text = "The namespace instead of the context's."
    return click.option("-n", "--namespace", metavar="NAME", default="", help=text)(command)


def output_option(command: Callable[P, R]) -> Callable[P, R]:
    """``-o``, as `output`."""
    choice = click.Choice(["text", "json"])
    return click.option("-o", "--output", type=choice, default="text", show_default=True)(command)


def rollout_options(command: Callable[P, R]) -> Callable[P, R]:
    """``--no-wait`` and ``--timeout``, as `no_wait` and `timeout`."""
    for option in (
        click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0), default=600.0, show_default=True),
        click.option("--no-wait", is_flag=True, help="Do not wait until it serves."),
    ):
        command = option(command)
    return command


def weights_options(ambient: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Where a program keeps weights, and from where it may fetch them. `ambient`: help of --ambient-credentials."""

    def add(command: Callable[P, R]) -> Callable[P, R]:
        for option in (
            click.option("--ambient-credentials/--no-ambient-credentials", default=None, help=ambient),
            click.option(
                "--plain-http/--no-plain-http", default=None, help="Whether weights may be fetched over http://."
            ),
            click.option(
                "--model-bytes-max",
                metavar="BYTES",
                type=int,
                help="The largest file that is fetched. [default: 250 GB]",
            ),
            click.option(
                "--networks",
                metavar="CIDR",
                multiple=True,
                help="A network that is not public and may serve weights; repeatable.",
            ),
            click.option(
                "--file-roots",
                metavar="DIR",
                multiple=True,
                help="A folder below which file:// sources may be read; repeatable.",
            ),
            click.option(
                "--cache-root", metavar="DIR", help="The folder of fetched weights. [default: ~/.cache/pilotage/models]"
            ),
        ):
            command = option(command)
        return command

    return add


def files_option(text: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """``-f``, any number of times, as `files`: a tuple of paths, and ``-`` for stdin. `text` is its help."""
    return click.option("-f", "--filename", "files", metavar="FILE", multiple=True, callback=_sources, help=text)


def target_options(command: Callable[P, R]) -> Callable[P, R]:
    """KIND/NAME…, ``-n``, ``--all``, ``-f``, ``-l``, ``--keep`` and ``--adopt``."""
    for option in (
        click.option(
            "--adopt",
            is_flag=True,
            help="Also delete what refers to the targets only (routes, Services, autoscalers, budgets), the "
            "configuration that only they mount, and the parts of an owner that is stuck in deletion.",
        ),
        click.option(
            "--keep",
            metavar="WHAT",
            multiple=True,
            help="Objects to keep: volumes, caches (fetched weights), secrets, configs, or KIND/NAME. Can be given "
            "several times.",
        ),
        click.option("-l", "--selector", metavar="SELECTOR", default="", help="All objects with these labels."),
        files_option("All objects in these manifests: files, folders, or - for stdin."),
        click.option("--all", "everything", is_flag=True, help="All objects of the namespace given with -n."),
        click.option("-n", "--namespace", metavar="NAME", default="", help="The namespace instead of the context's."),
        click.argument("words", metavar="[KIND/NAME]...", nargs=-1),
    ):
        command = option(command)
    return command


def name_argument(command: Callable[P, R]) -> Callable[P, R]:
    """NAME, as `name`; ``se/NAME`` means the same."""
    return click.argument("name", metavar="NAME", callback=_name)(command)


def need_words(words: Sequence[str]) -> None:
    """Refuse a command line without any object."""
    if not words:
        raise click.UsageError("Say which object is meant: KIND/NAME, such as deployment/web.")


def _not_with_namespace(context: click.Context, _: click.Parameter, all_namespaces: bool) -> bool:
    if all_namespaces and context.params.get("namespace"):
        raise click.UsageError("-n and -A exclude each other.")
    return all_namespaces


def _sources(_: click.Context, __: click.Parameter, files: tuple[str, ...]) -> tuple[Path | Literal["-"], ...]:
    return tuple("-" if file == "-" else Path(file) for file in files)


def _name(_: click.Context, __: click.Parameter, word: str) -> str:
    kind, slash, name = word.partition("/")
    if not slash:
        return word
    from pilotage.teardown.session.request import is_endpoint_kind

    if not is_endpoint_kind(kind) or not name or "/" in name:
        raise click.BadParameter(f"{word!r} is not the name of an endpoint: write NAME, or se/NAME.")
    return name
