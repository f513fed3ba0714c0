"""Words and columns that the commands on endpoints have in common. Pure: text in, text out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage.cli.printing import paint
from pilotage.teardown.snapshot.fields import dig, seconds_since, span, text
from pilotage.terminal import one_line, width

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Sequence

    from pilotage.cli.views import Condition, Endpoint, Waiting

NOTHING = "-"
CELL_WIDTH_MAX = 200
_COLOURS = {
    "Serving": "green",
    "Ready": "green",
    "Current": "green",
    "Degraded": "red",
    "Failed": "red",
    "Pending": "yellow",
    "Deploying": "yellow",
    "Redeploying": "yellow",
    "Starting": "yellow",
    "Fetching": "yellow",
    "Deleting": "yellow",
}
_GOOD_WHEN_FALSE = frozenset({"Degraded", "Draining", "Deleting", "Progressing"})


def coloured(word: str) -> str:
    """A phase or a state in its colour, where colours are wanted."""
    colour = _COLOURS.get(word)
    return paint(word, fg=colour) if colour else word


def age(now: dt.datetime, when: str | None) -> str:
    """How long ago that was: ``14m``; a dash where that is not known."""
    seconds = seconds_since(now, when or "")
    return NOTHING if seconds is None else span(max(0.0, seconds)).replace(" ", "")


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns as kubectl prints them, three blanks apart. A cell that is very long does not widen those of others."""
    lines = [[one_line(cell) for cell in row] for row in (titles, *rows)]
    widths = [min(CELL_WIDTH_MAX, max(width(line[column]) for line in lines)) for column in range(len(titles))]
    return [
        "   ".join(cell + " " * (widths[i] - width(cell)) for i, cell in enumerate(line)).rstrip() for line in lines
    ]


def facts(rows: Iterable[tuple[str, str]]) -> list[str]:
    """A title and a value on each line; what has no value is left out."""
    kept = [(title, value) for title, value in rows if value]
    longest = max((len(title) for title, _ in kept), default=0)
    return [f"{title:<{longest}}  {value}" for title, value in kept]


def size(number: int) -> str:
    """Bytes, as a person says it: ``484.2 MB``."""
    amount, unit = float(number), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"


def model_of(spec: dict[str, Any]) -> str:
    """What is served: the name of a Model, or a source."""
    return text(spec, "model", "name") or text(spec, "model", "source") or NOTHING


def route_of(spec: dict[str, Any]) -> str:
    """How requests get there: ``HTTPProxy assistant.example.com``."""
    kind, host = text(spec, "route", "kind") or "None", text(spec, "route", "host")
    return kind if kind == "None" else f"{kind} {host}".strip()


def ready_of(endpoint: Endpoint) -> str:
    """How many replicas are ready of how many: ``2/2``."""
    replicas = endpoint.status.replicas
    wanted = dig(endpoint.spec, "replicas")
    desired = replicas.desired or (wanted if isinstance(wanted, int) and not dig(endpoint.spec, "autoscaling") else 0)
    return f"{replicas.ready}/{desired}"


def phase_of(endpoint: Endpoint) -> str:
    """In one word; what no operator has looked at has none of its own."""
    return endpoint.status.phase or ("Deleting" if endpoint.metadata.terminating else "Pending")


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
    return table(("CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"), rows) if rows else []


def _colour_of(condition: Condition) -> str:
    if condition.status == "Unknown":
        return "yellow"
    fine = (condition.status == "True") != (condition.type in _GOOD_WHEN_FALSE)
    return "green" if fine else "red" if condition.type == "Degraded" else "yellow"


def wait_line(wait: Waiting, now: dt.datetime) -> str:
    """For what, why, since when and until when."""
    left = seconds_since(now, wait.until)
    until = "" if left is None else f", {span(-left)} left" if left < 0 else ", its time is over"
    since = age(now, wait.since)
    return f"{wait.object}  {wait.text}  ({wait.cause}, for {since}{until})"
