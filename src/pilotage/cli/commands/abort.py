"""``pilotage abort``: the way back of a rollout."""

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import Patience, cluster_options, name_argument, namespace_option, wait_options
from pilotage.cli.steps import ask_for
from pilotage.kube import ObjectKey
from pilotage.rollout.intents import abortion


@click.command()
@name_argument
@namespace_option
@wait_options("Wait until all requests are back, proven and drained.")
@cluster_options
@plain_errors
@asynchronous
async def abort(name: str, namespace: str, patience: Patience, cluster: ClusterChoice) -> int:
    """Take a rollout in steps back: all requests return to the revision that serves.

    \b
    pilotage abort assistant -n chat --wait

    The serving revision gets its replicas back first, where it gave some away, and then all requests. What was aborted
    is not tried again until the spec is changed, or until `pilotage retry`.

    Exit codes: 0 asked for (with --wait: it is back), 1 it moved on meanwhile, or with --wait did not come back, 2 bad
    usage, no such endpoint, or nothing to abort, 3 the API could not be reached, 130 Ctrl-C (the operator continues).
    """
    async with cluster.session(changes=True) as session:
        key = ObjectKey(namespace or session.client.namespace, name)
        return await ask_for(session, key, abortion, patience, cluster, "Aborted")
