"""``pilotage gateway`` beside a real API server, as the service account that is installed for it, with real traffic."""

import pytest

from field.edge import NoNetwork
from field.ground.backends import PORT
from pilotage.kinds import powers
from pilotage.kinds.crds import crds
from pilotage.kinds.names import GATEWAY_ROUTES
from pilotage.kube import Client, Propagation, load_config
from tests.gateway.enclave import ACCOUNT, Enclave, install_account
from tests.gateway.town import Town
from tests.kinds.objects import install
from tests.support.tools import unavailable
from tests.support.waiting import eventually
from tests.teardown.staged import force_away

pytestmark = pytest.mark.asyncio(loop_scope="session")
HOST = "chat.example.com"


class Users(Town):
    """What people and operators do, of `Town`; its gateway is a command, and its servers are in the enclave."""

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
        town = Users(user)
        for name in ("chat-1", "chat-2"):
            await town.slice(namespace, name, PORT, address=enclave.backend(name))
        mark = own_cluster.audit_mark()
        enclave.start_gateway(token)

        # Programmed: requests are answered, by the one that has them.
        first = await town.route(namespace, "chat", {"chat-1": 100}, host=HOST)
        assert first.get("status", "version")
        enclave.load(HOST, clients=2, pause=0.0, streams=0)
        await answered(enclave, "answers", "chat-1")

        # A change is programmed when Envoy has it, and not before; from then on none goes where they went before.
        await town.route(namespace, "chat", {"chat-1": 100, "chat-2": 0}, host=HOST)
        proxy = enclave.envoy()
        proxy.suspend()
        await town.write_route(namespace, "chat", {"chat-1": 0, "chat-2": 100}, host=HOST)
        pending = await town.settled(namespace, "chat", "Pending")
        assert pending.get("status", "message") == "Envoy has not acknowledged it yet"
        proxy.resume()
        moved = await town.settled(namespace, "chat")
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
    allowed = {(each, verb) for rule in powers.GATEWAY for each in rule.resources for verb in rule.verbs}
    assert used == allowed


async def answered(enclave, when, by, times=20):
    """Wait for some answers of a server."""

    async def enough():
        return enclave.report(HOST)[when].get(by, 0) >= times

    await eventually(enough)


async def failed(enclave, status, words):
    return any(each.startswith(status) and words in each for each in enclave.report(HOST)["failures"])
