"""``pilotage status``: one endpoint on one page."""

import datetime as dt
from typing import NamedTuple

import click

from pilotage.api.endpoint_status import StoredEndpoint, TeardownState
from pilotage.api.names import ENDPOINTS
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import cluster_options, name_argument, namespace_option, output_option
from pilotage.cli.output.endpoints import condition_lines, model_of, ready_of, route_of, wait_line
from pilotage.cli.output.objects import print_object
from pilotage.cli.output.table import age, facts, table
from pilotage.cli.output.text import coloured, columns, paint, say
from pilotage.kube import EVENTS, Client, Forbidden, Object, ObjectKey
from pilotage.rollout.requests import get
from pilotage.rollout.steps import shift
from pilotage.teardown.snapshot.fields import mapping, number, text, texts

EVENTS_SHOWN_MAX = 10
WAITS_SHOWN_MAX = 5


class EndpointEvent(NamedTuple):
    """An Event about an endpoint."""

    at: str
    type: str
    reason: str
    text: str
    times: int


@click.command()
@name_argument
@namespace_option
@cluster_options
@output_option("the endpoint")
@plain_errors
@asynchronous
async def status(name: str, namespace: str, cluster: ClusterChoice, output: str) -> None:
    """Show one endpoint: its model, its state, what it waits for, and its recent events.

    \b
    pilotage status assistant -n chat
    pilotage status assistant -o json | jq .status.phase

    Exit codes: 0 shown, 2 bad usage or no such endpoint, 3 the API could not be read.
    """
    async with cluster.session() as session:
        obj = await get(session.client, ENDPOINTS, ObjectKey(namespace or session.client.namespace, name))
        notes = await _notes(session.client, obj)
    if output != "text":
        print_object(output, obj.to_dict() | {"events": [note._asdict() for note in notes or ()]})
    else:
        say(*page(StoredEndpoint.of(obj), notes, dt.datetime.now(dt.UTC)))


async def _notes(client: Client, obj: Object) -> list[EndpointEvent] | None:
    """The Events of an endpoint, the oldest first; None where they may not be read."""
    try:
        listed = await client.list(EVENTS, obj.meta.namespace, fields=f"regarding.uid={obj.meta.uid}")
    except Forbidden:
        return None
    notes = []
    for event in listed.items:
        body = event.to_dict()
        at = text(body, "series", "lastObservedTime") or text(body, "eventTime") or event.meta.creation_timestamp
        count = number(body, "series", "count", default=number(body, "deprecatedCount", default=1))
        notes.append(EndpointEvent(at, text(body, "type"), text(body, "reason"), text(body, "note"), count))
    return sorted(notes)


def page(endpoint: StoredEndpoint, notes: list[EndpointEvent] | None, now: dt.datetime) -> list[str]:
    """The page. `notes`: None where Events may not be read."""
    meta, state, spec = endpoint.metadata, endpoint.status, endpoint.spec
    lines = [f"{paint(f'servingendpoint/{meta.name}', bold=True)} -n {meta.namespace}  {coloured(endpoint.phase)}"]
    lines += facts(
        [
            ("URL", state.url or ""),
            ("Model", model_of(spec)),
            ("Runtime", _runtime(endpoint)),
            ("Replicas", f"{ready_of(endpoint).replace('/', ' of ')} ready{_scaling(endpoint)}"),
            ("Revision", state.revision or ""),
            ("Rollout", shift(endpoint)),
            ("Experiments", ", ".join(f"{each.name} ({each.phase})" for each in state.experiments)),
            ("Placement", text(spec, "placement", "kind") or "Deployment"),
            ("Route", f"{route_of(spec)}{_proof(endpoint)}"),
            ("Waits for", state.waiting_for or ""),
            ("Age", age(now, meta.creation_timestamp)),
        ],
        columns(),
    )
    if not state.phase:
        lines.append("No operator has reconciled it yet.")
    elif (state.observed_generation or 0) < meta.generation:
        lines.append("The status below is older than the spec: the operator has not reconciled the last change yet.")
    if meta.terminating:
        lines += [
            "",
            f"Deletion requested {age(now, meta.deletion_timestamp)} ago; held by {', '.join(meta.finalizers)}.",
        ]
    if state.teardown:
        lines += ["", *_teardown(state.teardown, now)]
    if state.conditions:
        lines += ["", *condition_lines(state.conditions, now)]
    return [*lines, "", *_events(notes, now)]


def _runtime(endpoint: StoredEndpoint) -> str:
    name, image = text(endpoint.spec, "runtime", "name") or "llama.cpp", text(endpoint.spec, "runtime", "image")
    return "  ".join([name, *([image] if image else []), " ".join(texts(endpoint.spec, "runtime", "args"))]).rstrip()


def _scaling(endpoint: StoredEndpoint) -> str:
    limits = mapping(endpoint.spec, "autoscaling")
    return f", autoscaled between {limits.get('min', 1)} and {limits.get('max')}" if limits else ""


def _proof(endpoint: StoredEndpoint) -> str:
    """The proof that the route is programmed, in words."""
    programmed = endpoint.status.condition("RouteProgrammed")
    if programmed is None:
        return ""
    words = {"ProvenByProxy": "programmed, proven by the proxy", "AcceptedUnverified": "accepted, not proven"}
    if programmed.status == "True":
        return f"  ({words.get(programmed.reason, programmed.reason)})"
    return f"  (NOT programmed: {programmed.message or programmed.reason})"


def _teardown(teardown: TeardownState, now: dt.datetime) -> list[str]:
    left = f", {teardown.left} left" if teardown.left is not None else ""
    shown = [f"  {wait_line(wait, now)}" for wait in teardown.waits[:WAITS_SHOWN_MAX]]
    more = len(teardown.waits) - len(shown)
    return [
        f"Teardown {teardown.name}: {teardown.phase or 'not begun'}{left}",
        *shown,
        *([f"  … and {more} more"] if more else []),
    ]


def _events(notes: list[EndpointEvent] | None, now: dt.datetime) -> list[str]:
    if notes is None:
        return ["Events could not be read: no permission."]
    if not notes:
        return ["No events."]
    rows = [
        (
            age(now, note.at),
            paint(note.type, fg="yellow") if note.type == "Warning" else note.type,
            note.reason,
            f"{note.text}{f' (x{note.times})' if note.times > 1 else ''}",
        )
        for note in notes[-EVENTS_SHOWN_MAX:]
    ]
    return table(("LAST SEEN", "TYPE", "REASON", "MESSAGE"), rows, columns())
