"""A client of the real API server, and a kind of our own on it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from controlplane import Access, ApiError, Cluster
from controlplane.access import wait_for
from pilotage.kube import Client, ClusterConfig, Resource, load_config
from tests.support import kinds


@pytest.fixture
def config(cluster: Access) -> ClusterConfig:
    """The administrator's configuration."""
    return load_config(kubeconfig=str(cluster.kubeconfig))


@pytest.fixture
async def client(config: ClusterConfig) -> AsyncIterator[Client]:
    """The administrator's client."""
    async with Client.connect(config) as connected:
        yield connected


@pytest.fixture(scope="session")
def widgets(cluster: Access) -> Iterator[Resource]:
    """A kind of our own, which keeps unknown fields and has a status. One for all: a new one is slow at first."""
    if not isinstance(cluster, Cluster):
        pytest.skip("needs a control plane of our own, and PILOTAGE_TEST_KUBECONFIG names one of yours")
    resource = kinds.widgets()
    cluster.request("POST", kinds.CRDS.path(), kinds.definition(resource))

    def is_served() -> bool:
        try:
            return bool(cluster.request("GET", resource.path()))
        except ApiError:
            return False

    wait_for(f"list of {resource}", is_served)
    yield resource
    cluster.request("DELETE", kinds.CRDS.path("", str(resource)))
