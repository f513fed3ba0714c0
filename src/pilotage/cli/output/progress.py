"""Live progress of what takes a while, a teardown or a rollout: lines, a block that redraws itself, or JSON events.

A command makes a `ProgressView` of each state that it sees, and shows it; the renderer decides what of it is news.
"""

import datetime as dt
import enum
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, TextIO

from pilotage.cli.output.text import paint, redraw, wrapped
from pilotage.terminal import drawable, one_line

EVENT_FORMS = ("json", "yaml")
"""Forms of output in which progress is a stream of events."""
QUIET_SECONDS = 5.0
"""Interval of printed waits without a terminal, from the last event on."""
STEADY_SECONDS = 1.0
"""Duration from which on a step under way is told without a terminal: most are over before anybody could read it."""
ROW_LINES_MAX = 4
"""A row of a block has no more lines than this."""
DRAW_SECONDS = 0.1
"""A block is not drawn more often: nobody reads faster."""
TEXT_WIDTH = 60
"""Width of a text: with the name before it and the time behind it, the line fits 80 columns."""


class RowState(enum.StrEnum):
    """The state of a row."""

    DONE = "done"
    ACTIVE = "active"
    LATER = "later"
    FAILED = "failed"


_INDENT = 11
"""Columns before the text of a row in a block: the mark, and the name."""
_MARKS = {RowState.DONE: "✓", RowState.ACTIVE: "▸", RowState.LATER: "·", RowState.FAILED: "✗"}
_COLOURS = {RowState.DONE: "green", RowState.ACTIVE: "yellow", RowState.FAILED: "red"}


class Row(NamedTuple):
    """A phase of a teardown, or a step of a rollout."""

    name: str
    """One word."""
    state: RowState
    text: str
    details: tuple[str, ...] = ()
    """Lines below it, in a block only."""


class ProgressView(Protocol):
    """A state to show. Each renderer asks for its own part of it: of a large teardown, each part is much work."""

    @property
    def finished(self) -> bool:
        """Whether it is the last one: it is shown in any case."""

    def news(self) -> Iterable[Row]:
        """The rows that a line is printed for, once for each text."""

    def waits(self, now: dt.datetime) -> Iterable[str | Row]:
        """Lines that are printed after some quiet; a row is printed with the time."""

    def block(self, now: dt.datetime) -> Iterable[Row]:
        """All rows."""

    def events(self, now: dt.datetime) -> Iterable[tuple[str, object, dict[str, Any]]]:
        """JSON events: a key, what makes a new event of it if it differs from before, and the event."""


class Renderer(Protocol):
    """One way to show progress."""

    def show(self, view: ProgressView, now: dt.datetime) -> None:
        """The state by now."""

    def tell(self, event: dict[str, Any], at: dt.datetime, line: str = "") -> None:
        """Report an event: `event` for scripts, and `line` for people, if they want to know of each."""

    def close(self) -> None:
        """Nothing more comes."""


def renderer(form: str, *, hint: str) -> Renderer:
    """The renderer for a form of output: events to stdout for json and yaml, else lines, to stderr for name.

    `hint`: what Ctrl-C means.
    """
    if form in EVENT_FORMS:
        return Events(sys.stdout, form)
    out = sys.stdout if form == "text" else sys.stderr
    if _can_redraw(out):
        import shutil

        return Block(out, width=shutil.get_terminal_size().columns, hint=hint)
    return Lines(out)


