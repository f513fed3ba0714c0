"""``pilotage promote``: the next step of a rollout."""

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import Patience, cluster_options, name_argument, namespace_option, wait_options
from pilotage.cli.steps import ask_for
from pilotage.kube import ObjectKey
from pilotage.rollout.intents import promotion


@click.command()
@name_argument
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Leave out all steps: it gets all requests as soon as it is ready for them.",
)
@namespace_option
@wait_options("Wait until it is promoted.")
@cluster_options
@plain_errors
@asynchronous
async def promote(name: str, everything: bool, namespace: str, patience: Patience, cluster: ClusterChoice) -> int:
    """Take a rollout in steps on: end its current step, or leave out all steps.

    \b
    pilotage promote assistant -n chat
    pilotage promote assistant -n chat --all --wait

    A pause, an analysis and a Job are ended, whatever their result; a step that sets a weight or a size ends by itself,
    once that is proven. The request is bound to the revision and the step that were read: it never acts on a later one.

    Exit codes: 0 asked for (with --wait: promoted), 1 it moved on meanwhile, or with --wait was not promoted, 2 bad
    usage, no such endpoint, or nothing to promote, 3 the API could not be reached, 130 Ctrl-C (the operator continues).
    """
    async with cluster.session(changes=True) as session:
        key = ObjectKey(namespace or session.client.namespace, name)
        return await ask_for(session, key, lambda found: promotion(found, everything=everything), patience, cluster)
