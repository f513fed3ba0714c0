"""A request to take objects down, in the words of a person. Light: importing it loads nothing else."""

from pathlib import Path
from typing import Literal, NamedTuple

from pilotage.teardown.planning.arguments import TargetError

_ENDPOINT_WORDS = ("se", "servingendpoint", "servingendpoints")


class RequestError(TargetError):
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
            raise RequestError("Say what is meant: KIND/NAME, -f FILE, -l SELECTOR, or -n NAMESPACE --all.")
        if self.selector and any("/" in word for word in self.words):
            raise RequestError("A name and -l exclude each other: give kinds with -l, or names without it.")
        if sum(ways) > 1 and (self.everything or self.selector):
            raise RequestError("--all and -l stand alone: they cannot be mixed with names, files or each other.")
        if self.everything and not self.namespace:
            raise RequestError("--all needs -n NAMESPACE: it would be too easy to mean another one.")


def is_endpoint_kind(word: str) -> bool:
    """Whether a word may mean our kind: ``se``, ``servingendpoints.pilotage.dev``."""
    from pilotage.api.names import GROUP, VERSION

    kind, _, rest = word.lower().partition(".")
    return kind in _ENDPOINT_WORDS and rest in ("", GROUP, f"{VERSION}.{GROUP}")
