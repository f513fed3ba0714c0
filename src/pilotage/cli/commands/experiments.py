"""``pilotage experiments``: the Experiments, and how far each is."""

import datetime as dt
from collections.abc import Callable, Iterable
from shlex import quote

import click

from pilotage.api.endpoint_status import VariantShare
from pilotage.api.experiment import StoredExperiment, VariantStatus
from pilotage.api.names import EXPERIMENTS
from pilotage.cli.commands.list import list_objects, watch_objects
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, names_of, namespace_options, output_option
from pilotage.cli.output.endpoints import condition_lines
from pilotage.cli.output.objects import print_list, print_object
from pilotage.cli.output.table import NOTHING, age, facts, table
from pilotage.cli.output.text import coloured, columns, paint, say
from pilotage.kube import Object, ObjectKey
from pilotage.rollout.requests import get
from pilotage.teardown.snapshot.fields import seconds_since, span, text


@click.command()
@click.argument("name", required=False, shell_complete=names_of("experiment"))
@namespace_options
@click.option("-l", "--selector", metavar="SELECTOR", default="", help="Those with these labels.")
@click.option("-w", "--watch", is_flag=True, help="Print each Experiment again when it changes, until Ctrl-C.")
@cluster_options
@output_option("each Experiment")
@plain_errors
@asynchronous
async def experiments(
    name: str | None,
    namespace: str,
    all_namespaces: bool,
    selector: str,
    watch: bool,
    cluster: ClusterChoice,
    output: str,
) -> None:
    """List the Experiments, or show one: its variants, what each gets, and the verdict.

    \b
    pilotage experiments -n chat
    pilotage experiments q8 -n chat
    pilotage experiments -A -w

    `pilotage verdict experiment/NAME` prints the comparison, `pilotage terminate NAME` ends one.

    Exit codes: 0 shown, 2 bad usage or no such Experiment, 3 the API could not be read.
    """
    if name:
        if all_namespaces or selector or watch:
            raise click.UsageError("A name stands alone: leave out -A, -l and -w.")
        async with cluster.session() as session:
            obj = await get(session.client, EXPERIMENTS, ObjectKey(namespace or session.client.namespace, name))
        if output != "text":
            print_object(output, obj)
        else:
            say(*page(StoredExperiment.of(obj), dt.datetime.now(dt.UTC), cluster.complete))
        return

    def rows(found: list[Object]) -> list[str]:
        stored = [StoredExperiment.of(obj) for obj in found]
        return lines(stored, dt.datetime.now(dt.UTC), namespaces=all_namespaces)

    if watch:
        await watch_objects(cluster, EXPERIMENTS, namespace, all_namespaces, selector, output, rows)
        return
    found = await list_objects(cluster, EXPERIMENTS, namespace, all_namespaces, selector)
    if output != "text":
        print_list(output, found)
    elif not found:
        say("No experiments found.", err=True)
    else:
        say(*rows(found))


def lines(found: Iterable[StoredExperiment], now: dt.datetime, *, namespaces: bool) -> list[str]:
    """The table: what `kubectl get experiments` prints, with the time that is left."""
    titles = ["NAME", "ENDPOINT", "PHASE", "VARIANTS", "VERDICT", "LEFT", "AGE"]
    rows = [
        [
            *([each.metadata.namespace] if namespaces else []),
            each.metadata.name,
            text(each.spec, "endpoint", "name"),
            phase_words(each),
            each.status.summary or NOTHING,
            coloured(each.status.verdict.result) if each.status.verdict is not None else NOTHING,
            left(each, now) or NOTHING,
            age(now, each.metadata.creation_timestamp),
        ]
        for each in found
    ]
    return table([*(["NAMESPACE"] if namespaces else []), *titles], rows)


def phase_words(experiment: StoredExperiment) -> str:
    """The phase, with the reason for the end."""
    status = experiment.status
    phase = status.phase or ("Deleting" if experiment.metadata.terminating else "Pending")
    return f"{coloured(phase)} ({status.reason})" if status.reason else coloured(phase)


def left(experiment: StoredExperiment, now: dt.datetime) -> str:
    """The time that is left of one that runs; empty if it has no end, or does not run."""
    seconds = seconds_since(now, experiment.status.until or "")
    running = experiment.status.phase == "Running" and seconds is not None
    return span(max(0.0, -seconds)) if running and seconds is not None else ""


def page(experiment: StoredExperiment, now: dt.datetime, complete: Callable[[str], str]) -> list[str]:
    """One Experiment, as a person reads it."""
    meta, status = experiment.metadata, experiment.status
    head = f"{paint(f'experiment/{meta.name}', bold=True)} -n {meta.namespace}  {phase_words(experiment)}"
    lines = [head]
    lines += facts(
        [
            ("Endpoint", f"servingendpoint/{text(experiment.spec, 'endpoint', 'name')}"),
            ("Runs for", age(now, status.started) if status.started and not status.ended else ""),
            ("Left", left(experiment, now)),
            ("Waits for", status.waiting_for or ""),
            ("Verdict", f"{status.verdict.result}: {status.verdict.text}" if status.verdict is not None else ""),
            ("Age", age(now, meta.creation_timestamp)),
        ],
        columns(),
    )
    if not status.phase:
        lines.append("No operator has reconciled it yet.")
    if status.variants:
        titles = ("VARIANT", "REVISION", "READY", "WANTED", "PROGRAMMED", "EFFECTIVE", "IN FLIGHT", "VERDICT")
        lines += ["", *table(titles, [_variant(each) for each in status.variants], columns())]
    if status.conditions:
        lines += ["", *condition_lines(status.conditions, now)]
    return [*lines, "", f"Next: {' | '.join(map(complete, _next(experiment)))}"]


def _variant(variant: VariantStatus) -> tuple[str, ...]:
    share, replicas = variant.weight or VariantShare(), variant.replicas
    verdict = coloured(variant.verdict.result) if variant.verdict is not None else NOTHING
    if variant.revision is None:  # it has not begun, or is gone
        return (variant.name, *[NOTHING] * 6, verdict)
    return (
        variant.name,
        variant.revision,
        f"{replicas.ready} of {replicas.desired}",
        f"{share.wanted} %",
        "not proven" if share.programmed is None else f"{share.programmed} %",
        NOTHING if share.effective is None else f"{share.effective:g} %",
        NOTHING if variant.in_flight is None else str(variant.in_flight),
        verdict,
    )


def _next(experiment: StoredExperiment) -> list[str]:
    name, namespace = quote(experiment.metadata.name), quote(experiment.metadata.namespace)
    verdict = f"pilotage verdict experiment/{name} -n {namespace}"
    return [verdict] if experiment.status.reason else [verdict, f"pilotage terminate {name} -n {namespace}"]
