"""Projects of Kubernetes SIGs: LeaderWorkerSet, Kueue, Cluster API, Karpenter."""

from pilotage.catalogue.kind import Ecosystem, KnownFinalizer, KnownKind
from pilotage.catalogue.phase import Phase

ECOSYSTEM = Ecosystem(
    "Kubernetes SIGs",
    (KnownKind("leaderworkerset.x-k8s.io", "LeaderWorkerSet", phase=Phase.STOP, workload=True),),
    (
        KnownFinalizer(
            ("kueue.x-k8s.io/*",),
            "Kueue",
            "gives back the quota and waits until nothing uses the object",
            "quota that counts as used.",
            ("kueue-controller-manager",),
            ("kueue-system",),
        ),
        KnownFinalizer(
            ("*.infrastructure.cluster.x-k8s.io", "*.infrastructure.cluster.x-k8s.io/*"),
            "Cluster API infrastructure provider",
            "deletes machines and networks at the provider",
            "machines, disks and networks at the provider: they stay, and are paid for.",
            ("cap*-controller-manager",),
        ),
        KnownFinalizer(
            ("*.cluster.x-k8s.io", "*.cluster.x-k8s.io/*", "cluster.x-k8s.io/*"),
            "Cluster API",
            "drains the node and deletes the machine, in order",
            "machines and what they are made of: they stay at the provider, and are paid for.",
            ("capi-*controller-manager",),
            ("capi-system", "capi-kubeadm-bootstrap-system", "capi-kubeadm-control-plane-system"),
            leases=("controller-leader-election-capi",),
        ),
        KnownFinalizer(
            ("karpenter.sh/termination", "karpenter.*/termination", "karpenter.*/*"),
            "Karpenter",
            "drains the node and ends its machine",
            "the machine: it runs on without a Node, and is paid for.",
            ("karpenter",),
            ("karpenter", "kube-system"),
            (("app.kubernetes.io/name", "karpenter"),),
            ("karpenter-leader-election",),
        ),
    ),
)
