"""``pilotage scale``: how many replicas an endpoint has."""

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, name_argument, namespace_option
from pilotage.cli.output.text import say
from pilotage.kube import ObjectKey
from pilotage.rollout import requests


@click.command()
@name_argument
@click.option("--replicas", metavar="N", type=click.IntRange(min=0), required=True, help="How many.")
@namespace_option
@cluster_options
@plain_errors
@asynchronous
async def scale(name: str, replicas: int, namespace: str, cluster: ClusterChoice) -> None:
    """Set the number of replicas of an endpoint.

    \b
    pilotage scale assistant --replicas 3 -n chat

    It changes in place: there is no new revision. An endpoint that scales by itself is left alone.

    Exit codes: 0 set, 2 bad usage, no such endpoint or refused, 3 the API could not be reached.
    """
    async with cluster.session() as session:
        key = ObjectKey(namespace or session.client.namespace, name)
        before = await requests.scale(session.client, key, replicas)
    had = before.get("spec", "replicas", default=1)
    say(f"{before.ref} {f'has {had} replicas already' if had == replicas else f'scaled from {had} to {replicas}'}")
