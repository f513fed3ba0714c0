"""``pilotage gateway`` beside a real API server, as the service account that is installed for it, with real traffic."""

import contextlib

import pytest

from field.edge import NoNetwork
from field.ground.backends import PORT
from pilotage.api import rbac_rules
from pilotage.api.names import ENDPOINTS, GATEWAY_ROUTES
from pilotage.kube import Client, Forbidden, Invalid, ObjectKey, Propagation, load_config, merge_patch
from pilotage.operator.crds import crds
from pilotage.operator.install import Values, manifests
from pilotage.runtime.conditions import find_condition
from tests.api.objects import endpoint, install
from tests.gateway.enclave import ACCOUNT, Enclave, install_account
from tests.gateway.gateway_host import GatewayHost
from tests.operator.installing import PLURALS
from tests.support.tools import unavailable
from tests.support.waiting import eventually
from tests.teardown.staged import force_away

pytestmark = pytest.mark.asyncio(loop_scope="session")
HOST = "chat.example.com"


class Users(GatewayHost):
    """Actions of people and operators, from `GatewayHost`; the gateway is a command, its servers are in the enclave."""

    def __init__(self, user):
        self.user = user


@pytest.fixture
def enclave(own_cluster):
    try:
        with Enclave(own_cluster) as running:
            yield running
    except NoNetwork as error:
        unavailable(str(error))


@pytest.fixture
def token(own_cluster, namespace):
    made, token = install_account(own_cluster, namespace)
    yield token
    for path in made:
        force_away(own_cluster, path)


async def test_requests_follow_the_routes_and_slices_of_a_real_api_server(own_cluster, namespace, enclave, token):
    async with Client.connect(load_config(kubeconfig=str(own_cluster.kubeconfig))) as user:
        await install(user, [crd for crd in crds() if crd["metadata"]["name"] == str(GATEWAY_ROUTES)])
        gateway = Users(user)
        for name in ("chat-1", "chat-2"):
            await gateway.slice(namespace, name, PORT, address=enclave.backend(name))
        mark = own_cluster.audit_mark()
        enclave.start_gateway(token)

        # Programmed: requests are answered, by the one that has them.
        first = await gateway.route(namespace, "chat", {"chat-1": 100}, host=HOST)
        assert first.get("status", "version")
        enclave.load(HOST, clients=2, pause=0.0, streams=0)
        await answered(enclave, "answers", "chat-1")

        # A change is programmed when Envoy has it, and not before; from then on no request reaches the old servers.
        await gateway.route(namespace, "chat", {"chat-1": 100, "chat-2": 0}, host=HOST)
        proxy = enclave.envoy()
        proxy.suspend()
        await gateway.write_route(namespace, "chat", {"chat-1": 0, "chat-2": 100}, host=HOST)
        pending = await gateway.settled(namespace, "chat", "Pending")
        assert pending.get("status", "message") == "Envoy has not acknowledged it yet"
        proxy.resume()
        moved = await gateway.settled(namespace, "chat")
        enclave.mark(HOST)
        assert [each["service"] for each in moved.get("status", "counts")] == ["chat-1"]
        await answered(enclave, "after", "chat-2")
        report = enclave.stop_load(HOST)
        assert (report["after"].keys(), report["failed"], report["errors"]) == ({"chat-2"}, 0, [])

        # A route that is deleted leads nowhere.
        await user.delete(GATEWAY_ROUTES, moved.key, uid=moved.meta.uid, propagation=Propagation.BACKGROUND)
        enclave.load(HOST, clients=1, pause=0.01, streams=0)
        await eventually(lambda: failed(enclave, "404", '"code":"not_found"'))
        enclave.stop_load(HOST)

    account = f"system:serviceaccount:{namespace}:{ACCOUNT}"
    asked = own_cluster.audit(since=mark, user=account)
    assert [f"{each.verb} {each.uri}" for each in asked if each.code == 403] == []
    used = {(f"{each.resource}/{each.subresource}".rstrip("/"), each.verb) for each in asked}
    allowed = {(each, verb) for rule in rbac_rules.GATEWAY for each in rule.resources for verb in rule.verbs}
    assert used == allowed


async def answered(enclave, when, by, times=20):
    """Wait for some answers of a server."""

    async def enough():
        return enclave.report(HOST)[when].get(by, 0) >= times

    await eventually(enough)