class Lines:
    """A line for each row that has changed and stays so, and after some quiet the waits."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown: dict[str, str] = {}
        self._since: dict[str, tuple[str, dt.datetime]] = {}
        self._started: dt.datetime | None = None
        self._last_news: dt.datetime | None = None

    def show(self, view: ProgressView, now: dt.datetime) -> None:
        """The rows that are new, or else what has been waited for quietly."""
        self._started = self._started or now
        self._last_news = self._last_news or now
        for row in view.news():
            if self._shown.get(row.name) != _line_of(row) and self._is_steady(row, now):
                self._shown[row.name] = _line_of(row)
                self._print(row, now)
        if (now - self._last_news).total_seconds() >= QUIET_SECONDS:
            self._last_news = now
            for wait in view.waits(now):
                self._print(wait, now)

    def tell(self, event: dict[str, Any], at: dt.datetime, line: str = "") -> None:  # noqa: ARG002
        """The line, if there is one."""
        self._last_news = at
        if line:
            self._print(line, at)

    def close(self) -> None:
        """Nothing to put back."""

    def _is_steady(self, row: Row, now: dt.datetime) -> bool:
        """Whether a row has ended, or has been the same for a while."""
        text, since = self._since.get(row.name, ("", now))
        if text != row.text:
            since = now
        self._since[row.name] = (row.text, since)
        return row.state is not RowState.ACTIVE or (now - since).total_seconds() >= STEADY_SECONDS

    def _print(self, what: str | Row, now: dt.datetime) -> None:
        self._last_news = now
        if isinstance(what, Row):
            assert self._started is not None
            seconds = (now - self._started).total_seconds()
            what = f"{what.name:<9}{_line_of(what):<{TEXT_WIDTH}} {seconds:>6.1f} s"
        self._out.write(one_line(what.rstrip()) + "\n")
        self._out.flush()


class Block:
    """A block of lines on a terminal: a line for each row, and its details below it. It redraws itself."""

    def __init__(self, out: TextIO, *, width: int, hint: str) -> None:
        self._out = out
        self._width = width
        self._hint = hint
        self._height = 0
        self._drawn: dt.datetime | None = None
        self._started: dt.datetime | None = None

    def show(self, view: ProgressView, now: dt.datetime) -> None:
        """Draw it over what was drawn before."""
        self._started = self._started or now
        if self._drawn is not None and (now - self._drawn).total_seconds() <= DRAW_SECONDS and not view.finished:
            return
        self._drawn = now
        lines: list[str] = []
        for row in view.block(now):
            mark, colour = _MARKS[row.state], _COLOURS.get(row.state)
            first, *more = wrapped(one_line(row.text), self._width - 1 - _INDENT)[:ROW_LINES_MAX]
            text = self._cut(f"{row.name:<9}{first}", 2)
            lines.append(f"{paint(mark, fg=colour) if colour else mark} {text}")
            lines += (self._cut(" " * _INDENT + line) for line in more)
            lines += (self._cut(f"    {detail}") for detail in row.details)
        lines.append(self._cut(f"  {(now - self._started).total_seconds():.1f} s; {self._hint}"))
        redraw(self._out, self._height, lines)
        self._height = len(lines)

    def tell(self, event: dict[str, Any], at: dt.datetime, line: str = "") -> None:
        """It is seen in the next state."""

    def close(self) -> None:
        """Leave the block as it is."""
        self._height = 0

    def _cut(self, line: str, before: int = 0) -> str:
        """One line that is not wrapped: a wrapped one would not be drawn over."""
        return drawable(one_line(line))[: self._width - 1 - before]


class Events:
    """An event for each change: see `print_event`."""

    def __init__(self, out: TextIO, form: str) -> None:
        self._out = out
        self._form = form
        self._last: dict[str, object] = {}

    def show(self, view: ProgressView, now: dt.datetime) -> None:
        """The events that differ from the last ones."""
        from pilotage.kube.wire import format_time

        last: dict[str, object] = {}
        for key, content, event in view.events(now):
            last[key] = content
            if self._last.get(key) != content:
                print_event(self._out, self._form, {"event": event["event"], "at": format_time(now)} | event)
        self._last = last

    def tell(self, event: dict[str, Any], at: dt.datetime, line: str = "") -> None:  # noqa: ARG002
        """The event."""
        from pilotage.kube.wire import format_time

        print_event(self._out, self._form, {"event": event["event"], "at": format_time(at)} | event)

    def close(self) -> None:
        """Every event is complete."""


def _line_of(row: Row) -> str:
    return f"FAILED  {row.text}" if row.state is RowState.FAILED else row.text


def print_event(out: TextIO, form: str, event: dict[str, Any]) -> None:
    """One event: a line of JSON, or a YAML document."""
    if form == "yaml":
        import msgspec
        import yaml

        out.write(f"---\n{yaml.safe_dump(msgspec.to_builtins(event), sort_keys=False)}")
    else:
        import json

        out.write(json.dumps(event) + "\n")
    out.flush()


def _can_redraw(out: TextIO) -> bool:
    import os

    return out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
