"""Ephemeral containers, and the addresses in the status of a pod."""

from __future__ import annotations

import pytest

from pilotage.harbor.errors import StatusError
from pilotage.sim.loop import virtual
from tests.harbor.housekeeping.support import PODS, World

STRATEGIC = "application/strategic-merge-patch+json"
POD = "/api/v1/namespaces/default/pods/p"
EPHEMERAL = f"{POD}/ephemeralcontainers"


def debug(name: str = "debug", **more: object) -> dict[str, object]:
    return {"spec": {"ephemeralContainers": [{"name": name, "image": "example.com/d:1", **more}]}}


@virtual
async def test_an_ephemeral_container_is_added_and_nothing_else_changes() -> None:
    async with World() as world:
        before = await world.create(PODS, "p", labels={"a": "b"})
        change = debug() | {"metadata": {"labels": {"a": "c"}}}
        change["spec"] = {**change["spec"], "hostname": "other"}  # type: ignore[dict-item]
        after = await world.ask("PATCH", EPHEMERAL, change, STRATEGIC)
        assert [each["name"] for each in after["spec"].pop("ephemeralContainers")] == ["debug"]
        assert after["spec"] == before["spec"]
        assert after["metadata"]["labels"] == {"a": "b"}
        assert after["metadata"]["generation"] == 2


@virtual
async def test_those_that_are_there_stay_as_they_are() -> None:
    async with World() as world:
        await world.create(PODS, "p")
        pod = await world.ask("PATCH", EPHEMERAL, debug(), STRATEGIC)
        with pytest.raises(StatusError, match='existing ephemeral containers "debug" may not be changed'):
            await world.ask("PATCH", EPHEMERAL, debug(image="example.com/d:2"), STRATEGIC)
        del pod["spec"]["ephemeralContainers"]
        with pytest.raises(StatusError, match='existing ephemeral containers "debug" may not be removed'):
            await world.ask("PUT", EPHEMERAL, pod)


@virtual
@pytest.mark.parametrize(
    ("container", "words"),
    [
        (debug("main"), "Duplicate value"),
        (debug(targetContainerName="x"), "targetContainerName: Not found"),
        (debug(ports=[{"containerPort": 80}]), "ports: Forbidden: cannot be set for an Ephemeral Container"),
        (debug(resources={"limits": {"cpu": "1"}}), "resources: Forbidden: cannot be set"),
    ],
)
async def test_what_an_ephemeral_container_cannot_be(container: dict[str, object], words: str) -> None:
    async with World() as world:
        await world.create(PODS, "p")
        with pytest.raises(StatusError, match=words):
            await world.ask("PATCH", EPHEMERAL, container, STRATEGIC)


@virtual
async def test_the_address_of_a_pod_and_the_list_of_all_are_kept_in_step() -> None:
    async with World() as world:
        await world.create(PODS, "p")
        for address in ("10.9.0.1", "10.9.0.2"):
            change = {"status": {"podIP": address}}
            pod = await world.ask("PATCH", f"{POD}/status", change, "application/merge-patch+json")
            assert pod["status"]["podIPs"] == [{"ip": address}]
