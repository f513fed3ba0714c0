"""Permissions of the gateway: exactly those that it uses; it names the one that is missing. No Envoy is needed."""

import asyncio
import contextlib
from functools import partial

import pytest

from pilotage.api import rbac_rules
from pilotage.api.names import GATEWAY_ROUTES
from pilotage.gateway import status
from pilotage.gateway.control import Control
from pilotage.gateway.settings import GatewaySettings
from pilotage.kube import ObjectKey, merge_patch
from pilotage.operator.crds import crds
from pilotage.operator.install import Values, manifests
from pilotage_harbor.access.attributes import attributes_of
from pilotage_sim.world import SimulatedWorld
from tests.api.objects import gateway_route, install
from tests.gateway.enclave import ACCOUNT
from tests.gateway.gateway_host import holds
from tests.operator.installing import PLURALS, apply_all
from tests.operator.limited_operator import NAMESPACE, Power
from tests.operator.limited_operator import _all_logs as all_logs
from tests.operator.limited_operator import powers as powers_of
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
KEY = ObjectKey("default", "chat")
ALLOWED = powers_of(rbac_rules.GATEWAY)


class Place:
    """A harbor with the gateway's account, and a route that waits for an Envoy. `used`: what the account has done."""

    def __init__(self, world, folder):
        self.world, self.settings = world, GatewaySettings(run=str(folder), metrics_port=None)
        self.used = set()
        self.admin = world.client("admin")
        world.intercept(self._note)

    def _note(self, call):
        if call.user.name == USER:
            said = attributes_of(call.method, call.path, call.query)
            resource = f"{said.resource}/{said.subresource}" if said.subresource else said.resource
            self.used.add(Power(said.group, resource, said.verb))

    async def allow(self, allowed):
        """These powers and no others."""
        rules = [{"apiGroups": [each.group], "resources": [each.resource], "verbs": [each.verb]} for each in allowed]
        await self.admin.patch(PLURALS["ClusterRole"], ObjectKey("", ACCOUNT), merge_patch({"rules": rules}))

    async def change(self, host):
        """So that there is something to be said of the route."""
        await self.admin.patch(GATEWAY_ROUTES, KEY, merge_patch({"spec": {"host": host}}))

    @contextlib.asynccontextmanager
    async def control(self):
        """A control plane that runs, and what it says in its log."""
        control = Control(self.settings, self.world.client(USER, groups=("system:serviceaccounts",)))
        with all_logs() as logs:
            running = asyncio.create_task(control.run())
            try:
                yield control, logs
            finally:
                control.stop()
                await running


@pytest.fixture
async def place(tmp_path, monkeypatch):
    monkeypatch.setattr(status, "PENDING_SECONDS", 0.0)
    (tmp_path / "run").mkdir()
    async with SimulatedWorld(latency=(0.0, 0.0)) as world:
        made = Place(world, tmp_path / "run")
        await install(made.admin, [crd for crd in crds() if crd["metadata"]["name"] == str(GATEWAY_ROUTES)])
        await made.admin.create(PLURALS["Namespace"], {"metadata": {"name": NAMESPACE}})
        await apply_all(
            made.admin,
            [each for each in manifests(Values(namespace=NAMESPACE)) if each["metadata"]["name"] == ACCOUNT],
        )
        await made.admin.create(GATEWAY_ROUTES, gateway_route("chat"), namespace=KEY.namespace)
        yield made


async def test_every_power_is_used_and_no_other(place):
    async with place.control() as (control, logs):
        await until(place.admin, GATEWAY_ROUTES, KEY, lambda obj: obj.get("status", "state") == "Pending")
        assert control._unready() == ["Envoy is not connected"]
    assert errors(logs) == []
    assert place.used == {*ALLOWED}


async def test_without_one_of_them_it_says_which(place):
    for number, lost in enumerate(ALLOWED):
        await place.allow(each for each in ALLOWED if each != lost)
        await place.change(f"{number}.example.com")
        async with place.control() as (control, logs):
            said = partial(errors, logs) if lost.verb == "patch" else control._unready
            await holds(lambda lost=lost, said=said: any(lost.refusal in each for each in said()))
    assert place.used == {*ALLOWED}  # nor does it try anything else then


def errors(logs):
    return [str(each.get("error")) for each in logs]
