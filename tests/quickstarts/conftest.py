"""The people of the pages, and what they find: one machine, a cluster with an operator, a checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from controlplane import Cluster
from demo import tiny_gguf
from tests.controllers.operating import install
from tests.quickstarts.person import Person

IMAGE = "registry.example.com/pilotage:0.1"


@pytest.fixture
def box() -> Iterator[Person]:
    """Somebody with two small models on one machine."""
    with Person() as person:
        models = person.home / "models"
        models.mkdir()
        for name in ("first", "second"):
            tiny_gguf.write(models / f"{name}.gguf", sentence=f"I am the {name} model.")
        try:
            yield person
        finally:
            down = [sys.executable, "-m", "pilotage", "down", "--now"]
            subprocess.run(down, env=person.env, capture_output=True, check=False, timeout=60)


@pytest.fixture
def admin(own_cluster: Cluster) -> Iterator[Person]:
    """An administrator of a real control plane that has our kinds."""
    install(own_cluster)
    with Person() as person:
        config = person.home / ".kube" / "config"
        config.parent.mkdir()
        shutil.copy(own_cluster.kubeconfig, config)
        yield person


@pytest.fixture
def platform(own_cluster: Cluster, admin: Person) -> Iterator[Person]:
    """An administrator, and the operator as a process: kwok only plays that its pods run."""
    command = [sys.executable, "-m", "tests.controllers.operator_with_short_settling", "operator"]
    command += [
        "--metrics-address=",
        "--fetch=pods",
        f"--fetch-image={IMAGE}",
        f"--kubeconfig={own_cluster.kubeconfig}",
    ]
    with (admin.home / ".operator.log").open("wb") as log:
        operator = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield admin
        own_cluster.kubectl("delete", "se", "--all", "-n", "chat", "--timeout=60s")
    finally:
        operator.terminate()
        operator.wait()
        own_cluster.kubectl("delete", "namespace", "chat", "--ignore-not-found", "--wait=false")
        _uninstall(own_cluster, admin.home / "pilotage.yaml")


def _uninstall(cluster: Cluster, manifests: Path) -> None:
    """Delete what the page has applied, but for kinds and namespaces, which other tests use; and the Lease."""
    lasting = ("CustomResourceDefinition", "Namespace")
    applied = [each for each in yaml.safe_load_all(manifests.read_text()) if each["kind"] not in lasting]
    cluster.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", input=yaml.safe_dump_all(applied))
    cluster.kubectl("delete", "--ignore-not-found", "lease", "pilotage-operator", "-n", "pilotage-system")


@pytest.fixture
def checkout() -> Iterator[Person]:
    """A contributor in this repository."""
    with Person(cwd=Path(__file__).parents[2]) as person:
        yield person
