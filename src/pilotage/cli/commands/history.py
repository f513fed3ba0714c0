"""``pilotage history``: the revisions of an endpoint."""

import datetime as dt

import click

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import ENDPOINTS
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, name_argument, namespace_option, output_option
from pilotage.cli.output.endpoints import model_of
from pilotage.cli.output.objects import print_list
from pilotage.cli.output.table import age, table
from pilotage.cli.output.text import coloured, columns, say
from pilotage.kube import Json, Object, ObjectKey
from pilotage.rollout.requests import get
from pilotage.teardown.snapshot.fields import text


@click.command()
@name_argument
@namespace_option
@cluster_options
@output_option("each revision")
@plain_errors
@asynchronous
async def history(name: str, namespace: str, cluster: ClusterChoice, output: str) -> None:
    """Show the revisions of an endpoint: the model and runtime of each, and its state.

    \b
    pilotage history assistant -n chat

    `pilotage rollback NAME --to REVISION` goes back to one.

    Exit codes: 0 shown, 2 bad usage or no such endpoint, 3 the API could not be read.
    """
    async with cluster.session() as session:
        obj = await get(session.client, ENDPOINTS, ObjectKey(namespace or session.client.namespace, name))
    if output != "text":
        print_list(output, [_revision(obj, each) for each in obj.get("status", "history", default=[])])
    else:
        say(*lines(StoredEndpoint.of(obj), dt.datetime.now(dt.UTC)))


def _revision(endpoint: Object, each: Json) -> Json:
    """A revision for scripts: what stands in the status, and the names that make an object of it."""
    name = f"{endpoint.meta.name}-{each.get('number')}"
    meta = {"name": name, "namespace": endpoint.meta.namespace}
    return {"apiVersion": ENDPOINTS.api_version, "kind": "Revision", "metadata": meta} | each


def lines(endpoint: StoredEndpoint, now: dt.datetime) -> list[str]:
    """The newest last, as in a log."""
    rows = [
        (
            str(each.number),
            coloured(each.state),
            age(now, each.created),
            model_of(each.spec),
            text(each.spec, "runtime", "image") or text(each.spec, "runtime", "name"),
            each.message,
        )
        for each in sorted(endpoint.status.history, key=lambda each: each.number)
    ]
    if not rows:
        return [f"{endpoint.metadata.name} has no revisions yet."]
    return table(("REVISION", "STATE", "AGE", "MODEL", "RUNTIME", "MESSAGE"), rows, columns())
