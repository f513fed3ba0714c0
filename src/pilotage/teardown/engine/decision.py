"""The values of a decision: observations of objects, actions on them, and waits with their causes.

Values only; `decide` makes them.
"""

import datetime as dt
import enum
from typing import NamedTuple

import msgspec

from pilotage.catalogue.phase import Phase
from pilotage.kube.errors import ErrorClass
from pilotage.teardown.planning.ledger import Entry
from pilotage.teardown.snapshot.world import State


class Act(enum.StrEnum):
    """An act on an object."""

    HOLD = "hold"
    """Put our finalizer on it."""
    DELETE = "delete"
    REDRIVE = "redrive"
    """Delete it once more, in the background: a foreground deletion that nobody goes on with is over then."""
    RELEASE = "release"
    """Take our finalizer off it."""
    DISOWN = "disown"
    """Take the references to owners that go off it, so that it stays."""


class Action(NamedTuple):
    """One thing to do now."""

    act: Act
    entry: Entry


class Refusal(NamedTuple):
    """Failure of the last attempt at an entry."""

    act: Act
    error_class: ErrorClass
    message: str
    first: dt.datetime
    """Time of the first refusal in a row."""
    retry: dt.datetime
    """Earliest time of the next attempt."""


class Withheld(NamedTuple):
    """Why an entry must not be deleted yet, although it is its turn: an observer has seen that it is still in use."""

    actor: str
    """The controller or component that has to act."""
    text: str
    retry: dt.datetime
    """Time at which it is decided again, though nothing may have happened."""
    draining: bool = False
    """Nothing new is sent to it any more; what is under way ends."""


class Observation(NamedTuple):
    """The last observation of one uid."""

    state: State
    finalizers: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    """The uids in its ownerReferences."""
    deletion: str = ""
    """metadata.deletionTimestamp."""
    grace_seconds: int = 0
    gone_at: dt.datetime | None = None
    """Time at which it was first seen gone."""
    problem: str = ""
    """Why it is unknown, or what is still seen of it (`settled`)."""
    settled: bool | None = None
    """Whether nothing acts any more as if a gone object were there. None: unknown, and time decides."""


class Cause(enum.StrEnum):
    """Why something is waited for."""

    ORDER = "order"
    """Another entry has to be gone first. Not a blocker by itself: that entry has a wait of its own."""
    HELD = "held"
    """Its parts go first."""
    ROUTER = "router"
    """A router that cannot prove anything is given time, or what is under way is."""
    GRACE = "grace period"
    COLLECTOR = "garbage collector"
    FINALIZER = "finalizer"
    NAMESPACE = "namespace controller"
    REFUSED = "refused"
    UNREADABLE = "unreadable"


class Wait(msgspec.Struct, frozen=True):
    """One thing that is waited for."""

    entry: Entry
    cause: Cause
    actor: str
    """The controller or component that has to act."""
    text: str
    since: dt.datetime
    until: dt.datetime
    """Deadline."""
    again: dt.datetime | None = None
    """Time at which it is decided again, though nothing may have happened."""

    @property
    def blocks(self) -> bool:
        """Whether it is a reason of its own, and not just something that has its turn later."""
        return self.cause not in (Cause.ORDER, Cause.HELD)


class Decision(NamedTuple):
    """The result of `decide`."""

    phase: Phase
    actions: tuple[Action, ...]
    waits: tuple[Wait, ...]
    notes: tuple[str, ...] = ()
    """Notes for the receipt: deviations from the plan."""

    hopeless: bool = False
    """Whether all that is left is forbidden, or nobody runs who would let go of it: waiting changes nothing."""

    @property
    def finished(self) -> bool:
        """Whether all is gone, so that it can be proven."""
        return self.phase is Phase.PROVE

    @property
    def blockers(self) -> tuple[Wait, ...]:
        """The waits that are reasons of their own."""
        return tuple(wait for wait in self.waits if wait.blocks)
