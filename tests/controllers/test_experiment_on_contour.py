"""An Experiment behind a real Contour and a real Envoy, under load, ended while the Envoy hears nothing."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilotage.api.names import EXPERIMENTS
from pilotage.kube import Object, ObjectKey, merge_patch
from tests.controllers.behind_contour import ROUTES, ContourCluster, Endpoint
from tests.controllers.test_endpoint_on_contour import deletes
from tests.support.edge import Place
from tests.support.waiting import until

SHARE = 25


@pytest.fixture
async def contour(edge: Place) -> AsyncIterator[ContourCluster]:
    async with ContourCluster.at(edge) as contour:
        yield contour


class OnEndpoint:
    """An Experiment with one variant, which is revision 2 of its endpoint, and has the endpoint's name."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.client = endpoint, endpoint.contour.client
        self.key = ObjectKey(endpoint.key.namespace, endpoint.name)

    async def begin(self) -> None:
        variant = {"name": "other", "weight": SHARE, "overrides": {"runtime": {"args": ["--alias", "other"]}}}
        body = {
            "metadata": {"name": self.key.name},
            "spec": {"endpoint": {"name": self.key.name}, "variants": [variant]},
        }
        await self.client.create(EXPERIMENTS, body, namespace=self.key.namespace)
        await self.reaches("Running")
        await self.endpoint.answers(2)

    async def terminate(self) -> None:
        await self.client.patch(EXPERIMENTS, self.key, merge_patch({"spec": {"terminate": True}}))

    async def reaches(self, phase: str, waiting_for: str = "") -> None:
        def so(found: Object | None) -> bool:
            status: dict[str, str] = found.get("status", default={}) if found is not None else {}
            return status.get("phase") == phase and waiting_for in status.get("waitingFor", "")

        await until(self.client, EXPERIMENTS, self.key, so, 60)


async def test_no_request_fails_when_an_experiment_ends_while_the_proxy_hears_nothing(
    contour: ContourCluster, tmp_path: Path
):
    mark = contour.place.cluster.audit_mark()
    with contour.operate(tmp_path):
        endpoints = [await contour.deploy(kind) for kind in ROUTES]
        await asyncio.gather(*(each.serves(1) for each in endpoints))
        for each in endpoints:
            each.load()
        experiments = [OnEndpoint(each) for each in endpoints]
        await asyncio.gather(*(each.begin() for each in experiments))

        contour.edge.hold()
        for experiment in experiments:
            await experiment.terminate()
        # The route says so already, and the Envoy still sends requests to the variant.
        await asyncio.gather(*(each.reaches("Leaving", "programmed in 0 of 1 Envoys") for each in experiments))
        await asyncio.gather(*(each.answers(2) for each in endpoints))
        assert [deletes(contour, mark, each) for each in endpoints] == [[], []]
        contour.edge.release()
        await asyncio.gather(*(each.reaches("Ended") for each in experiments))
        for each in endpoints:
            report = contour.edge.stop_load(each.host)
            assert (report["failed"], report["cut"], report["errors"]) == (0, 0, [])
            assert deletes(contour, mark, each) == [f"deployments {each.name}-2", f"services {each.name}-2"]
