"""Each server answers all chosen cases once; the tests then compare its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from controlplane import NoControlPlane
from pilotage.kube import Client, Propagation, Resource, load_config, merge_patch
from tests.conftest import CONTROL_PLANE, REMOTE
from tests.contract.case import Case
from tests.contract.cases import CASES
from tests.contract.kit import Step
from tests.contract.record import load
from tests.contract.running import run
from tests.contract.server import Place, harbor, kubectl_binary, kubernetes

Transcripts = dict[str, list[Step]]


@pytest.fixture(scope="session")
def recorded() -> Transcripts:
    """Recorded answers of the real server."""
    return load()


@pytest.fixture(scope="session")
def harbor_place() -> Iterator[Place]:
    """harbor, as a process of its own."""
    with harbor() as place:
        asyncio.run(_age(place))
        yield place


async def _age(place: Place) -> None:
    """Raise versions until they can be told from the low numbers that cases make up."""
    maps = Resource("", "v1", "configmaps", "ConfigMap")
    async with Client.connect(load_config(kubeconfig=str(place.kubeconfig))) as client:
        made = await client.create(maps, {"metadata": {"name": "age"}}, namespace="default")
        for number in range(100):
            await client.patch(maps, made.key, merge_patch({"data": {"number": str(number)}}))
        await client.delete(maps, made.key, uid=made.meta.uid, propagation=Propagation.BACKGROUND)


@pytest.fixture(scope="session")
def harbor_transcripts(harbor_place: Place, request: pytest.FixtureRequest) -> Transcripts:
    """Answers of harbor, without kubectl's cases."""
    return asyncio.run(run(harbor_place, [case for case in _chosen(request) if case.theme != "kubectl"]))


@pytest.fixture(scope="session")
def harbor_kubectl_transcripts(harbor_place: Place, request: pytest.FixtureRequest) -> Transcripts:
    """Output of kubectl against harbor."""
    try:
        kubectl_binary()
    except NoControlPlane as error:
        pytest.skip(str(error))
    return asyncio.run(run(harbor_place, [case for case in _chosen(request) if case.theme == "kubectl"]))


@pytest.fixture(scope="session")
def kubernetes_transcripts(request: pytest.FixtureRequest) -> Transcripts:
    """Answers of the real server now. It is not that of the fixture `cluster`: its controllers would interfere."""
    if REMOTE:
        pytest.skip("needs a control plane of our own, and PILOTAGE_TEST_KUBECONFIG names one of yours")
    control_plane = request.config.stash[CONTROL_PLANE]
    if control_plane.skip:
        pytest.skip(control_plane.skip)
    if control_plane.failure:
        pytest.fail(control_plane.failure, pytrace=False)
    with kubernetes() as place:
        return asyncio.run(run(place, _chosen(request)))


def _chosen(request: pytest.FixtureRequest) -> list[Case]:
    """The cases of those tests that this session runs."""
    tests = [item for item in request.session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    ids = {item.callspec.params.get("case_id") for item in tests}
    return [case for case in CASES.values() if case.id in ids]
