"""Whether the agents of Hosts live, from their Leases.

Clocks differ between machines, so a Lease counts as renewed when it is seen to change, by our own clock. Who has just
begun to look has seen nothing change yet: nobody is lost before the whole duration of a Lease has passed since. A cache
may lag behind, so that a Lease that looks stale is read afresh before anybody acts on it.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from pilotage.api.names import HOST_LEASES
from pilotage.kube import LEASES, Absent, ObjectKey
from pilotage.kube.wire import parse_time
from pilotage.runtime.clock import monotonic, utc_now

if TYPE_CHECKING:
    from pilotage.kube import Client, Object
    from pilotage.runtime.store import Store

LEASE_SECONDS = 15
"""Of a Lease that does not say it, and for one that is not there."""
SLACK_SECONDS = 2.0
"""For a renewal that is under way."""


class Life(enum.Enum):
    """What is known about an agent."""

    ALIVE = "alive"
    """It was seen to renew its Lease."""
    SILENT = "silent"
    """Nothing was seen of it, and not for long enough to be sure."""
    LOST = "lost"
    """Its Lease is stale, or given up."""


class Pulse(NamedTuple):
    """Of one agent, now."""

    life: Life
    changes: float
    """After how many seconds it is lost, unless it is heard of; 0 for one that is."""
    text: str = ""
    """Why it is lost, for people."""


class _Seen(NamedTuple):
    mark: tuple[str, ...] | None
    at: float
    renewed: bool


class Pulses:
    """Of all agents. It remembers when each Lease was last seen to change; who forgets that waits longer."""

    def __init__(self, leases: Store) -> None:
        self._leases = leases
        self._seen: dict[str, _Seen] = {}

    def forget(self, host: str) -> None:
        """The Host is gone."""
        self._seen.pop(host, None)

    def of(self, host: str) -> Pulse:
        """As far as the cache shows."""
        return self._judge(host, self._leases.get(ObjectKey(HOST_LEASES, host)))

    async def confirm(self, client: Client, host: str) -> Pulse:
        """After a fresh read. An ApiError if that cannot be had: then nothing is known."""
        try:
            found = await client.get(LEASES, ObjectKey(HOST_LEASES, host))
        except Absent:
            return self._judge(host, None)
        return self._judge(host, found)

    def _judge(self, host: str, lease: Object | None) -> Pulse:
        now = monotonic()
        mark = None if lease is None else (lease.meta.uid, _field(lease, "holderIdentity"), _field(lease, "renewTime"))
        seen = self._seen.get(host)
        if seen is None or seen.mark != mark:
            renewed = seen is not None and mark is not None
            seen = self._seen[host] = _Seen(mark, now, renewed)
        if lease is None:
            return _after(LEASE_SECONDS + SLACK_SECONDS - (now - seen.at), Life.SILENT, "its agent has no Lease")
        if not _field(lease, "holderIdentity"):
            return Pulse(Life.LOST, 0.0, "its agent has stopped and given up its Lease")
        duration = lease.get("spec", "leaseDurationSeconds", default=None) or LEASE_SECONDS
        life = Life.ALIVE if seen.renewed or _is_recent(lease, duration) else Life.SILENT
        text = f"its agent has not renewed its Lease of {duration} s since {_field(lease, 'renewTime') or 'it began'}"
        return _after(duration + SLACK_SECONDS - (now - seen.at), life, text)


def _after(left: float, before: Life, text: str) -> Pulse:
    return Pulse(before, left) if left > 0 else Pulse(Life.LOST, 0.0, text)


def _field(lease: Object, name: str) -> str:
    return str(lease.get("spec", name, default=None) or "")


def _is_recent(lease: Object, duration: int) -> bool:
    """By the clocks, as far as they agree."""
    renewed = _field(lease, "renewTime")
    return bool(renewed) and abs((utc_now() - parse_time(renewed)).total_seconds()) <= duration
