"""Tables, and the values in their cells. Pure: text in, text out."""

import datetime as dt
from collections.abc import Iterable, Sequence

from pilotage.cli.output.text import wrapped
from pilotage.teardown.snapshot.fields import seconds_since, span
from pilotage.terminal import one_line, width

NOTHING = "-"
CELL_WIDTH_MAX = 200
LAST_WIDTH_MIN = 24
"""A text is not wrapped in less than this: on a terminal that narrow, its own breaks are the lesser evil."""
_GAP = "   "


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], columns: int | None = None) -> list[str]:
    """Columns as kubectl prints them, three blanks apart. A cell that is very long does not widen those of others.

    `columns`: the width of the terminal, in which the texts of the last column are wrapped between words.
    """
    lines = [[one_line(cell) for cell in row] for row in (titles, *rows)]
    widths = [min(CELL_WIDTH_MAX, max(width(line[column]) for line in lines)) for column in range(len(titles))]
    indent = sum(widths[:-1]) + len(_GAP) * (len(titles) - 1)
    found = []
    for *cells, last in lines:
        start = "".join(cell + " " * (widths[i] - width(cell)) + _GAP for i, cell in enumerate(cells))
        pieces = wrapped(last, max(LAST_WIDTH_MIN, columns - indent)) if columns else [last]
        found += [f"{start}{pieces[0]}".rstrip(), *(" " * indent + piece for piece in pieces[1:])]
    return found


def facts(rows: Iterable[tuple[str, str]], columns: int | None = None) -> list[str]:
    """A title and a value on each line; what has no value is left out. Values are wrapped in `columns`."""
    kept = [(title, value) for title, value in rows if value]
    longest = max((len(title) for title, _ in kept), default=0)
    lines = []
    for title, value in kept:
        pieces = wrapped(one_line(value), max(LAST_WIDTH_MIN, columns - longest - 2)) if columns else [value]
        lines += [f"{title:<{longest}}  {pieces[0]}", *(" " * (longest + 2) + piece for piece in pieces[1:])]
    return lines


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
