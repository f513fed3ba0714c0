"""Volumes: claims that pods use, volumes that claims hold, attachments on lost nodes, and what stays by intent."""

from collections.abc import Iterator
from shlex import quote

from pilotage.teardown.diagnosis.remedies import FORCE, Remedy, delete_by_hand, look_at
from pilotage.teardown.diagnosis.why.backends import lost_node
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.fields import counted, dig, entries, few, text
from pilotage.teardown.snapshot.world import Item, World

PVC_PROTECTION = "kubernetes.io/pvc-protection"
PV_PROTECTION = "kubernetes.io/pv-protection"
PROVISIONER = ("external-provisioner.volume.kubernetes.io/finalizer", "kubernetes.io/pv-controller")
_STORAGE = "storage.k8s.io"


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Causes that keep a claim, a volume or an attachment."""
    match item.group_kind:
        case ("", "PersistentVolumeClaim"):
            yield from _claim(context, item)
        case ("", "PersistentVolume"):
            yield from _volume(context, item)
        case (group, "VolumeAttachment") if group == _STORAGE:
            yield from _attachment(context, item)


# Claims


def _claim(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    pods = _users(context, item)
    if pods and (PVC_PROTECTION in item.meta.finalizers or not item.terminating):
        context.claim(item, PVC_PROTECTION)
        yield _in_use(context, item, pods)
    if not item.terminating and (owner := _stateful_set(context, item)):
        yield StuckCause(
            CauseCode.PVC_KEPT_BY_STATEFULSET,
            item,
            f"belongs to {owner}, and stays when that goes: its data is kept until a person deletes the claim",
            ("persistentVolumeClaimRetentionPolicy.whenDeleted of the StatefulSet is Retain, which is the default",),
        )


def _users(context: WhyContext, claim: Item) -> list[Item]:
    """The pods that hold it, by the protection controller's own rule: those that have a node, ended or not."""
    namespace = claim.meta.namespace
    if problem := context.world.problem("", "Pod", namespace):
        context.unread(f"pods: {problem}")
    found = []
    for pod in context.world.of("", "Pod", namespace):
        body = context.body(pod)
        if text(body, "spec", "nodeName") and _mounts(pod, body, claim):
            found.append(pod)
    return found


def _mounts(pod: Item, body: object, claim: Item) -> bool:
    for volume in entries(body, "spec", "volumes"):
        if text(volume, "persistentVolumeClaim", "claimName") == claim.meta.name:
            return True
        made_for_it = any(owner.uid == pod.uid for owner in claim.meta.owner_references)
        if made_for_it and dig(volume, "ephemeral") and claim.meta.name == f"{pod.meta.name}-{text(volume, 'name')}":
            return text(body, "status", "phase") not in ("Succeeded", "Failed")
    return False


def _in_use(context: WhyContext, item: Item, pods: list[Item]) -> StuckCause:
    going = [pod for pod in pods if pod.terminating]
    staying = [pod for pod in pods if not pod.terminating]
    because = [_pod_stays(context, pod) for pod in staying[:3]]
    for group in context.groups(going):
        because += context.causes_of(group.example)
    waits = "waits" if item.terminating else "would wait"
    return StuckCause(
        CauseCode.PVC_IN_USE,
        item,
        f"{waits} until no pod uses it: {few([str(pod.meta.name) for pod in pods])} "
        f"{'does' if len(pods) == 1 else 'do'}",
        (f"{counted(len(pods), 'pod')} with a node mount it, {len(going)} of them being deleted",),
        because=tuple(because),
        remedies=() if because else (look_at(pods[0], "Look at the pod", "Nothing changes."),),
    )


def _pod_stays(context: WhyContext, pod: Item) -> StuckCause:
    top = _top_owner(context.world, pod)
    phase = text(context.body(pod), "status", "phase") or "present"
    target = top or pod
    made = f"; {top} makes it again if it is deleted" if top else ""
    return StuckCause(
        CauseCode.POD_USES_CLAIM,
        pod,
        f"uses the claim and is not being deleted ({phase}){made}",
        remedies=(
            delete_by_hand(
                target,
                f"Delete {target}, if it is to go as well",
                "Its pods end, and the claim goes by itself then. Nothing leaks.",
            ),
        ),
    )


def _top_owner(world: World, item: Item) -> Item | None:
    """The workload at the top of the line of controllers."""
    top = None
    seen = {item.uid}
    while (owner := item.meta.controller) and owner.uid not in seen and (found := world.get(owner.uid)):
        seen.add(owner.uid)
        top = item = found
    return top


