"""The controller of `Host`: liveness of its agent, withdrawal of its addresses, and deletion of a Host.

A Host is lost when its Lease is stale, by a fresh read; "cannot be read" is not lost. Then its addresses are taken out
of traffic first, its processes say so, and it says so itself at last: one that says Lost has nothing in traffic. Its
processes are not moved. When the agent is back, it says how things are; we only stop saying that it is lost. A Host
whose agent has stopped and released its Lease is Stopped: that is no failure, and its processes say what they wait for.

A Host that is deleted goes last. While its agent lives, its processes are deleted, and the agent stops them in order.
Where the Lease is stale, the person who deletes the Host has said that the machine is gone: what its processes left in
the cluster is removed here, and only there is the agent's finalizer taken off by somebody else.
"""

import asyncio
from collections.abc import Callable

import structlog

from pilotage.api.names import HOST_FINALIZER, HOST_LEASES, HOSTS, PROCESSES
from pilotage.controllers.host import objects
from pilotage.controllers.host.liveness import AgentState, HostLiveness, LeaseState
from pilotage.kube import LEASES, Absent, ApiError, Json, Object, ObjectKey, merge_patch, without_finalizer
from pilotage.runtime.clock import utc_now
from pilotage.runtime.conditions import set_condition
from pilotage.runtime.controller import Context
from pilotage.runtime.types import Reconcile, Result
from pilotage.serving.resources import SLICES

_log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0
"""Interval for a Lease that cannot be read, or that a deletion waits for."""
AGAIN_SECONDS = 0.1
"""Least pause before a Lease is checked again: the rest of its time may be a rounding error."""
CALM_SECONDS = 60.0
"""Interval for a lost Host. The return of its agent wakes us."""


def hosts(liveness: HostLiveness) -> Callable[[Context], Reconcile]:
    """The factory of the controller, for `Manager.add`."""

    def make(context: Context) -> Reconcile:
        return HostController(context, liveness).reconcile

    return make


def host_of_lease(lease: Object) -> list[ObjectKey]:
    """Map the Lease of an agent to its Host."""
    return [ObjectKey("", lease.meta.name)]


