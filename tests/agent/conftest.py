"""A agent_host for each test, and one tiny model for all of them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog

from pilotage.kube import Client, load_config
from tests.agent.agent_host import KINDS, AgentHost, write_model
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


@pytest.fixture(scope="package")
def harbor_server() -> Iterator[Path]:
    """Harbor as a process of its own, for agents that are: the path of its kubeconfig."""
    with harbor() as place:

        async def prepare() -> None:
            async with Client.connect(load_config(kubeconfig=str(place.kubeconfig))) as client:
                await install(client, KINDS)

        asyncio.run(prepare())
        yield place.kubeconfig
