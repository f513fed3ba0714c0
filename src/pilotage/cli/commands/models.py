"""``pilotage models``: the Models, and how far each is."""

import datetime as dt
from collections.abc import Iterable

import click

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.model import Format, StoredModel
from pilotage.api.names import ENDPOINTS, MODELS
from pilotage.cli.commands.list import list_objects
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, names_of, namespace_options, output_option
from pilotage.cli.output.endpoints import condition_lines
from pilotage.cli.output.objects import print_list, print_object
from pilotage.cli.output.table import NOTHING, age, facts, size, table
from pilotage.cli.output.text import coloured, columns, paint, say
from pilotage.kube import Object, ObjectKey
from pilotage.rollout.requests import get
from pilotage.teardown.snapshot.fields import text


@click.command()
@click.argument("name", required=False, shell_complete=names_of("model"))
@namespace_options
@click.option("-l", "--selector", metavar="SELECTOR", default="", help="Those with these labels.")
@cluster_options
@output_option("each Model")
@plain_errors
@asynchronous
async def models(
    name: str | None, namespace: str, all_namespaces: bool, selector: str, cluster: ClusterChoice, output: str
) -> None:
    """List the Models, or show one: its source, the progress of its fetch, its format, and who serves it.

    \b
    pilotage models -n chat
    pilotage models qwen-small -n chat

    Exit codes: 0 shown, 2 bad usage or no such Model, 3 the API could not be read.
    """
    now = dt.datetime.now(dt.UTC)
    if name:
        if all_namespaces or selector:
            raise click.UsageError("A name stands alone: leave out -A and -l.")
        obj, users = await _read(cluster, name, namespace)
        if output != "text":
            print_object(output, obj)
        else:
            say(*page(StoredModel.of(obj), [StoredEndpoint.of(each) for each in users], now))
        return
    found = await list_objects(cluster, MODELS, namespace, all_namespaces, selector)
    if output != "text":
        print_list(output, found)
    elif not found:
        say("No models found.", err=True)
    else:
        say(*lines([StoredModel.of(obj) for obj in found], now, namespaces=all_namespaces))


async def _read(cluster: ClusterChoice, name: str, namespace: str) -> tuple[Object, list[Object]]:
    """A Model, and the endpoints of its namespace that name it."""
    async with cluster.session() as session:
        key = ObjectKey(namespace or session.client.namespace, name)
        obj = await get(session.client, MODELS, key)
        endpoints = await session.client.list(ENDPOINTS, key.namespace)
        return obj, [each for each in endpoints.items if each.get("spec", "model", "name") == name]


def lines(found: Iterable[StoredModel], now: dt.datetime, *, namespaces: bool) -> list[str]:
    """The table."""
    titles = [*(["NAMESPACE"] if namespaces else []), "NAME", "SOURCE", "PHASE", "FETCHED", "FORMAT", "AGE"]
    rows = [
        [
            *([each.metadata.namespace] if namespaces else []),
            each.metadata.name,
            text(each.spec, "source"),
            coloured(_phase(each)),
            fetched(each) or NOTHING,
            format_words(each.status.format) or NOTHING,
            age(now, each.metadata.creation_timestamp),
        ]
        for each in found
    ]
    return table(titles, rows)


def page(model: StoredModel, users: list[StoredEndpoint], now: dt.datetime) -> list[str]:
    """One Model, as a person reads it."""
    meta, state = model.metadata, model.status
    lines = [f"{paint(f'model/{meta.name}', bold=True)} -n {meta.namespace}  {coloured(_phase(model))}"]
    lines += facts(
        [
            ("Source", text(model.spec, "source")),
            ("SHA-256", text(model.spec, "sha256")),
            ("Fetched", fetched(model)),
            ("Format", format_words(state.format)),
            ("File", state.path or ""),
            ("Served by", ", ".join(f"servingendpoint/{each.metadata.name}" for each in users) or "nobody"),
            ("Age", age(now, meta.creation_timestamp)),
        ],
        columns(),
    )
    if meta.terminating:
        lines += [
            "",
            f"Deletion requested {age(now, meta.deletion_timestamp)} ago; held by {', '.join(meta.finalizers)}.",
        ]
    return lines + (["", *condition_lines(state.conditions, now)] if state.conditions else [])


def fetched(model: StoredModel) -> str:
    """The progress of the fetch: ``212.0 MB of 484.2 MB (43 %)``."""
    progress = model.status.bytes
    if progress is None:
        return ""
    if not progress.total:
        return size(progress.done) if progress.done else ""
    if progress.done >= progress.total:
        return size(progress.total)
    return f"{size(progress.done)} of {size(progress.total)} ({100 * progress.done // progress.total} %)"


def format_words(found: Format | None) -> str:
    """The format: ``GGUF qwen3 Q4_K_M, context 32768``."""
    if found is None:
        return ""
    words = " ".join(word for word in (found.kind, found.architecture, found.quantization) if word)
    return f"{words}, context {found.context_length}" if found.context_length else words


def _phase(model: StoredModel) -> str:
    return model.status.phase or ("Deleting" if model.metadata.terminating else "Pending")
