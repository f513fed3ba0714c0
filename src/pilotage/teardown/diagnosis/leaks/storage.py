"""Volumes whose claim is gone, and attachments to nodes that are gone."""

from collections.abc import Iterator

from pilotage.kube import Json
from pilotage.teardown.diagnosis.leaks.model import Leak, LeakCode, LeakSurvey, Severity
from pilotage.teardown.diagnosis.remedies import place
from pilotage.teardown.snapshot.fields import seconds_since, span, text
from pilotage.teardown.snapshot.world import Item, Name

RECLAIM_SECONDS = 300
"""Time in which the storage behind a released volume should be deleted."""


def leaks(survey: LeakSurvey) -> Iterator[Leak]:
    """Storage that nobody uses, and is kept."""
    for item in survey.of("", "PersistentVolume"):
        yield from _volume(survey, item, survey.world.body(item) or {})
    for item in survey.of("storage.k8s.io", "VolumeAttachment"):
        yield from _attachment(survey, item, survey.world.body(item) or {})


def _volume(survey: LeakSurvey, item: Item, body: Json) -> Iterator[Leak]:
    claim = Name(
        "",
        "PersistentVolumeClaim",
        text(body, "spec", "claimRef", "namespace"),
        text(body, "spec", "claimRef", "name"),
    )
    phase = text(body, "status", "phase")
    released = seconds_since(survey.world.now, text(body, "status", "lastPhaseTransitionTime"))
    since = f" for {span(released)}" if released is not None else ""
    look, code = f"kubectl describe {place(item)}", LeakCode.VOLUME_RELEASED
    if phase == "Failed":
        code = LeakCode.VOLUME_FAILED
        said = f"could not be reclaimed{since}: {text(body, 'status', 'message') or 'it gives no reason'}"
        command, effect = (
            look,
            "Fix what it reports. Deleting the record alone leaves the storage behind it, out of sight.",
        )
    elif phase == "Released" and text(body, "spec", "persistentVolumeReclaimPolicy") == "Retain":
        said = f"is released{since} and kept by its reclaim policy Retain: its claim is gone"
        command = f"kubectl delete {place(item)}"
        effect = "The record goes; THE STORAGE BEHIND IT STAYS until it is deleted where it is. Save its data first."
    elif phase == "Released" and released is not None and released >= RECLAIM_SECONDS:
        said = f"is released{since}, and its storage has not been deleted, though its reclaim policy says so"
        command, effect = look, "Find out why its provisioner does not delete it; then it goes by itself."
    else:
        return
    costs = "The storage behind it is kept, and paid for."
    yield Leak(code, item, said, Severity.MEDIUM, costs, command, effect, (f"its claim was {claim}",), claim)


def _attachment(survey: LeakSurvey, item: Item, body: Json) -> Iterator[Leak]:
    node = Name("", "Node", "", text(body, "spec", "nodeName"))
    if node.name and survey.gone(node):
        volume = text(body, "spec", "source", "persistentVolumeName")
        yield Leak(
            LeakCode.ATTACHED_TO_GONE_NODE,
            item,
            f"says that {f'volume {volume}' if volume else 'a volume'} is attached to {node}, which does not exist",
            Severity.HIGH,
            "The volume can be attached to no other node, and pods that need it do not start.",
            f"kubectl delete {place(item)}",
            "The attacher detaches the volume. Make sure that the machine is off: if it still writes, data is damaged.",
            (),
            node,
        )
