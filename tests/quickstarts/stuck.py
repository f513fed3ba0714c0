"""A cluster on which a dozen things do not go away: made from stuck.yaml, and cleared whatever holds them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from controlplane import Cluster
from controlplane.access import KubectlError, wait_for

MANIFESTS = Path(__file__).with_name("stuck.yaml")
DELETED = (
    "namespace/old-shop",
    "namespace/old-team",
    "pvc/data -n shop",
    "deployment/web -n shop --cascade=foreground",
    "service/entry -n shop",
    "job/migrate -n shop --cascade=orphan",
    "pv/disk-7",
    "crd/backups.acme.example.com",
    "servingendpoint/assistant -n shop",
)
APISERVICE = """\
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.custom.metrics.k8s.io}
spec:
  group: custom.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: metrics-adapter, namespace: monitoring}
"""
FREE = '{"metadata": {"finalizers": null}}'


@contextlib.contextmanager
def stuck(cluster: Cluster) -> Iterator[None]:
    """Make all of it, for the time of the block."""
    manifests = list(yaml.safe_load_all(MANIFESTS.read_text(encoding="utf-8")))
    try:
        _create(cluster, manifests)
        _delete(cluster)
        yield
    finally:
        _clear(cluster, manifests)


def _create(cluster: Cluster, manifests: Sequence[dict[str, Any]]) -> None:
    kinds = [each for each in manifests if each["kind"] == "CustomResourceDefinition"]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(kinds))
    cluster.kubectl("wait", "--for=condition=Established", *(f"crd/{each['metadata']['name']}" for each in kinds))
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(manifests))
    for workload in ("statefulset/db", "deployment/web", "deployment/api"):
        cluster.kubectl("rollout", "status", workload, "-n", "shop", "--timeout=60s")
    wait_for("pod of the Job", lambda: _pods(cluster, "job-name=migrate"))


def _pods(cluster: Cluster, selector: str) -> str:
    return cluster.kubectl("get", "pods", "-l", selector, "-n", "shop", "-o", "name").strip()


def _delete(cluster: Cluster) -> None:
    """Delete what is to be stuck, and wait until the controllers have done what they can."""
    for each in DELETED:
        cluster.kubectl("delete", "--wait=false", *each.split())
    for each in ("NamespaceFinalizersRemaining namespace/old-shop", "Terminating crd/backups.acme.example.com"):
        condition, what = each.split()
        cluster.kubectl("wait", f"--for=condition={condition}", what, "--timeout=60s")


def _clear(cluster: Cluster, manifests: Sequence[dict[str, Any]]) -> None:
    """Take the finalizers off what is left, and delete it."""
    cluster.kubectl("delete", "apiservice", "v1beta1.custom.metrics.k8s.io", "--ignore-not-found")
    with contextlib.suppress(KubectlError):  # it is gone, or was not made
        cluster.kubectl("patch", _pods(cluster, "app=web"), "-n", "shop", "--type=merge", "-p", FREE)
    for each in reversed(manifests):
        meta = each["metadata"]
        what = [each["kind"], meta["name"], *(["-n", meta["namespace"]] if "namespace" in meta else [])]
        with contextlib.suppress(KubectlError):
            if "finalizers" in meta:
                cluster.kubectl("patch", *what, "--type=merge", "-p", FREE)
            cluster.kubectl("delete", "--wait=false", "--ignore-not-found", *what)
