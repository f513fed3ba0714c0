"""How a teardown is shown while it goes on: lines, a block that redraws itself on a terminal, or JSON events.

Each of them is told of steps and decisions as they come. What is shown of a wait is always its cause, on whom, since
when and until when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TextIO

from pilotage.catalogue import Phase
from pilotage.cli.output.text import redraw
from pilotage.kube.wire import format_time
from pilotage.teardown.planning.ledger import Disposition
from pilotage.terminal import one_line

if TYPE_CHECKING:
    import datetime as dt

    from pilotage.teardown.engine.decision import Cause, Decision, Observation, Wait
    from pilotage.teardown.engine.progress import Step
    from pilotage.teardown.planning.ledger import Entry, Ledger

ROWS_MAX = 12
"""So many unfinished objects are shown at once; the others are counted."""
QUIET_SECONDS = 5.0
"""Where there is no terminal, what is waited for is said after so long without news, and then as often again."""


class Seen(Protocol):
    """What was last seen of each object."""

    def get(self, uid: str) -> Observation:
        """Of one of them."""


class Followed(Protocol):
    """The teardown that is shown: one that is driven here, or one that the operator drives."""

    @property
    def ledger(self) -> Ledger:
        """What goes."""

    @property
    def observations(self) -> Seen:
        """What is known of it."""

    @property
    def problem(self) -> str:
        """Why the API server does not answer at the moment."""


class Progress(Protocol):
    """Who shows it."""

    def step(self, step: Step) -> None:
        """Something happened."""

    def decision(self, decision: Decision, now: dt.datetime) -> None:
        """What is done and waited for now."""

    def close(self) -> None:
        """Nothing more comes."""


class Lines:
    """One line for each phase that ends, and for each thing that is waited for longer than a moment."""

    def __init__(self, drive: Followed, out: TextIO) -> None:
        self._drive = drive
        self._out = out
        self._last_news: dt.datetime | None = None
        self._said: set[Phase] = set()
        self._started: dt.datetime | None = None

    def step(self, step: Step) -> None:
        """See `Progress`."""
        self._last_news = step.at
        if step.what in ("refused", "found"):
            self._say(f"{step.entry}  {step.text}")

    def decision(self, decision: Decision, now: dt.datetime) -> None:
        """See `Progress`."""
        self._started = self._started or now
        for phase in _finished_phases(self._drive, decision):
            if phase not in self._said:
                self._said.add(phase)
                seconds = (now - self._started).total_seconds()
                self._say(f"{phase!s:<9}{_summary(self._drive, phase):<60} {seconds:>6.1f} s")
        self._last_news = self._last_news or now
        if (now - self._last_news).total_seconds() >= QUIET_SECONDS:
            self._last_news = now
            if self._drive.problem:
                self._say(f"waiting  the API server does not answer: {self._drive.problem}")
            for wait in decision.blockers[:ROWS_MAX]:
                self._say(f"waiting  {describe(wait, now)}")

    def close(self) -> None:
        """Nothing to put back."""

    def _say(self, line: str) -> None:
        self._out.write(one_line(line.rstrip()) + "\n")
        self._out.flush()


class Block:
    """A block of lines on a terminal: a line for each phase, below it what is not finished. It redraws itself."""

    def __init__(self, drive: Followed, out: TextIO, *, width: int, hint: str = "Ctrl-C stops safely") -> None:
        self._drive = drive
        self._out = out
        self._width = width
        self._hint = hint
        self._height = 0
        self._drawn: dt.datetime | None = None
        self._started: dt.datetime | None = None

    def step(self, step: Step) -> None:
        """It is seen in the next decision."""

    def decision(self, decision: Decision, now: dt.datetime) -> None:
        """See `Progress`."""
        self._started = self._started or now
        if self._drawn is None or (now - self._drawn).total_seconds() > 0.1 or decision.finished:
            self._drawn = now
            self._draw(self._lines(decision, now))

    def close(self) -> None:
        """See `Progress`."""
        self._height = 0

    def _lines(self, decision: Decision, now: dt.datetime) -> list[str]:
        waits = {wait.entry.uid: wait for wait in decision.waits}
        lines: list[str] = []
        rows = 0
        for phase in Phase:
            entries = _of_phase(self._drive, phase)
            if not entries:
                continue
            left = [entry for entry in entries if not _is_over(self._drive, entry)]
            mark = "✓" if not left else "·" if phase > decision.phase else "▸"
            lines.append(f"{mark} {phase!s:<8} {len(entries) - len(left)} of {len(entries)} gone")
            for entry in left if phase <= decision.phase or len(left) <= 3 else ():
                if rows < ROWS_MAX:
                    wait = waits.get(entry.uid)
                    text = describe(wait, now, short=True) if wait else "asked to go"
                    lines.append(f"    {entry.resource.kind.lower()}/{entry.name}  {text}")
                rows += 1
        if rows > ROWS_MAX:
            lines.append(f"    … and {rows - ROWS_MAX} more")
        assert self._started is not None
        lines.append(f"  {(now - self._started).total_seconds():.1f} s; {self._hint}")
        return [one_line(line)[: self._width - 1] for line in lines]

    def _draw(self, lines: list[str]) -> None:
        redraw(self._out, self._height, lines)
        self._height = len(lines)


class Events:
    """One JSON object per line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._waits: dict[str, tuple[Cause, str]] = {}

    def step(self, step: Step) -> None:
        """See `Progress`."""
        event: dict[str, Any] = {"event": step.what, "at": format_time(step.at)}
        if step.entry is not None:
            event["object"] = identify(step.entry)
        if step.text:
            event["text"] = step.text
        self.say(event)

    def decision(self, decision: Decision, now: dt.datetime) -> None:
        """See `Progress`."""
        waits = {wait.entry.uid: (wait.cause, wait.text) for wait in decision.blockers}
        for wait in decision.blockers:
            if self._waits.get(wait.entry.uid) != waits[wait.entry.uid]:
                self.say({"event": "waits", "at": format_time(now)} | wait_to_json(wait))
        self._waits = waits

    def close(self) -> None:
        """Every line is complete."""

    def say(self, event: dict[str, Any]) -> None:
        """Any other event."""
        import json

        self._out.write(json.dumps(event) + "\n")
        self._out.flush()


