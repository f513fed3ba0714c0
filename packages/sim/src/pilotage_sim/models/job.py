"""Jobs whose pods succeed: as many at a time as `parallelism`, until `completions` have.

Each pod is held by a finalizer until it has been counted. What is left out: failures and back-off, indexes, suspension,
deadlines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube import Absent, Terminating, without_finalizer
from pilotage.runtime.controller import owner_keys
from pilotage_sim.models.common import (
    FINISHED,
    JOBS,
    PODS,
    is_mine,
    is_ready,
    now_text,
    owner_reference,
    with_condition,
    write_status,
)

if TYPE_CHECKING:
    from pilotage.kube import Json, Object, ObjectKey
    from pilotage.runtime.controller import Context
    from pilotage.runtime.manager import Manager
    from pilotage.runtime.store import Store
    from pilotage.runtime.types import Reconcile

TRACKING = "batch.kubernetes.io/job-tracking"
_REASON = "CompletionsReached"
_MESSAGE = "Reached expected number of succeeded pods"


def add(manager: Manager) -> None:
    """Run it in a manager."""
    pods = manager.informer(PODS)

    def make(context: Context) -> Reconcile:
        return _Jobs(context, pods.store).reconcile

    manager.add("job-model", manager.informer(JOBS), make, watches=[(pods, owner_keys(JOBS))])


class _Jobs:
    def __init__(self, context: Context, pods: Store) -> None:
        self._client = context.client
        self._store = context.store
        self._pods = pods

    async def reconcile(self, key: ObjectKey) -> None:
        job = self._store.get(key)
        if job is None:
            return
        body = job.to_dict()
        status: Json = {**(body.get("status") or {})}
        pods = [pod for pod in self._pods.list(key.namespace) if is_mine(job, pod)]
        ended = [pod for pod in pods if pod.get("status", "phase") in FINISHED and TRACKING in pod.meta.finalizers]
        succeeded = status.get("succeeded", 0) + sum(pod.get("status", "phase") == "Succeeded" for pod in ended)
        active = [pod for pod in pods if not pod.meta.terminating and pod.get("status", "phase") not in FINISHED]
        done = any(each["type"] == "Complete" for each in status.get("conditions", ()))
        if not done and not job.meta.terminating:
            wanted = body["spec"].get("completions", 1) - succeeded
            active += await self._create(job, body, min(wanted, body["spec"].get("parallelism", 1)) - len(active))
        await self._report(job, body, status, succeeded, active)
        for pod in ended:
            await self._let_go(pod)

    async def _create(self, job: Object, body: Json, count: int) -> list[Object]:
        template = body["spec"]["template"]
        metadata = {
            "namespace": job.meta.namespace,
            "generateName": f"{job.meta.name}-",
            "labels": template.get("metadata", {}).get("labels", {}),
            "annotations": template.get("metadata", {}).get("annotations", {}),
            "finalizers": [TRACKING],
            "ownerReferences": [owner_reference(JOBS, job)],
        }
        made = []
        for _ in range(count):
            try:
                made.append(await self._client.create(PODS, {"metadata": metadata, "spec": template["spec"]}))
            except Terminating:
                break
        return made

    async def _report(self, job: Object, body: Json, status: Json, succeeded: int, active: list[Object]) -> None:
        """Say what is counted; `_let_go` comes after that, so that no pod is gone before it is counted."""
        new: Json = {**status, "startTime": status.get("startTime") or now_text(), "uncountedTerminatedPods": {}}
        new["terminating"] = 0
        new["ready"] = sum(is_ready(pod.to_dict()) for pod in active)
        new.pop("active", None)
        if succeeded:
            new["succeeded"] = succeeded
        if active:
            new["active"] = len(active)
        if succeeded >= body["spec"].get("completions", 1) and not new.get("completionTime"):
            conditions = with_condition(
                new.get("conditions") or [], "SuccessCriteriaMet", status=True, reason=_REASON, message=_MESSAGE
            )
            new["conditions"] = with_condition(conditions, "Complete", status=True, reason=_REASON, message=_MESSAGE)
            new["completionTime"] = now_text()
        await write_status(self._client, JOBS, job, new)

    async def _let_go(self, pod: Object) -> None:
        patch = without_finalizer(pod, TRACKING)
        if patch is not None:
            try:
                await self._client.patch(PODS, pod.key, patch)
            except Absent:
                return
