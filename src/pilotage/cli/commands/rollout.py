"""``pilotage rollout``: the rollout of an endpoint in steps."""

import datetime as dt
from collections.abc import Callable
from shlex import quote
from typing import Any

import click

from pilotage.api.endpoint_status import RolloutState, StoredEndpoint, VariantShare
from pilotage.api.names import ENDPOINTS
from pilotage.cli.connection import ClusterChoice, asynchronous
from pilotage.cli.errors import plain_errors
from pilotage.cli.options import Patience, cluster_options, name_argument, namespace_option, output_option
from pilotage.cli.output.endpoints import model_of
from pilotage.cli.output.objects import print_report
from pilotage.cli.output.table import NOTHING, age, table
from pilotage.cli.output.text import coloured, columns, paint, say, wrapped
from pilotage.cli.steps import follow_shown
from pilotage.kube import ObjectKey
from pilotage.rollout.follow import FollowedRollout
from pilotage.rollout.requests import get
from pilotage.rollout.revisions import rest_words, revision_named
from pilotage.rollout.steps import ENDS, ShownStep, next_commands, shown_sides, shown_steps, under_way
from pilotage.teardown.snapshot.fields import seconds_since, span, text
from pilotage.teardown.snapshot.world import Name

_MARKS = {"done": "✓", "active": "▸", "later": "·"}


@click.command()
@name_argument
@namespace_option
@click.option("-w", "--watch", is_flag=True, help="Show it until it has ended.")
@cluster_options
@output_option("the endpoint")
@plain_errors
@asynchronous
async def rollout(name: str, namespace: str, watch: bool, cluster: ClusterChoice, output: str) -> int:
    """Show the rollout of an endpoint: its steps, what both sides get, and the next commands.

    \b
    pilotage rollout assistant -n chat
    pilotage rollout assistant -n chat --watch

    With --watch it follows the rollout until it has ended, and says at once how the last one ended if none is under
    way.

    Exit codes: 0 shown (with --watch: it is promoted, or there was none), 1 with --watch: it was aborted, superseded or
    deleted, 2 bad usage or no such endpoint, 3 the API could not be read, 130 Ctrl-C (the operator continues).
    """
    async with cluster.session() as session:
        obj = await get(session.client, ENDPOINTS, ObjectKey(namespace or session.client.namespace, name))
        endpoint = StoredEndpoint.of(obj)
        state = endpoint.status.rollout
        if watch and state is not None:
            followed = FollowedRollout(obj.meta.uid, state.revision)
            return await follow_shown(session, obj, followed, Patience(True, float("inf"), output), cluster)
    if output != "text":
        named = Name(ENDPOINTS.group, ENDPOINTS.kind, obj.meta.namespace, obj.meta.name)
        print_report(output, report(endpoint, cluster.complete), [named])
    else:
        say(*page(endpoint, dt.datetime.now(dt.UTC), cluster.complete))
    return 0


def report(endpoint: StoredEndpoint, complete: Callable[[str], str]) -> dict[str, Any]:
    """The rollout for scripts: what stands in the status, with its steps, its sides and the next commands."""
    state = endpoint.status.rollout
    meta = {"name": endpoint.metadata.name, "namespace": endpoint.metadata.namespace}
    return {
        "apiVersion": ENDPOINTS.api_version,
        "kind": "Rollout",
        "metadata": meta,
        "strategy": text(endpoint.spec, "strategy", "type") or "BlueGreen",
        "serving": endpoint.status.revision,
        "underWay": under_way(endpoint) is not None,
        "rollout": state.written() if state is not None else None,
        "steps": [each._asdict() for each in shown_steps(endpoint)],
        "sides": [each._asdict() | {"share": each.share.written()} for each in shown_sides(endpoint)],
        "next": [complete(each) for each in next_commands(endpoint)],
    }


