"""Endpoints in words: columns and lines that several commands share. Pure: text in, text out."""

import datetime as dt
from collections.abc import Iterable
from typing import Any

from pilotage.api.base import Condition
from pilotage.api.endpoint_status import StoredEndpoint, Waiting
from pilotage.cli.output.table import NOTHING, age, table
from pilotage.cli.output.text import columns, paint
from pilotage.teardown.snapshot.fields import dig, seconds_since, span, text

_GOOD_WHEN_FALSE = frozenset({"Degraded", "Draining", "Deleting", "Progressing"})


def model_of(spec: dict[str, Any]) -> str:
    """The model that is served: the name of a Model, or a source."""
    return text(spec, "model", "name") or text(spec, "model", "source") or NOTHING


def route_of(spec: dict[str, Any]) -> str:
    """The route: ``HTTPProxy assistant.example.com``."""
    kind, host = text(spec, "route", "kind") or "None", text(spec, "route", "host")
    return kind if kind == "None" else f"{kind} {host}".strip()


def ready_of(endpoint: StoredEndpoint) -> str:
    """Ready replicas of the desired ones: ``2/2``. As the operator wrote it, if it has."""
    if endpoint.status.ready:
        return endpoint.status.ready
    replicas = endpoint.status.replicas
    wanted = dig(endpoint.spec, "replicas")
    desired = replicas.desired or (wanted if isinstance(wanted, int) and not dig(endpoint.spec, "autoscaling") else 0)
    return f"{replicas.ready}/{desired}"


def condition_lines(conditions: Iterable[Condition], now: dt.datetime) -> list[str]:
    """Each with its reason, since when, and what it says."""
    rows = [
        (
            condition.type,
            paint(condition.status, fg=_colour_of(condition)),
            condition.reason or NOTHING,
            age(now, condition.last_transition_time),
            condition.message,
        )
        for condition in conditions
    ]
    return table(("CONDITION", "STATUS", "REASON", "AGE", "MESSAGE"), rows, columns()) if rows else []


def _colour_of(condition: Condition) -> str:
    if condition.status == "Unknown":
        return "yellow"
    fine = (condition.status == "True") != (condition.type in _GOOD_WHEN_FALSE)
    return "green" if fine else "red" if condition.type == "Degraded" else "yellow"


def wait_line(wait: Waiting, now: dt.datetime) -> str:
    """Line of a wait: for what, why, since when and until when."""
    left = seconds_since(now, wait.until)
    until = "" if left is None else f", {span(-left)} left" if left < 0 else ", its time is over"
    since = age(now, wait.since)
    return f"{wait.object}  {wait.text}  ({wait.cause}, for {since}{until})"
