"""HorizontalPodAutoscalers, by their bounds alone: it has no metrics.

As the real one, it leaves a target with no replicas alone, pushes one below the minimum up and one above the maximum
down, and looks every 15 seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube import Absent, ObjectKey
from pilotage.runtime.types import Result
from pilotage_sim.models.common import AUTOSCALERS, CONTROLLERS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS

if TYPE_CHECKING:
    from pilotage.kube import Json, Resource
    from pilotage.runtime.controller import Context
    from pilotage.runtime.manager import Manager
    from pilotage.runtime.types import Reconcile

SYNC_SECONDS = 15.0
_TARGETS: dict[tuple[str, str], Resource] = {
    (each.api_version, each.kind): each for each in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, CONTROLLERS)
}


def add(manager: Manager) -> None:
    """Run it in a manager."""

    def make(context: Context) -> Reconcile:
        async def reconcile(key: ObjectKey) -> Result | None:
            autoscaler = context.store.get(key)
            if autoscaler is None or autoscaler.meta.terminating:
                return None
            spec = autoscaler.get("spec")
            target = spec["scaleTargetRef"]
            resource = _TARGETS.get((target.get("apiVersion", ""), target["kind"]))
            if resource is not None:
                named = ObjectKey(key.namespace, target["name"])
                try:
                    scale = await context.client.get(resource, named, subresource="scale")
                    current = scale.get("spec", "replicas", default=0)
                    if (wanted := bounded(spec, current)) != current:
                        await context.client.scale(resource, named, wanted)
                except Absent:
                    pass
            return Result(requeue_after=SYNC_SECONDS)

        return reconcile

    manager.add("hpa-model", manager.informer(AUTOSCALERS), make)


def bounded(spec: Json, current: int) -> int:
    """Number of replicas that it wants, given the present number."""
    if current == 0:
        return 0
    return int(min(max(current, spec.get("minReplicas", 1)), spec["maxReplicas"]))
