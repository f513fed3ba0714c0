"""Why a server did not start, or ended: one sentence, from its exit code and the end of its log. Pure.

Every start that fails looks alike from outside (exit code 1), so its last lines decide. What lasts until somebody
changes something is told from what may be over at the next try.
"""

import re
import signal
from typing import NamedTuple

LINE_CHARACTERS_MAX = 200


class LaunchFailure(NamedTuple):
    """A failure. `reason` is one CamelCase word."""

    reason: str
    message: str
    permanent: bool = False
    """Whether a retry fails the same way until something is changed."""


_WORDS: tuple[tuple[re.Pattern[str], str, str, bool], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), reason, message, lasting)
    for pattern, reason, message, lasting in (
        (
            r"couldn't bind|address already in use|bind.*failed|errno 98",
            "PortTaken",
            "another program has its port",
            False,
        ),
        (
            r"invalid magic|not within the file bounds|failed to read (?:magic|header)|unknown model arch|invalid GGUF",
            "BadModel",
            "its weights are no model that it can load",
            True,
        ),
        (
            r"failed to open GGUF file|no such file or directory|filenotfounderror",
            "FileNotFound",
            "a file that it needs is not there",
            True,
        ),
        (
            r"error: invalid argument|unrecognized argument|error while handling argument|unknown option",
            "BadArgument",
            "it does not know an argument of runtime.args",
            True,
        ),
        (
            r"out of memory|failed to allocate|cannot allocate memory|bad_alloc|alloc_buffer",
            "OutOfMemory",
            "there is not enough memory for it",
            False,
        ),
    )
)


def explain(code: int | None, said: str) -> LaunchFailure:
    """The failure of a server that has ended: `code` as `subprocess` has it (None: unknown), and the end of its log."""
    for pattern, reason, message, lasting in _WORDS:
        if found := _line_with(pattern, said):
            return LaunchFailure(reason, f"{message}: {found}", lasting)
    how = _how(code)
    last = _last_line(said)
    if code is not None and -code == signal.SIGKILL:
        return LaunchFailure("Killed", "it was killed by SIGKILL, perhaps by the system because memory ran out")
    return LaunchFailure("Exited", f"it ended {how}" + (f"; its last line: {last}" if last else ""))


def _how(code: int | None) -> str:
    if code is None:
        return "while no agent ran"
    if code < 0:
        try:
            return f"by {signal.Signals(-code).name}"
        except ValueError:
            return f"by signal {-code}"
    return f"with exit code {code}"


def _line_with(pattern: re.Pattern[str], said: str) -> str:
    return next((_short(line) for line in said.splitlines() if pattern.search(line)), "")


def _last_line(said: str) -> str:
    return next((_short(line) for line in reversed(said.splitlines()) if line.strip()), "")


def _short(line: str) -> str:
    """A line without the prefix of a log: the same failure has to give the same text each time."""
    text = re.sub(r"^[\s\d.:|\-TZ]*(?:[EWIDF]\s+)?", "", line).strip()
    return "".join(filter(str.isprintable, text))[:LINE_CHARACTERS_MAX]
