"""Ephemeral containers, the addresses in the status of a pod, and what only a kubelet could do."""

from __future__ import annotations

import pytest

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_sim.loop import virtual
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


ON_A_NODE = {"containers": [{"name": "main", "image": "image"}], "nodeName": "n"}


@virtual
@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("GET", f"{POD}/log", "runs no containers, so there are no logs; `pilotage logs`"),
        ("POST", f"{POD}/exec", "nothing to run a command in; a server on a Host is a process of that machine"),
        ("GET", f"{POD}/exec", "nothing to run a command in"),
        ("POST", f"{POD}/attach", "nothing to attach to"),
        ("POST", f"{POD}/portforward", "no port to forward; connect to the address that `pilotage status` shows"),
        ("GET", f"{POD}/proxy/v1/models", 'pods "p": harbor passes no requests on'),
        ("POST", "/api/v1/namespaces/default/services/https:kubernetes:https/proxy/x", "harbor passes no requests on"),
    ],
)
async def test_what_only_a_kubelet_could_do_is_refused_with_what_to_do_instead(
    method: str, path: str, words: str
) -> None:
    async with World() as world:
        await world.create(PODS, "p", spec=ON_A_NODE)
        with pytest.raises(StatusError) as refused:
            await world.ask(method, path)
        assert (refused.value.code, refused.value.reason) == (501, "NotImplemented")
        assert words in refused.value.message
