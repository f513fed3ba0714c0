"""Writer of the status of HostProcesses, with an Event where it is worth one, and a metric."""

import structlog

from pilotage.agent.metrics import AgentMetrics
from pilotage.agent.process_status import DesiredStatus, changes, is_news
from pilotage.api.names import PROCESSES
from pilotage.kube import Absent, Client, Object, merge_patch
from pilotage.runtime.clock import monotonic, utc_now
from pilotage.runtime.events import Recorder

_log = structlog.get_logger(__name__)

COUNT_SECONDS = 1.0
"""The number of requests in flight is written no more often than this."""


class StatusWriter:
    """Writes only what a reader would see as new."""

    def __init__(self, client: Client, events: Recorder, metrics: AgentMetrics, address: str) -> None:
        self._client = client
        self._events = events
        self._metrics = metrics
        self._address = address
        self._counted: dict[str, float] = {}

    async def write(self, obj: Object, desired: DesiredStatus, restarts: int | None = None) -> None:
        """Write the status, unless it is so already."""
        old = obj.get("status", default=None) or {}
        self._metrics.show(obj.key, desired.phase)
        patch = changes(
            old,
            desired,
            restarts=old.get("restarts", 0) if restarts is None else restarts,
            address=self._address,
            generation=obj.meta.generation,
            now=utc_now(),
        )
        if patch is None or (patch.keys() == {"inFlight"} and self._count_is_recent(obj.meta.uid)):
            return
        body = merge_patch({"metadata": {"uid": obj.meta.uid}, "status": patch})
        try:
            await self._client.patch(PROCESSES, obj.key, body, subresource="status")
        except Absent:
            _log.debug("the HostProcess is gone already", process=str(obj.key))
            return
        if is_news(old, desired):
            tell = self._events.normal if desired.expected or not desired.message else self._events.warning
            tell(obj, desired.reason, desired.message or f"It is {desired.phase.lower()}.")

    def forget(self, uid: str) -> None:
        """Forget a process that is gone."""
        self._counted.pop(uid, None)

    def _count_is_recent(self, uid: str) -> bool:
        """Whether the number of requests was written a moment ago."""
        if monotonic() - self._counted.get(uid, -COUNT_SECONDS) < COUNT_SECONDS:
            return True
        self._counted[uid] = monotonic()
        return False
