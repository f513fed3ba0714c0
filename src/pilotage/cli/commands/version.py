"""``pilotage version``: which Pilotage this is, and which API server it would talk to."""

import json

import click

from pilotage import __version__
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, output_option
from pilotage.cli.output.objects import print_report
from pilotage.cli.output.text import say


@click.command()
@cluster_options
@click.option("--client", "client_only", is_flag=True, help="Do not ask the server.")
@output_option("")
@plain_errors
@asynchronous
async def version(cluster: ClusterChoice, client_only: bool, output: str) -> None:
    """Print the version of Pilotage and of the API server.

    Succeeds only if the server answers, so it also tells whether the kubeconfig works. `--client` leaves that out.
    """
    versions = {"pilotage": __version__}
    if not client_only:
        async with cluster.session() as session:
            answer = json.loads(await session.client.get_path("/version"))
        versions |= {"kubernetes": answer["gitVersion"], "server": session.server}
    if output != "text":
        print_report(output, versions, ())
    else:
        for name, value in versions.items():
            say(f"{name}: {value}")
