"""Waiting, raising and never sending twice: on answers from a list, and on the real server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from controlplane import Cluster
from pilotage.kube import (
    ApiError,
    Client,
    ClusterConfig,
    Object,
    ObjectKey,
    Propagation,
    Resource,
    Throttled,
    TokenBucket,
    Unavailable,
    Uncertain,
    load_config,
    merge_patch,
)
from pilotage.kube.exchange import THROTTLED_TRIES_MAX
from pilotage.kube.transport import Request, Transport, TransportError
from pilotage_sim.loop import virtual
from tests.support.kinds import CONFIG_MAPS, config_map, existing
from tests.support.transports import MemoryResponse, Observed, ScriptedTransport, answer, observed
from tests.support.waiting import eventually
from tests.virtual_time import run_warp, warp

KEY = ObjectKey("ns", "x")
PATH = "/api/v1/namespaces/ns/configmaps/x"
MALFORMED = "JSON is malformed: invalid character (byte 0)"
BUSY = "Too many requests, please try again later."


def busy() -> MemoryResponse:
    return MemoryResponse(BUSY.encode() + b"\n", status=429, headers={"retry-after": "3"})


def now() -> float:
    return asyncio.get_running_loop().time()


@virtual
async def test_the_time_that_the_server_asks_for_is_waited_and_the_request_sent_again() -> None:
    transport = ScriptedTransport(busy(), busy(), answer({"kind": "ConfigMap"}))
    await Client(transport).get(CONFIG_MAPS, KEY)
    assert now() == 6
    assert len(transport.requests) == 3
    assert len(set(transport.requests)) == 1


@virtual
async def test_after_a_number_of_tries_the_throttling_is_the_callers_to_know() -> None:
    transport = ScriptedTransport(*(busy() for _ in range(THROTTLED_TRIES_MAX + 1)))
    with pytest.raises(Throttled) as throttled:
        await Client(transport).get(CONFIG_MAPS, KEY)
    assert len(transport.requests) == THROTTLED_TRIES_MAX
    assert now() == 3 * (THROTTLED_TRIES_MAX - 1)
    assert throttled.value.retry_after == 3
    assert str(throttled.value) == f"GET {PATH}: {BUSY}"


# As the real server says it while the disruption controller has not yet seen a budget.
STILL_PROCESSED = {
    "kind": "Status",
    "status": "Failure",
    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
    "reason": "TooManyRequests",
    "details": {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget a is still being processed by the server.",
            }
        ],
        "retryAfterSeconds": 10,
    },
    "code": 429,
}


@virtual
async def test_an_eviction_that_a_budget_forbids_is_told_at_once() -> None:
    transport = ScriptedTransport(answer(STILL_PROCESSED, status=429, retry_after="10"))
    with pytest.raises(Throttled) as throttled:
        await Client(transport).evict(KEY, uid="1")
    assert now() == 0
    assert throttled.value.retry_after == 10
    assert [cause.reason for cause in throttled.value.causes] == ["DisruptionBudget"]


@virtual
async def test_throttling_without_a_time_to_come_back_is_told_at_once() -> None:
    transport = ScriptedTransport(answer(None, status=429))
    with pytest.raises(Throttled):
        await Client(transport).get(CONFIG_MAPS, KEY)
    assert now() == 0


@virtual
async def test_the_limiter_holds_back_every_request_also_the_repeated_ones() -> None:
    done: list[float] = []
    answers = [answer({}), busy(), *(answer({}) for _ in range(5))]
    client = Client(ScriptedTransport(*answers), limiter=TokenBucket(qps=0.1, burst=2))
    for _ in range(6):
        await client.get(CONFIG_MAPS, KEY)
        done.append(now())
    # The second is throttled at 0 s; its repetition needs a third token, which comes at 10 s.
    assert done == [0, 10, 20, 30, 40, 50]


@virtual
async def test_copies_of_a_client_share_its_limiter() -> None:
    class Nobody:
        def before(self, resource: Resource, key: ObjectKey) -> None: ...
        def allowed(self) -> None: ...
        def after(self, resource: Resource, key: ObjectKey, written: Object | None) -> None: ...

    transport = ScriptedTransport(*(answer({}) for _ in range(3)))
    client = Client(transport, limiter=TokenBucket(qps=1, burst=1), name="one")
    await client.get(CONFIG_MAPS, KEY)
    await client.guarded_by(Nobody(), name="two").get(CONFIG_MAPS, KEY)
    await client.through(Observed).get(CONFIG_MAPS, KEY)
    assert now() == 2
    assert [request.user_agent.partition("/")[0] for request in transport.requests] == ["one", "two", "one"]


REQUESTS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "get": lambda client: client.get(CONFIG_MAPS, KEY),
    "list": lambda client: client.list(CONFIG_MAPS),
    "create": lambda client: client.create(CONFIG_MAPS, config_map("x", namespace="ns")),
    "replace": lambda client: client.replace(CONFIG_MAPS, config_map("x", namespace="ns", resourceVersion="1")),
    "patch": lambda client: client.patch(CONFIG_MAPS, KEY, merge_patch({})),
    "apply": lambda client: client.apply(CONFIG_MAPS, config_map("x", namespace="ns")),
    "scale": lambda client: client.scale(CONFIG_MAPS, KEY, 1),
    "evict": lambda client: client.evict(KEY, uid="1"),
    "delete": lambda client: client.delete(CONFIG_MAPS, KEY, uid="1", propagation=Propagation.BACKGROUND),
    "delete_collection": lambda client: client.delete_collection(CONFIG_MAPS, "ns", propagation=Propagation.BACKGROUND),
}
READS = {"get", "list"}

LOST = TransportError("reset", sent=True)
NO_ANSWERS: dict[str, Callable[[], MemoryResponse | TransportError]] = {
    "lost": lambda: LOST,
    "broken off in the body": lambda: MemoryResponse(b'{"kind": ', then=LOST),
    "broken off in the body of a refusal": lambda: MemoryResponse(b'{"kind": ', status=403, then=LOST),
    "a page of a proxy": lambda: MemoryResponse(b"<html>Welcome</html>"),
    "nothing": lambda: MemoryResponse([]),
    "a list of numbers": lambda: MemoryResponse(b"[1, 2]"),
    "not UTF-8": lambda: MemoryResponse(b'{"kind": "\\xff"}'),
}


@pytest.mark.parametrize("verb", REQUESTS)
@pytest.mark.parametrize("what", NO_ANSWERS)
@virtual
async def test_a_write_without_an_answer_is_uncertain_and_a_read_unavailable(verb: str, what: str) -> None:
    transport = ScriptedTransport(NO_ANSWERS[what]())
    with pytest.raises(ApiError) as raised:
        await REQUESTS[verb](Client(transport))
    assert type(raised.value) is (Unavailable if verb in READS else Uncertain)
    assert len(transport.requests) == 1


@pytest.mark.parametrize("verb", REQUESTS)
@virtual
async def test_what_was_never_sent_is_unavailable(verb: str) -> None:
    transport = ScriptedTransport(TransportError("refused", sent=False))
    with pytest.raises(ApiError) as raised:
        await REQUESTS[verb](Client(transport))
    assert type(raised.value) is Unavailable
    assert len(transport.requests) == 1


@virtual
async def test_the_texts_of_requests_without_an_answer() -> None:
    refused = TransportError("refused", sent=False)
    client = Client(ScriptedTransport(LOST, refused, LOST, MemoryResponse(b"<html>Welcome</html>")))
    texts = []
    for verb in ("get", "get", "delete", "get"):
        with pytest.raises(ApiError) as raised:
            await REQUESTS[verb](client)
        texts.append(str(raised.value))
    assert texts == [
        f"GET {PATH}: the API server did not answer: reset",
        f"GET {PATH}: the API server was not reached: refused",
        f"DELETE {PATH}: no answer, it may have been applied: reset",
        f"GET {PATH}: the API server did not answer: what came back is not from a Kubernetes API ({MALFORMED})",
    ]


@virtual
async def test_every_response_is_closed() -> None:
    responses = [answer({}), busy(), MemoryResponse(b"{", then=LOST), answer({}, status=500), MemoryResponse(b"?")]
    client = Client(ScriptedTransport(*responses))
    for _ in range(4):
        try:
            await client.get(CONFIG_MAPS, KEY)
        except ApiError:
            continue
    assert [response.closed for response in responses] == [True] * 5


# API Priority and Fairness of the real server: one user, one seat.

FLOW_SCHEMAS = Resource("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", namespaced=False)
LEVELS = Resource(
    "flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", namespaced=False
)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
RBAC = "rbac.authorization.k8s.io"
NO_SEATS = {
    "nominalConcurrencyShares": 0,
    "lendablePercent": 0,
    "borrowingLimitPercent": 0,
    "limitResponse": {"type": "Reject"},
}


@asynccontextmanager
async def one_seat_for(user: str, admin: Client, observed: Observed, client: Client) -> AsyncIterator[None]:
    """Limit the user to one request at a time: a priority level without seats still lets one in."""
    everything: dict[str, Any] = {
        "subjects": [{"kind": "User", "user": {"name": user}}],
        "resourceRules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
        ],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    meta = {"metadata": {"name": f"pilotage-test-{user}"}}
    schema = {
        "priorityLevelConfiguration": meta["metadata"],
        "matchingPrecedence": 2,
        "rules": [everything],
    }
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"}
    subject = {"apiGroup": RBAC, "kind": "User", "name": user}
    async with (
        existing(admin, BINDINGS, meta | {"roleRef": role, "subjects": [subject]}),
        existing(admin, LEVELS, meta | {"spec": {"type": "Limited", "limited": NO_SEATS}}) as level,
        existing(admin, FLOW_SCHEMAS, meta | {"spec": schema}),
    ):

        async def in_effect() -> bool:
            await client.get_path("/version")
            return observed.answers[-1].headers["x-kubernetes-pf-prioritylevel-uid"] == level.meta.uid

        await eventually(in_effect, seconds=120)  # the server takes new levels in when it gets to it
        yield


@asynccontextmanager
async def seat_taken(config: ClusterConfig, transport: Transport) -> AsyncIterator[None]:
    """Occupy the seat with a request whose body does not come."""
    url = urlsplit(config.server)

    async def ask() -> tuple[asyncio.StreamWriter, asyncio.Task[bytes]]:
        reader, writer = await asyncio.open_connection(url.hostname, url.port, ssl=config.tls.ssl_context())
        writer.write(
            b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\n"
            b"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        )
        return writer, asyncio.create_task(reader.read(1))

    writer, answer = await ask()

    async def is_taken() -> bool:
        nonlocal writer, answer
        # Refused where a request of ours had the seat just then, or the server has not heard what the user may do.
        if answer.done():
            writer.transport.abort()
            writer, answer = await ask()
        await asyncio.wait({answer}, timeout=0.2)
        if answer.done():
            return False
        response = await transport.send(Request("GET", "/version"))
        response.close()
        return response.status == 429

    try:
        await eventually(is_taken)
        yield
    finally:
        answer.cancel()
        writer.transport.abort()


@pytest.mark.timeout(300)
def test_the_real_server_throttles_and_is_waited_for(own_cluster: Cluster) -> None:
    admin_config = load_config(kubeconfig=str(own_cluster.kubeconfig))
    user_config = load_config(kubeconfig=str(own_cluster.user("mallory")))

    async def end(request: asyncio.Task[bytes], transport: Observed) -> None:
        while not request.done():  # how long the server asks to wait depends on how many it has turned away
            await warp(1, transport.busy)

    async def scenario() -> None:
        async with Client.connect(admin_config) as admin, Client.connect(user_config) as connected:
            client, transport = observed(connected)
            async with one_seat_for("mallory", admin, transport, client):
                async with seat_taken(user_config, transport):
                    # All tries are refused.
                    transport.requests.clear()
                    asking = asyncio.create_task(client.get_path("/version"))
                    await end(asking, transport)
                    with pytest.raises(Throttled) as throttled:
                        await asking
                    assert str(throttled.value) == f"GET /version: {BUSY}"
                    assert (throttled.value.retry_after or 0) >= 1
                    assert len(transport.requests) == THROTTLED_TRIES_MAX
                    # The seat becomes free while the client waits.
                    transport.requests.clear()
                    asking = asyncio.create_task(client.get_path("/version"))
                    await warp(1, transport.busy)
                    assert not asking.done()
                await end(asking, transport)
                assert b"gitVersion" in await asking
                assert 1 < len(transport.requests) <= THROTTLED_TRIES_MAX

    run_warp(scenario())
