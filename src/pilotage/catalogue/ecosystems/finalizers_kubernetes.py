"""Finalizers of Kubernetes itself, its cloud controllers and its storage sidecars."""

from pilotage.catalogue.kind import Ecosystem, KnownFinalizer

_MANAGER = "kube-controller-manager"
_MANAGER_WORKLOADS = (_MANAGER, f"{_MANAGER}-*")
_SYSTEM = ("kube-system",)


def _managed(pattern: str, who: str, does: str, leaks: str) -> KnownFinalizer:
    """A row of a controller that is part of kube-controller-manager."""
    return KnownFinalizer((pattern,), who, does, leaks, _MANAGER_WORKLOADS, _SYSTEM, leases=(_MANAGER,), builtin=True)


ECOSYSTEM = Ecosystem(
    "Kubernetes",
    finalizers=(
        _managed(
            "foregroundDeletion",
            "garbage collector (kube-controller-manager)",
            "deletes what the object owns and waits for those that block it",
            "nothing for good: what it owns is collected afterwards, but in any order.",
        ),
        _managed(
            "orphan",
            "garbage collector (kube-controller-manager)",
            "takes its owner reference off what it owns, so that these stay",
            "what it owns would be collected, although it was asked to stay.",
        ),
        _managed(
            "kubernetes",
            "namespace controller (kube-controller-manager)",
            "deletes everything in the namespace",
            "everything still in the namespace: out of reach, until a namespace of that name is made again.",
        ),
        _managed(
            "kubernetes.io/pvc-protection",
            "PVC protection controller (kube-controller-manager)",
            "waits until no pod uses the claim",
            "the volume is taken from under pods that still use it: their writes may be lost.",
        ),
        _managed(
            "kubernetes.io/pv-protection",
            "PV protection controller (kube-controller-manager)",
            "waits until no claim is bound to the volume",
            "the claim that is bound to it is left without its volume, and the disk behind it without a record.",
        ),
        _managed(
            "kubernetes.io/pv-controller",
            "persistent volume controller (kube-controller-manager)",
            "deletes the disk behind the volume",
            "the disk behind the volume: it stays, and is paid for.",
        ),
        _managed(
            "kubernetes.io/vac-protection",
            "VolumeAttributesClass protection controller (kube-controller-manager)",
            "waits until no claim or volume uses the class",
            "claims and volumes that name a class which is not there.",
        ),
        _managed(
            "batch.kubernetes.io/job-tracking",
            "job controller (kube-controller-manager)",
            "counts the pod in its Job's status",
            "nothing outside the cluster; the Job may count the pod wrongly, and run it once more.",
        ),
        _managed(
            "resource.kubernetes.io/delete-protection",
            "resource claim controller (kube-controller-manager) and the scheduler",
            "waits until no pod uses the devices",
            "devices that a pod still uses, which may be given to another one.",
        ),
        _managed(
            "networking.k8s.io/service-cidr-finalizer",
            "service CIDR controller (kube-controller-manager)",
            "waits until no Service has an address of the range",
            "Services whose addresses no range accounts for.",
        ),
        KnownFinalizer(
            ("customresourcecleanup.apiextensions.k8s.io",),
            "kube-apiserver",
            "deletes all objects of the kind",
            "all objects of the kind: they stay in storage, and come back with a definition of that name.",
            ("kube-apiserver", "kube-apiserver-*"),
            _SYSTEM,
            builtin=True,
        ),
        KnownFinalizer(
            ("service.kubernetes.io/load-balancer-cleanup",),
            "service controller (cloud-controller-manager)",
            "deletes the cloud's load balancer",
            "the cloud's load balancer: it stays, keeps its address, and is paid for.",
            ("cloud-controller-manager*", "*-cloud-controller-manager*", "*-ccm", "ccm"),
            _SYSTEM,
            leases=("cloud-controller-manager",),
        ),
        KnownFinalizer(
            ("external-attacher/*",),
            "CSI external-attacher",
            "detaches the volume from its node",
            "the volume stays attached to its node: it cannot be attached elsewhere, or is written from two sides.",
            ("csi-*", "*-csi-*", "*-csi"),
            _SYSTEM,
            leases=("external-attacher-leader-*",),
        ),
        KnownFinalizer(
            ("external-provisioner.volume.kubernetes.io/finalizer",),
            "CSI external-provisioner",
            "deletes the disk behind the volume",
            "the disk behind the volume: it stays, and is paid for.",
            ("csi-*", "*-csi-*", "*-csi", "*-provisioner"),
            _SYSTEM,
            leases=("*-provisioner", "external-provisioner-*", "*-csi-*"),
        ),
        KnownFinalizer(
            ("external-resizer/*",),
            "CSI external-resizer",
            "finishes the resize of the volume",
            "a volume whose size is not what its claim says.",
            ("csi-*", "*-csi-*", "*-csi"),
            _SYSTEM,
            leases=("external-resizer-*",),
        ),
        KnownFinalizer(
            ("snapshot.storage.kubernetes.io/*",),
            "snapshot controller",
            "waits until nothing is made from it and deletes the snapshot",
            "the snapshot in the storage system: it stays, and is paid for.",
            ("snapshot-controller", "*-snapshot-controller", "csi-snapshotter*"),
            _SYSTEM,
            leases=("snapshot-controller-leader",),
        ),
    ),
)
