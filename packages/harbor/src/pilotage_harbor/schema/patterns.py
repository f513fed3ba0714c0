"""Regular expressions as Go knows them, on RE2, which Go's engine was modelled on.

Whoever defines a resource writes the pattern, and whoever creates an object writes the text: Python's own engine could
be kept busy for ever by the two. RE2 takes time in proportion to the text. The syntax is Go's; what is refused is
refused in Go's words.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

# What RE2 says, and what Go says. What comes after it is the part of the pattern that is meant.
_GO_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}


class PatternError(ValueError):
    """The text is no pattern that Go would take. The message is Go's."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {what}: `{where}`")


def _options() -> Any:  # noqa: ANN401 - has no types
    options = re2.Options()
    options.log_errors = False
    return options


_OPTIONS = _options()


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Any:  # noqa: ANN401 - has no types
    """The pattern, ready for `search`. Raises `PatternError`."""
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        said = error.args[0]
    what, _, where = (said.decode(errors="replace") if isinstance(said, bytes) else str(said)).partition(": ")
    if where.startswith("(?<") and not where.startswith("(?<="):
        # Go takes it for a group with a name that is none.
        what, where = "invalid named capture group", _named_group(pattern, where)
    raise PatternError(_GO_WORDS.get(what, what), where)


def _named_group(pattern: str, beginning: str) -> str:
    rest = pattern[pattern.index(beginning) :]
    end = rest.find(">")
    return rest[: end + 1] if end >= 0 else rest
