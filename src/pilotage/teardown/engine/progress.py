"""Progress of a teardown: each step as it is made, the decisions in between, and the outcome."""

import datetime as dt
from collections.abc import Callable
from typing import NamedTuple

from pilotage.runtime.clock import monotonic
from pilotage.teardown.engine.decision import Decision
from pilotage.teardown.engine.prove import Proof
from pilotage.teardown.planning.ledger import Entry, Ledger

SHOW_EVERY = dt.timedelta(seconds=0.1)
"""Minimum interval between reports of waits."""
SHOW_SHARE = 50
"""Reporting takes no more than one part in this many of the time."""
SHOW_AGAIN = dt.timedelta(seconds=1)
"""Maximum interval between reports: the elapsed time has changed even if nothing else has."""


class Step(NamedTuple):
    """One thing that happened, for whoever shows the progress."""

    what: str
    """``asked``, ``gone``, ``refused``, ``found``, ``proving``."""
    entry: Entry | None
    at: dt.datetime
    text: str = ""


class Outcome(NamedTuple):
    """Result of a teardown. Complete if there is a proof and it holds."""

    ledger: Ledger
    """Ledger with the newcomers."""
    decision: Decision
    proof: Proof | None
    gone_at: dict[str, dt.datetime]
    asked_at: dict[str, dt.datetime]
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether everything is proven gone."""
        return self.proof is not None and self.proof.holds


class DecisionReporter:
    """Tells `on_decision` what is done and waited for, but not more often than anybody can read, or than is cheap."""

    def __init__(self, on_decision: Callable[[Decision], None] | None) -> None:
        self._on_decision = on_decision
        self._next = dt.datetime.min.replace(tzinfo=dt.UTC)

    def show(self, decision: Callable[[], Decision], now: dt.datetime, *, finished: bool) -> None:
        """Show it if it is time, and in any case when it is `finished`; `decision` is asked for only then."""
        if self._on_decision is not None and (now >= self._next or finished):
            began = monotonic()
            self._on_decision(decision())
            self._next = now + max(SHOW_EVERY, SHOW_SHARE * dt.timedelta(seconds=monotonic() - began))

    def again(self, now: dt.datetime) -> dt.datetime | None:
        """Time of the next report, though nothing may have happened; None if no reporter is set."""
        return now + SHOW_AGAIN if self._on_decision is not None else None
