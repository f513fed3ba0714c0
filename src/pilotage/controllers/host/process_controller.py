"""The controller of `HostProcess`: schedules it, and releases it where no agent can.

A process is placed once, in one write that says its Host in the spec and as the label by which the agent finds it;
before that, its Service is granted to that Host (`hosts_grants`). It is let go of without an agent in two cases only:
it was never placed, or its Host is not there.
"""

from collections.abc import Callable, Iterable

import structlog

from pilotage.api.names import HOSTS, LABEL_HOST, PROCESS_FINALIZER, PROCESSES
from pilotage.controllers.host import objects
from pilotage.controllers.host.grants import Grants, needed, service_of
from pilotage.controllers.host.liveness import AgentState, HostLiveness
from pilotage.controllers.host.scheduling import CandidateHost, Requirements, Unschedulable, schedule
from pilotage.kube import Absent, Json, Object, ObjectKey, merge_patch
from pilotage.runtime.controller import Context
from pilotage.runtime.store import Store
from pilotage.runtime.types import Reconcile, Result
from pilotage.serving.resources import SLICES

_log = structlog.get_logger(__name__)

BY_HOST = "host"
UNPLACED_SECONDS = 5.0
"""Interval for a process without a Host. Changes of Hosts wake it; the return of an agent may not."""


def by_host(process: Object) -> Iterable[str]:
    """Index processes by the Host that they were placed on; empty for none."""
    return (process.get("spec", "host") or "",)


def processes(hosts: Store, liveness: HostLiveness, watched: str = "") -> Callable[[Context], Reconcile]:
    """The factory of the controller, for `Manager.add`."""

    def make(context: Context) -> Reconcile:
        return ProcessController(context, hosts, liveness, Grants(context.client, watched)).reconcile

    return make


def keys_for_host(store: Store, host: Object) -> list[ObjectKey]:
    """Map a Host to the processes on it, and to those that may be placed there now."""
    return [each.key for name in (host.meta.name, "") for each in store.indexed(BY_HOST, name)]


def host_of_process(process: Object) -> list[ObjectKey]:
    """Map a process to the Host that it was placed on."""
    return [ObjectKey("", name) for name in by_host(process) if name]


class ProcessController:
    """Reconciles HostProcesses, with one worker: two would promise the same memory twice."""

    def __init__(self, context: Context, hosts: Store, liveness: HostLiveness, grants: Grants) -> None:
        self._client = context.client
        self._store = context.store
        self._events = context.events
        self._hosts = hosts
        self._liveness = liveness
        self._grants = grants
        self._placed: dict[ObjectKey, tuple[str, str]] = {}
        """Host and Service of processes that were placed and that the cache does not show as placed yet."""

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Reconcile one HostProcess."""
        process = self._store.get(key)
        if process is None:
            self._placed.pop(key, None)
            await self._settle()
            return None
        (host,) = by_host(process)
        if not host:
            if not process.meta.terminating:
                return await self._place(process)
            await objects.release(self._client, process)
            return None
        self._placed.pop(key, None)
        if self._hosts.get(ObjectKey("", host)) is not None:
            await self._grant(process, host)
        elif await self._is_absent(host):
            await self._orphaned(process, host)
        return None

    async def _grant(self, process: Object, host: str) -> None:
        if self._grants.are_known:
            await self._grants.add(host, service_of(process))
        else:
            await self._settle()  # once: processes may have gone while no operator ran

    async def _settle(self) -> None:
        """Revoke the grants of processes that are gone."""
        wanted = needed(self._store.list(), self._hosts)
        for host, service in self._placed.values():
            wanted[host] = wanted.get(host, frozenset()) | {service}
        await self._grants.settle(wanted)

    async def _is_absent(self, host: str) -> bool:
        try:
            await self._client.get(HOSTS, ObjectKey("", host), metadata_only=True)
        except Absent:
            return True
        return False

    async def _orphaned(self, process: Object, host: str) -> None:
        """Release a process whose Host does not exist: no agent will ever do it."""
        if process.meta.terminating and PROCESS_FINALIZER not in process.meta.finalizers:
            return
        found = await objects.slice_of(self._client, process)
        slices = [found] if found is not None else []
        await objects.withdraw(self._client, slices)
        if not process.meta.terminating:
            await objects.mark_lost(self._client, process, f"host/{host} no longer exists")
            return
        for each in slices:
            await objects.remove(self._client, SLICES, each)
        await objects.release(self._client, process)
        _log.warning("released a process whose host does not exist", process=str(process.key), host=host)

    async def _place(self, process: Object) -> Result | None:
        found = schedule(requirements_of(process), self._candidates())
        if isinstance(found, Unschedulable):
            await self._explain(process, found.text)
            return Result(requeue_after=UNPLACED_SECONDS)
        self._placed[process.key] = found.host, service_of(process)
        await self._grant(process, found.host)
        metadata = {"uid": process.meta.uid, "labels": {LABEL_HOST: found.host}}
        patch = merge_patch(
            {"metadata": metadata, "spec": {"host": found.host}}, resource_version=process.meta.resource_version
        )
        await self._client.patch(PROCESSES, process.key, patch)
        self._events.normal(process, "Placed", f"Placed on host/{found.host}.")
        return None

    async def _explain(self, process: Object, text: str) -> None:
        status = process.get("status", default={}) or {}
        if status.get("message") != text or status.get("phase") != "Pending":
            changes = {"phase": "Pending", "ready": False, "message": text}
            patch = merge_patch({"metadata": {"uid": process.meta.uid}, "status": changes})
            await self._client.patch(PROCESSES, process.key, patch, subresource="status")

    def _candidates(self) -> list[CandidateHost]:
        """All Hosts. Processes without a Host do not count: each of a thousand would look at all others."""
        return [self._candidate(host) for host in self._hosts.list()]

    def _candidate(self, host: Object) -> CandidateHost:
        name = host.meta.name
        placed = self._store.indexed(BY_HOST, name)
        promised = sum(
            each.get("spec", "memoryBytes", default=None) or 0
            for each in placed
            if each.get("status", "memoryBytes", default=None) is None  # its agent does not account for it yet
        )
        phase = host.get("status", "phase", default="") or ""
        alive = self._liveness.of(name).agent is AgentState.ALIVE
        return CandidateHost(
            name,
            host.meta.labels,
            alive,
            phase,
            bool(host.get("spec", "unschedulable", default=False)),
            host.meta.terminating,
            host.get("status", "freeBytes", default=None),
            promised,
            len(placed),
            host.get("spec", "allowedNamespaces", default=None) or (),
            host.get("status", "namespaces", default=None) or (),
        )


def requirements_of(process: Object) -> Requirements:
    """The requirements of a process."""
    spec: Json = process.get("spec", default={})
    labels = (spec.get("hostSelector") or {}).get("matchLabels") or {}
    return Requirements(spec.get("hostName") or "", labels, spec.get("memoryBytes"), process.meta.namespace)
