"""Readiness of a Deployment, from its status."""

from pilotage.api.endpoint import EndpointSpec
from pilotage.kube import Object
from pilotage.kube.wire import Json
from pilotage.serving.parts import Readiness
from pilotage.serving.revision import replicas_of

NOT_OBSERVED = "NotObserved"
"""Reason while the status of a Deployment is older than its spec."""


def condition(seen: Object, type_: str) -> Json:
    """A condition from the status, or an empty one."""
    found: list[Json] = seen.get("status", "conditions", default=None) or []
    return next((each for each in found if each.get("type") == type_), {})


def readiness_of(spec: EndpointSpec, deployment: Object | None, *, whole_deadline: bool = True) -> Readiness:
    """Whether a Deployment has the replicas that an endpoint wants.

    A status that is older than the spec says nothing: it may count pods that are about to go. `whole_deadline`: its
    deadline for progress gives a start all the time that it may take, so that one that exceeds it has failed.
    """
    least = replicas_of(spec)
    if deployment is None:
        return Readiness(0, least, False, "NotCreated", "Its Deployment does not exist yet.")
    status: Json = deployment.get("status", default=None) or {}
    # Autoscaled, it has more than the least at times.
    now = deployment.get("spec", "replicas", default=1) if spec.autoscaling is not None else least
    desired = max(now, least)
    ready = status.get("availableReplicas", 0)
    if status.get("observedGeneration", 0) < deployment.meta.generation:
        return Readiness(
            ready, desired, False, NOT_OBSERVED, "The Deployment controller has not observed the last change yet."
        )
    counted = f"{ready} of {desired} replicas are ready"
    if ready >= least:
        if desired == 0:
            return Readiness(0, 0, True, "ScaledToZero", "No replicas are wanted.")
        return Readiness(ready, desired, True, "ReplicasReady", f"{counted}.")
    refused = condition(deployment, "ReplicaFailure")
    if refused.get("status") == "True":
        message = f"Pods cannot be created: {refused.get('message', '').rstrip('. ')} ({counted})."
        reason = refused.get("reason") or "ReplicaFailure"
        return Readiness(ready, desired, False, reason, message, failed=True, troubled=True)
    progress = condition(deployment, "Progressing")
    if progress.get("status") == "False" and progress.get("reason") == "ProgressDeadlineExceeded":
        late = "The time for a start is over" if whole_deadline else "It takes longer than its controller expects"
        message = f"{late} ({counted})."
        reason = "ProgressDeadlineExceeded"
        return Readiness(ready, desired, False, reason, message, failed=whole_deadline, troubled=True)
    return Readiness(ready, desired, False, "ReplicasStarting", f"{counted}.")
