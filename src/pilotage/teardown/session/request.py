"""A request to take objects down, in the words of a person. Light: importing it loads nothing else."""

import enum
from pathlib import Path
from typing import Literal, NamedTuple

from pilotage.teardown.planning.arguments import TargetError

_ENDPOINT_WORDS = ("se", "servingendpoint", "servingendpoints")


class RequestProblem(enum.StrEnum):
    """Reason why a request is not carried out as it stands. A front end adds what to do instead."""

    NOTHING_NAMED = "Nothing is named."
    NAMES_AND_SELECTOR = "Names and a selector exclude each other."
    NAMES_AND_FILES = "Names and manifests exclude each other."
    MIXED = "A whole namespace, or a selector, cannot be mixed with names, files or each other."
    NAMESPACE_MISSING = "All of a namespace is meant, and none is named."
    KEEPS_UNKNOWN = "To be kept is {}: no family of objects, and no name."
    KEEPS_ABSENT = "To be kept is {}: there is no such object. Nothing was done."
    KEEPS_BY_SPEC = (
        "What stays of an endpoint, and how long it drains, stands in its spec.deletion: the operator keeps to that."
    )
    NAME_MISSING = "Which {}?"
    NAME_GENERATED = "A {} in a manifest has generateName and no name, so the object that it created is not known."
    NAMESPACE_DIFFERS = "{} is in namespace {}, and not in {}, which was named."
    RECEIPT_UNWRITABLE = "{}. Nothing was done."
    RECEIPT_FOREIGN = "{} is the receipt of a teardown on another cluster ({}): here everything of it would look gone."
    NOT_ADOPTED = "What it made for an endpoint is waited for, unless it is adopted."


class RequestRefused(TargetError):
    """A request that is not carried out as it stands: `problem` is a RequestProblem, or a sentence of its own."""

    def __init__(self, problem: str, *words: object) -> None:
        super().__init__(problem.format(*words) if words else problem)
        self.problem = problem


class RequestError(RequestRefused):
    """A request that contradicts itself, or leaves open what is meant. No cluster was asked."""


class TeardownRequest(NamedTuple):
    """The objects that are to go, and how. They are named in one way: by words, files, a selector or a namespace."""

    words: tuple[str, ...] = ()
    """``KIND/NAME``; with a selector, kinds."""
    namespace: str = ""
    """Empty for the one of the session's client."""
    everything: bool = False
    """All objects of the namespace."""
    files: tuple[Path | Literal["-"], ...] = ()
    """Manifests; ``-`` for stdin."""
    selector: str = ""
    keep: tuple[str, ...] = ()
    """Families of objects (``volumes``), or ``KIND/NAME``."""
    adopt: bool = False
    """Take along what refers to the targets and to nothing else."""
    timeout: float = 600.0
    drain: float = 0.0

    @property
    def repeatable(self) -> bool:
        """Whether it can be prepared a second time: stdin can be read only once."""
        return "-" not in self.files

    @property
    def names_endpoints(self) -> bool:
        """Whether any of its words, such as ``se/chat``, may mean one of our endpoints."""
        return any(is_endpoint_kind(kind) for word in self.words for kind in word.partition("/")[0].split(","))

    def check(self) -> None:
        """RequestError where it names nothing, or could mean more than was intended."""
        ways = [bool(self.words) and not self.selector, self.everything, bool(self.files), bool(self.selector)]
        if sum(ways) == 0:
            raise RequestError(RequestProblem.NOTHING_NAMED)
        if self.selector and any("/" in word for word in self.words):
            raise RequestError(RequestProblem.NAMES_AND_SELECTOR)
        if self.words and self.files and not self.selector:
            raise RequestError(RequestProblem.NAMES_AND_FILES)
        if sum(ways) > 1 and (self.everything or self.selector):
            raise RequestError(RequestProblem.MIXED)
        if self.everything and not self.namespace:
            raise RequestError(RequestProblem.NAMESPACE_MISSING)


def is_endpoint_kind(word: str) -> bool:
    """Whether a word may mean our kind: ``se``, ``servingendpoints.pilotage.dev``."""
    from pilotage.api.names import GROUP, VERSION

    kind, _, rest = word.lower().partition(".")
    return kind in _ENDPOINT_WORDS and rest in ("", GROUP, f"{VERSION}.{GROUP}")
