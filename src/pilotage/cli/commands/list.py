"""``pilotage list``: the endpoints, a line for each."""

import datetime as dt
from collections.abc import Callable, Iterable

import click

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import ENDPOINTS
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, namespace_options, output_option
from pilotage.cli.output.endpoints import model_of, ready_of, route_of
from pilotage.cli.output.objects import print_list, print_object
from pilotage.cli.output.table import NOTHING, age, table
from pilotage.cli.output.text import coloured, columns, note, say
from pilotage.kube import Object, Resource
from pilotage.rollout.steps import shift
from pilotage.runtime.live_objects import LiveObjects
from pilotage.teardown.planning.arguments import parse_selector
from pilotage.teardown.snapshot.fields import text
from pilotage.terminal import width

WATCH_SECONDS = 60.0
"""Interval in which a watch is checked even if it reports nothing."""
MODEL_WIDTH_MIN = 20
"""A model is not shortened to less than this."""


@click.command("list")
@namespace_options
@click.option("-l", "--selector", metavar="SELECTOR", default="", help="Those with these labels.")
@output_option("each endpoint", "wide")
@click.option("-w", "--watch", is_flag=True, help="Print each endpoint again when it changes, until Ctrl-C.")
@cluster_options
@plain_errors
@asynchronous
async def list_(
    namespace: str, all_namespaces: bool, selector: str, output: str, watch: bool, cluster: ClusterChoice
) -> None:
    """List the endpoints.

    \b
    pilotage list -n chat
    pilotage list -A -o wide
    pilotage list -l team=search -o json
    pilotage list -w

    Exit codes: 0 listed (there may be none), 2 bad usage, 3 the API could not be read.
    """
    if watch:

        def rows(found: list[Object]) -> list[str]:
            now, stored = dt.datetime.now(dt.UTC), [StoredEndpoint.of(obj) for obj in found]
            return lines(stored, now, wide=output == "wide", namespaces=all_namespaces)

        await watch_objects(cluster, ENDPOINTS, namespace, all_namespaces, selector, output, rows)
        return
    found = await list_objects(cluster, ENDPOINTS, namespace, all_namespaces, selector)
    if output not in ("text", "wide"):
        print_list(output, found)
        return
    endpoints = [StoredEndpoint.of(obj) for obj in found]
    if not endpoints:
        say("No endpoints found.", err=True)
        return
    now = dt.datetime.now(dt.UTC)
    say(*lines(endpoints, now, wide=output == "wide", namespaces=all_namespaces, columns=columns()))


async def watch_objects(
    cluster: ClusterChoice,
    resource: Resource,
    namespace: str,
    all_namespaces: bool,
    selector: str,
    output: str,
    rows: Callable[[list[Object]], list[str]],
) -> None:
    """Print the objects of a kind, and each one again when it has changed, until the command is ended.

    `rows`: the titles, and a row for each of the objects. `experiments` uses it, too.
    """
    labels = str(parse_selector(selector)) if selector else ""
    async with cluster.session() as session:
        place = "" if all_namespaces else namespace or session.client.namespace
        shown: dict[str, Object] = {}
        async with LiveObjects(session.client, resource, place, labels=labels) as live:
            while True:
                there = {obj.meta.uid: obj for obj in sorted(live.of_all_namespaces, key=lambda obj: obj.key)}
                versions = {uid: obj.meta.resource_version for uid, obj in shown.items()}
                news = [obj for uid, obj in there.items() if versions.get(uid) != obj.meta.resource_version]
                if news and output in ("text", "wide"):
                    made = _rows_of(news, list(there.values()), rows)
                    say(*(made[1:] if shown else made))
                elif news:
                    _print_each(output, news)
                for uid in shown.keys() - there.keys():
                    note(f"{shown[uid].ref} is gone")
                shown = there
                await live.changed(WATCH_SECONDS)


def _rows_of(news: list[Object], there: list[Object], rows: Callable[[list[Object]], list[str]]) -> list[str]:
    """The titles, and the rows of those that are new; as wide as a table of all that are there."""
    uids = {obj.meta.uid for obj in news}
    made = rows(there)
    return [made[0], *(row for obj, row in zip(there, made[1:], strict=True) if obj.meta.uid in uids)]


def _print_each(output: str, objects: list[Object]) -> None:
    for obj in objects:
        if output == "yaml":
            click.echo("---")
        print_object(output, obj)


async def list_objects(
    cluster: ClusterChoice, resource: Resource, namespace: str, all_namespaces: bool, selector: str
) -> list[Object]:
    """The objects of one of our kinds, by namespace and name. `models` uses it, too."""
    labels = str(parse_selector(selector)) if selector else ""
    async with cluster.session() as session:
        place = "" if all_namespaces else namespace or session.client.namespace
        found = (await session.client.list(resource, place, labels=labels)).items
    return sorted(found, key=lambda obj: (obj.meta.namespace, obj.meta.name))


def lines(
    endpoints: Iterable[StoredEndpoint], now: dt.datetime, *, wide: bool, namespaces: bool, columns: int | None = None
) -> list[str]:
    """The table: what `kubectl get se` prints.

    On a terminal that is too narrow for it, models are shortened, and if that is not enough, each URL has a line of its
    own: it can be copied then.
    """
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
            " ".join(filter(None, (coloured(each.phase), shift(each)))),
            status.url or NOTHING,
            age(now, meta.creation_timestamp),
        ]
        row += [status.revision or NOTHING, route_of(each.spec), status.waiting_for or NOTHING] if wide else []
        rows.append(row)
    return table(titles, rows) if columns is None else _fitted(titles, rows, columns)


def _fitted(titles: list[str], rows: list[list[str]], columns: int) -> list[str]:
    made = table(titles, rows)
    excess = max(map(width, made)) - columns
    if excess <= 0:
        return made
    model, url = titles.index("MODEL"), titles.index("URL")
    room = max(MODEL_WIDTH_MIN, max(len(row[model]) for row in rows) - excess)
    rows = [[*row[:model], _end_of(row[model], room), *row[model + 1 :]] for row in rows]
    made = table(titles, rows)
    if max(map(width, made)) <= columns:
        return made
    without = table([*titles[:url], *titles[url + 1 :]], [[*row[:url], *row[url + 1 :]] for row in rows])
    urls = [[f"  {row[url]}"] if row[url] != NOTHING else [] for row in rows]
    return [without[0], *(line for first, more in zip(without[1:], urls, strict=True) for line in (first, *more))]


def _end_of(text: str, room: int) -> str:
    """The text, or as much of its end: that is where the name of a file stands."""
    return text if len(text) <= room else f"…{text[1 - room :]}"
