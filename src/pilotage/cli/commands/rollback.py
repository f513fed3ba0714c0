"""``pilotage rollback``: go back to what an earlier revision was made of."""

import click

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import (
    Patience,
    cluster_options,
    name_argument,
    namespace_option,
    revision_option,
    rollout_options,
)
from pilotage.cli.rollout import carry_out
from pilotage.kube import Object, ObjectKey
from pilotage.rollout.revisions import returns
from pilotage.rollout.spec import rolled_back


@click.command()
@name_argument
@revision_option("--to", "The revision.  [default: the one before]")
@namespace_option
@rollout_options
@cluster_options
@plain_errors
@asynchronous
async def rollback(name: str, revision: int | None, namespace: str, patience: Patience, cluster: ClusterChoice) -> int:
    """Return an endpoint to an earlier revision.

    \b
    pilotage rollback assistant
    pilotage rollback assistant --to 3

    Model, runtime, placement, resources and cache become what they were: in the revision that still serves, after a
    redeploy that failed or is under way, and else in a new one. Replicas, route and the rest stay as they are. A
    revision that rests after a rollout in steps still runs: it gets all requests back without steps, in about a second
    if it has kept all of its replicas.

    Exit codes: 0 it serves, 1 it does not, or somebody else's change came in between, 2 bad usage or no such revision,
    3 the API could not be reached, 130 Ctrl-C (the operator continues).
    """
    async with cluster.session(changes=True) as session:
        key = ObjectKey(namespace or session.client.namespace, name)

        def done(old: Object) -> str:
            return returns(StoredEndpoint.of(old), revision)

        return await carry_out(session, key, lambda old: rolled_back(old, revision), patience, cluster, done)
