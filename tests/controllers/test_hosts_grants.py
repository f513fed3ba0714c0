"""Services that the agent of a Host may add addresses to: granted before anything is placed, and revoked afterwards."""

import asyncio
import json

import pytest

from pilotage.api.names import HOST_SERVICES, LABEL_ENDPOINT_UID, LABEL_MANAGED_BY, MANAGED_BY, PROCESSES
from pilotage.controllers.host.grants import KEY as GRANTS_KEY
from pilotage.kube import Invalid, ObjectKey
from pilotage_harbor.apimachinery.calls import ServerResponse
from pilotage_sim.loop import virtual
from tests.controllers.simulated_hosts import simulated_hosts
from tests.controllers.test_hosts import HOST, deployed


def granted(place, host="gpu-1"):
    """The Services that an agent may give addresses to, as its policy reads them."""
    found = place.world.find(HOST_SERVICES, GRANTS_KEY) or {}
    return found.get("spec", {}).get("hosts", {}).get(host)


@virtual
async def test_a_host_is_granted_the_services_of_its_processes_and_only_those():
    async with simulated_hosts() as place:
        await deployed(place)
        assert granted(place) == ["default/chat-1"]
        await place.change(runtime={"args": ["-c", "9"]})
        await place.serving("chat-2")
        await place.until(lambda: granted(place) == ["default/chat-2"])
        await place.delete()
        await place.gone()
        await place.until(lambda: granted(place) is None)


@virtual
async def test_nothing_is_placed_before_its_service_is_granted():
    """Else its agent would be refused the address of a server that runs."""
    async with simulated_hosts() as place:
        await asyncio.sleep(5.0)
        refusing = [True]

        def refuse(call):
            if refusing[0] and "/hostservices" in call.path and call.method in ("POST", "PATCH"):
                status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}
                return ServerResponse(403, json.dumps(status).encode())
            return None

        place.world.intercept(refuse)
        await place.deploy(placement=HOST)
        await place.until(lambda: place.process("chat-1-0"))
        await asyncio.sleep(20.0)
        assert "host" not in place.process("chat-1-0")["spec"]
        refusing[0] = False
        await place.serving()
        assert granted(place) == ["default/chat-1"]


@virtual
async def test_grants_of_processes_that_went_while_nobody_looked_are_taken_back():
    async with simulated_hosts() as place:
        old = {"hosts": {"gpu-1": ["default/chat-1", "default/former-3"], "gone": ["team/x-1"]}}
        await place.user.create(HOST_SERVICES, {"metadata": {"name": GRANTS_KEY.name}, "spec": old})
        await deployed(place)
        assert granted(place) == ["default/chat-1"]
        assert granted(place, "gone") is None


@virtual
async def test_processes_that_a_tenant_makes_keep_nobody_from_being_granted():
    """All grants are in one object: one that it cannot hold, or too many of them, would be everybody's problem."""
    async with simulated_hosts() as place:

        async def forge(name, **spec):
            whole = {"endpoint": "x", "service": "x-1", "model": {"name": "m", "source": "file:///m"}, **spec}
            metadata = {"name": name, "labels": {LABEL_MANAGED_BY: MANAGED_BY, LABEL_ENDPOINT_UID: "u"}}
            await place.user.create(PROCESSES, {"metadata": metadata, "spec": whole}, namespace="default")

        for bad in ({"service": "x" * 64}, {"service": "a/b"}, {"host": "h" * 254}, {"host": "A B"}):
            with pytest.raises(Invalid):
                await forge("bad", **bad)
        for number in range(3):
            await forge(f"stray-{number}", host=f"nowhere-{number}")
        await deployed(place)
        assert place.world.find(HOST_SERVICES, GRANTS_KEY)["spec"]["hosts"] == {"gpu-1": ["default/chat-1"]}
        stray = place.world.find(PROCESSES, ObjectKey("default", "stray-0"))
        assert "host/nowhere-0 no longer exists" in stray["status"]["message"]
