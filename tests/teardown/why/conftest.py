"""Stages for situations: objects of a test, made on the real API server, explained, and taken away again."""

from collections.abc import AsyncIterator, Iterator

import pytest
import yaml

from controlplane import Access, ApiError, Cluster
from controlplane.access import wait_for
from pilotage.api.names import HOST_LEASES
from pilotage.kube import Client, Resource, load_config
from tests.controllers.operating import Operator, install, operator
from tests.support import kinds
from tests.teardown.why.own_stage import (
    AGENT_USER,
    LEASES,
    OPERATOR_USER,
    USER,
    WITHOUT_DAC_OVERRIDE,
    Stuck,
    release,
    stage_teardowns,
)
from tests.teardown.why.staging import Stage, controllers_paused


@pytest.fixture
async def client(cluster: Access) -> AsyncIterator[Client]:
    """The administrator's client."""
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as connected:
        yield connected


@pytest.fixture
async def stage(client: Client, namespace: str) -> AsyncIterator[Stage]:
    """A namespace of one's own, and what the test makes there or elsewhere with `stage.make`: all gone at the end."""
    staged = Stage(client, namespace)
    yield staged
    await staged.clear()


@pytest.fixture(scope="session")
def widgets(cluster: Access) -> Iterator[Resource]:
    """A kind of our own, in a group of its own, known to the server and its controllers as any other is."""
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


@pytest.fixture
def paused_controllers(own_cluster: Cluster) -> Iterator[None]:
    """kube-controller-manager is stopped for the test: nothing is collected, and conditions stay as they are set."""
    with controllers_paused(own_cluster):
        yield


@pytest.fixture(scope="module")
def running(cluster: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Operator, Stuck]]:
    """One operator for all cases, and a namespace for them."""
    if not isinstance(cluster, Cluster):
        pytest.skip("needs a control plane of our own, and PILOTAGE_TEST_KUBECONFIG names one of yours")
    install(cluster)
    folder = tmp_path_factory.mktemp("why-own")
    leases = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOST_LEASES}}
    objects = [*OPERATOR_USER.permissions(), *AGENT_USER.permissions(), leases]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))
    flags = ("--kubeconfig", str(cluster.user(USER)), "--plain-http", "--networks", "127.0.0.0/8")
    with cluster.namespace("own") as namespace:
        stuck = Stuck(cluster, namespace, folder)
        stuck.lease("pilotage-system", "pilotage-operator", ago=3600, seconds=15)
        stage_teardowns(stuck)
        with operator(cluster, folder, *flags, before=WITHOUT_DAC_OVERRIDE) as process:
            try:
                yield process, stuck
            finally:
                stuck.close()
        release(stuck)
    cluster.request("DELETE", f"{LEASES.format('pilotage-system')}/pilotage-operator")
    cluster.kubectl("delete", "clusterrolebinding,clusterrole", USER, AGENT_USER.name)


@pytest.fixture
def stuck(running: tuple[Operator, Stuck]) -> Stuck:
    process, place = running
    assert process.runs, process.log.read_text()[-3000:]
    return place
