"""Writes what there is to say of a HostProcess: its status, an Event where it is news, and a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from pilotage.agent.process_status import Said, changes, is_news
from pilotage.api.names import PROCESSES
from pilotage.kube import Absent, merge_patch
from pilotage.runtime import monotonic, utc_now

if TYPE_CHECKING:
    from pilotage.agent.tally import Tally
    from pilotage.kube import Client, Object
    from pilotage.runtime import Recorder

_log = structlog.get_logger(__name__)

COUNT_SECONDS = 1.0
"""How many requests are under way is said no more often."""


class Speaker:
    """See the module."""

    def __init__(self, client: Client, events: Recorder, tally: Tally, address: str) -> None:
        self._client = client
        self._events = events
        self._tally = tally
        self._address = address
        self._counted: dict[str, float] = {}

    async def say(self, obj: Object, said: Said, restarts: int | None = None) -> None:
        """Write it, unless it is said already."""
        old = obj.get("status", default=None) or {}
        self._tally.show(obj.key, said.phase)
        patch = changes(
            old,
            said,
            restarts=old.get("restarts", 0) if restarts is None else restarts,
            address=self._address,
            generation=obj.meta.generation,
            now=utc_now(),
        )
        if patch is None or (patch.keys() == {"inFlight"} and self._was_counted(obj.meta.uid)):
            return
        body = merge_patch({"metadata": {"uid": obj.meta.uid}, "status": patch})
        try:
            await self._client.patch(PROCESSES, obj.key, body, subresource="status")
        except Absent:
            _log.debug("gone already", process=str(obj.key))
            return
        if is_news(old, said):
            note = self._events.normal if said.ready or not said.message else self._events.warning
            note(obj, said.reason, said.message or f"It is {said.phase.lower()}.")

    def forget(self, uid: str) -> None:
        """It is gone."""
        self._counted.pop(uid, None)

    def _was_counted(self, uid: str) -> bool:
        """Whether the count was written a moment ago."""
        if monotonic() - self._counted.get(uid, -COUNT_SECONDS) < COUNT_SECONDS:
            return True
        self._counted[uid] = monotonic()
        return False
