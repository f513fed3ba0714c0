"""Tables, and the values in their cells. Pure: text in, text out."""

import datetime as dt
from collections.abc import Iterable, Sequence

from pilotage.teardown.snapshot.fields import seconds_since, span
from pilotage.terminal import one_line, width

NOTHING = "-"
CELL_WIDTH_MAX = 200


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


def age(now: dt.datetime, when: str | None) -> str:
    """The time since then: ``14m``; a dash where that is not known."""
    seconds = seconds_since(now, when or "")
    return NOTHING if seconds is None else span(max(0.0, seconds)).replace(" ", "")


def size(number: int) -> str:
    """Bytes, as a person says it: ``484.2 MB``."""
    amount, unit = float(number), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