def identify(entry: Entry) -> dict[str, str]:
    """An object as scripts want it."""
    return {
        "apiVersion": entry.resource.api_version,
        "kind": entry.resource.kind,
        "namespace": entry.namespace,
        "name": entry.name,
        "uid": entry.uid,
    }


def wait_to_json(wait: Wait) -> dict[str, Any]:
    """A wait as scripts want it."""
    return {
        "object": identify(wait.entry),
        "cause": wait.cause.value,
        "actor": wait.actor,
        "text": wait.text,
        "since": format_time(wait.since),
        "until": format_time(wait.until),
    }


def describe(wait: Wait, now: dt.datetime, *, short: bool = False) -> str:
    """For what, on whom, since when, until when."""
    since, left = _seconds((now - wait.since).total_seconds()), _seconds((wait.until - now).total_seconds())
    times = f"for {since}, {left} left"
    if short:
        return f"{wait.text} ({wait.cause}, {times})"
    return f"{wait.entry}  {wait.text}  ({wait.cause}: {wait.actor}, {times})"


def use_block(out: TextIO) -> bool:
    """Whether there is a terminal that can be redrawn."""
    import os

    return out.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _seconds(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds // 60:.0f} min" if seconds < 6000 else f"{seconds // 3600:.0f} h"


def _of_phase(drive: Followed, phase: Phase) -> list[Entry]:
    entries = drive.ledger.entries
    return [entry for entry in entries if entry.phase is phase and entry.disposition is not Disposition.KEEP]


def _is_over(drive: Followed, entry: Entry) -> bool:
    return drive.observations.get(entry.uid).state in ("gone", "foreign")


def _finished_phases(drive: Followed, decision: Decision) -> list[Phase]:
    """Those that are over. Asked often, and of many entries: each phase is looked through up to what is left of it."""
    there: set[Phase] = set()
    left: set[Phase] = set()
    for entry in drive.ledger.entries:
        phase = entry.phase
        if phase < decision.phase and phase not in left and entry.disposition is not Disposition.KEEP:
            there.add(phase)
            if not _is_over(drive, entry):
                left.add(phase)
    return sorted(there - left)


def _summary(drive: Followed, phase: Phase) -> str:
    """What went in a phase, in one line."""
    names = [f"{entry.resource.kind.lower()}/{entry.name}" for entry in _of_phase(drive, phase)]
    shown = ", ".join(names[:2])
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"{shown}{more} gone"
