"""The status of a Deployment: its counters, and the conditions Available and Progressing."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from pilotage.kube.wire import parse_time
from pilotage.runtime.clock import utc_now
from pilotage.runtime.types import Result
from pilotage_sim.models.common import DEPLOYMENTS, now_text, status_text, with_condition, write_status
from pilotage_sim.models.rollout import RolloutSpec

if TYPE_CHECKING:
    from pilotage.kube import Client, Json, Object

NEVER = 2**31 - 1


async def report(
    client: Client, deployment: Object, body: Json, sets: list[Object], new: Object | None
) -> Result | None:
    """Write the status if it has changed; asks to be called again when a rollout may run out of time."""
    counts = _counts(sets, new)
    replicas = body["spec"].get("replicas", 1)
    missing = max(0, sum(each.get("spec", "replicas", default=1) for each in sets) - counts["availableReplicas"])
    status: Json = {name: count for name, count in counts.items() if count or name == "terminatingReplicas"}
    if missing:
        status["unavailableReplicas"] = missing
    status["observedGeneration"] = deployment.meta.generation
    wanted = RolloutSpec.of(body["spec"])
    enough = counts["availableReplicas"] >= replicas - wanted.unavailable
    old = body.get("status") or {}
    conditions = old.get("conditions") or []
    again = None
    if not deployment.meta.terminating:
        complete = (
            counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == replicas
            and new is not None
        )
        conditions, again = _progressing(body, conditions, status, new, complete=complete)
    conditions = _set(
        conditions,
        "Available",
        status=enough,
        reason=f"MinimumReplicas{'A' if enough else 'Una'}vailable",
        message=f"Deployment {'has' if enough else 'does not have'} minimum availability.",
    )
    status["conditions"] = conditions
    await write_status(client, DEPLOYMENTS, deployment, status)
    return again


def _counts(sets: list[Object], new: Object | None) -> dict[str, int]:
    def total(name: str) -> int:
        return sum(each.get("status", name, default=0) for each in sets)

    own = next((each for each in sets if new is not None and each.meta.uid == new.meta.uid), new)
    return {
        "replicas": total("replicas"),
        "updatedReplicas": own.get("status", "replicas", default=0) if own is not None else 0,
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": total("availableReplicas"),
        "terminatingReplicas": total("terminatingReplicas"),
    }


def _progressing(
    body: Json, conditions: list[Json], status: Json, new: Object | None, *, complete: bool
) -> tuple[list[Json], Result | None]:
    """Whether the rollout gets on: it does as long as a counter moves within the deadline."""
    deadline = body["spec"].get("progressDeadlineSeconds", NEVER)
    current = next((each for each in conditions if each["type"] == "Progressing"), None)
    if deadline >= NEVER:
        return conditions, None
    halted = _halted(conditions, current, paused=bool(body["spec"].get("paused")))
    if halted is not None:
        return halted, None
    name = new.meta.name if new is not None else body["metadata"]["name"]
    if complete:
        message = f'ReplicaSet "{name}" has successfully progressed.'
        return _set(conditions, "Progressing", status=True, reason="NewReplicaSetAvailable", message=message), None
    old = body.get("status") or {}
    moved = any(
        old.get(each, 0) != status.get(each, 0) for each in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    if current is None:
        message = f'Created new replica set "{name}"'
        made = _set(conditions, "Progressing", status=True, reason="NewReplicaSetCreated", message=message)
        return made, Result(requeue_after=float(deadline))
    if moved or current["reason"] == "NewReplicaSetAvailable":
        message = f'ReplicaSet "{name}" is progressing.'
        again = Result(requeue_after=float(deadline))
        return _set(conditions, "Progressing", status=True, reason="ReplicaSetUpdated", message=message), again
    late = parse_time(current["lastUpdateTime"]) + dt.timedelta(seconds=deadline) - utc_now()
    if late.total_seconds() > 0 or current["reason"] == "ProgressDeadlineExceeded":
        return conditions, Result(requeue_after=late.total_seconds()) if late.total_seconds() > 0 else None
    message = f'ReplicaSet "{name}" has timed out progressing.'
    return _set(conditions, "Progressing", status=False, reason="ProgressDeadlineExceeded", message=message), None


def _halted(conditions: list[Json], current: Json | None, *, paused: bool) -> list[Json] | None:
    """A paused Deployment does not know whether it gets on, nor does one that has just been resumed."""
    reason = current["reason"] if current is not None else ""
    if paused:
        return _set(conditions, "Progressing", status=None, reason="DeploymentPaused", message="Deployment is paused")
    if reason == "DeploymentPaused":
        return _set(conditions, "Progressing", status=None, reason="DeploymentResumed", message="Deployment is resumed")
    return None


def _set(conditions: list[Json], type_: str, *, status: bool | None, reason: str, message: str) -> list[Json]:
    """A condition of a Deployment also says when it was last written; one that says the same is left alone."""
    old = next((each for each in conditions if each["type"] == type_), None)
    same = old is not None and (old["status"], old["reason"]) == (status_text(status=status), reason)
    if same and (type_, reason) != ("Progressing", "ReplicaSetUpdated"):
        return conditions
    return with_condition(conditions, type_, status=status, reason=reason, message=message, lastUpdateTime=now_text())
