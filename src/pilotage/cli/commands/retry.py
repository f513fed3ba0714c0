"""``pilotage retry``: another try of what was aborted."""

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import Patience, cluster_options, name_argument, namespace_option, wait_options
from pilotage.cli.steps import ask_for
from pilotage.kube import ObjectKey
from pilotage.rollout.intents import repetition


@click.command()
@name_argument
@namespace_option
@wait_options("Wait until it is promoted.")
@cluster_options
@plain_errors
@asynchronous
async def retry(name: str, namespace: str, patience: Patience, cluster: ClusterChoice) -> int:
    """Try a spec again whose rollout was aborted.

    \b
    pilotage retry assistant -n chat --wait

    It begins with the first step, as a new revision. Only what the spec asks for now is tried: to return to what
    serves, use `pilotage rollback`.

    Exit codes: 0 asked for (with --wait: promoted), 1 it moved on meanwhile, or with --wait was not promoted, 2 bad
    usage, no such endpoint, or nothing to retry, 3 the API could not be reached, 130 Ctrl-C (the operator continues).
    """
    async with cluster.session(changes=True) as session:
        key = ObjectKey(namespace or session.client.namespace, name)
        return await ask_for(session, key, repetition, patience, cluster, repeated=True)
