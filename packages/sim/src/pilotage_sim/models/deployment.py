"""Deployments: one ReplicaSet for each template, and replicas moved from the old ones to the new one.

`rollout` decides how many replicas each ReplicaSet gets next, from numbers alone; this module reads and writes. What is
left out of the real controller: proportional scaling of several ReplicaSets in the middle of a rollout, and collisions
of template hashes.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from pilotage.kube import Absent, Propagation, Terminating, merge_patch
from pilotage.runtime.controller import owner_keys
from pilotage_sim.models.common import DEPLOYMENTS, PODS, REPLICA_SETS, is_mine, owner_reference
from pilotage_sim.models.deployment_status import report
from pilotage_sim.models.rollout import ReplicaCounts, RolloutSpec, next_step

if TYPE_CHECKING:
    from pilotage.kube import Json, Object, ObjectKey
    from pilotage.runtime.controller import Context
    from pilotage.runtime.manager import Manager
    from pilotage.runtime.store import Store
    from pilotage.runtime.types import Reconcile, Result

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = ("kubectl.kubernetes.io/last-applied-configuration", REVISION, HISTORY, DESIRED, MAXIMUM)
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def add(manager: Manager) -> None:
    """Run it in a manager."""
    sets, pods = manager.informer(REPLICA_SETS), manager.informer(PODS)

    def make(context: Context) -> Reconcile:
        return _Deployments(context, sets.store, pods.store).reconcile

    def of_pod(pod: Object) -> list[ObjectKey]:
        """A Recreate waits for pods to be gone, not for ReplicaSets to be empty."""
        owner = pod.meta.controller
        found = [each for each in sets.store.list(pod.meta.namespace) if owner and each.meta.uid == owner.uid]
        return [key for each in found for key in owner_keys(DEPLOYMENTS)(each)]

    watches = [(sets, owner_keys(DEPLOYMENTS)), (pods, of_pod)]
    manager.add("deployment-model", manager.informer(DEPLOYMENTS), make, watches=watches)


class _Deployments:
    def __init__(self, context: Context, sets: Store, pods: Store) -> None:
        self._client = context.client
        self._store = context.store
        self._sets = sets
        self._pods = pods

    async def reconcile(self, key: ObjectKey) -> Result | None:
        deployment = self._store.get(key)
        if deployment is None:
            return None
        body = deployment.to_dict()
        sets = sorted(
            (each for each in self._sets.list(key.namespace) if is_mine(deployment, each)),
            key=lambda each: (each.meta.creation_timestamp, each.meta.name),
        )
        new = next((each for each in sets if _same_template(each, body)), None)
        if not deployment.meta.terminating:
            new = await self._roll(deployment, body, sets, new)
            if new is not None:
                sets = [*(each for each in sets if each.meta.uid != new.meta.uid), new]
                deployment = await self._number(deployment, body, new)
        return await report(self._client, deployment, body, [self._fresh(each) for each in sets], new)

    def _fresh(self, each: Object) -> Object:
        """ReplicaSet as the cache has it by now: this reconcile may have scaled it."""
        return self._sets.get(each.key) or each

    async def _roll(self, deployment: Object, body: Json, sets: list[Object], new: Object | None) -> Object | None:
        """One step of the rollout; the new ReplicaSet, if there is one by now."""
        wanted = RolloutSpec.of(body["spec"])
        old = [each for each in sets if new is None or each.meta.uid != new.meta.uid]
        paused = bool(body["spec"].get("paused"))
        old_pods = sum(self._has_pods(each) for each in old)
        step = next_step(
            wanted,
            _replicas(new) if new is not None else None,
            [_replicas(each) for each in old],
            old_pods,
            paused=paused,
        )
        for each, count in zip(old, step.old, strict=True):
            await self._scale(each, count, wanted)
        if new is None:
            if step.new is None:
                return None
            new = await self._create(deployment, body, sets, step.new, wanted)
        else:
            new = await self._scale(new, step.new if step.new is not None else _replicas(new).spec, wanted)
            new = await self._renumber(new, old, body)
        if not paused and step.settled:
            await self._clean_up(body, old)
        return new

    def _has_pods(self, replica_set: Object) -> int:
        return sum(
            is_mine(replica_set, pod) and pod.get("status", "phase") not in ("Succeeded", "Failed")
            for pod in self._pods.list(replica_set.meta.namespace)
        )

    async def _create(
        self, deployment: Object, body: Json, sets: list[Object], count: int, wanted: RolloutSpec
    ) -> Object | None:
        template = body["spec"]["template"]
        hash_ = template_hash(template)
        labels = {**template["metadata"].get("labels", {}), HASH: hash_}
        selector = dict(body["spec"]["selector"])
        selector["matchLabels"] = {**selector.get("matchLabels", {}), HASH: hash_}
        annotations = _copied(body) | _sizes(wanted) | {REVISION: str(max(map(_revision, sets), default=0) + 1)}
        spec: Json = {
            "replicas": count,
            "selector": selector,
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        }
        if body["spec"].get("minReadySeconds"):
            spec["minReadySeconds"] = body["spec"]["minReadySeconds"]
        metadata = {
            "namespace": deployment.meta.namespace,
            "name": f"{deployment.meta.name}-{hash_}",
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner_reference(DEPLOYMENTS, deployment)],
        }
        try:
            return await self._client.create(REPLICA_SETS, {"metadata": metadata, "spec": spec})
        except Terminating:
            return None

    async def _scale(self, replica_set: Object, count: int, wanted: RolloutSpec) -> Object:
        """Set replicas, and the annotations that say what they are a part of."""
        annotations = {name: value for name, value in _sizes(wanted).items() if _annotation(replica_set, name) != value}
        changes: dict[str, Any] = {"metadata": {"annotations": annotations}} if annotations else {}
        if _replicas(replica_set).spec != count:
            changes["spec"] = {"replicas": count}
        elif not count:
            return replica_set  # an empty one is left as it was
        return await self._patch(replica_set, changes)

    async def _renumber(self, new: Object, old: list[Object], body: Json) -> Object:
        """The new one has the highest revision: also one that was there before, and is gone back to."""
        revision = max(map(_revision, old), default=0) + 1
        annotations = {name: value for name, value in _copied(body).items() if _annotation(new, name) != value}
        if _revision(new) < revision:
            annotations[REVISION] = str(revision)
            before = [each for each in (_annotation(new, HISTORY), _annotation(new, REVISION)) if each]
            annotations[HISTORY] = ",".join(before)
        return await self._patch(new, {"metadata": {"annotations": annotations}} if annotations else {})

    async def _patch(self, replica_set: Object, changes: Json) -> Object:
        if not changes:
            return replica_set
        patch = merge_patch(changes, resource_version=replica_set.meta.resource_version)
        return await self._client.patch(REPLICA_SETS, replica_set.key, patch)

    async def _number(self, deployment: Object, body: Json, new: Object) -> Object:
        revision = _annotation(new, REVISION)
        if not revision or body["metadata"].get("annotations", {}).get(REVISION) == revision:
            return deployment
        patch = merge_patch({"metadata": {"annotations": {REVISION: revision}}})
        return await self._client.patch(DEPLOYMENTS, deployment.key, patch)

    async def _clean_up(self, body: Json, old: list[Object]) -> None:
        """Delete the oldest empty ReplicaSets beyond the history that is to be kept."""
        empty = [each for each in old if not any(_replicas(each)) and not each.meta.terminating]
        keep = body["spec"].get("revisionHistoryLimit", 10)
        for each in sorted(empty, key=_revision)[: max(0, len(empty) - keep)]:
            try:
                await self._client.delete(REPLICA_SETS, each.key, uid=each.meta.uid, propagation=Propagation.BACKGROUND)
            except Absent:
                continue


def template_hash(template: Json) -> str:
    """A short name for a template, of letters that spell no words."""
    digest = hashlib.sha256(msgspec.json.encode(template, order="deterministic")).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])


def _same_template(replica_set: Object, deployment: Json) -> bool:
    template = replica_set.get("spec", "template")
    labels = {name: value for name, value in template["metadata"].get("labels", {}).items() if name != HASH}
    own = deployment["spec"]["template"]
    return bool({**template, "metadata": {**template["metadata"], "labels": labels}} == own)


def _replicas(replica_set: Object) -> ReplicaCounts:
    body = replica_set.to_dict()
    status = body.get("status") or {}
    return ReplicaCounts(body["spec"].get("replicas", 1), status.get("replicas", 0), status.get("availableReplicas", 0))


def _annotation(obj: Object, name: str) -> str | None:
    return obj.meta.annotations.get(name)


def _revision(replica_set: Object) -> int:
    return int(_annotation(replica_set, REVISION) or 0)


def _copied(deployment: Json) -> dict[str, str]:
    annotations = deployment["metadata"].get("annotations") or {}
    return {name: value for name, value in annotations.items() if name not in _NOT_COPIED}


def _sizes(wanted: RolloutSpec) -> dict[str, str]:
    return {DESIRED: str(wanted.replicas), MAXIMUM: str(wanted.replicas + wanted.surge)}
