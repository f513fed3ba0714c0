"""``pilotage down``: take down what ``pilotage up`` brought up, and prove it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from pilotage.cli.commands.up import data_option, host_of
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import output_option, seconds_option
from pilotage.cli.output.objects import print_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pilotage.teardown.snapshot.world import Name
    from pilotage.up.layout import Layout


@click.command()
@data_option
@click.option(
    "--purge",
    is_flag=True,
    help="Delete all endpoints and models first, in order and proven; at the end, remove what Pilotage kept in DIR.",
)
@click.option("--now", is_flag=True, help="Do not wait for requests that are under way.")
@seconds_option("--timeout", 180, "For each step.")
@output_option("each object that --purge deleted, and of the Host that this machine was")
@plain_errors
def down(*, data: Path, purge: bool, now: bool, timeout: float, output: str) -> None:
    """Stop what `pilotage up` started, and prove that nothing is left.

    Servers stop first, in order; then the system is searched for what is left. Endpoints are kept, and serve again
    after the next `pilotage up`, unless --purge is given. Exit code 1, with the processes and ports, if something does
    not stop.
    """
    from pilotage.up.layout import Layout
    from pilotage.up.leftovers import UpError

    layout = Layout(data)
    if not layout.lock.exists():
        click.echo(f"Nothing was brought up in {data}.", err=output != "text")
        _print(output, _Down(str(data)), [])
        return
    try:
        _print(output, *_take_down(layout, purge, now, timeout, output))
    except UpError as error:
        raise click.ClickException(str(error)) from error


_REFERENCE = ("kind", "namespace", "name", "uid")


class _Down(NamedTuple):
    """Report of what was taken down."""

    data: str
    stopped: Mapping[str, int] = {}
    """The pid of each component that was up."""
    deleted: Sequence[Mapping[str, str]] = ()
    removed: bool = False
    """Whether what Pilotage kept in the folder is removed."""
    left: Sequence[str] = ()
    """Files there that are not Pilotage's."""


def _take_down(layout: Layout, purge: bool, now: bool, timeout: float, output: str) -> tuple[_Down, list[Name]]:
    """Returns the report, and the objects that it is about. Raises UpError."""
    import asyncio
    import functools

    from pilotage.teardown.snapshot.world import Name
    from pilotage.up.down import check, delete_all, go_down, reachable, remove

    say = functools.partial(click.echo, err=output != "text")
    check(layout)
    state = layout.running()
    hosts = [host_of(layout)] if state is not None and output == "name" else []
    deleted = asyncio.run(delete_all(layout, say, timeout)) if purge and reachable(layout) else []
    asyncio.run(go_down(layout, say, hurry=now, timeout=timeout))
    left = remove(layout) if purge else []
    say("Down. No process is left, no port listens" + (f", {layout.folder} is removed." if purge and not left else "."))
    if left:
        say(f"Removed what Pilotage kept in {layout.folder}. Not Pilotage's, and left there: {', '.join(left)}.")
    stopped = {name: each.pid for name, each in state.components.items()} if state is not None else {}
    refs = [each.ref for each in deleted]
    names = [Name(each.api_version.partition("/")[0], each.kind, each.namespace, each.name) for each in refs]
    told = [{"apiVersion": each.api_version} | {key: getattr(each, key) for key in _REFERENCE} for each in refs]
    report = _Down(str(layout.folder), stopped, told, purge, left)
    return report, [*names, *hosts]


def _print(output: str, report: _Down, names: Sequence[Name]) -> None:
    if output != "text":
        print_report(output, report._asdict(), names)
