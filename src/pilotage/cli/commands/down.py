"""``pilotage down``: take down what ``pilotage up`` brought up, and prove it."""

from pathlib import Path

import click

from pilotage.cli.commands.up import data_option
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import seconds_option


@click.command()
@data_option
@click.option(
    "--purge",
    is_flag=True,
    help="Delete all endpoints and models first, in order and proven; at the end, remove what Pilotage kept in DIR.",
)
@click.option("--now", is_flag=True, help="Do not wait for requests that are under way.")
@seconds_option("--timeout", 180, "For each step.")
@plain_errors
def down(*, data: Path, purge: bool, now: bool, timeout: float) -> None:
    """Stop what `pilotage up` started, and prove that nothing is left.

    Servers stop first, in order; then the system is searched for what is left. Endpoints are kept, and serve again
    after the next `pilotage up`, unless --purge is given. Exit code 1, with the processes and ports, if something does
    not stop.
    """
    import asyncio

    from pilotage.up.down import check, delete_all, go_down, reachable, remove
    from pilotage.up.layout import Layout
    from pilotage.up.leftovers import UpError

    layout = Layout(data)
    if not layout.lock.exists():
        click.echo(f"Nothing was brought up in {data}.")
        return
    try:
        check(layout)
        if purge and reachable(layout):
            asyncio.run(delete_all(layout, click.echo, timeout))
        asyncio.run(go_down(layout, click.echo, hurry=now, timeout=timeout))
        left = remove(layout) if purge else []
    except UpError as error:
        raise click.ClickException(str(error)) from error
    click.echo("Down. No process is left, no port listens" + (f", {data} is removed." if purge and not left else "."))
    if left:
        click.echo(f"Removed what Pilotage kept in {data}. Not Pilotage's, and left there: {', '.join(left)}.")
