"""Servers for the commands: a bare one, and one with our own kinds in it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotage.kube.discovery_memory import DiscoveryMemory
from tests.api.objects import install
from tests.cli.running import ask
from tests.cli.serving import Chat
from tests.contract.server import harbor
from tests.support import kinds


@pytest.fixture(autouse=True)
def discovery_memory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder for the discovery cache of commands: not the home of the user."""
    of = DiscoveryMemory.of
    folder = tmp_path_factory.mktemp("discovery")
    monkeypatch.setattr(DiscoveryMemory, "of", lambda config: of(config, {"XDG_CACHE_HOME": str(folder)}))
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    """The kubeconfig of a server that needs no cluster."""
    with harbor() as place:
        yield place.kubeconfig


@pytest.fixture(scope="session")
def serving_server() -> Iterator[Path]:
    """Its kubeconfig."""
    with harbor() as place:
        ask(place.kubeconfig, install)
        yield place.kubeconfig


@pytest.fixture
def chat(serving_server: Path, request: pytest.FixtureRequest) -> Chat:
    """A namespace of one's own on it."""
    made = Chat(serving_server, re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[-60:].strip("-"))
    made.ask(lambda client: client.create(kinds.NAMESPACES, {"metadata": {"name": made.namespace}}))
    return made
