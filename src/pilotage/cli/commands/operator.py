"""``pilotage operator``: the controllers, against a cluster or harbor, until SIGTERM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, weights_options

if TYPE_CHECKING:
    from pilotage.cli.connection import ClusterChoice
    from pilotage.operator.settings import OperatorSettings


@click.command()
@cluster_options
@click.option("--config", metavar="FILE", type=click.Path(path_type=Path), help="OperatorSettings, as YAML.")
@click.option("--namespace", metavar="NAME", help="The operator's own. [default: pilotage-system]")
@click.option(
    "--metrics-address",
    metavar="HOST:PORT",
    help="Where /metrics, /healthz and /readyz are served; empty for nowhere. [default: 127.0.0.1:8081]",
)
@click.option(
    "--leader-election/--no-leader-election",
    default=None,
    help="Whether operators elect a leader; without it there must be only one. [default: they do]",
)
@click.option(
    "--fetch",
    type=click.Choice(["operator", "pods"]),
    help="Who fetches weights: the operator into its cache, or each pod for itself. [default: operator]",
)
@click.option("--fetch-image", metavar="IMAGE", help="The image of Pilotage with which pods fetch weights.")
@weights_options("Whether any Model may read buckets with the operator's own identity.")
@click.option(
    "--envoy-admins",
    metavar="WHERE",
    multiple=True,
    help="http://HOST:PORT, unix:///PATH or pods://NAMESPACE/SELECTOR:PORT of Envoys to ask; repeatable.",
)
@click.option(
    "--gateway-url", metavar="URL", help="Where clients find `pilotage gateway`. [default: http://127.0.0.1:8080]"
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="[default: info]")
@plain_errors
def operator(cluster: ClusterChoice, config: Path | None, **given: object) -> None:
    """Run the controllers of models and endpoints until SIGTERM.

    Every option is also a variable (PILOTAGE_FETCH_IMAGE) and a line of the file (fetchImage); a flag wins over a
    variable, and that over the file.
    """
    import asyncio

    from pilotage.operator.settings import load_settings
    from pilotage.runtime.leader import LeaseLost
    from pilotage.runtime.logs import configure_logging

    flags = {name: value for name, value in given.items() if value is not None and value != ()}
    settings = load_settings(flags, file=config)
    configure_logging(level=settings.log_level)
    try:
        asyncio.run(_run(settings, cluster))
    except LeaseLost as error:
        raise click.ClickException(f"{error}. Another operator continues.") from error
    except OSError as error:
        raise click.ClickException(f"{error}. Choose another --metrics-address.") from error


async def _run(settings: OperatorSettings, cluster: ClusterChoice) -> None:
    from pilotage.operator.run import run

    async with cluster.session() as session:
        await run(settings, session.client, session.server)
