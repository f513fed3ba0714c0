"""Attachments and snapshots of volumes. The relations of claims and volumes are with the core."""

from pilotage.catalogue.kind import Ecosystem, KnownKind
from pilotage.catalogue.relation import ByName, TargetKind, claims, needs
from pilotage.catalogue.shared import A_NODE, A_VOLUME, A_VOLUME_CLAIM

_GROUP = "storage.k8s.io"
_SNAPSHOTS = "snapshot.storage.k8s.io"
_CONTENT = ByName((TargetKind(_SNAPSHOTS, "VolumeSnapshotContent", namespaced=False),))
_CLASS = needs(
    "spec.volumeSnapshotClassName", ByName((TargetKind(_SNAPSHOTS, "VolumeSnapshotClass", namespaced=False),))
)

ECOSYSTEM = Ecosystem(
    "Storage",
    (
        KnownKind(
            _GROUP,
            "VolumeAttachment",
            relations=(
                claims("spec.source.persistentVolumeName", A_VOLUME),
                needs("spec.nodeName", A_NODE),
                needs("spec.attacher", ByName((TargetKind(_GROUP, "CSIDriver", namespaced=False),))),
            ),
        ),
        KnownKind(_GROUP, "StorageClass", short_names=("sc",)),
        KnownKind(
            _SNAPSHOTS,
            "VolumeSnapshot",
            relations=(
                needs("spec.source.persistentVolumeClaimName", A_VOLUME_CLAIM),
                claims("spec.source.volumeSnapshotContentName", _CONTENT),
                claims("status.boundVolumeSnapshotContentName", _CONTENT),
                _CLASS,
            ),
        ),
        KnownKind(
            _SNAPSHOTS,
            "VolumeSnapshotContent",
            relations=(
                claims(
                    "spec.volumeSnapshotRef",
                    ByName((TargetKind(_SNAPSHOTS, "VolumeSnapshot"),), namespace="namespace"),
                    back=True,
                ),
                _CLASS,
            ),
        ),
    ),
)
