"""A fault plan: what goes wrong in one run, as data that can be written down and read back.

``crash-before-write:3,fail-call:7:conflict,b/cut-watches:2`` is a plan of three faults: the subject dies before its
third write, its seventh call is refused with a conflict, and the process ``b`` loses all its watches at its second
event. Numbers count from 1, over all incarnations of the process.

What each fault is, and where it stands for something that a correct API server does, is said in `docs/simulator.md`.
"""

from __future__ import annotations

import enum
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SUBJECT = "subject"


class FaultKind(enum.StrEnum):
    """Kinds of faults."""

    CRASH_BEFORE_WRITE = "crash-before-write"
    CRASH_AFTER_WRITE = "crash-after-write"
    FAIL_CALL = "fail-call"
    SLOW_CALL = "slow-call"
    STALE_READ = "stale-read"
    DROP_EVENT = "drop-event"
    DELAY_EVENT = "delay-event"
    DUPLICATE_EVENT = "duplicate-event"
    COALESCE_EVENT = "coalesce-event"
    CUT_WATCHES = "cut-watches"
    PARTITION = "partition"


class Failure(enum.StrEnum):
    """Failures of a call: the nine classes of the taxonomy, both kinds of uncertainty, and an answer that hangs."""

    ABSENT = "absent"
    CONFLICT = "conflict"
    FOREIGN = "foreign"
    TERMINATING = "terminating"
    FORBIDDEN = "forbidden"
    INVALID = "invalid"
    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"
    LOST = "uncertain-not-applied"
    APPLIED = "uncertain-applied"
    HANGS = "uncertain-hangs"
    """It is applied, and the client waits for the answer until its own time-out."""


LIES = frozenset({Failure.ABSENT, Failure.FOREIGN})
"""Answers about the object that are not true here. Who must act on such an answer cannot be tried with them. A stale
answer to a read of the most recent version is a lie as well."""

STALE_VERSIONS = (1, 2)
PARTITION_SECONDS = 10
SLOW_SECONDS = 3
"""Duration of each way of a slow call: longer than our controllers believe an answer without asking again."""

_EVERY_CALL = (Failure.FORBIDDEN, Failure.INVALID, Failure.THROTTLED, Failure.UNAVAILABLE, Failure.HANGS)
_FAILURES: dict[str, tuple[Failure, ...]] = {
    "get": (Failure.ABSENT, *_EVERY_CALL),
    "list": (Failure.ABSENT, Failure.CONFLICT, *_EVERY_CALL),
    "watch": (Failure.ABSENT, Failure.CONFLICT, *_EVERY_CALL),
    "create": (Failure.CONFLICT, Failure.TERMINATING, *_EVERY_CALL, Failure.LOST, Failure.APPLIED),
    "update": (Failure.ABSENT, Failure.CONFLICT, Failure.FOREIGN, *_EVERY_CALL, Failure.LOST, Failure.APPLIED),
    "patch": (Failure.ABSENT, Failure.CONFLICT, Failure.FOREIGN, *_EVERY_CALL, Failure.LOST, Failure.APPLIED),
    "delete": (Failure.ABSENT, Failure.CONFLICT, Failure.FOREIGN, *_EVERY_CALL, Failure.LOST, Failure.APPLIED),
}
"""Failures that a call of each verb can meet. A list that is `absent` is a kind that is not served; one with a
`conflict` has an expired version."""


