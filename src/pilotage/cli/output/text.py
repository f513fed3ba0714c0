"""Lines of text, in colour where that is wanted. `pilotage.terminal` keeps what is in them from acting."""

import os
import sys
from collections.abc import Sequence
from typing import TextIO

import click

from pilotage.terminal import one_line, own

_STATE_COLOURS = {
    "Serving": "green",
    "Ready": "green",
    "Current": "green",
    "Degraded": "red",
    "Failed": "red",
    "Unknown": "red",
    "Pending": "yellow",
    "Deploying": "yellow",
    "Redeploying": "yellow",
    "Starting": "yellow",
    "Fetching": "yellow",
    "Deleting": "yellow",
    "Running": "green",
    "Held": "red",
    "Aborting": "red",
    "Aborted": "red",
    "Better": "green",
    "NoWorse": "green",
    "Worse": "red",
    "Invalid": "red",
    "Undecided": "yellow",
}


def say(*lines: str, err: bool = False) -> None:
    """Print lines: each of them is one, whatever an object has put into it."""
    click.echo("\n".join(map(one_line, lines)), err=err)


def note(text: str) -> None:
    """A line about what is going on: to stderr, because stdout has results only."""
    say(text, err=True)


def paint(text: str, **style: object) -> str:
    """The text in colour, where colours are wanted."""
    if not in_colour():
        return text
    before, _, after = click.style("|", **style).partition("|")  # type: ignore[arg-type]
    return own(before, sys.stdout) + text + own(after, sys.stdout)


def coloured(word: str) -> str:
    """A phase or a state in its colour, where colours are wanted."""
    colour = _STATE_COLOURS.get(word)
    return paint(word, fg=colour) if colour else word


def in_colour() -> bool:
    """Whether results are coloured: on a terminal that has colours, unless NO_COLOR is set."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def columns() -> int | None:
    """Width of the terminal that results go to; None where they go elsewhere, and lines may be of any length."""
    if not sys.stdout.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of this width, broken between words only: a URL or a path stays whole."""
    import textwrap

    return textwrap.wrap(text, max(1, width), break_long_words=False, break_on_hyphens=False) or [""]


def redraw(out: TextIO, height: int, lines: Sequence[str]) -> None:
    """Write lines over the `height` lines that were written last."""
    up = own(f"\x1b[{height}F", out) if height else ""
    clear = own("\x1b[2K", out)
    out.write(up + "".join(f"{clear}{line}\n" for line in lines) + own("\x1b[J", out))
    out.flush()