async def failed(enclave, status, words):
    return any(each.startswith(status) and words in each for each in enclave.report(HOST)["failures"])


@pytest.fixture
def tenants(own_cluster, namespace):
    """Two namespaces, and in each a user with the role `edit`, to which ours is added."""
    made = []
    for obj in manifests(Values(namespace=namespace)):
        if obj["kind"] == "ClusterRole" and obj["metadata"]["name"] in ("pilotage-edit", "pilotage-view"):
            path = PLURALS["ClusterRole"].path("")
            obj["metadata"]["name"] += f"-{namespace}"
            own_cluster.request("POST", path, obj)
            made.append(f"{path}/{obj['metadata']['name']}")
    with own_cluster.namespace("tenant-b", for_pods=False) as other:
        for each, user in ((namespace, "editor-a"), (other, "editor-b")):
            own_cluster.request(
                "POST",
                PLURALS["RoleBinding"].path(each),
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "RoleBinding",
                    "metadata": {"name": "tenant"},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
                    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
                },
            )
        yield namespace, other
    for path in made:
        force_away(own_cluster, path)


async def test_no_tenant_with_edit_takes_a_name_that_another_holds(own_cluster, tenants, enclave, token):
    a, b = tenants
    async with contextlib.AsyncExitStack() as stack:
        user = await stack.enter_async_context(Client.connect(load_config(kubeconfig=str(own_cluster.kubeconfig))))
        await install(user)
        kubeconfig = str(own_cluster.user("editor-a"))
        attacker = await stack.enter_async_context(Client.connect(load_config(kubeconfig=kubeconfig)))
        gateway = Users(user)
        for namespace, name in ((a, "greedy-1"), (b, "chat-1")):
            await gateway.slice(namespace, name, PORT, address=enclave.backend(name))
        enclave.start_gateway(token)
        await gateway.route(a, "old", {"greedy-1": 100})
        await gateway.route(b, "chat", {"chat-1": 100}, models=["gpt"], host=HOST)
        enclave.load(HOST, clients=1, pause=0.0, streams=0)
        await answered(enclave, "answers", "chat-1")

        # The tenant may deploy, and nothing that it may write reaches further: not a route, not its status, no host
        # that is an address.
        await eventually(lambda: may_deploy(attacker, a))
        stolen = {"spec": {"models": ["gpt"], "host": HOST, "path": "/"}}
        for subresource, patch in (("", stolen), ("status", {"status": {"claims": []}})):
            with pytest.raises(Forbidden):
                await attacker.patch(GATEWAY_ROUTES, ObjectKey(a, "old"), merge_patch(patch), subresource=subresource)
        for host in ("127.0.0.1", "127.1", "0x7f.1", "*.0.0.1", "localhost", "x.localhost", "*.com", "gateway"):
            with pytest.raises(Invalid, match="host"):
                await attacker.create(
                    ENDPOINTS, endpoint("e", {"route": {"kind": "PilotageGateway", "host": host}}), namespace=a
                )

        # Its old route claims the name that the other one holds, as the operator would write it for such an endpoint.
        for wish in ({"models": ["gpt"], "host": HOST}, {"models": ["gpt"], "host": HOST, "path": "/v1"}):
            await gateway.route(a, "old", {"greedy-1": 100}, **wish)
            said = await user.get(GATEWAY_ROUTES, ObjectKey(a, "old"))
            condition = find_condition(said.get("status", "conditions"), "Conflicted")
            assert (condition["status"], "model gpt leads to" in condition["message"]) == ("True", True)
            assert b not in condition["message"]
        # The control plane is killed: the next one knows the holders from the statuses alone.
        enclave.control().kill()
        await gateway.route(a, "old", {"greedy-1": 100}, models=["gpt"], host=HOST, path="/v2")
        enclave.mark(HOST)
        await answered(enclave, "after", "chat-1")
        report = enclave.stop_load(HOST)
        assert (report["answers"].keys() | report["after"].keys(), report["failed"]) == ({"chat-1"}, 0)
        holder = await gateway.settled(b, "chat")
        assert {each["name"] for each in holder.get("status", "claims") if each["held"]} >= {"gpt", HOST}


async def may_deploy(client, namespace):
    """Once the API server has added our role to `edit`."""
    try:
        await client.list(ENDPOINTS, namespace)
        await client.create(ENDPOINTS, endpoint("probe"), namespace=namespace)
    except Forbidden:
        return False
    return True