class Fault(NamedTuple):
    """One thing that goes wrong, once.

    `detail` is how a call fails, how many seconds it takes each way, by how many versions a read is stale, or for how
    many seconds nobody is reached.
    """

    kind: FaultKind
    number: int
    detail: str = ""
    process: str = SUBJECT

    def __str__(self) -> str:
        prefix = "" if self.process == SUBJECT else f"{self.process}/"
        return f"{prefix}{self.kind}:{self.number}" + (f":{self.detail}" if self.detail else "")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Fault of a text; ValueError says what is wrong."""
        process, slash, rest = text.strip().rpartition("/")
        parts = rest.split(":")
        if len(parts) not in (2, 3) or not parts[1].isdigit():
            raise ValueError(f"{text!r} is no fault; one looks like fail-call:7:conflict")
        kind, detail = FaultKind(parts[0]), parts[2] if len(parts) == 3 else ""
        if kind is FaultKind.FAIL_CALL:
            Failure(detail)
        return cls(kind, int(parts[1]), detail, process if slash else SUBJECT)


Plan = tuple[Fault, ...]


def parse_plan(text: str) -> Plan:
    """A plan from its text; the empty text is the plan in which nothing goes wrong."""
    return tuple(Fault.parse(part) for part in text.split(",") if part.strip())


def format_plan(plan: Plan) -> str:
    """The text of a plan."""
    return ",".join(map(str, plan))


class CallCounts:
    """Calls of a process in one run: numbers of reads, writes and events, and the verb of each call."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.reads = 0
        self.cached: set[int] = set()
        """The numbers of the reads that a cache may answer."""
        self.writes = 0
        self.events = 0
        self._frozen: CallCounts | None = None

    def called(self, verb: str, *, cached: bool = False) -> None:
        """One more call. `cached`: of a read, that it would take any version, not just the most recent one."""
        self.calls.append(verb)
        self.reads += verb in ("get", "list")
        if cached:
            self.cached.add(self.reads)
        self.writes += verb not in ("get", "list", "watch")

    def freeze(self) -> None:
        """End the part of the run in which faults are played."""
        if self._frozen is None:
            self._frozen = CallCounts()
            self._frozen.calls, self._frozen.cached = [*self.calls], {*self.cached}
            self._frozen.reads, self._frozen.writes, self._frozen.events = self.reads, self.writes, self.events

    @property
    def of_story(self) -> CallCounts:
        """Counts up to `freeze`."""
        return self._frozen or self

    def __str__(self) -> str:
        return f"{len(self.calls)} calls, {self.reads} reads, {self.writes} writes, {self.events} events"


def single_faults(counts: Mapping[str, CallCounts], *, lies: bool = True) -> Iterator[Fault]:
    """Every fault that could have hit a run, by what its processes did. `lies`: see `LIES`."""
    for process, count in counts.items():
        for number in range(1, len(count.calls) + 1):
            yield Fault(FaultKind.PARTITION, number, str(PARTITION_SECONDS), process)
        for number in range(1, count.writes + 1):
            yield Fault(FaultKind.CRASH_BEFORE_WRITE, number, "", process)
            yield Fault(FaultKind.CRASH_AFTER_WRITE, number, "", process)
        for number, verb in enumerate(count.calls, 1):
            if verb != "watch":
                yield Fault(FaultKind.SLOW_CALL, number, str(SLOW_SECONDS), process)
            for failure in _FAILURES[verb]:
                if lies or failure not in LIES or verb in ("list", "watch"):
                    yield Fault(FaultKind.FAIL_CALL, number, failure.value, process)
        for number in range(1, count.reads + 1):
            for versions in STALE_VERSIONS if lies or number in count.cached else ():
                yield Fault(FaultKind.STALE_READ, number, str(versions), process)
        for number in range(1, count.events + 1):
            for kind in (
                FaultKind.DROP_EVENT,
                FaultKind.DELAY_EVENT,
                FaultKind.DUPLICATE_EVENT,
                FaultKind.COALESCE_EVENT,
                FaultKind.CUT_WATCHES,
            ):
                yield Fault(kind, number, "", process)


def pairs(faults: Iterable[Fault]) -> Iterator[Plan]:
    """Every two of these faults that can both happen: one call fails in one way, one event has one fate."""
    for one, other in combinations(faults, 2):
        if (one.process, one.kind, one.number) != (other.process, other.kind, other.number):
            yield one, other
