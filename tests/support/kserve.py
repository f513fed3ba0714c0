"""The fixture `kserve`: KServe's real manager beside the cluster of the session. `tools` builds it."""

import sys
from collections.abc import Iterator

import pytest

from controlplane import Cluster
from field.kserve import KINDS, NAMESPACE, KServe, configuration
from tests.teardown.staged import install, theirs

CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


@pytest.fixture
def kserve_kinds(own_cluster: Cluster) -> None:
    """Kinds of KServe, served without a controller."""
    install(own_cluster, theirs("kserve", *KINDS))


@pytest.fixture
def kserve(own_cluster: Cluster, kserve_kinds: None) -> Iterator[KServe]:
    """The manager, for one test: it watches all namespaces, also those that other tests use with a stand-in."""
    if own_cluster.find(f"{CONFIG_MAPS}/inferenceservice-config") is None:  # it stays for the next test
        own_cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        own_cluster.request("POST", CONFIG_MAPS, configuration())
    with KServe(own_cluster.kubeconfig, print) as running:
        yield running
        sys.stdout.write(running.log_end())  # shown where the test fails
