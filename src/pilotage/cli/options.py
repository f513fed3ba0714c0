"""Options and arguments that several commands share: decorators, so that each reads the same everywhere.

Only click is imported here; the rest comes when a command runs.
"""

import functools
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

import click

from pilotage.cli.connection import ClusterChoice

P = ParamSpec("P")
R = TypeVar("R")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Patience(NamedTuple):
    """The wishes of a person about waiting."""

    wait: bool
    timeout: float
    output: str
    """The form of the output: text, json, yaml or name."""

    @property
    def text(self) -> bool:
        """Whether the output is for people; else stdout has objects or events only."""
        return self.output == "text"

    @property
    def events(self) -> bool:
        """Whether progress goes to stdout as events, in JSON or YAML."""
        from pilotage.cli.output.progress import EVENT_FORMS

        return self.wait and self.output in EVENT_FORMS


def _with_all(command: Callable[..., R], options: Sequence[Decorator]) -> Callable[..., R]:
    """The command with options, in the order in which --help lists them."""
    for option in reversed(options):
        command = option(command)
    return command


def together(name: str, make: Callable[..., object], *options: Decorator) -> Decorator:
    """Options, in this order, that reach a command as one argument, `name`: what `make` makes of their values."""

    def add(command: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(command)
        def run(*args: Any, **kwargs: Any) -> R:  # noqa: ANN401 - click's
            given = {field: kwargs.pop(field) for field in fields}
            return command(*args, **{name: make(**given)}, **kwargs)

        others = len(getattr(command, "__click_params__", ()))
        wrapped = _with_all(run, options)
        fields = [each.name for each in vars(wrapped)["__click_params__"][others:]]
        return wrapped

    return add


def later(module: str, name: str) -> Callable[..., object]:
    """A type of a module that is imported when it is called, and not before."""
    return lambda **given: getattr(importlib.import_module(module), name)(**given)


def names_of(kind: Literal["endpoint", "experiment", "model", "host", "namespace"]) -> Callable[..., list[Any]]:
    """The completion of a word by the names of a kind in the cluster."""

    def complete(context: click.Context, _: click.Parameter, start: str) -> list[Any]:
        from pilotage.cli.names import complete as named

        return named(context, kind, start)

    return complete


cluster_options = together(
    "cluster",
    ClusterChoice,
    click.option(
        "--kubeconfig", metavar="FILE", help="The kubeconfig to use instead of $KUBECONFIG or ~/.kube/config."
    ),
    click.option("--context", metavar="NAME", help="The context to use instead of the current one."),
)
"""``--kubeconfig`` and ``--context``, as `cluster`."""


def seconds_option(flag: str, default: float, text: str | None = None, *, least: float = 0) -> Decorator:
    """A duration in seconds."""
    kind = click.FloatRange(min=least)
    return click.option(flag, metavar="SECONDS", type=kind, default=default, show_default=True, help=text)


def namespace_options(command: Callable[..., R]) -> Callable[..., R]:
    """``-n`` and ``-A``, as `namespace` (empty: that of the context) and `all_namespaces`. They exclude each other."""
    text = "The namespace instead of the context's."
    options = (
        # It is eager: -A looks at it.
        click.option(
            "-n",
            "--namespace",
            metavar="NAME",
            default="",
            is_eager=True,
            help=text,
            shell_complete=names_of("namespace"),
        ),
        click.option("-A", "--all-namespaces", is_flag=True, callback=_not_with_namespace, help="All namespaces."),
    )
    return _with_all(command, options)


def namespace_option(command: Callable[P, R]) -> Callable[P, R]:
    """``-n``, as `namespace`: empty for that of the context."""
    text = "The namespace instead of the context's."
    completion = names_of("namespace")
    return click.option("-n", "--namespace", metavar="NAME", default="", help=text, shell_complete=completion)(command)


def output_option(names: str, *more: str) -> Decorator:
    """``-o``, as `output`: text, json, yaml and name, the same in every command.

    `names`: the objects that -o name prints, for --help; empty where there are none, and no such form. `more`: forms
    beside these.
    """
    choice = click.Choice(["text", *more, "json", "yaml", *(["name"] if names else [])])
    about = f"name: KIND/NAME of {names}." if names else "There is no name: it is about no object."
    return click.option("-o", "--output", type=choice, default="text", show_default=True, help=about)


rollout_options = together(
    "patience",
    lambda no_wait, timeout, output: Patience(not no_wait, timeout, output),
    click.option("--no-wait", is_flag=True, help="Do not wait until it serves."),
    seconds_option("--timeout", 600.0),
    output_option("the endpoint"),
)
"""``--no-wait``, ``--timeout`` and ``-o``, as `patience`."""


def wait_options(text: str) -> Decorator:
    """``--wait``, ``--timeout`` and ``-o``, as `patience`. `text`: help of --wait."""
    wait = click.option("--wait", is_flag=True, help=text)
    return together("patience", Patience, wait, seconds_option("--timeout", 600.0), output_option("the endpoint"))


def weights_options(ambient: str) -> Decorator:
    """Options for the folder of weights and for their sources. `ambient`: help of --ambient-credentials."""
    http = "Whether weights may be fetched over http://."
    options = (
        click.option(
            "--cache-root", metavar="DIR", help="The folder of fetched weights. [default: ~/.cache/pilotage/models]"
        ),
        click.option(
            "--file-roots",
            metavar="DIR",
            multiple=True,
            help="A folder below which file:// sources may be read; repeatable.",
        ),
        click.option(
            "--networks",
            metavar="CIDR",
            multiple=True,
            help="A network that is not public and may serve weights; repeatable.",
        ),
        click.option(
            "--model-bytes-max", metavar="BYTES", type=int, help="The largest file that is fetched. [default: 250 GB]"
        ),
        click.option("--plain-http/--no-plain-http", default=None, help=http),
        click.option("--ambient-credentials/--no-ambient-credentials", default=None, help=ambient),
    )
    return lambda command: _with_all(command, options)


def _sources(_: click.Context, __: click.Parameter, files: tuple[str, ...]) -> tuple[Path | Literal["-"], ...]:
    return tuple("-" if file == "-" else Path(file) for file in files)


def files_option(text: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """``-f``, any number of times, as `files`: a tuple of paths, and ``-`` for stdin. `text` is its help."""
    return click.option("-f", "--filename", "files", metavar="FILE", multiple=True, callback=_sources, help=text)


dump_option = click.option(
    "--dump",
    "files",
    metavar="FILE|DIR",
    multiple=True,
    callback=_sources,
    help="Read a dump instead of a cluster: a file or a folder of YAML or JSON, or - for stdin; repeatable.",
)
"""``--dump``, any number of times, as `files`: a tuple of paths, and ``-`` for stdin."""


target_options = together(
    "request",
    later("pilotage.teardown.session.request", "TeardownRequest"),
    click.argument("words", metavar="[KIND/NAME]...", nargs=-1, shell_complete=names_of("endpoint")),
    namespace_option,
    click.option("--all", "everything", is_flag=True, help="All objects of the namespace given with -n."),
    files_option("All objects in these manifests: files, folders, or - for stdin."),
    click.option("-l", "--selector", metavar="SELECTOR", default="", help="All objects with these labels."),
    click.option(
        "--keep",
        metavar="WHAT",
        multiple=True,
        help="Objects to keep: volumes, caches (fetched weights), secrets, configs, or KIND/NAME. Can be given "
        "several times.",
    ),
    click.option(
        "--adopt",
        is_flag=True,
        help="Also delete what refers to the targets only (routes, Services, autoscalers, budgets), the "
        "configuration that only they mount, and the parts of an owner that is stuck in deletion.",
    ),
)
"""KIND/NAME…, ``-n``, ``--all``, ``-f``, ``-l``, ``--keep`` and ``--adopt``, as `request`: a TeardownRequest."""


def name_argument(command: Callable[P, R]) -> Callable[P, R]:
    """NAME, as `name`; ``se/NAME`` means the same."""
    # It is eager: `revision_option` looks at it.
    completion = names_of("endpoint")
    return click.argument("name", metavar="NAME", callback=_name, is_eager=True, shell_complete=completion)(command)


def revision_option(flag: str, text: str) -> Decorator:
    """A revision of the endpoint, as `revision`: its number, or its name as `pilotage history -o name` prints it."""
    return click.option(flag, "revision", metavar="N", callback=_revision, help=text)


async def with_endpoint_kind(cluster: ClusterChoice, words: tuple[str, ...], namespace: str) -> tuple[str, ...]:
    """The words; one bare word that is no kind, but the name of an endpoint, with the kind before it."""
    if len(words) != 1 or "/" in words[0]:
        return words
    from pilotage.cli.names import is_endpoint

    return (f"servingendpoint/{words[0]}",) if await is_endpoint(cluster, words[0], namespace) else words


def need_words(words: Sequence[str]) -> None:
    """Refuse a command line without any object."""
    if not words:
        raise click.UsageError("Say which object is meant: KIND/NAME, such as deployment/web.")


def _not_with_namespace(context: click.Context, _: click.Parameter, all_namespaces: bool) -> bool:
    if all_namespaces and context.params.get("namespace"):
        raise click.UsageError("-n and -A exclude each other.")
    return all_namespaces


def _revision(context: click.Context, _: click.Parameter, word: str | None) -> int | None:
    if word is None:
        return None
    number = word.rpartition("/")[2].removeprefix(f"{context.params.get('name')}-")
    if not number.isdecimal() or int(number) < 1:
        raise click.BadParameter(f"{word!r} is not a revision of it: write its number, as `pilotage history` shows it.")
    return int(number)


def _name(_: click.Context, __: click.Parameter, word: str) -> str:
    kind, slash, name = word.partition("/")
    if not slash:
        return word
    from pilotage.teardown.session.request import is_endpoint_kind

    if not is_endpoint_kind(kind) or not name or "/" in name:
        raise click.BadParameter(f"{word!r} is not the name of an endpoint: write NAME, or se/NAME.")
    return name
