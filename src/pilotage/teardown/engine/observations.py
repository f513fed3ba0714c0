"""The last observation of each uid of a ledger, from lists, watches, single reads and answers to writes.

Knowledge only moves on: a deletion that has begun does not end, and an object that is gone does not come back (another
of its name has another uid). So an answer that comes late cannot undo what is known already; only a read made to prove
something can (`contradict`).
"""

import datetime as dt
from collections.abc import Mapping

from pilotage.kube import Object
from pilotage.teardown.engine.decision import Observation
from pilotage.teardown.snapshot.world import State

_UNREAD = Observation(State.UNKNOWN, problem="it was not read")


class Observations:
    """The observations of one run."""

    def __init__(self) -> None:
        self._observations: dict[str, Observation] = {}
        self._versions: dict[str, int] = {}

    @property
    def all(self) -> Mapping[str, Observation]:
        """Observations by uid."""
        return self._observations

    def get(self, uid: str) -> Observation:
        """The last observation of a uid; unknown if there is none."""
        return self._observations.get(uid, _UNREAD)

    def see(self, obj: Object) -> bool:
        """An object as it was read; returns whether that is news."""
        meta = obj.meta
        version = int(meta.resource_version) if meta.resource_version.isdigit() else 0
        old = self._observations.get(meta.uid)
        if old is not None and old.state in (State.GONE, State.FOREIGN):
            return False
        if version and version < self._versions.get(meta.uid, 0):
            return False
        self._versions[meta.uid] = version
        observation = Observation(
            State.TERMINATING if meta.terminating else State.PRESENT,
            meta.finalizers,
            tuple(owner.uid for owner in meta.owner_references),
            meta.deletion_timestamp,
            meta.deletion_grace_period_seconds,
        )
        self._observations[meta.uid] = observation
        return observation != old

    def gone(self, uid: str, now: dt.datetime, *, foreign: bool = False) -> bool:
        """It is not there any more (`foreign`: another has its name); returns whether that is news."""
        old = self._observations.get(uid)
        if old is not None and old.state in (State.GONE, State.FOREIGN):
            return False
        self._observations[uid] = Observation(State.FOREIGN if foreign else State.GONE, gone_at=now)
        return True

    def unknown(self, uid: str, problem: str) -> bool:
        """It could not be read; returns whether that is news. What was seen of it before stays known."""
        if uid in self._observations:
            return False
        self._observations[uid] = Observation(State.UNKNOWN, problem=problem)
        return True

    def settle(self, uid: str, settled: bool | None, problem: str = "") -> bool:
        """Whether nothing acts as if what is gone were there any more (see `Observation`); returns if that is news."""
        old = self.get(uid)
        if (old.settled, old.problem) == (settled, problem):
            return False
        self._observations[uid] = old._replace(settled=settled, problem=problem)
        return True

    def contradict(self, obj: Object) -> None:
        """A consistent read shows an object that was taken for gone."""
        self._observations.pop(obj.meta.uid, None)
        self.see(obj)