def _stateful_set(context: WhyContext, claim: Item) -> Item | None:
    """The StatefulSet that made it, which does not own it unless its retention policy says so."""
    if claim.meta.owner_references:
        return None
    for owner in context.world.of("apps", "StatefulSet", claim.meta.namespace):
        for template in entries(context.body(owner), "spec", "volumeClaimTemplates"):
            prefix = f"{text(template, 'metadata', 'name')}-{owner.meta.name}-"
            if claim.meta.name.startswith(prefix) and claim.meta.name.removeprefix(prefix).isdecimal():
                return owner
    return None


# Volumes


def _volume(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    world = context.world
    body = context.body(item)
    phase = text(body, "status", "phase")
    if item.terminating and phase == "Bound" and PV_PROTECTION in item.meta.finalizers:
        context.claim(item, PV_PROTECTION)
        yield _bound(context, item, body)
    attached = [each for each in world.of(_STORAGE, "VolumeAttachment") if _attaches(context, each, item)]
    if attached and item.terminating and (held := [name for name in item.meta.finalizers if name in PROVISIONER]):
        for finalizer in held:
            context.claim(item, finalizer)
        because = tuple(cause for each in attached for cause in context.causes_of(each))
        yield StuckCause(
            CauseCode.PV_ATTACHED,
            item,
            "waits until it is attached to no node: only then its storage can be deleted",
            tuple(f"{each} says that it is attached to {_node_of(context, each)}" for each in attached),
            because=because,
            remedies=() if because else (look_at(attached[0], "Look at the attachment", "Nothing changes."),),
        )
    retained = text(body, "spec", "persistentVolumeReclaimPolicy") == "Retain"
    if not item.terminating and phase == "Released" and retained:
        yield StuckCause(
            CauseCode.PV_RETAINED,
            item,
            "is kept on purpose: its claim is gone, and its reclaim policy is Retain",
            (f"its claim was {_claim_name(body)}",),
            remedies=(
                delete_by_hand(
                    item,
                    "Delete the volume once its data is saved or not needed",
                    "LEAKS: the record goes; the storage behind it stays, and may cost money, until it is deleted too.",
                    FORCE,
                ),
            ),
        )


def _claim_name(body: object) -> str:
    return f"{text(body, 'spec', 'claimRef', 'namespace')}/{text(body, 'spec', 'claimRef', 'name')}"


def _bound(context: WhyContext, item: Item, body: object) -> StuckCause:
    namespace, name = text(body, "spec", "claimRef", "namespace"), text(body, "spec", "claimRef", "name")
    claim = context.world.find("", "PersistentVolumeClaim", namespace, name)
    because: tuple[StuckCause, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    if claim and claim.terminating:
        because = context.causes_of(claim)
    elif claim:
        remedies = (
            delete_by_hand(
                claim,
                "Delete the claim, if its data may go",
                "The volume goes with it, and its storage by its reclaim policy.",
            ),
        )
    going = " (which is being deleted)" if claim and claim.terminating else ""
    return StuckCause(
        CauseCode.PV_BOUND,
        item,
        f"waits for its claim {_claim_name(body)} to let go of it{going}",
        ("its phase is Bound",),
        because=because,
        remedies=remedies,
    )


# Attachments


def _attaches(context: WhyContext, attachment: Item, volume: Item) -> bool:
    return text(context.body(attachment), "spec", "source", "persistentVolumeName") == volume.meta.name


def _node_of(context: WhyContext, attachment: Item) -> str:
    return text(context.body(attachment), "spec", "nodeName")


def _attachment(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    body = context.body(item)
    node = text(body, "spec", "nodeName")
    lost = lost_node(context.world, node)
    if lost is None:
        return
    for finalizer in item.meta.finalizers:
        context.claim(item, finalizer)
    error = text(body, "status", "detachError", "message")
    yield StuckCause(
        CauseCode.VOLUME_ATTACHED_TO_LOST_NODE,
        item,
        f"says that a volume is attached to node {node}, which cannot confirm that it is not",
        (f"the attacher says: {error}",) if error else (),
        because=(lost,),
        remedies=(
            Remedy(
                "If the machine is certainly off, declare it out of service: its volumes are detached by force",
                f"kubectl taint nodes {quote(node)} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
                "The volumes can be used elsewhere. If the machine still runs and writes, data may be damaged.",
                FORCE,
                item,
            ),
        ),
    )