class HostController:
    """Reconciles Hosts."""

    def __init__(self, context: Context, liveness: HostLiveness) -> None:
        self._client = context.client
        self._store = context.store
        self._events = context.events
        self._liveness = liveness

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Reconcile one Host."""
        host = self._store.get(key)
        if host is None:
            self._liveness.forget(key.name)
            return None
        if not host.meta.terminating and HOST_FINALIZER not in host.meta.finalizers:
            host = await self._hold(host)
        state = await self._lease_state(host)
        if state is None:
            return Result(requeue_after=LOOK_SECONDS)
        if host.meta.terminating:
            return await self._depart(host, state)
        if state.agent.is_gone:
            await self._lose(host, state)
            return Result(requeue_after=CALM_SECONDS)
        if state.agent is AgentState.ALIVE and _is_called_gone(host):
            await self._say(host, "Ready", "LeaseRenewed", "The agent renews its Lease again.")
            self._events.normal(host, "HostReturned", "The agent is back.")
        return Result(requeue_after=max(state.lost_after, AGAIN_SECONDS))

    async def _hold(self, host: Object) -> Object:
        """Add the finalizer: what runs on a Host is removed before the Host."""
        meta = host.meta
        patch = merge_patch(
            {"metadata": {"uid": meta.uid, "finalizers": [*meta.finalizers, HOST_FINALIZER]}},
            resource_version=meta.resource_version,
        )
        return await self._client.patch(HOSTS, host.key, patch)

    async def _lease_state(self, host: Object) -> LeaseState | None:
        """State of the Lease, read afresh if it looks lost; None if that fails: then nothing is known."""
        state = self._liveness.of(host.meta.name)
        if not state.agent.is_gone:
            return state
        try:
            return await self._liveness.confirm(self._client, host.meta.name)
        except ApiError as error:
            _log.warning("the Lease of a host cannot be read", host=host.meta.name, error=str(error))
            return None

    # Lost, or stopped

    async def _lose(self, host: Object, state: LeaseState) -> None:
        """Take it out of traffic, at each reconcile: a last write of its agent may have come late."""
        name, why = host.meta.name, state.text
        stopped = state.agent is AgentState.STOPPED
        phase = objects.STOPPED if stopped else objects.LOST
        withdrawn = await objects.withdraw(self._client, await objects.slices_on(self._client, name))
        if host.get("status", "phase") == phase:
            return
        bound = await objects.processes_on(self._client, name)
        mark = objects.mark_stopped if stopped else objects.mark_lost
        await asyncio.gather(*(mark(self._client, each, f"host/{name} is {phase.lower()}: {why}") for each in bound))
        await self._say(host, phase, "AgentStopped" if stopped else "LeaseStale", f"{why[:1].upper()}{why[1:]}.")
        said = (
            f"The Host is {phase.lower()}: {why}. {_counted(withdrawn, 'address', 'addresses')} taken out of traffic."
        )
        tell = self._events.normal if stopped else self._events.warning
        tell(host, f"Host{phase}", said)
        _log.warning("the agent of a host is gone", host=name, why=why, processes=len(bound), withdrawn=withdrawn)

    async def _say(self, host: Object, phase: str, reason: str, text: str) -> None:
        """Write the condition `AgentAlive`. The phase is the agent's to write, but for that without an agent."""
        gone = (objects.LOST, objects.STOPPED)
        status: Json = {"phase": phase} if phase in gone or host.get("status", "phase") in gone else {}
        conditions = set_condition(
            host.get("status", "conditions", default=[]),
            "AgentAlive",
            status=phase not in gone,
            reason=reason,
            message=text,
            generation=host.meta.generation,
            now=utc_now(),
        )
        if conditions is not None:
            status["conditions"] = conditions
        patch = merge_patch({"metadata": {"uid": host.meta.uid}, "status": status})
        await self._client.patch(HOSTS, host.key, patch, subresource="status")

    # Deleted

    async def _depart(self, host: Object, state: LeaseState) -> Result | None:
        if HOST_FINALIZER not in host.meta.finalizers:
            return None
        name = host.meta.name
        gone = state.agent.is_gone
        for each in await objects.processes_on(self._client, name):
            if not each.meta.terminating:
                await objects.remove(self._client, PROCESSES, each)
        if gone:
            await self._sweep(host)
        left = await objects.processes_on(self._client, name)
        if left:
            text = f"Waiting for {_counted(len(left), 'process', 'processes')} to stop, {left[0].key} among them."
            await self._wait(host, text)
            return Result(requeue_after=1.0 if gone else LOOK_SECONDS)
        for each in await objects.slices_on(self._client, name):
            await objects.remove(self._client, SLICES, each)
        try:
            lease = await self._client.get(LEASES, ObjectKey(HOST_LEASES, name))
        except Absent:
            pass
        else:
            await objects.remove(self._client, LEASES, lease)
        patch = without_finalizer(host, HOST_FINALIZER)
        if patch is not None:
            await self._client.patch(HOSTS, host.key, patch)
        self._liveness.forget(name)
        return None

    async def _sweep(self, host: Object) -> None:
        """Remove what the agent cannot remove any more: addresses first, so that no request is sent there."""
        name = host.meta.name
        slices = await objects.slices_on(self._client, name)
        await objects.withdraw(self._client, slices)
        for each in slices:
            await objects.remove(self._client, SLICES, each)
        swept = [each for each in await objects.processes_on(self._client, name) if each.meta.terminating]
        for each in swept:
            await objects.release(self._client, each)
        if swept or slices:
            addresses = _counted(len(slices), "address", "addresses")
            processes = _counted(len(swept), "process", "processes")
            said = f"The agent is gone: {addresses} and {processes} removed without it."
            self._events.warning(host, "HostSwept", said)
            _log.warning("a host that is gone was swept", host=name, slices=len(slices), processes=len(swept))

    async def _wait(self, host: Object, text: str) -> None:
        conditions = set_condition(
            host.get("status", "conditions", default=[]),
            "Emptying",
            status=True,
            reason="ProcessesStop",
            message=text,
            generation=host.meta.generation,
            now=utc_now(),
        )
        if conditions is not None:
            patch = merge_patch({"metadata": {"uid": host.meta.uid}, "status": {"conditions": conditions}})
            await self._client.patch(HOSTS, host.key, patch, subresource="status")


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _is_called_gone(host: Object) -> bool:
    """Whether phase or condition says so: an agent that is back may have written the phase before we saw it."""
    conditions: list[Json] = host.get("status", "conditions", default=None) or []
    gone = any(each.get("type") == "AgentAlive" and each.get("status") == "False" for each in conditions)
    return gone or host.get("status", "phase") in (objects.LOST, objects.STOPPED)
