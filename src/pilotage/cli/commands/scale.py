"""``pilotage scale``: how many replicas an endpoint has."""

import click

from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import Patience, cluster_options, name_argument, namespace_option, wait_options
from pilotage.cli.rollout import follow_rollout
from pilotage.kube import ObjectKey
from pilotage.rollout import requests


@click.command()
@name_argument
@click.option("--replicas", metavar="N", type=click.IntRange(min=0), required=True, help="How many.")
@namespace_option
@wait_options("Wait until so many are ready, and as `pilotage deploy` does.")
@cluster_options
@plain_errors
@asynchronous
async def scale(name: str, replicas: int, namespace: str, patience: Patience, cluster: ClusterChoice) -> int:
    """Set the number of replicas of an endpoint.

    \b
    pilotage scale assistant --replicas 3 -n chat
    pilotage scale assistant --replicas 3 --wait

    It changes in place: there is no new revision. An endpoint that scales by itself is left alone. It does not wait
    until the replicas are ready, unless --wait is given.

    Exit codes: 0 set (with --wait: and ready), 1 not ready in time, or somebody changed it meanwhile, 2 bad usage, no
    such endpoint or refused, 3 the API could not be reached, 130 Ctrl-C (the operator continues).
    """
    async with cluster.session(changes=True) as session:
        key = ObjectKey(namespace or session.client.namespace, name)
        changed = await requests.scale(session.client, key, replicas)
        assert changed.before is not None
        had = changed.before.get("spec", "replicas", default=1)
        done = (
            f"scaled from {had} to {replicas}"
            if changed.anything
            else f"has {replicas} replica{'s' * (replicas != 1)} already"
        )
        return await follow_rollout(session, changed, patience, cluster, done)
