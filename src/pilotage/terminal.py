"""Text of others on a terminal: what is there is seen, and nothing else happens.

An object can hold any text: sequences that set the clipboard or move the cursor, a new line that forges a row, marks
that turn the direction of writing around. Whatever is not printable is written as JSON writes it (``\\u001b``), so that
it can be seen, and so that JSON stays the same JSON.

`guard` puts this filter on the process's own streams. Our own sequences (colours, redrawing) pass it with a mark that
nobody else can know. A new line of an object looks like one of ours by then: where lines are put together, `one_line`
keeps each of them one.
"""

import codecs
import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TextIO

_MARK = f"\x1b{os.urandom(8).hex()}"
_OWN = re.compile(rf"{_MARK}\[[0-9;]*[A-Za-z]")
_ASCII = str.maketrans(
    {"├": "|", "└": "`", "─": "-", "│": "|", "✓": "+", "✗": "x", "▸": ">", "·": ".", "…": "...", "←": "<-", "→": "->"}
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, *, but: str = "\n\t") -> str:
    """The text with everything escaped that is not printable, `but` these characters and our own sequences."""
    return _MARK.join(_printable(piece, but) for piece in text.split(_MARK))


def one_line(text: str) -> str:
    """The text as one line, with nothing in it that is not printable but our own sequences."""
    return printable(text, but="")


def drawable(text: str) -> str:
    """The text with ASCII instead of the characters that we draw with, where the locale has nothing but ASCII."""
    return text.translate(_ASCII) if _is_ascii(os.environ) else text


def _is_ascii(environment: Mapping[str, str]) -> bool:
    """Whether the locale is that of C. Python itself sets LC_CTYPE to C.UTF-8 then."""
    kind = environment.get("LC_CTYPE", "")
    locale = environment.get("LC_ALL") or ("" if kind == "C.UTF-8" else kind) or environment.get("LANG") or ""
    return locale in ("C", "POSIX") or locale.upper().endswith("ASCII")


def width(text: str) -> int:
    """Width of a line on a terminal, our own sequences aside."""
    return len(_OWN.sub("", text))


def own(sequence: str, out: TextIO) -> str:
    """A sequence of ours, such as ``\\x1b[2K``, in the form in which this stream lets it pass."""
    return sequence.replace("\x1b", _MARK) if isinstance(out, Guarded) else sequence


class OutputLost(Exception):
    """A stream of the process cannot be written to any more: its reader is gone, or its disk is full."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror)
        self.error = error


class Guarded(io.TextIOWrapper):
    """A stream that only our own sequences pass, and those only on a terminal."""

    on_lost: Callable[[OutputLost], None] | None = None
    """Called instead of raising OutputLost. What is written after that is dropped."""

    def write(self, text: str) -> int:
        """Write it; what is not printable is seen, and does nothing. Raises OutputLost, once."""
        if not self.isatty():
            text = _OWN.sub("", text)
        try:
            super().write(drawable(printable(text)).replace(_MARK, "\x1b"))
        except OSError as error:
            self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Write out what is buffered. Raises OutputLost, once."""
        try:
            super().flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        """Let all that comes go nowhere: what is in the buffer would be tried again, up to the end of the process."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        lost = OutputLost(error)
        if self.on_lost is None:
            raise lost from error
        self.on_lost(lost)


@contextlib.contextmanager
def output_may_be_lost(tell: Callable[[OutputLost], None]) -> Iterator[None]:
    """Continue where standard output cannot be written to any more: `tell` is called once instead."""
    stream = sys.stdout
    if isinstance(stream, Guarded):
        stream.on_lost = tell
    try:
        yield
    finally:
        if isinstance(stream, Guarded):
            stream.on_lost = None


def guard() -> None:
    """Guard standard output and standard error from here on."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)
    if isinstance(sys.stderr, Guarded):
        sys.stderr.on_lost = lambda _: None  # there is nobody left to tell


def _guarded(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):  # closed, or not the process's own
        return stream
    encoding, by_line = stream.encoding, stream.line_buffering
    if codecs.lookup(encoding).name == "ascii":  # click would go around such a stream, and write UTF-8
        encoding = "utf-8"
    return Guarded(stream.detach(), encoding, "backslashreplace", line_buffering=by_line)


def _printable(text: str, but: str) -> str:
    plain = text
    for character in but:
        plain = plain.replace(character, "")
    if plain.isprintable():
        return text
    return "".join(each if each.isprintable() or each in but else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
