"""``pilotage harbor``: the Kubernetes API on this machine, without a cluster."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pilotage_harbor.server.run import Ready


def require_harbor() -> None:
    """Refuse to go on, and say what to install, where the distribution `pilotage-harbor` is missing."""
    if importlib.util.find_spec("pilotage_harbor") is None:
        raise click.ClickException(
            "The API server for one machine (pilotage-harbor) is not installed. In a checkout: "
            "pip install '.[up]' ./packages/harbor"
        )


@click.command()
@click.option(
    "--data",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The data folder: objects, certificates and the kubeconfig.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port on 127.0.0.1. [default: the last one used, else a free one]",
)
@click.option("--memory", is_flag=True, help="Keep objects in memory only: they are lost when it ends.")
@click.option(
    "--set-damaged-aside",
    is_flag=True,
    help="Start although objects cannot be read: their last records are moved aside, and named.",
)
def harbor(data: Path, port: int, memory: bool, set_damaged_aside: bool) -> None:
    """Serve the Kubernetes API on this machine until SIGTERM.

    Prints its address as soon as it answers. `kubectl --kubeconfig DIR/kubeconfig` connects as the administrator.
    """
    require_harbor()
    import gc

    gc.disable()  # what is imported stays; looking through it for garbage takes a tenth of the start
    import asyncio

    from pilotage_harbor.server.credentials import ServerCredentialsError
    from pilotage_harbor.server.run import run
    from pilotage_harbor.storage.journal import Damaged, JournalInUse

    try:
        asyncio.run(run(data.absolute(), port, memory=memory, set_aside=set_damaged_aside, on_ready=_announce))
    except (ServerCredentialsError, Damaged, JournalInUse) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error}. Choose another --data or --port.") from error


def _announce(ready: Ready) -> None:
    click.echo(f"server: {ready.url}")
    click.echo(f"kubeconfig: {ready.kubeconfig}")
