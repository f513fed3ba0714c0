"""Liveness of the agents of Hosts, from their Leases.

Clocks differ between machines, so a Lease counts as renewed when it is seen to change, by our own clock. An operator
that has just started has seen no change yet: no Host is lost before the whole duration of a Lease has passed since
then. A cache may lag behind, so a Lease that looks stale is read afresh before anything is done about it.
"""

import enum
from typing import NamedTuple

from pilotage.api.names import HOST_LEASES
from pilotage.kube import LEASES, Absent, Client, Object, ObjectKey
from pilotage.kube.wire import parse_time
from pilotage.runtime.clock import monotonic, utc_now
from pilotage.runtime.store import Store

LEASE_SECONDS = 15
"""Duration of a Lease that does not say it, and of one that does not exist."""
SLACK_SECONDS = 2.0
"""Allowance for a renewal that is under way."""


class AgentState(enum.Enum):
    """Liveness of an agent."""

    ALIVE = "alive"
    """It was seen to renew its Lease."""
    SILENT = "silent"
    """No renewal was seen yet, for less than the duration of its Lease."""
    STOPPED = "stopped"
    """It has shut down, and released its Lease."""
    LOST = "lost"
    """Its Lease is stale."""

    @property
    def is_gone(self) -> bool:
        """Whether no agent is there."""
        return self in (AgentState.STOPPED, AgentState.LOST)


class LeaseState(NamedTuple):
    """State of one agent's Lease, now."""

    agent: AgentState
    lost_after: float
    """Seconds until the agent counts as lost, unless its Lease changes; 0 if it is gone."""
    text: str = ""
    """Why it is gone, for people."""


class _Seen(NamedTuple):
    mark: tuple[str, ...] | None
    at: float
    renewed: bool


class HostLiveness:
    """Liveness of all agents. Remembers when each Lease was last seen to change; a restart only waits longer."""

    def __init__(self, leases: Store) -> None:
        self._leases = leases
        self._seen: dict[str, _Seen] = {}

    def forget(self, host: str) -> None:
        """Forget a Host that is gone."""
        self._seen.pop(host, None)

    def of(self, host: str) -> LeaseState:
        """State by the cache."""
        return self._judge(host, self._leases.get(ObjectKey(HOST_LEASES, host)))

    def is_silent(self, host: str) -> bool:
        """Whether the agent is not known to be alive, by the cache: what it said last may not hold any more."""
        return self.of(host).agent is not AgentState.ALIVE

    async def confirm(self, client: Client, host: str) -> LeaseState:
        """State by a fresh read. An ApiError where that fails: then nothing is known."""
        try:
            found = await client.get(LEASES, ObjectKey(HOST_LEASES, host))
        except Absent:
            return self._judge(host, None)
        return self._judge(host, found)

    def _judge(self, host: str, lease: Object | None) -> LeaseState:
        now = monotonic()
        mark = None if lease is None else (lease.meta.uid, _field(lease, "holderIdentity"), _field(lease, "renewTime"))
        seen = self._seen.get(host)
        if seen is None or seen.mark != mark:
            renewed = seen is not None and mark is not None
            seen = self._seen[host] = _Seen(mark, now, renewed)
        if lease is None:
            return _after(LEASE_SECONDS + SLACK_SECONDS - (now - seen.at), AgentState.SILENT, "its agent has no Lease")
        if not _field(lease, "holderIdentity"):
            return LeaseState(AgentState.STOPPED, 0.0, "its agent has stopped and released its Lease")
        duration = lease.get("spec", "leaseDurationSeconds", default=None) or LEASE_SECONDS
        life = AgentState.ALIVE if seen.renewed or _is_recent(lease, duration) else AgentState.SILENT
        text = f"its agent has not renewed its Lease of {duration} s since {_field(lease, 'renewTime') or 'it began'}"
        return _after(duration + SLACK_SECONDS - (now - seen.at), life, text)


def _after(left: float, before: AgentState, text: str) -> LeaseState:
    return LeaseState(before, left) if left > 0 else LeaseState(AgentState.LOST, 0.0, text)


def _field(lease: Object, name: str) -> str:
    return str(lease.get("spec", name, default=None) or "")


def _is_recent(lease: Object, duration: int) -> bool:
    """Whether it was renewed within its duration, as far as the clocks agree."""
    renewed = _field(lease, "renewTime")
    return bool(renewed) and abs((utc_now() - parse_time(renewed)).total_seconds()) <= duration
