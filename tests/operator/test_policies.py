"""The key of an agent reaches its own Host alone, placing on Hosts is a right of its own, and so are statuses."""

import contextlib

import pytest
import yaml

from controlplane import Cluster
from pilotage.api.names import AGENTS_GROUP, HOST_LEASES, PROCESSES
from pilotage.kube import Client, load_config
from pilotage.operator.install import Values, manifests
from pilotage.serving.resources import SLICES
from pilotage_sim.loop import virtual
from pilotage_sim.world import SimulatedWorld
from tests.api.objects import install
from tests.operator.installing import apply_all
from tests.operator.two_tenants import (
    ALLOWED,
    OWN,
    ROLES,
    TwoTenants,
    answer,
    attacks_with_the_key_of_an_agent,
    placing,
    process,
    slice_of,
    statuses,
    work_of_an_agent,
)
from tests.support.kinds import NAMESPACES
from tests.support.waiting import eventually

SECONDS_MAX = 60
STATUSES = ("servingendpoints", "models", "teardowns", "gatewayroutes", "hostprocesses")
RIGHT = "needs the verb 'use' on hosts.pilotage.dev"


def installed():
    """All but what runs the operator."""
    programs = ("Deployment", "Service", "PodDisruptionBudget")
    return [each for each in manifests(Values()) if each["kind"] not in programs]


async def people(tenants: TwoTenants) -> None:
    """They all have `edit`; what is theirs beside it is bound by an administrator. `none` owns our kinds at home."""
    for name in ("both", "one", "none"):
        await tenants.bind(name, "pilotage-edit")
        await tenants.bind(name, "pilotage-edit", namespace=tenants.theirs)
    await tenants.bind("both", "pilotage-place-on-hosts")
    named = {"apiGroups": ["pilotage.dev"], "resources": ["hosts"], "resourceNames": [OWN], "verbs": ["use"]}
    owned = ["hostprocesses", *(f"{each}/status" for each in STATUSES)]
    owner = {"apiGroups": ["pilotage.dev"], "resources": owned, "verbs": ["*"]}
    for user, rule in (("one", named), ("none", owner)):
        await tenants.admin.create(ROLES, {"metadata": {"name": f"of-{user}"}, "rules": [rule]}, namespace=tenants.mine)
        await tenants.bind(user, f"of-{user}", kind="Role")


async def judge(tenants: TwoTenants) -> None:
    assert await work_of_an_agent(tenants) == {}, "an agent is refused nothing of its work"
    tried = await attacks_with_the_key_of_an_agent(tenants)
    assert [what for what, why in tried.items() if not why] == [], "all of it is refused"
    assert "only what belongs to the Host of its own name" in tried["the status of another's process"]
    assert "to no others" in tried["an address for default/kubernetes"]
    tried = await statuses(tenants)
    assert len(tried) == len(STATUSES)
    assert [what for what, why in tried.items() if "may patch it in all namespaces" not in why] == []
    tried = await placing(tenants)
    assert {what for what, why in tried.items() if not why} == ALLOWED
    assert {what for what, why in tried.items() if why and RIGHT not in why} == set()


@virtual
async def test_on_harbor():
    async with SimulatedWorld(latency=(0, 0)) as world:
        admin = world.client("admin")
        await install(admin)
        await apply_all(admin, (each for each in installed() if each["kind"] != "CustomResourceDefinition"))
        for name in ("mine", "theirs"):
            await admin.create(NAMESPACES, {"metadata": {"name": name}})
        tenants = TwoTenants(admin, lambda name, groups: world.client(name, groups=groups), "mine", "theirs")
        await tenants.settle()
        await people(tenants)
        await judge(tenants)


@pytest.fixture
def there(cluster):
    """The installation, for as long as the test."""
    if not isinstance(cluster, Cluster):
        pytest.skip("needs a control plane of our own, and PILOTAGE_TEST_KUBECONFIG names one of yours")
    text = yaml.safe_dump_all(installed())
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)
    yield cluster
    powers = [each for each in installed() if "Role" in each["kind"] or "Policy" in each["kind"]]
    cluster.kubectl("delete", "--wait=false", "-f", "-", input=yaml.safe_dump_all(powers))


async def test_on_a_real_server(there):
    async with contextlib.AsyncExitStack() as around:
        clients = {}

        async def client(kubeconfig):
            return await around.enter_async_context(Client.connect(load_config(kubeconfig=str(kubeconfig))))

        admin = await client(there.kubeconfig)
        for name in ("both", "one", "none"):
            clients[name] = await client(there.user(name))
        agent = f"system:serviceaccount:{HOST_LEASES}:{OWN}"
        clients[agent] = await client(there.user(agent, ("system:serviceaccounts", AGENTS_GROUP)))
        with there.namespace("mine", for_pods=False) as mine, there.namespace("theirs", for_pods=False) as theirs:
            tenants = TwoTenants(admin, lambda name, _: clients[name], mine, theirs)
            await tenants.settle()
            await people(tenants)
            await in_force(tenants)
            await judge(tenants)


async def in_force(tenants: TwoTenants) -> None:
    """A real server learns of policies, of what they read, and of bindings after a moment, in the order they were made.

    An agent tries again until then. The last policy and the last binding are waited for.
    """
    key, owner = tenants.agent(), tenants.user("none")

    async def knows_the_last_policy():
        return "to no others" in await answer(
            key.create(SLICES, slice_of("shop", OWN), namespace=tenants.mine, dry_run=True)
        )

    async def knows_the_grants():
        return not await answer(key.create(SLICES, slice_of("chat-1", OWN), namespace=tenants.mine, dry_run=True))

    async def knows_the_last_binding():
        return RIGHT in await answer(owner.create(PROCESSES, process("x", OWN), namespace=tenants.mine, dry_run=True))

    for known in (knows_the_last_policy, knows_the_grants, knows_the_last_binding):
        await eventually(known, SECONDS_MAX)
