"""A world of a live cluster: what was read is there, what was not is said, and nothing waits for what is dead."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable

import pytest

from controlplane import Access, Cluster
from pilotage.catalogue.reading import MADE
from pilotage.kube import Client, Discovery, ErrorClass, GroupKind, KindNotServed, Resource, load_config
from pilotage.kube.transport import Request, Response
from pilotage.runtime.clock import monotonic
from pilotage.teardown.snapshot import gather as gathering
from pilotage.teardown.snapshot.gather import ANSWER_SECONDS_MAX, AT_ONCE, STARTS_MAX, gather, narrowed_kinds
from pilotage.teardown.snapshot.world import KindReading, Name, State, World
from pilotage_sim.loop import virtual
from tests.support import kinds
from tests.support.kinds import CONFIG_MAPS, config_map, existing, served
from tests.support.transports import MemoryResponse, answer, observed
from tests.support.waiting import eventually

CONFIG_MAP = GroupKind("", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
LEASE = GroupKind("coordination.k8s.io", "Lease")
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


@pytest.fixture
async def client(cluster: Access) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as connected:
        yield connected


async def allow(client: Client, namespace: str, user: str, *plurals: str) -> None:
    """Let a user read these kinds of the core group in a namespace."""
    rules = [{"apiGroups": [""], "resources": list(plurals), "verbs": ["get", "list"]}]
    await client.create(ROLES, {"metadata": {"name": "reader"}, "rules": rules}, namespace=namespace)
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}
    body = {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": role}
    await client.create(BINDINGS, body, namespace=namespace)


async def once_allowed(client: Client, namespace: str) -> None:
    """RBAC takes a moment to see a new binding."""

    async def allowed() -> bool:
        return not (await gather(client, Discovery(client), namespaces=[namespace], kinds=[CONFIG_MAP])).problem(
            *CONFIG_MAP
        )

    await eventually(allowed)


def names(world: World, kind: GroupKind, namespace: str | None = None) -> set[str]:
    return {item.meta.name for item in world.of(*kind, namespace)}


# On the real server


async def test_a_namespace_is_read_by_its_metadata_and_in_full_where_that_is_asked(
    client: Client, namespace: str
) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", {"key": "value"}), namespace=namespace)
    secret = await client.create(SECRETS, {"metadata": {"name": "s"}, "stringData": {"k": "v"}}, namespace=namespace)
    world = await gather(client, Discovery(client), namespaces=[namespace], full={GroupKind("", "Secret")})
    item, full = world.get(made.meta.uid), world.get(secret.meta.uid)
    assert item is not None
    assert full is not None
    assert (item.full, full.full) == (False, True)
    assert "data" not in item.read()
    assert full.read()["data"] == {"k": "dg=="}
    assert full.read()["kind"] == "Secret"
    assert item.meta.name == "a"
    assert item.read()["metadata"]["managedFields"]
    assert world.live
    assert {each.meta.namespace for each in world} == {"", namespace}
    assert all(reading.resource_version for reading in world.kinds.values())
    assert world.problem("", "ConfigMap", namespace) == ""
    assert world.problem("", "ConfigMap", "kube-public") == "namespace kube-public was not read"
    assert world.problem("", "ConfigMap", "elsewhere") == "", "there is no such namespace"
    assert world.state(Name("", "ConfigMap", namespace, "b"), "no-such-uid") == State.GONE


async def test_each_kind_is_read_once_and_what_has_no_objects_not_at_all(client: Client, namespace: str) -> None:
    watched, seen = observed(client)
    world = await gather(watched, Discovery(watched), namespaces=[namespace])
    paths = [str(request).removeprefix("GET ") for request in seen.requests]
    assert len(paths) == len(set(paths))
    assert len(paths) == len(world.kinds) + 2  # discovery
    first = {path.partition("?")[0].rpartition("/")[2] for path in paths[2 : 2 + len(MADE)]}
    assert first >= {"pods", "replicasets", "endpointslices", "endpoints"}  # the proof lists them again
    assert {"Pod", "Deployment", "Ingress", "Node", "CustomResourceDefinition"} <= {each.kind for each in world.kinds}
    assert world.kinds[GroupKind("autoscaling", "HorizontalPodAutoscaler")].resource.version == "v2"
    kinds_read = {each.kind for each in world.kinds}
    assert not kinds_read & {"ComponentStatus", "SubjectAccessReview", "TokenReview", "Binding", "Event", "Lease"}
    assert world.problem("", "Event") == "it was not read"


async def test_events_and_leases_are_read_when_they_are_asked_for(client: Client, namespace: str) -> None:
    both = {GroupKind("", "Event"), GroupKind("events.k8s.io", "Event")}
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "ConfigMap", "name": "a", "namespace": namespace},
        "reason": "Tested",
    }
    made = await client.create(Resource("", "v1", "events", "Event"), event, namespace=namespace)
    world = await gather(client, Discovery(client), namespaces=[namespace], full={LEASE, *both})
    assert world.problem(*LEASE) == ""
    assert [item.group_kind for item in world if item.uid == made.meta.uid] == [GroupKind("", "Event")]
    assert GroupKind("events.k8s.io", "Event") not in world.kinds  # they are the same objects
    newer = await gather(client, Discovery(client), namespaces=[namespace], full={GroupKind("events.k8s.io", "Event")})
    assert names(newer, GroupKind("events.k8s.io", "Event")) == {"e"}
    asked = await gather(client, Discovery(client), namespaces=[namespace], kinds=both)
    assert set(asked.kinds) == both
    assert len(names(asked, GroupKind("", "Event"))) == 1
    assert names(asked, GroupKind("events.k8s.io", "Event")) == set()  # the same object is there once


async def test_kinds_without_a_namespace_can_be_left_out(client: Client, namespace: str) -> None:
    world = await gather(client, Discovery(client), namespaces=[namespace], cluster_scoped=False)
    assert all(reading.resource.namespaced for reading in world.kinds.values())


async def test_a_large_kind_comes_in_chunks_and_is_complete(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "METADATA_CHUNK", 7)
    await asyncio.gather(*(client.create(CONFIG_MAPS, config_map(f"c{n:03}"), namespace=namespace) for n in range(50)))
    world = await gather(client, Discovery(client), namespaces=[namespace])
    assert names(world, CONFIG_MAP) >= {f"c{n:03}" for n in range(50)}


async def test_what_is_forbidden_is_unknown_and_hides_nothing_else(
    client: Client, own_cluster: Cluster, namespace: str
) -> None:
    user = f"reader-{secrets.token_hex(4)}"
    await allow(client, namespace, user, "configmaps", "namespaces")
    made = await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
    async with Client.connect(load_config(kubeconfig=str(own_cluster.user(user)))) as limited:
        await once_allowed(limited, namespace)
        world = await gather(limited, Discovery(limited), namespaces=[namespace])
    assert world.get(made.meta.uid) is not None
    assert world.problem("", "ConfigMap", namespace) == ""
    reading = world.kinds[GroupKind("", "Secret")]
    assert reading.error_class == ErrorClass.FORBIDDEN
    assert f'User "{user}" cannot list resource "secrets"' in reading.problem
    assert world.state(Name("", "Secret", namespace, "s"), "some-uid") == State.UNKNOWN
    # The own namespace can be seen by its name; that says nothing about others.
    assert names(world, GroupKind("", "Namespace")) == {namespace}
    assert world.kinds[GroupKind("", "Namespace")].error_class == ErrorClass.FORBIDDEN


async def test_many_namespaces_are_read_at_once_or_one_by_one_where_only_that_is_allowed(
    client: Client, own_cluster: Cluster, namespace: str
) -> None:
    spaces = [f"{namespace[:40]}-{n}" for n in range(gathering.NAMESPACES_ONE_BY_ONE_MAX + 1)]
    user = f"reader-{secrets.token_hex(4)}"
    for space in spaces:
        await client.create(kinds.NAMESPACES, {"metadata": {"name": space}})
    try:
        for space in spaces:
            await client.create(CONFIG_MAPS, config_map("a"), namespace=space)
            await allow(client, space, user, "configmaps")
        watched, seen = observed(client)
        discovery = Discovery(watched)
        await discovery.surface()
        seen.requests.clear()
        world = await gather(watched, discovery, namespaces=spaces, kinds=[CONFIG_MAP])
        assert [str(request) for request in seen.requests] == ["GET /api/v1/configmaps"]
        assert {item.meta.namespace for item in world} == set(spaces)
        async with Client.connect(load_config(kubeconfig=str(own_cluster.user(user)))) as limited:
            await once_allowed(limited, spaces[-1])
            again = await gather(limited, Discovery(limited), namespaces=spaces, kinds=[CONFIG_MAP])
            assert {item.uid for item in again if item.meta.name == "a"} == {
                item.uid for item in world if item.meta.name == "a"
            }
            assert again.problem(*CONFIG_MAP) == ""
            # A namespace that may not be read makes the kind unknown; observed objects stay observed.
            partly = await gather(limited, Discovery(limited), namespaces=[spaces[0], "default"], kinds=[CONFIG_MAP])
            assert partly.kinds[CONFIG_MAP].error_class == ErrorClass.FORBIDDEN
            assert len(partly.of(*CONFIG_MAP, spaces[0])) >= 1
    finally:
        for space in spaces:
            own_cluster.request("DELETE", f"/api/v1/namespaces/{space}")


async def test_a_kind_that_matters_everywhere_is_read_there_or_where_that_is_allowed(
    client: Client, own_cluster: Cluster, namespace: str
) -> None:
    user = f"reader-{secrets.token_hex(4)}"
    far = f"{namespace[:40]}-far"
    await client.create(kinds.NAMESPACES, {"metadata": {"name": far}})
    try:
        for space in (namespace, far):
            await client.create(CONFIG_MAPS, config_map("a"), namespace=space)
            await client.create(SECRETS, {"metadata": {"name": "s"}}, namespace=space)
        await allow(client, namespace, user, "configmaps", "secrets")
        secret = GroupKind("", "Secret")
        both = [CONFIG_MAP, secret]
        watched, seen = observed(client)
        discovery = Discovery(watched)
        await discovery.surface()
        seen.requests.clear()
        world = await gather(watched, discovery, namespaces=[namespace], kinds=both, everywhere=[CONFIG_MAP])
        assert {str(request) for request in seen.requests} == {
            "GET /api/v1/configmaps",
            f"GET /api/v1/namespaces/{namespace}/secrets",
        }
        assert {item.meta.namespace for item in world.of(*CONFIG_MAP)} >= {namespace, far}
        assert {item.meta.namespace for item in world.of(*secret)} == {namespace}
        assert world.namespaces == {namespace}
        assert narrowed_kinds(world) == []
        async with Client.connect(load_config(kubeconfig=str(own_cluster.user(user)))) as limited:
            await once_allowed(limited, namespace)
            again = await gather(
                limited, Discovery(limited), namespaces=[namespace], kinds=both, everywhere=[CONFIG_MAP]
            )
        assert {item.meta.namespace for item in again.of(*CONFIG_MAP)} == {namespace}
        assert again.problem(*CONFIG_MAP, namespace) == ""
        assert again.kinds[CONFIG_MAP].resource_version
        assert narrowed_kinds(again) == [CONFIG_MAP]
    finally:
        own_cluster.request("DELETE", f"/api/v1/namespaces/{far}")


@pytest.mark.usefixtures("own_cluster")
async def test_a_dead_api_service_is_named_and_hides_nothing_else(client: Client, namespace: str) -> None:
    group = f"dead{secrets.token_hex(4)}.example.com"
    spec = {
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "insecureSkipTLSVerify": True,
        "service": {"name": "nowhere", "namespace": namespace},
    }
    made = await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
    async with existing(client, API_SERVICES, {"metadata": {"name": f"v1.{group}"}, "spec": spec}):

        async def noticed() -> World | None:
            world = await gather(client, Discovery(client), namespaces=[namespace])
            return world if f"{group}/v1" in world.unreadable_groups else None

        world = await eventually(noticed)
    assert world.get(made.meta.uid) is not None
    assert "does not answer" in world.problem(group, "Boat")
    assert world.state(Name(group, "Boat", namespace, "b"), "uid") == State.UNKNOWN
    assert [kind for kind, reading in world.kinds.items() if reading.problem and not kind.group.endswith(".com")] == []


@pytest.mark.usefixtures("own_cluster")
async def test_a_kind_is_found_once_it_is_defined_and_unknown_once_its_definition_goes(
    client: Client, namespace: str
) -> None:
    kind = kinds.widgets()
    widget = GroupKind(kind.group, kind.kind)
    discovery = Discovery(client)
    await discovery.surface()
    async with served(client, kind):

        async def found() -> list[KindReading]:
            world = await gather(client, discovery, namespaces=[namespace], kinds=[widget])
            return [*world.kinds.values()]

        assert [reading.problem for reading in await eventually(found)] == [""]

    async def gone() -> bool:
        try:
            await client.list(kind)
        except KindNotServed:
            return True
        return False

    await eventually(gone)
    world = await gather(client, discovery, namespaces=[namespace])  # it still knows the kind
    reading = world.kinds[widget]
    assert "not served" in reading.problem
    assert reading.error_class == ErrorClass.UNAVAILABLE
    assert world.state(Name(kind.group, kind.kind, namespace, "w"), "uid") == State.UNKNOWN
    assert world.problem("", "ConfigMap") == ""


# In virtual time


class Served:
    """A server of kinds ``k0``, ``k1``, …; `lists` says what a list of each answers, None: nothing for ever."""

    def __init__(self, count: int, lists: Callable[[int, Request], MemoryResponse | None]) -> None:
        self._count = count
        self._lists = lists
        self.listed_at: dict[int, list[float]] = {}

    async def send(self, request: Request) -> Response:
        path = request.target.partition("?")[0]
        if path == "/api":
            return answer({"kind": "APIGroupDiscoveryList", "items": []})
        if path == "/apis":
            entries = [
                {"resource": f"k{n}", "responseKind": {"kind": f"K{n}"}, "scope": "Namespaced", "verbs": ["list"]}
                for n in range(self._count)
            ]
            group = {"metadata": {"name": "g.io"}, "versions": [{"version": "v1", "resources": entries}]}
            return answer({"kind": "APIGroupDiscoveryList", "items": [group]})
        number = int(path.rpartition("/k")[2])
        self.listed_at.setdefault(number, []).append(monotonic())
        found = self._lists(number, request)
        if found is None:
            await asyncio.get_running_loop().create_future()
        assert found is not None
        return found

    async def close(self) -> None: ...


def listed(*uids: str, token: str = "") -> MemoryResponse:
    items = [{"metadata": {"name": uid, "uid": uid, "namespace": "n"}} for uid in uids]
    meta = {"resourceVersion": "7", "continue": token}
    return answer({"kind": "PartialObjectMetadataList", "metadata": meta, "items": items})


EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


@virtual
async def test_kinds_that_never_answer_hold_nobody_up() -> None:
    dead = 5 * AT_ONCE
    server = Served(dead + 1, lambda number, _: listed("a") if number == dead else None)
    client = Client(server)
    world = await gather(client, Discovery(client))
    assert world.get("a") is not None
    assert server.listed_at[dead][0] < ANSWER_SECONDS_MAX  # it did not wait until the others had failed
    assert monotonic() < 3 * ANSWER_SECONDS_MAX
    assert len([reading for reading in world.kinds.values() if reading.problem]) == dead
    assert world.problem("g.io", "K0") == f"it did not answer within {ANSWER_SECONDS_MAX:.0f} s"
    assert world.kinds[GroupKind("g.io", "K0")].error_class == ErrorClass.UNAVAILABLE


@virtual
async def test_a_list_that_expires_on_the_way_is_begun_anew() -> None:
    answers = [listed("a", token="t"), answer(EXPIRED, status=410), listed("b", token="t"), listed("c")]
    client = Client(Served(1, lambda *_: answers.pop(0)))
    world = await gather(client, Discovery(client))
    assert {item.uid for item in world} == {"b", "c"}  # nothing is left of the first beginning
    assert world.problem("g.io", "K0") == ""
    assert world.kinds[GroupKind("g.io", "K0")].resource_version == "7"


@virtual
async def test_one_that_expires_again_and_again_is_given_up() -> None:
    def lists(_: int, request: Request) -> MemoryResponse:
        return answer(EXPIRED, status=410) if "continue" in request.target else listed("a", token="t")

    server = Served(1, lists)
    client = Client(server)
    world = await gather(client, Discovery(client))
    assert list(world) == []
    assert world.problem("g.io", "K0") == "too old"
    assert len(server.listed_at[0]) == 2 * STARTS_MAX


@virtual
async def test_an_object_that_is_shown_under_two_kinds_is_taken_once() -> None:
    client = Client(Served(2, lambda number, _: listed("a", f"own{number}")))
    world = await gather(client, Discovery(client))
    assert [item.group_kind.kind for item in world if item.uid == "a"] == ["K0"]
    assert {item.uid for item in world.of("g.io", "K1")} == {"own1"}


@virtual
async def test_a_namespace_that_could_not_be_one_is_unknown() -> None:
    client = Client(Served(1, lambda *_: listed()))
    world = await gather(client, Discovery(client), namespaces=["a/b"])
    assert "'a/b' cannot be the name" in world.problem("g.io", "K0")


@virtual
async def test_the_time_is_that_of_the_loop() -> None:
    client = Client(Served(1, lambda *_: listed()))
    world = await gather(client, Discovery(client))
    assert world.now.year == 2025  # of the virtual clock
    assert world.now.tzinfo is not None
