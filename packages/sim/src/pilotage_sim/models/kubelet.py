"""A scheduler and a kubelet for one node, on which containers always start, and end when they are told to.

A pod without a node is bound to this one. It is ready a moment after that. When it is deleted, its containers get their
SIGTERM at once (endpoints are withdrawn by others at the same time, in no order), end after as long as they need, but
never later than the grace period allows, which may have been shortened meanwhile; only then the record goes, by
a delete without grace of exactly this uid. Until its containers have ended it stays ready, so it is serving and
terminating. Annotations say how long things take: `START`, `EXIT` and `RUN`.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from pilotage.kube import Absent, AlreadyExists, Conflict, Foreign, Propagation, Resource, merge_patch
from pilotage.kube.wire import parse_time
from pilotage.runtime.clock import utc_now
from pilotage.runtime.types import Result
from pilotage_sim.models.common import FINISHED, NODES, PODS, condition, is_ready, now_text, with_condition

if TYPE_CHECKING:
    from pilotage.kube import Client, Json, Object, ObjectKey
    from pilotage.runtime.controller import Context
    from pilotage.runtime.manager import Manager
    from pilotage.runtime.types import Reconcile

NODE = "sim-node"
START = "sim.pilotage.dev/start-seconds"
"""Seconds from being placed to being ready; 1 if the annotation is missing."""
EXIT = "sim.pilotage.dev/exit-seconds"
"""Seconds from SIGTERM (or the beginning of preStop) to the end of the containers; 0 if the annotation is missing."""
RUN = "sim.pilotage.dev/run-seconds"
"""Seconds from being ready to having succeeded, for pods that end by themselves; those of Jobs take 1 by default."""

_SIZE = {"cpu": "64", "memory": "512Gi", "pods": "1000"}


async def register(client: Client, node: str = NODE) -> None:
    """Make the node, if it is not there."""
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": now_text(),
        "lastTransitionTime": now_text(),
    }
    metadata = {"name": node, "labels": {"kubernetes.io/hostname": node, "kubernetes.io/os": "linux"}}
    status = {"capacity": _SIZE, "allocatable": _SIZE, "conditions": [ready]}
    try:
        made = await client.create(NODES, {"metadata": metadata})
    except AlreadyExists:
        return
    await client.patch(NODES, made.key, merge_patch({"status": status}), subresource="status")
    # A new node is tainted until it is ready, by the API server; the node lifecycle controller takes the taint away.
    await client.patch(NODES, made.key, merge_patch({"spec": {"taints": None}}))


def add(manager: Manager, node: str = NODE) -> None:
    """Run it in a manager."""

    def make(context: Context) -> Reconcile:
        return _Kubelet(context, node).reconcile

    manager.add("kubelet-model", manager.informer(PODS), make)


class _Kubelet:
    def __init__(self, context: Context, node: str) -> None:
        self._client = context.client
        self._store = context.store
        self._node = node

    async def reconcile(self, key: ObjectKey) -> Result | None:
        pod = self._store.get(key)
        if pod is None:
            return None
        body = pod.to_dict()
        spec, status = body["spec"], body.get("status") or {}
        if not spec.get("nodeName"):
            if not pod.meta.terminating and not spec.get("schedulingGates"):
                await self._bind(pod)
            return None
        if spec["nodeName"] != self._node:
            return None
        if pod.meta.terminating:
            return await self._end(pod, body)
        if status.get("phase") == "Pending":
            return await self._start(pod, body)
        if status.get("phase") == "Running":
            return await self._run(pod, body)
        return None

    async def _bind(self, pod: Object) -> None:
        binding = Resource("", "v1", f"pods/{pod.meta.name}/binding", "Binding")
        metadata = {"namespace": pod.meta.namespace, "name": pod.meta.name, "uid": pod.meta.uid}
        target = {"apiVersion": "v1", "kind": "Node", "name": self._node}
        try:
            await self._client.create(binding, {"metadata": metadata, "target": target})
        except (Absent, Conflict, Foreign):
            return

    async def _start(self, pod: Object, body: Json) -> Result | None:
        placed = condition(body, "PodScheduled")
        since = (placed or {}).get("lastTransitionTime") or pod.meta.creation_timestamp
        if (wait := _left(since, _seconds(pod, START, 1.0))) > 0:
            return Result(requeue_after=wait)
        now = now_text()
        conditions = body.get("status", {}).get("conditions") or []
        for type_ in ("PodReadyToStartContainers", "Initialized", "ContainersReady", "PodScheduled"):
            conditions = _condition(conditions, type_, status=True)
        address = body.get("status", {}).get("podIP") or self._free_address()
        status = {
            "phase": "Running",
            "startTime": now,
            "hostIP": "10.0.0.10",
            "hostIPs": [{"ip": "10.0.0.10"}],
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": _condition(conditions, "Ready", status=_gates_open(body)),
            "containerStatuses": [_container(each, {"running": {"startedAt": now}}) for each in _containers(body)],
            "observedGeneration": pod.meta.generation,
        }
        started = await self._write(pod, status)
        return await self._run(started, started.to_dict()) if started is not None else None

    async def _run(self, pod: Object, body: Json) -> Result | None:
        """Follow the readiness gates, and end what ends by itself."""
        ready = _gates_open(body)
        if ready != is_ready(body):
            await self._write(pod, {"conditions": _condition(body["status"]["conditions"], "Ready", status=ready)})
            return None
        of_job = pod.meta.controller is not None and pod.meta.controller.kind == "Job"
        if body["spec"].get("restartPolicy", "Always") == "Always" or not (of_job or RUN in pod.meta.annotations):
            return None
        if (wait := _left(body["status"]["startTime"], _seconds(pod, RUN, 1.0))) > 0:
            return Result(requeue_after=wait)
        await self._write(pod, _finished(body))
        return None

    async def _end(self, pod: Object, body: Json) -> Result | None:
        """Containers end in time; then the record goes. With a grace of 0 a kubelet has no part in it any more."""
        grace = pod.meta.deletion_grace_period_seconds
        if not grace:
            return None
        told = parse_time(pod.meta.deletion_timestamp) - dt.timedelta(seconds=grace)
        exits = min(_seconds(pod, EXIT, 0.0), float(grace))
        wait = (told + dt.timedelta(seconds=exits) - utc_now()).total_seconds()
        if wait > 0 and body.get("status", {}).get("phase") == "Running":
            return Result(requeue_after=wait)
        if body.get("status", {}).get("phase") not in FINISHED:
            await self._write(pod, _finished(body))
        try:
            await self._client.delete(
                PODS, pod.key, uid=pod.meta.uid, propagation=Propagation.BACKGROUND, grace_seconds=0
            )
        except (Absent, Foreign):
            return None
        return None

    async def _write(self, pod: Object, status: Json) -> Object | None:
        patch = merge_patch({"metadata": {"uid": pod.meta.uid}, "status": status})
        try:
            return await self._client.patch(PODS, pod.key, patch, subresource="status")
        except (Absent, Foreign):
            return None

    def _free_address(self) -> str:
        used = {obj.get("status", "podIP") for obj in self._store.list()}
        free = (f"10.244.{high}.{low}" for high in range(256) for low in range(1, 255))
        return next(address for address in free if address not in used)


def _seconds(pod: Object, annotation: str, default: float) -> float:
    return float(pod.meta.annotations.get(annotation, default))


def _left(since: str, seconds: float) -> float:
    return (parse_time(since) + dt.timedelta(seconds=seconds) - utc_now()).total_seconds()


def _gates_open(body: Json) -> bool:
    gates = [gate["conditionType"] for gate in body["spec"].get("readinessGates") or []]
    return all((found := condition(body, gate)) is not None and found["status"] == "True" for gate in gates)


def _condition(conditions: list[Json], type_: str, *, status: bool, **more: Any) -> list[Json]:  # noqa: ANN401 - JSON
    found = with_condition(conditions, type_, status=status, reason="", message="", lastProbeTime=None, **more)
    return [{name: value for name, value in each.items() if value or name == "lastProbeTime"} for each in found]


def _containers(body: Json) -> list[Json]:
    containers: list[Json] = body["spec"]["containers"]
    return containers


def _container(container: Json, state: Json) -> Json:
    running = "running" in state
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "lastState": {},
        "ready": running,
        "started": running,
        "restartCount": 0,
        "state": state,
    }


def _finished(body: Json) -> Json:
    """The status of a pod whose containers have ended, all with success."""
    conditions = body.get("status", {}).get("conditions") or []
    for type_ in ("Ready", "ContainersReady"):
        conditions = with_condition(
            conditions, type_, status=False, reason="PodCompleted", message="", lastProbeTime=None
        )
    began = body.get("status", {}).get("startTime", now_text())
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": began, "finishedAt": now_text()}}
    return {
        "phase": "Succeeded",
        "conditions": [{name: value for name, value in each.items() if value is not None} for each in conditions],
        "containerStatuses": [_container(each, ended) for each in _containers(body)],
    }
