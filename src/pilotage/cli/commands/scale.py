"""``pilotage scale``: how many replicas an endpoint has."""

import click

from pilotage.cli.connection import connected, run_briefly
from pilotage.cli.endpoints import checking, get
from pilotage.cli.errors import BadTarget, endpoint_errors
from pilotage.cli.options import cluster_options, name_argument, namespace_option
from pilotage.cli.output.text import say


@click.command()
@name_argument
@click.option("--replicas", metavar="N", type=click.IntRange(min=0), required=True, help="How many.")
@namespace_option
@cluster_options
@endpoint_errors
def scale(name: str, replicas: int, namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Set the number of replicas of an endpoint.

    \b
    pilotage scale assistant --replicas 3 -n chat

    It changes in place: there is no new revision. An endpoint that scales by itself is left alone.

    Exit codes: 0 set, 2 bad usage, no such endpoint or refused, 3 the API could not be reached.
    """
    say(run_briefly(_scale(name, replicas, namespace, kubeconfig, context)))


async def _scale(name: str, replicas: int, namespace: str, kubeconfig: str | None, context: str | None) -> str:
    from pilotage.api.names import ENDPOINTS
    from pilotage.cli.spec_flags import scales_itself
    from pilotage.kube import ObjectKey, merge_patch

    async with connected(kubeconfig, context) as session:
        client = session.client
        key = ObjectKey(namespace or client.namespace, name)
        endpoint = await get(client, ENDPOINTS, key)
        if endpoint.meta.terminating:
            raise BadTarget(f"{endpoint.ref} is being deleted.")
        spec = endpoint.get("spec", default={})
        if spec.get("autoscaling"):
            raise BadTarget(f"{endpoint.ref}: {scales_itself(spec)}")
        if spec.get("replicas") == replicas:
            return f"{endpoint.ref} has {replicas} replicas already"
        patch = merge_patch({"metadata": {"uid": endpoint.meta.uid}, "spec": {"replicas": replicas}})
        await checking(str(endpoint.ref), client.patch(ENDPOINTS, key, patch, subresource="scale"))
        return f"{endpoint.ref} scaled from {spec.get('replicas', 1)} to {replicas}"
