"""``pilotage list``: the endpoints, a line for each."""

import datetime as dt
from collections.abc import Iterable

import click

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import ENDPOINTS
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, namespace_options, objects_option
from pilotage.cli.output.endpoints import model_of, ready_of, route_of
from pilotage.cli.output.objects import print_list
from pilotage.cli.output.table import NOTHING, age, table
from pilotage.cli.output.text import coloured, say
from pilotage.kube import Object, Resource
from pilotage.teardown.planning.arguments import parse_selector
from pilotage.teardown.snapshot.fields import text


@click.command("list")
@namespace_options
@click.option("-l", "--selector", metavar="SELECTOR", default="", help="Those with these labels.")
@objects_option("wide")
@cluster_options
@plain_errors
@asynchronous
async def list_(namespace: str, all_namespaces: bool, selector: str, output: str, cluster: ClusterChoice) -> None:
    """List the endpoints.

    \b
    pilotage list -n chat
    pilotage list -A -o wide
    pilotage list -l team=search -o json

    Exit codes: 0 listed (there may be none), 2 bad usage, 3 the API could not be read.
    """
    found = await list_objects(cluster, ENDPOINTS, namespace, all_namespaces, selector)
    if output not in ("text", "wide"):
        print_list(output, found)
        return
    endpoints = [StoredEndpoint.of(obj) for obj in found]
    if not endpoints:
        say("No endpoints found.", err=True)
        return
    now = dt.datetime.now(dt.UTC)
    say(*lines(endpoints, now, wide=output == "wide", namespaces=all_namespaces))


async def list_objects(
    cluster: ClusterChoice, resource: Resource, namespace: str, all_namespaces: bool, selector: str
) -> list[Object]:
    """The objects of one of our kinds, by namespace and name. `models` uses it, too."""
    labels = str(parse_selector(selector)) if selector else ""
    async with cluster.session() as session:
        place = "" if all_namespaces else namespace or session.client.namespace
        found = (await session.client.list(resource, place, labels=labels)).items
    return sorted(found, key=lambda obj: (obj.meta.namespace, obj.meta.name))


def lines(endpoints: Iterable[StoredEndpoint], now: dt.datetime, *, wide: bool, namespaces: bool) -> list[str]:
    """The table: what `kubectl get se` prints, and how many replicas are wanted."""
    titles = ["NAME", "MODEL", "PLACEMENT", "READY", "PHASE", "URL", "AGE"]
    titles = [*(["NAMESPACE"] if namespaces else []), *titles, *(["REVISION", "ROUTE", "WAITING"] if wide else [])]
    rows = []
    for each in endpoints:
        meta, status = each.metadata, each.status
        row = [meta.namespace] if namespaces else []
        row += [
            meta.name,
            model_of(each.spec),
            text(each.spec, "placement", "kind") or "Deployment",
            ready_of(each),
            coloured(each.phase),
            status.url or NOTHING,
            age(now, meta.creation_timestamp),
        ]
        row += [status.revision or NOTHING, route_of(each.spec), status.waiting_for or NOTHING] if wide else []
        rows.append(row)
    return table(titles, rows)
