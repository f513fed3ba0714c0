"""``pilotage hold``: a halt of a rollout, by request."""

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import Patience, cluster_options, name_argument, namespace_option, output_option
from pilotage.cli.steps import ask_for
from pilotage.kube import ObjectKey
from pilotage.rollout import intents


@click.command()
@name_argument
@click.option("--release", is_flag=True, help="Let it go on.")
@namespace_option
@output_option("the endpoint")
@cluster_options
@plain_errors
@asynchronous
async def hold(name: str, release: bool, namespace: str, output: str, cluster: ClusterChoice) -> int:
    """Hold a rollout in steps where it is, or let it go on.

    \b
    pilotage hold assistant -n chat
    pilotage hold assistant -n chat --release

    Weights and replicas stay as they are, and no step ends. `pilotage abort` works all the same.

    Exit codes: 0 asked for, 1 it moved on meanwhile, 2 bad usage, no such endpoint, or nothing to hold or release, 3
    the API could not be reached.
    """
    decide = intents.release if release else intents.holding
    async with cluster.session(changes=True) as session:
        key = ObjectKey(namespace or session.client.namespace, name)
        return await ask_for(session, key, decide, Patience(False, 0.0, output), cluster)
