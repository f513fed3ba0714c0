"""Writes during admission: the checks that were made before it hold after it, too."""

import asyncio
import json

import pytest

from pilotage_harbor.core.admission import NoAdmission
from tests.harbor.test_by_passes import ask, harbor, make

__all__ = ["harbor"]

THINGS = {
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


class Slow(NoAdmission):
    """Takes its time over what `holds` says."""

    def __init__(self, holds):
        self.holds = holds
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()

    async def validate(self, attributes):
        if self.holds(attributes):
            self.asked.set()
            await self.go_on.wait()
        return []


async def until(condition):
    async with asyncio.timeout(10):
        while not await condition():  # noqa: ASYNC110 - a turn of the loop each, no time
            await asyncio.sleep(0)


async def test_no_instance_outlives_its_definition(harbor):
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    things = "/apis/example.com/v1/namespaces/x/things"

    async def are_served():
        return (await ask(harbor, "GET", things)).status == 200

    await ask(harbor, "POST", crds, THINGS)
    await until(are_served)
    admission, harbor.core.admission = harbor.core.admission, Slow(lambda a: a.scope.kind.plural == "things")
    slow = harbor.core.admission
    ghost = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "ghost"}}
    creating = asyncio.create_task(ask(harbor, "POST", things, ghost))
    await slow.asked.wait()
    await ask(harbor, "DELETE", f"{crds}/things.example.com")
    slow.go_on.set()
    assert (await creating).status in (404, 405)
    harbor.core.admission = admission


async def test_an_address_is_given_once(harbor):
    harbor.core.admission = Slow(lambda a: a.scope.kind.plural == "services")
    bodies = [
        {"metadata": {"name": name}, "spec": {"clusterIP": "10.0.0.77", "ports": [{"port": 80}]}} for name in ("a", "b")
    ]
    creating = [asyncio.create_task(ask(harbor, "POST", "/api/v1/namespaces/x/services", body)) for body in bodies]
    await harbor.core.admission.asked.wait()
    await asyncio.sleep(0)
    harbor.core.admission.go_on.set()
    statuses = sorted(answer.status for answer in await asyncio.gather(*creating))
    assert statuses == [201, 422]


async def test_a_webhook_cannot_move_an_object_elsewhere(harbor):
    class Moves(NoAdmission):
        async def mutate(self, attributes):
            attributes.obj["metadata"]["namespace"] = "y"
            return []

    await make(harbor, "victim", "y")
    harbor.core.admission = Moves()
    body = {"metadata": {"name": "victim"}, "data": {"by": "another"}}
    assert (await ask(harbor, "POST", "/api/v1/namespaces/x/configmaps", body)).status == 400
    kept = json.loads((await ask(harbor, "GET", "/api/v1/namespaces/y/configmaps/victim")).body)
    assert "data" not in kept


async def test_a_collection_is_deleted_though_somebody_else_deletes_as_well(harbor):
    for name in ("c1", "c2", "c3"):
        await make(harbor, name)
    slow = harbor.core.admission = Slow(lambda a: a.operation == "DELETE" and a.scope.name == "c1")
    deleting = asyncio.create_task(ask(harbor, "DELETE", "/api/v1/namespaces/x/configmaps"))
    await slow.asked.wait()
    harbor.core.admission = NoAdmission()
    await ask(harbor, "DELETE", "/api/v1/namespaces/x/configmaps/c1")
    slow.go_on.set()
    assert (await deleting).status == 200
    assert json.loads((await ask(harbor, "GET", "/api/v1/namespaces/x/configmaps")).body)["items"] == []


@pytest.mark.parametrize("limit", ["0", "-1"])
async def test_no_limit_means_all(harbor, limit):
    for name in ("c1", "c2", "c3"):
        await make(harbor, name)
    await ask(harbor, "DELETE", "/api/v1/namespaces/x/configmaps", limit=limit)
    assert json.loads((await ask(harbor, "GET", "/api/v1/namespaces/x/configmaps")).body)["items"] == []
