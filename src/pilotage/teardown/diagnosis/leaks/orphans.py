"""Children that lost their parent without a trace in ownerReferences: labels and names still tell who made them.

`kubectl delete --cascade=orphan` makes them, and so does a delete of a Job over the API without a propagation policy.
Where somebody is there who would adopt one, it is left to them.
"""

import re
from collections.abc import Iterator

from pilotage.catalogue.names import JOB_NAMES, JOB_UIDS
from pilotage.catalogue.relation import Relation
from pilotage.teardown.diagnosis.leaks.model import Leak, LeakCode, LeakSurvey, Severity, delete
from pilotage.teardown.diagnosis.remedies import place
from pilotage.teardown.snapshot.fields import dig, entries, mapping, selects, text
from pilotage.teardown.snapshot.world import Item

TEMPLATE_HASH = "pod-template-hash"
REVISION_HASH = "controller-revision-hash"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
CONTROLLER_MANAGER = "kube-controller-manager"
_NUMBERED = re.compile(r".+-\d+")


def leaks(survey: LeakSurvey) -> Iterator[Leak]:
    """ReplicaSets, pods, Jobs and claims that nobody owns, though somebody made them."""
    for item in _ownerless(survey, "apps", "ReplicaSet"):
        if TEMPLATE_HASH in item.meta.labels and _unselected(survey, item, ("apps", "Deployment")):
            yield _replica_set(survey, item)
    for item in _ownerless(survey, "", "Pod"):
        if maker := _gone_maker(survey, item):
            yield _pod(item, maker)
    for item in _ownerless(survey, "batch", "Job"):
        if SCHEDULED in item.meta.annotations and survey.read(("batch", "CronJob"), item.meta.namespace):
            yield _job(item)
    for item in _ownerless(survey, "", "PersistentVolumeClaim"):
        if _of_a_gone_stateful_set(survey, item):
            yield _claim(item)


def _ownerless(survey: LeakSurvey, group: str, kind: str) -> Iterator[Item]:
    return (item for item in survey.of(group, kind) if not item.meta.owner_references)


def _unselected(survey: LeakSurvey, item: Item, *kinds: tuple[str, str]) -> bool:
    """Whether no object of these kinds selects it, and would adopt it: all of them were read, in full."""
    for group, kind in kinds:
        if not survey.read((group, kind), item.meta.namespace):
            return False
        for each in survey.world.of(group, kind, item.meta.namespace):
            body = survey.world.body(each)
            if body is None or selects(dig(body, "spec", "selector"), item.meta.labels):
                return False
    return True


def _gone_maker(survey: LeakSurvey, pod: Item) -> str:
    """The vanished creator of a pod; empty where there was none, or that is not certain."""
    labels, namespace = pod.meta.labels, pod.meta.namespace
    job = next((labels[name] for name in JOB_NAMES if name in labels), "")
    if job:
        uid = next((labels[name] for name in JOB_UIDS if name in labels), "")
        there = survey.world.get(uid) if uid else survey.world.find("batch", "Job", namespace, job)
        return f"job/{job}" if there is None and survey.read(("batch", "Job"), namespace) else ""
    if wanted := labels.get(TEMPLATE_HASH):
        sets = survey.world.of("apps", "ReplicaSet", namespace)
        adoptable = any(each.meta.labels.get(TEMPLATE_HASH) == wanted for each in sets)
        gone = not adoptable and survey.read(("apps", "ReplicaSet"), namespace)
        return f"the ReplicaSet with {TEMPLATE_HASH} {wanted}" if gone else ""
    if REVISION_HASH in labels and _unselected(survey, pod, ("apps", "StatefulSet"), ("apps", "DaemonSet")):
        return "the StatefulSet or DaemonSet that made it"
    return ""


def _of_a_gone_stateful_set(survey: LeakSurvey, claim: Item) -> bool:
    """Whether a StatefulSet made it (it has such a name, and kube-controller-manager wrote it) that is gone."""
    namespace, name = claim.meta.namespace, claim.meta.name
    if not _NUMBERED.fullmatch(name) or not survey.read(("apps", "StatefulSet"), namespace):
        return False
    made = any(
        text(each, "manager") == CONTROLLER_MANAGER and mapping(each, "fieldsV1", "f:spec")
        for each in entries(claim.read(), "metadata", "managedFields")
    )
    into = survey.graph.into(claim.uid)
    used = any(edge.relation in (Relation.MOUNTS, Relation.CLAIMS) for edge in into)
    return made and not used and not _mounted(survey, claim)


def _mounted(survey: LeakSurvey, claim: Item) -> bool:
    """Whether a pod mounts it, or may: pods of controllers whose templates are not known are looked at themselves."""
    for pod in survey.world.of("", "Pod", claim.meta.namespace):
        body = survey.world.body(pod)
        volumes = entries(body, "spec", "volumes")
        if body is None or any(text(each, "persistentVolumeClaim", "claimName") == claim.meta.name for each in volumes):
            return True
    return not survey.read(("", "Pod"), claim.meta.namespace)


def _replica_set(survey: LeakSurvey, item: Item) -> Leak:
    pods = [child for child in survey.world.children(item.uid) if child.group_kind == ("", "Pod")]
    runs = f" and runs {len(pods)} pod{'s' * (len(pods) != 1)}" if pods else ""
    return Leak(
        LeakCode.REPLICASET_ORPHANED,
        item,
        f"has no Deployment any more{runs}",
        Severity.HIGH if pods else Severity.LOW,
        "Its pods run on, take traffic and resources, and are never updated."
        if pods
        else "None: only a record is left.",
        delete(item),
        "Deletes the ReplicaSet and its pods.",
        (f"it has the label {TEMPLATE_HASH} of a Deployment, no owner, and no Deployment selects it",),
    )


def _pod(item: Item, maker: str) -> Leak:
    return Leak(
        LeakCode.POD_ORPHANED,
        item,
        f"is left over: {maker} is gone, and nothing deletes its pods",
        Severity.HIGH,
        "It runs on, or keeps its record and its logs, and nothing replaces or ends it.",
        delete(item),
        "Ends the pod, if it still runs. Nothing recreates it.",
        ("its labels name who made it, and it has no owner",),
    )


def _job(item: Item) -> Leak:
    return Leak(
        LeakCode.JOB_ORPHANED,
        item,
        "was made by a CronJob and has no owner any more: no history limit removes it",
        Severity.LOW,
        "It and its pods stay until a person deletes them.",
        delete(item),
        "Deletes the Job and its pods, and with them their logs.",
        (f"it has the annotation {SCHEDULED}, and no owner",),
    )


def _claim(item: Item) -> Leak:
    return Leak(
        LeakCode.CLAIM_OF_GONE_STATEFULSET,
        item,
        "was made for a StatefulSet that is gone, and no pod mounts it",
        Severity.MEDIUM,
        "The storage behind it is kept, and paid for.",
        f"kubectl delete {place(item)}",
        "LOSES ITS DATA, unless the reclaim policy of its volume is Retain. Save it first if it is needed.",
        ("a StatefulSet leaves its claims behind by default (persistentVolumeClaimRetentionPolicy)",),
    )