def page(endpoint: StoredEndpoint, now: dt.datetime, complete: Callable[[str], str]) -> list[str]:
    """The rollout under way, or the last one, as a person reads it."""
    state = endpoint.status.rollout
    commands = " | ".join(map(complete, next_commands(endpoint)))
    following = [f"Next: {commands}"] if commands else []
    if state is None or state.phase in ENDS:
        return [*_without(endpoint, state, now), *following]
    meta = endpoint.metadata
    past = revision_named(endpoint, state.revision)
    model = f" ({model_of(past.spec)})" if past is not None else ""
    head = f"{paint(f'servingendpoint/{meta.name}', bold=True)} -n {meta.namespace}  to {state.revision}{model}"
    lines = [head, f"{coloured(state.phase)}, {_where(state, now)}"]
    lines += _fitted(state.message) if state.message else []
    lines += ["", *_steps(shown_steps(endpoint)), "", *_sides(endpoint)]
    if state.verdict is not None:
        command = complete(f"pilotage verdict {quote(meta.name)} -n {quote(meta.namespace)}")
        lines += ["", *_fitted(f"Verdict: {state.verdict.result}: {state.verdict.text} ({command})")]
    return [*lines, *([""] if following else []), *following]


def _without(endpoint: StoredEndpoint, state: RolloutState | None, now: dt.datetime) -> list[str]:
    """No rollout is under way: what serves, and how the last one ended."""
    name, serves = endpoint.metadata.name, endpoint.status.revision
    lines = [f"{name} has no rollout under way{f': {serves} serves' if serves else ''}."]
    strategy = text(endpoint.spec, "strategy", "type") or "BlueGreen"
    if strategy != "Canary":
        lines += _fitted(f"Its strategy is {strategy}: changes take no steps (spec.strategy.type: Canary does).")
    if state is None:
        return lines
    why = f": {state.message}" if state.message else ""
    lines += _fitted(f"The last one, to {state.revision}: {state.phase} {age(now, state.since)} ago{why}")
    for past in endpoint.status.history:
        left = seconds_since(now, past.until or "")
        if past.state == "Resting" and left is not None and left < 0:
            rests = f"{name}-{past.number} rests for another {span(-left)}. With a rollback until then,"
            lines += _fitted(f"{rests} {rest_words(endpoint, past)}.")
    return lines


def _where(state: RolloutState, now: dt.datetime) -> str:
    where = f"step {state.step} of {state.of}" if state.step else f"before the first of {state.of} steps"
    since, left = age(now, state.since), seconds_since(now, state.until or "")
    if left is None:
        return f"{where}, for {since}"
    return f"{where}, for {since}, {span(-left)} left" if left < 0 else f"{where}, for {since}: its time is over"


def _steps(steps: list[ShownStep]) -> list[str]:
    """A line for each step up to the current one, and one line for all that are to come."""
    width = max((len(each.name) for each in steps if each.state != "later"), default=0)
    lines = [
        f"  {_MARKS[each.state]} {each.name:<{width}}  {_clock(each.ended)}".rstrip()
        for each in steps
        if each.state != "later"
    ]
    later = [f"{_MARKS['later']} {each.name}" for each in steps if each.state == "later"]
    return lines + [f"  {each}" for each in _fitted("  ".join(later), 2) if later]


def _clock(moment: str) -> str:
    return moment.partition("T")[2].removesuffix("Z")


def _sides(endpoint: StoredEndpoint) -> list[str]:
    rows = [
        (each.revision or NOTHING, each.role, each.replicas or NOTHING, *_shares(each.share), each.measured or NOTHING)
        for each in shown_sides(endpoint)
    ]
    titles = ("REVISION", "ROLE", "READY", "WANTED", "PROGRAMMED", "EFFECTIVE", "MEASURED")
    return table(titles, rows, columns())


def _shares(share: VariantShare) -> tuple[str, str, str]:
    return (
        f"{share.wanted} %",
        "not proven" if share.programmed is None else f"{share.programmed} %",
        NOTHING if share.effective is None else f"{share.effective:g} %",
    )


def _fitted(line: str, indent: int = 0) -> list[str]:
    width = columns()
    return wrapped(line, width - indent) if width else [line]
