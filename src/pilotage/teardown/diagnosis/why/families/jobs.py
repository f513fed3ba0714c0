"""Jobs: their pods are orphaned by a plain API delete, hold a tracking finalizer, and CronJobs make new ones."""

from collections.abc import Iterator

from pilotage.catalogue.names import JOB_NAMES, JOB_UIDS
from pilotage.teardown.diagnosis.remedies import DELETE, Remedy, delete_by_hand, place, strip_finalizer
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.fields import few
from pilotage.teardown.snapshot.world import Item

TRACKING = "batch.kubernetes.io/job-tracking"


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Causes that hold a Job or its pod, and the pods that a Job leaves behind."""
    if item.group_kind == ("", "Pod"):
        yield from _pod(context, item)
    elif item.group_kind == ("batch", "Job") and context.asked_about(item):
        yield from _job(context, item)


def _label(item: Item, names: tuple[str, ...]) -> str:
    return next((item.meta.labels[name] for name in names if name in item.meta.labels), "")


def _pod(context: WhyContext, pod: Item) -> Iterator[StuckCause]:
    world = context.world
    name, uid = _label(pod, JOB_NAMES), _label(pod, JOB_UIDS)
    if not name or world.problem("batch", "Job", pod.meta.namespace):
        return
    job = world.get(uid) if uid else world.find("batch", "Job", pod.meta.namespace, name)
    if job is not None:
        return
    other = world.find("batch", "Job", pod.meta.namespace, name)
    taken = f"; the Job of that name now is another one ({other.uid})" if other and uid else ""
    gone = f"its Job {name} is gone{taken}"
    if TRACKING in pod.meta.finalizers:
        context.claim(pod, TRACKING)
        evidence = [f"its labels name the Job {name} ({uid or 'no uid'}); no such Job is there"]
        if (owner := pod.meta.controller) and owner.kind != "Job":
            evidence.append(f"the Job controller does not touch it: {owner.kind} {owner.name} controls it")
        yield StuckCause(
            CauseCode.JOB_TRACKING_LEFT,
            pod,
            f"has the finalizer {TRACKING}, and {gone}: no controller counts it any more",
            tuple(evidence),
            remedies=(
                strip_finalizer(
                    pod,
                    TRACKING,
                    "Nothing leaks: there is no Job left that could count it.",
                    "Remove the finalizer: it only keeps the pod until its Job has counted it",
                ),
            ),
        )
    elif not pod.terminating:
        dangling = any(owner.kind == "Job" for owner in pod.meta.owner_references)
        yield StuckCause(
            CauseCode.JOB_POD_ORPHANED,
            pod,
            f"is left over: {gone}, and nothing deletes its pods"
            + (" but the garbage collector, which has not come by yet" if dangling else ""),
            ("a delete of a Job without a propagation policy orphans its pods",),
            remedies=(delete_by_hand(pod, "Delete the pod", "It ends, if it still runs. Nothing leaks."),),
        )


def _job(context: WhyContext, job: Item) -> Iterator[StuckCause]:
    world = context.world
    pods = [pod for pod in world.of("", "Pod", job.meta.namespace) if _label(pod, JOB_UIDS) == job.uid]
    orphans = [pod for pod in pods if not any(owner.uid == job.uid for owner in pod.meta.owner_references)]
    if orphans:
        yield StuckCause(
            CauseCode.JOB_PODS_NOT_OWNED,
            orphans[0],
            f"is not owned by {job} any more, and stays when that goes",
            (f"pods without an ownerReference to it: {few([pod.meta.name for pod in orphans])}",),
        )
    owner = job.meta.controller
    cron = world.get(owner.uid) if owner and owner.kind == "CronJob" else None
    if cron is not None and not cron.terminating and not job.terminating:
        yield StuckCause(
            CauseCode.JOB_MADE_BY_CRONJOB,
            cron,
            f"creates another Job like {job} at its next scheduled time, whether this one is deleted or not",
            remedies=(
                Remedy(
                    "Suspend the CronJob, or delete it with its Jobs",
                    f'kubectl patch {place(cron)} -p \'{{"spec":{{"suspend":true}}}}\'',
                    "No new Job is made. Nothing leaks.",
                    DELETE,
                    cron,
                ),
            ),
        )
