"""Arguments and variables that a machine takes from a spec that its owner did not write, checked against a table.

Each runtime has its table in its own file. An option is in it if it can neither read nor write a file, open a port or a
connection, load code, nor turn on tools or a user interface, whatever its value is. Names are compared as a whole: no
abbreviations, no other spelling, no word that is neither an option nor its value (such as ``@file``). Pure.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

SHOWN_CHARACTERS_MAX = 80

SWITCH = None
"""An option without a value."""
NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")
COUNT = re.compile(r"[0-9]{1,3}")
"""Number of threads, slots or devices."""
SIZE = re.compile(r"[0-9]{1,9}")
"""Number of tokens, from which the agent computes the memory of the server."""
BATCH = re.compile(r"[0-9]{1,4}")
"""Number of tokens, each of which takes as much memory as many tokens of context."""
NUMBERS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?(,[0-9]{1,9}(\.[0-9]{1,9})?){0,31}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""One of those that the program knows: no path has this form that leads out of the folder it runs in."""
NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}(,[A-Za-z0-9][A-Za-z0-9_.-]{0,63}){0,31}")


class Allowed(NamedTuple):
    """The table of a runtime."""

    options: Mapping[str, re.Pattern[str] | None] = {}
    """Pattern of the value, by the name of the option. `SWITCH`: it takes none."""
    variables: Mapping[str, re.Pattern[str]] = {}

    def refused_argument(self, args: Sequence[str]) -> str:
        """The first argument that is not in the table or has another value, for people; empty if there is none."""
        words = iter(args)
        for word in words:
            name, equals, value = word.partition("=")
            if name not in self.options or (equals and not name.startswith("--")):
                return shown(word)
            pattern = self.options[name]
            if pattern is SWITCH:
                if equals:
                    return shown(word)
                continue
            given = value if equals else next(words, None)
            if given is None:
                return f"{name} without a value"
            if not pattern.fullmatch(given):
                return shown(f"{name}={given}" if equals else f"{name} {given}")
        return ""

    def refused_variable(self, variables: Mapping[str, str]) -> str:
        """The first variable that is not in the table or has another value, for people; empty if there is none."""
        for name, value in variables.items():
            if name not in self.variables:
                return shown(name)
            if not self.variables[name].fullmatch(value):
                return shown(f"{name}={value}")
        return ""


def options(table: Mapping[str, re.Pattern[str] | None]) -> dict[str, re.Pattern[str] | None]:
    """Patterns by each name, from a table whose keys have all names of an option, such as ``-c --ctx-size``."""
    return {name: pattern for names, pattern in table.items() for name in names.split()}


def shown(word: str) -> str:
    """A word of a spec in a message: short, and without characters that a terminal would act on."""
    cut = word if len(word) <= SHOWN_CHARACTERS_MAX else f"{word[:SHOWN_CHARACTERS_MAX]}…"
    return cut if cut and cut.isprintable() else ascii(cut)
