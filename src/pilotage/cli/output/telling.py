"""How the steps of a change are shown while they go on: lines, a block that redraws itself, or JSON events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from pilotage.cli.output.progress import QUIET_SECONDS, use_block
from pilotage.cli.output.text import paint, redraw
from pilotage.cli.rollout_steps import State
from pilotage.kube.wire import format_time
from pilotage.terminal import one_line

if TYPE_CHECKING:
    import datetime as dt

    from pilotage.cli.rollout_steps import Look, Step

_MARKS = {State.DONE: "✓", State.ACTIVE: "▸", State.LATER: "·", State.FAILED: "✗"}
_COLOURS = {State.DONE: "green", State.ACTIVE: "yellow", State.FAILED: "red"}


class Teller(Protocol):
    """Who shows it."""

    def tell(self, look: Look, now: dt.datetime) -> None:
        """How it stands now."""

    def end(self, look: Look, result: str, **more: Any) -> None:  # noqa: ANN401 - anything that is JSON
        """How it ended; `more` is for scripts."""


def teller(out: TextIO, *, as_json: bool) -> Teller:
    """The right one for where it goes."""
    if as_json:
        return Events(out)
    if use_block(out):
        import shutil

        return Block(out, width=shutil.get_terminal_size().columns)
    return Lines(out)


class Lines:
    """A line for each step when there is news of it; and after some quiet, what is waited for, again."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._said: dict[str, tuple[State, str]] = {}
        self._started: dt.datetime | None = None
        self._last_news: dt.datetime | None = None

    def tell(self, look: Look, now: dt.datetime) -> None:
        """See `Teller`."""
        self._started = self._started or now
        active = [step for step in look.steps if step.state is not State.LATER]
        news = [step for step in active if self._said.get(step.name) != (step.state, step.text)]
        if not news and self._last_news and (now - self._last_news).total_seconds() >= QUIET_SECONDS:
            news = [step for step in active if step.state is State.ACTIVE]
        for step in news:
            self._said[step.name] = (step.state, step.text)
            self._last_news = now
            seconds = (now - self._started).total_seconds()
            self._out.write(f"{step.name:<9}{one_line(_said(step)):<70} {seconds:>6.1f} s\n")
        self._out.flush()

    def end(self, look: Look, result: str, **more: Any) -> None:  # noqa: ANN401
        """All has been said."""


class Block:
    """A line for each step on a terminal. It redraws itself."""

    def __init__(self, out: TextIO, *, width: int) -> None:
        self._out = out
        self._width = width
        self._height = 0
        self._started: dt.datetime | None = None

    def tell(self, look: Look, now: dt.datetime) -> None:
        """See `Teller`."""
        self._started = self._started or now
        lines = [self._line(step) for step in look.steps]
        hint = f"  {(now - self._started).total_seconds():.1f} s; Ctrl-C leaves it to the operator"
        lines.append(hint[: self._width - 1])
        redraw(self._out, self._height, lines)
        self._height = len(lines)

    def end(self, look: Look, result: str, **more: Any) -> None:  # noqa: ANN401
        """The block stays as it is."""

    def _line(self, step: Step) -> str:
        text = one_line(f"{step.name:<9}{step.text}")[: self._width - 3]
        mark, colour = _MARKS[step.state], _COLOURS.get(step.state)
        return f"{paint(mark, fg=colour) if colour else mark} {text}"


class Events:
    """One JSON object per line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._said: dict[str, tuple[State, str]] = {}

    def tell(self, look: Look, now: dt.datetime) -> None:
        """See `Teller`."""
        for step in look.steps:
            if step.state is not State.LATER and self._said.get(step.name) != (step.state, step.text):
                self._said[step.name] = (step.state, step.text)
                self.say({"event": step.name, "at": format_time(now), "state": step.state, "text": step.text})

    def end(self, look: Look, result: str, **more: Any) -> None:  # noqa: ANN401
        """See `Teller`."""
        self.say({"event": "end", "result": result, "text": look.text} | more)

    def say(self, event: dict[str, Any]) -> None:
        """Any event."""
        self._out.write(json.dumps(event) + "\n")
        self._out.flush()


def _said(step: Step) -> str:
    return f"FAILED  {step.text}" if step.state is State.FAILED else step.text
