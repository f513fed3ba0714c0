"""Attachments and snapshots of volumes. What claims and volumes say of each other is with the core."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import NODE, VOLUME, VOLUME_CLAIM
from pilotage.teardown.relations.rows import Kind, Named, Relation, Row

_GROUP = "storage.k8s.io"
_SNAPSHOTS = "snapshot.storage.k8s.io"
_CONTENT = Named((Kind(_SNAPSHOTS, "VolumeSnapshotContent", namespaced=False),))
_SNAPSHOT_CLASS = Named((Kind(_SNAPSHOTS, "VolumeSnapshotClass", namespaced=False),))
_DRIVER = Named((Kind(_GROUP, "CSIDriver", namespaced=False),))

ROWS = (
    Row(_GROUP, "VolumeAttachment", Relation.CLAIMS, "spec.source.persistentVolumeName", Named((VOLUME,))),
    Row(_GROUP, "VolumeAttachment", Relation.NEEDS, "spec.nodeName", Named((NODE,))),
    Row(_GROUP, "VolumeAttachment", Relation.NEEDS, "spec.attacher", _DRIVER),
    Row(
        _SNAPSHOTS,
        "VolumeSnapshot",
        Relation.NEEDS,
        "spec.source.persistentVolumeClaimName",
        Named((VOLUME_CLAIM,)),
    ),
    Row(_SNAPSHOTS, "VolumeSnapshot", Relation.CLAIMS, "spec.source.volumeSnapshotContentName", _CONTENT),
    Row(_SNAPSHOTS, "VolumeSnapshot", Relation.CLAIMS, "status.boundVolumeSnapshotContentName", _CONTENT),
    Row(_SNAPSHOTS, "VolumeSnapshot", Relation.NEEDS, "spec.volumeSnapshotClassName", _SNAPSHOT_CLASS),
    Row(
        _SNAPSHOTS,
        "VolumeSnapshotContent",
        Relation.CLAIMS,
        "spec.volumeSnapshotRef",
        Named((Kind(_SNAPSHOTS, "VolumeSnapshot"),), namespace="namespace"),
        back=True,
    ),
    Row(_SNAPSHOTS, "VolumeSnapshotContent", Relation.NEEDS, "spec.volumeSnapshotClassName", _SNAPSHOT_CLASS),
)
