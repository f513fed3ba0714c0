"""The programs of a control plane and their flags. Nothing is started here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from controlplane.layout import Layout

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
"""The first two are always there; the rest do not need each other."""

STAGES = Path(__file__).with_name("stages.yaml")

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-0", "labels": {"kubernetes.io/hostname": "node-0"}},
    "status": {
        "allocatable": {"cpu": "1000", "memory": "1Ti", "pods": "100000"},
        "capacity": {"cpu": "1000", "memory": "1Ti", "pods": "100000"},
    },
}
"""The one node, which kwok plays. Without a node the scheduler has no place for pods."""

USERS: Mapping[str, tuple[str, ...]] = {
    "kubernetes-admin": ("system:masters",),
    "system:kube-controller-manager": ("system:masters",),
    "system:kube-scheduler": (),
    "kwok": ("system:masters",),
}
"""Users of the components and of the administrator, with their groups. The controller manager acts for many."""


def flags(component: str, layout: Layout) -> list[str]:
    """The flags of one component."""
    match component:
        case "etcd":
            return _etcd(layout)
        case "kube-apiserver":
            return _kube_apiserver(layout)
        case "kube-controller-manager":
            return _kube_controller_manager(layout)
        case "kube-scheduler":
            return _kube_scheduler(layout)
        case "kwok":
            return _kwok(layout)
        case _:
            raise ValueError(f"no component {component!r}; there are {', '.join(COMPONENTS)}")


def _etcd(layout: Layout) -> list[str]:
    peer_url = f"http://127.0.0.1:{layout.ports.etcd_peer}"
    return [
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={layout.etcd_url}",
        f"--advertise-client-urls={layout.etcd_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        # There is no other member, and the data does not outlive the run.
        "--heartbeat-interval=20",
        "--election-timeout=200",
        "--unsafe-no-fsync",
    ]


def _kube_apiserver(layout: Layout) -> list[str]:
    return [
        f"--etcd-servers={layout.etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # it would refuse a loopback address
        f"--secure-port={layout.ports.api}",
        f"--tls-cert-file={layout.serving.certificate}",
        f"--tls-private-key-file={layout.serving.key}",
        f"--client-ca-file={layout.ca.certificate}",
        f"--requestheader-client-ca-file={layout.front_proxy_ca.certificate}",
        f"--token-auth-file={layout.token_file}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={layout.service_accounts.key}",
        f"--service-account-key-file={layout.service_accounts.certificate}",
        "--service-cluster-ip-range=10.0.0.0/16",
        f"--audit-policy-file={layout.audit_policy}",
        f"--audit-log-path={layout.audit_log}",
        "--audit-log-maxsize=0",  # never rotated: a position in it stays valid
    ]


def _kube_controller_manager(layout: Layout) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig('system:kube-controller-manager')}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--service-account-private-key-file={layout.service_accounts.key}",
        f"--root-ca-file={layout.ca.certificate}",
        f"--cluster-signing-cert-file={layout.ca.certificate}",
        f"--cluster-signing-key-file={layout.ca.key}",
        # The default of 20 requests a second makes tests wait for it.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        # And the default of 15 s would make tests of autoscalers wait.
        "--horizontal-pod-autoscaler-sync-period=1s",
    ]


def _kube_scheduler(layout: Layout) -> list[str]:
    kubeconfig = layout.kubeconfig("system:kube-scheduler")
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
    ]


def _kwok(layout: Layout) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig('kwok')}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",  # without it the node counts as lost after 50 s
        "--node-ip=10.65.0.1",
        "--cidr=10.64.0.0/16",
        f"--config={STAGES}",
    ]
