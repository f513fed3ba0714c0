"""Progress of a Teardown in its status: how far it is, what it waits for, and why it does not go on.

What others see of a teardown: the cause of a wait within two seconds, but for ordinary waits of many teardowns at once.
"""

import datetime as dt
from collections import deque

from pilotage.api.names import TEARDOWNS
from pilotage.api.teardown import Teardown
from pilotage.kube import ApiError, Client, Json, Object, merge_patch
from pilotage.kube.wire import format_time
from pilotage.runtime.clock import monotonic, utc_now
from pilotage.runtime.conditions import clipped, set_condition
from pilotage.teardown.engine.decision import Cause, Decision, Wait
from pilotage.teardown.engine.run_state import RunState

SHOW_SECONDS = 1.0
"""Minimum interval between writes of progress: who waits learns the cause within two."""
MANY = 10
"""Number of teardowns that have begun lately from which on each shows ordinary progress more rarely."""
LATELY_SECONDS = 120.0
RARELY_SECONDS = 60.0
"""Maximum interval between writes of ordinary progress, however many teardowns there are."""
ORDINARY = frozenset({Cause.COLLECTOR, Cause.GRACE})
"""Causes of waits in every teardown."""
SHOWN_SECONDS_MAX = 30.0
"""Interval after which progress may have changed although nothing has happened."""
WAITS_MAX = 20
WAIT_CHARS_MAX = 1000
"""Upper bound on the text of a wait: finalizers are named in it, and an object may have thousands."""


class ProgressWriter:
    """Writes the statuses of Teardowns."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._begun: deque[float] = deque()
        """Times at which teardowns have begun lately."""
        self._shown: dict[str, float] = {}
        """Time of the last write of progress, or of the begin, by uid."""

    def forget(self, uid: str) -> None:
        """A teardown has ended, or its record is gone."""
        self._shown.pop(uid, None)

    async def show(
        self, record: Object, teardown: Teardown, state: RunState, decision: Decision, problem: str = ""
    ) -> float:
        """Write the progress, but not every bit of it; returns the seconds after which there may be more to write."""
        now = monotonic()
        if record.meta.uid not in self._shown:
            self._begun.append(now)
        last = self._shown.setdefault(record.meta.uid, now)  # what goes at once is not worth a write
        due = last + self._interval(decision, problem)
        if now < due:
            return due - now
        waits = [
            {
                "object": str(wait.entry),
                "cause": str(wait.cause),
                "text": _said(wait),
                "since": format_time(wait.since),
                "until": format_time(wait.until),
            }
            for wait in decision.blockers[:WAITS_MAX]
        ]
        first = decision.blockers[0] if decision.blockers else None
        status: Json = {
            "phase": str(decision.phase),
            "left": state.left,
            "waits": waits,
            "waitingFor": clipped(problem) or (f"{first.entry}: {_said(first)}" if first else None),
        }
        conditions = self._overdue(record, teardown, decision, state.clock.now())
        if conditions is not None:
            status["conditions"] = conditions
        if any(record.get("status", name) != value for name, value in status.items()):
            await self.write(record, status)
            self._shown[record.meta.uid] = monotonic()
        return SHOWN_SECONDS_MAX

    def _interval(self, decision: Decision, problem: str) -> float:
        """Seconds between two writes of progress.

        Of many teardowns that have begun lately and go as they should, each tells of itself more rarely: writes are
        what they wait for.
        """
        while self._begun and monotonic() - self._begun[0] > LATELY_SECONDS:
            self._begun.popleft()
        ordinary = not problem and all(wait.cause in ORDINARY for wait in decision.blockers)
        return min(SHOW_SECONDS * max(1.0, len(self._begun) / MANY), RARELY_SECONDS) if ordinary else SHOW_SECONDS

    def _overdue(self, record: Object, teardown: Teardown, decision: Decision, now: dt.datetime) -> list[Json] | None:
        """The condition Blocked, once a phase takes longer than it may."""
        limits = teardown.spec.deletion.timeouts
        limit = getattr(limits, str(decision.phase), limits.remove)
        late = [wait for wait in decision.blockers if (now - wait.since).total_seconds() > limit]
        found = conditions_of(record)
        if not late and not any(each.get("type") == "Blocked" for each in found):
            return None
        return set_condition(
            found,
            "Blocked",
            status=bool(late),
            reason="Overdue" if late else "Progressing",
            message=f"{late[0].entry} waits for {late[0].actor}: {late[0].text}" if late else "",
            generation=record.meta.generation,
            now=utc_now(),
        )

    async def blocked(self, record: Object, error: ApiError) -> None:
        """Say that the API server does not let it go on."""
        await self.say_blocked(record, str(error.error_class).capitalize(), str(error))

    async def refuse(self, record: Object, cause: str) -> None:
        """Say that its ledger is not acted on."""
        text = (
            f"{cause}. Nothing is deleted on the word of this ledger. If you did not write it, delete this Teardown: "
            "what is left of the endpoint is taken down by another one."
        )
        await self.say_blocked(record, "LedgerRefused", text)

    async def say_blocked(self, record: Object, reason: str, message: str) -> None:
        """Say why it does not go on; once."""
        conditions = set_condition(
            conditions_of(record),
            "Blocked",
            status=True,
            reason=reason,
            message=message,
            generation=record.meta.generation,
            now=utc_now(),
        )
        if conditions is not None:
            await self.write(record, {"conditions": conditions, "waitingFor": clipped(message)})

    async def write(self, record: Object, changes: Json) -> Object:
        """Change fields of the status."""
        patch = merge_patch({"metadata": {"uid": record.meta.uid}, "status": changes})
        return await self._client.patch(TEARDOWNS, record.key, patch, subresource="status")


def conditions_of(record: Object) -> list[Json]:
    """The conditions in the status of a Teardown."""
    found: list[Json] = record.get("status", "conditions", default=[])
    return found


def _said(wait: Wait) -> str:
    """A wait with the actor, for the status."""
    return f"{clipped(wait.text, WAIT_CHARS_MAX)} ({clipped(wait.actor, WAIT_CHARS_MAX)})"
