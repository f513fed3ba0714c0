"""An explanation: a tree of causes, down to those without a further cause, with evidence and remedies."""

import enum
from collections.abc import Iterable, Iterator

import msgspec

from pilotage.teardown.diagnosis.remedies import Remedy
from pilotage.teardown.snapshot.world import Item, Name


class Confidence(enum.StrEnum):
    """Confidence of an explanation: that of the least certain step of its chain."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class StuckCause(msgspec.Struct, frozen=True):
    """One step of a chain. Without `because` it is a root cause."""

    code: str
    """A stable name for scripts and tests, such as ``finalizer-controller-dead``. All of them stand in `why.codes`."""
    subject: Item | Name
    text: str
    """The line a person reads, without the subject where that was just named."""
    evidence: tuple[str, ...] = ()
    confidence: Confidence = Confidence.HIGH
    because: tuple["StuckCause", ...] = ()
    remedies: tuple[Remedy, ...] = ()
    since: str = ""
    """RFC 3339: since when it is so, if that is known."""


def roots_of(causes: Iterable[StuckCause]) -> tuple[StuckCause, ...]:
    """The causes that have no further cause, each once, in the order in which they are read."""
    found: dict[int, StuckCause] = {}
    seen: set[int] = set()
    open_ = list(causes)[::-1]
    while open_:
        cause = open_.pop()
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        open_ += reversed(cause.because)
        if not cause.because:
            found[id(cause)] = cause
    return tuple(found.values())


def all_causes(causes: Iterable[StuckCause]) -> Iterator[StuckCause]:
    """The causes and all below them, in the order in which they are read."""
    for cause in causes:
        yield cause
        yield from all_causes(cause.because)


class StuckVerdict(enum.StrEnum):
    """The answer in a word; the exit code follows from it."""

    NOT_STUCK = "not stuck"
    """Nothing keeps it; or it is going, and is in time."""
    STUCK = "stuck"
    UNKNOWN = "unknown"
    """Too little could be read to say."""


class Explanation(msgspec.Struct, frozen=True):
    """All that `why` says about one object."""

    subject: Item
    verdict: StuckVerdict
    headline: str
    """Its state in one line: ``terminating for 14m``, ``not stuck: 12 s of grace left``."""
    causes: tuple[StuckCause, ...] = ()
    still_serving: tuple[Item, ...] = ()
    """Objects below it that still run or take traffic."""
    unread: tuple[str, ...] = ()
    """Kinds and objects that could not be read and might matter, with the reason."""

    @property
    def roots(self) -> tuple[StuckCause, ...]:
        """The causes that have no further cause."""
        return tuple(dict.fromkeys(roots_of(self.causes)))
