"""ReplicaSets, and ReplicationControllers, which are the same thing under an older name.

As many pods as wanted, made from the template; orphans that match are adopted, own ones that no longer match are
released; of too many the least useful go first; one that is being deleted makes none.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, NamedTuple

from pilotage.kube import Absent, Propagation, Terminating, merge_patch
from pilotage.kube.selectors import LabelSelector
from pilotage.runtime.clock import utc_now
from pilotage.runtime.controller import owner_keys
from pilotage.runtime.types import Result
from pilotage_sim.models.common import (
    CONTROLLERS,
    FINISHED,
    PODS,
    REPLICA_SETS,
    is_mine,
    is_ready,
    owner_reference,
    ready_since,
    write_status,
)

if TYPE_CHECKING:
    from pilotage.kube import Json, Object, ObjectKey, Resource
    from pilotage.runtime.controller import Context
    from pilotage.runtime.manager import Manager
    from pilotage.runtime.store import Store
    from pilotage.runtime.types import Reconcile


def add(manager: Manager) -> None:
    """Run both in a manager."""
    pods = manager.informer(PODS)
    for name, resource in (("replicaset", REPLICA_SETS), ("replicationcontroller", CONTROLLERS)):

        def make(context: Context, resource: Resource = resource) -> Reconcile:
            return _Replicas(context, resource, pods.store).reconcile

        own = manager.informer(resource)
        keys = _Keys(resource, own.store)
        manager.add(f"{name}-model", own, make, watches=[(pods, owner_keys(resource)), (pods, keys.adopters)])


class _Keys(NamedTuple):
    resource: Resource
    store: Store

    def adopters(self, pod: Object) -> list[ObjectKey]:
        """Those who would adopt a pod that has no controller."""
        if pod.meta.controller is not None:
            return []
        return [
            owner.key
            for owner in self.store.list(pod.meta.namespace)
            if selector_of(owner.to_dict()).matches(pod.meta.labels)
        ]


class _Replicas:
    def __init__(self, context: Context, resource: Resource, pods: Store) -> None:
        self._client = context.client
        self._store = context.store
        self._resource = resource
        self._pods = pods

    async def reconcile(self, key: ObjectKey) -> Result | None:
        owner = self._store.get(key)
        if owner is None:
            return None
        body = owner.to_dict()
        pods = await self._claimed(owner, selector_of(body))
        active = [pod for pod in pods if not pod.meta.terminating and pod.get("status", "phase") not in FINISHED]
        missing = body["spec"].get("replicas", 1) - len(active)
        if not owner.meta.terminating and missing > 0:
            active += await self._create(owner, body, missing)
        elif not owner.meta.terminating and missing < 0:
            excess = sorted(active, key=_usefulness)[:-missing]
            await self._delete(excess)
            active = [pod for pod in active if pod not in excess]
        return await self._report(owner, body, active, pods)

    async def _claimed(self, owner: Object, selector: LabelSelector) -> list[Object]:
        """Those of its pods, after it has adopted what matches and let go what does not."""
        claimed = []
        for pod in sorted(self._pods.list(owner.meta.namespace), key=lambda each: each.meta.name):
            matches = selector.matches(pod.meta.labels)
            if is_mine(owner, pod):
                if matches or owner.meta.terminating:
                    claimed.append(pod)
                else:
                    others = [each for each in pod.get("metadata", "ownerReferences") if each["uid"] != owner.meta.uid]
                    await self._refer(pod, others)
            elif pod.meta.controller is None and matches and not (owner.meta.terminating or pod.meta.terminating):
                others = pod.get("metadata", "ownerReferences", default=[])
                adopted = await self._refer(pod, [*others, owner_reference(self._resource, owner)])
                claimed += [adopted] if adopted is not None else []
        return claimed

    async def _refer(self, pod: Object, references: list[Json]) -> Object | None:
        patch = merge_patch(
            {"metadata": {"ownerReferences": references, "uid": pod.meta.uid}},
            resource_version=pod.meta.resource_version,
        )
        try:
            return await self._client.patch(PODS, pod.key, patch)
        except Absent:
            return None

    async def _create(self, owner: Object, body: Json, count: int) -> list[Object]:
        """Make pods, unless the owner is being deleted: its pods may be seen to go before it is seen itself."""
        try:
            fresh = await self._client.get(self._resource, owner.key, metadata_only=True)
        except Absent:
            return []
        if fresh.meta.terminating or fresh.meta.uid != owner.meta.uid:
            return []
        template = body["spec"]["template"]
        metadata = {name: value for name, value in template.get("metadata", {}).items() if name in _FROM_TEMPLATE}
        metadata |= {
            "namespace": owner.meta.namespace,
            "generateName": f"{owner.meta.name}-",
            "ownerReferences": [owner_reference(self._resource, owner)],
        }
        made = []
        for _ in range(count):
            try:
                made.append(await self._client.create(PODS, {"metadata": metadata, "spec": template["spec"]}))
            except Terminating:
                break  # the namespace goes
        return made

    async def _delete(self, pods: list[Object]) -> None:
        for pod in pods:
            try:
                await self._client.delete(PODS, pod.key, uid=pod.meta.uid, propagation=Propagation.BACKGROUND)
            except Absent:
                continue

    async def _report(self, owner: Object, body: Json, active: list[Object], pods: list[Object]) -> Result | None:
        least = body["spec"].get("minReadySeconds", 0)
        labels = (body["spec"].get("template") or {}).get("metadata", {}).get("labels", {})
        bodies = [pod.to_dict() for pod in active]
        ready = [pod for pod in bodies if is_ready(pod)]
        since = utc_now() - dt.timedelta(seconds=least)
        available = [pod for pod in ready if not least or ready_since(pod) <= since]
        counts = {
            "fullyLabeledReplicas": sum(labels.items() <= pod.meta.labels.items() for pod in active),
            "readyReplicas": len(ready),
            "availableReplicas": len(available),
        }
        status: Json = {name: count for name, count in counts.items() if count}
        status["replicas"] = len(active)
        if self._resource is REPLICA_SETS:
            status["terminatingReplicas"] = sum(
                pod.meta.terminating and pod.get("status", "phase") not in FINISHED for pod in pods
            )
        status["observedGeneration"] = owner.meta.generation
        await write_status(self._client, self._resource, owner, status)
        return Result(requeue_after=1.0) if len(available) < len(ready) else None


_FROM_TEMPLATE = ("labels", "annotations", "finalizers")


def selector_of(body: Json) -> LabelSelector:
    """Selector of its pods. A ReplicationController's is a plain map."""
    selector = body["spec"].get("selector") or {}
    plain = not ({"matchLabels", "matchExpressions"} & set(selector))
    return LabelSelector.from_object({"matchLabels": selector} if plain else selector)


def _usefulness(pod: Object) -> tuple[bool, int, bool, float, str]:
    """The least useful first: not placed, not running, not ready, ready for a shorter time."""
    body = pod.to_dict()
    phase = {"Pending": 0, "Unknown": 1}.get(body.get("status", {}).get("phase", "Pending"), 2)
    ready = is_ready(body)
    age = -ready_since(body).timestamp() if ready else 0.0
    return bool(body["spec"].get("nodeName")), phase, ready, age, pod.meta.name
