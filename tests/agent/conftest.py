"""An agent_host for each test, and one tiny model for all of them."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog

from controlplane import Cluster
from pilotage.kube import Client, load_config
from tests.agent.agent_host import KINDS, AgentHost, end_all, write_model
from tests.agent.cluster_host import Account, ClusterHost, clear
from tests.api.objects import install
from tests.contract.server import harbor


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF that never ends by itself."""
    return write_model(tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture(autouse=True)
def logs_of_each_test() -> Iterator[None]:
    """Restore logging: the first caller decides what is logged from then on, which must not affect later tests."""
    yield
    structlog.reset_defaults()


@pytest.fixture
async def host(tmp_path: Path, tiny: Path) -> AsyncIterator[AgentHost]:
    """Host without an agent yet."""
    async with AgentHost(tmp_path, tiny) as made:
        yield made


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own, of some mebibytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="package")
def harbor_server() -> Iterator[Path]:
    """Harbor as a process of its own, for agents that are: the path of its kubeconfig."""
    with harbor() as place:

        async def prepare() -> None:
            async with Client.connect(load_config(kubeconfig=str(place.kubeconfig))) as client:
                await install(client, KINDS)

        asyncio.run(prepare())
        yield place.kubeconfig


@pytest.fixture(scope="package")
def account(cluster, tmp_path_factory):
    """The service account of all agents on the control plane."""
    if not isinstance(cluster, Cluster):
        pytest.skip("needs a control plane of our own, and PILOTAGE_TEST_KUBECONFIG names one of yours")
    with cluster.namespace("agents", for_pods=False) as namespace:
        made = Account(cluster, namespace, tmp_path_factory.mktemp("account"))
        yield made
        made.close()


@pytest.fixture
async def admin(own_cluster):
    async with Client.connect(load_config(kubeconfig=str(own_cluster.kubeconfig))) as client:
        await install(client, KINDS)
        yield client


@pytest.fixture
async def cluster_host(admin, namespace, account, tmp_path, tiny):
    """With an agent in this process."""
    async with Client.connect(load_config(kubeconfig=str(account.kubeconfig))) as client:
        made = ClusterHost(admin, client, namespace, tmp_path, tiny)
        made.start()
        try:
            yield made
        finally:
            if not made.task.done():
                await made.crash()
            end_all(made.settings.data)
            await clear(admin, namespace, made.settings.name)
