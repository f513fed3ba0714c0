"""Questions about a live cluster: each gets an answer, a refusal is one, and nothing in the cluster changes."""

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from controlplane import Access, Cluster
from pilotage.kube import (
    Client,
    Discovery,
    ErrorClass,
    GroupKind,
    Object,
    Propagation,
    Resource,
    load_config,
    merge_patch,
)
from pilotage.runtime.clock import utc_now
from pilotage.teardown.snapshot.gather import gather
from pilotage.teardown.snapshot.questions import (
    Answer,
    DryRunDelete,
    DryRunUpdate,
    EventsAbout,
    FullObject,
    MayI,
    MayThey,
    Question,
)
from pilotage.teardown.snapshot.resolve import LISTED_RATHER_THAN_GOT, answer, until_resolved
from pilotage.teardown.snapshot.world import World
from tests.support.kinds import CONFIG_MAPS, NODES, config_map
from tests.support.transports import observed
from tests.support.waiting import eventually

CONFIG_MAP = GroupKind("", "ConfigMap")
EVENTS = Resource("", "v1", "events", "Event")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
FINALIZER = "example.com/hold"


@pytest.fixture
async def client(cluster: Access) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as connected:
        yield connected


async def world_of(client: Client, namespace: str, *kinds: GroupKind) -> World:
    return await gather(client, Discovery(client), namespaces=[namespace], kinds=kinds or [CONFIG_MAP])


async def test_a_whole_object_takes_the_place_of_its_metadata(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", {"key": "value"}), namespace=namespace)
    world = await world_of(client, namespace)
    before = world.get(made.meta.uid)
    assert before is not None
    assert world.body(before) is None
    assert await answer(client, world)
    after = world.get(made.meta.uid)
    assert after is not None
    assert after.full
    assert after.read()["data"] == {"key": "value"}
    assert world.body(before) == after.read()  # also for a caller that has kept the earlier item
    given = world.ask(FullObject(made.meta.uid))
    assert given is not None
    assert given.body == after.read()
    assert not await answer(client, world)


async def test_what_is_gone_or_another_by_now_is_said_to_be(client: Client, namespace: str) -> None:
    gone = await client.create(CONFIG_MAPS, config_map("gone"), namespace=namespace)
    replaced = await client.create(CONFIG_MAPS, config_map("replaced"), namespace=namespace)
    world = await world_of(client, namespace)
    for obj in (gone, replaced):
        await client.delete(CONFIG_MAPS, obj.key, uid=obj.meta.uid, propagation=Propagation.BACKGROUND)
    await client.create(CONFIG_MAPS, config_map("replaced", {"not": "ours"}), namespace=namespace)
    questions = [FullObject(gone.meta.uid), FullObject(replaced.meta.uid), FullObject("never-seen")]
    for question in questions:
        world.ask(question)
    await answer(client, world)
    assert [world.answers[each].error_class for each in questions] == [
        ErrorClass.ABSENT,
        ErrorClass.FOREIGN,
        ErrorClass.UNAVAILABLE,
    ]
    assert [world.answers[each].allowed for each in questions] == [False] * 3
    assert world.answers[questions[1]].body is None


async def test_many_objects_of_a_kind_are_had_by_one_list(client: Client, namespace: str) -> None:
    await asyncio.gather(
        *(
            client.create(CONFIG_MAPS, config_map(f"c{n}", {"n": str(n)}), namespace=namespace)
            for n in range(LISTED_RATHER_THAN_GOT)
        )
    )
    world = await world_of(client, namespace)
    items = [item for item in world if item.meta.name.startswith("c")]
    gone = items[0]
    await client.delete(CONFIG_MAPS, gone.object.key, uid=gone.uid, propagation=Propagation.BACKGROUND)
    for item in items:
        world.body(item)
    watched, seen = observed(client)
    await answer(watched, world)
    assert len(seen.requests) == 1
    bodies = [world.body(item) for item in items[1:]]
    assert [body and body["data"]["n"] for body in bodies] == [item.meta.name[1:] for item in items[1:]]
    assert world.answers[FullObject(gone.uid)].error_class == ErrorClass.ABSENT


def event(name: str, about: Object, reason: str, last: str, kind: str = "ConfigMap") -> dict[str, object]:
    involved = {"kind": kind, "name": about.meta.name, "namespace": about.meta.namespace, "uid": about.meta.uid}
    return {"metadata": {"name": name}, "involvedObject": involved, "reason": reason, "lastTimestamp": last}


async def test_events_about_an_object_come_newest_last(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
    other = await client.create(CONFIG_MAPS, config_map("b"), namespace=namespace)
    for body in (
        event("e1", made, "Later", "2999-01-01T00:00:02Z"),
        event("e2", made, "Sooner", "2999-01-01T00:00:01Z"),
        event("e3", other, "Else", "2999-01-01T00:00:03Z"),
    ):
        await client.create(EVENTS, body, namespace=namespace)
    world = await world_of(client, namespace)
    world.ask(EventsAbout(made.meta.uid))
    await answer(client, world)
    assert [each["reason"] for each in world.answers[EventsAbout(made.meta.uid)].items] == ["Sooner", "Later"]


@pytest.mark.usefixtures("own_cluster")
async def test_events_about_a_node_name_it_by_its_name(client: Client, namespace: str) -> None:
    node = (await client.list(NODES)).items[0]
    name = f"e{secrets.token_hex(4)}"
    body = event(name, node, "NodeTested", "2999-01-01T00:00:00Z", kind="Node")
    body["involvedObject"] = {"kind": "Node", "name": node.meta.name, "uid": node.meta.name}  # as a kubelet does
    made = await client.create(EVENTS, body, namespace="default")
    world = await world_of(client, namespace, GroupKind("", "Node"))
    world.ask(EventsAbout(node.meta.uid))
    await answer(client, world)
    await client.delete(EVENTS, made.key, uid=made.meta.uid, propagation=Propagation.BACKGROUND)
    assert name in [each["metadata"]["name"] for each in world.answers[EventsAbout(node.meta.uid)].items]


async def test_dry_runs_say_what_the_server_would_and_change_nothing(client: Client, namespace: str) -> None:
    body = config_map("a", finalizers=[FINALIZER, "example.com/other"])
    made = await client.create(CONFIG_MAPS, body, namespace=namespace)
    world = await world_of(client, namespace)
    changed = await client.patch(CONFIG_MAPS, made.key, merge_patch({"data": {"changed": "since"}}))
    let_go, absent = DryRunUpdate(made.meta.uid, FINALIZER), DryRunUpdate(made.meta.uid, "example.com/none")
    delete = DryRunDelete(made.meta.uid)
    for question in (let_go, absent, delete):
        world.ask(question)
    await answer(client, world)
    given = world.answers[let_go]
    assert given.allowed
    assert given.body is not None
    assert given.body["metadata"]["finalizers"] == ["example.com/other"]
    assert world.answers[absent].message.endswith("does not have the finalizer example.com/none")
    left = world.answers[delete].body
    assert left is not None
    assert left["metadata"]["deletionTimestamp"]
    now = await client.get(CONFIG_MAPS, made.key)
    assert now.meta.resource_version == changed.meta.resource_version
    await client.patch(CONFIG_MAPS, made.key, merge_patch({"metadata": {"finalizers": None}}))


async def test_a_refusal_is_an_answer_in_the_servers_words(
    client: Client, own_cluster: Cluster, namespace: str
) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", finalizers=[FINALIZER]), namespace=namespace)
    world = await world_of(client, namespace)
    uid = made.meta.uid
    questions: list[Question] = [FullObject(uid), EventsAbout(uid), DryRunUpdate(uid, FINALIZER), DryRunDelete(uid)]
    for question in questions:
        world.ask(question)
    world.ask(mine := MayI("delete", "", "configmaps", namespace))
    async with Client.connect(load_config(kubeconfig=str(own_cluster.user("nobody")))) as nobody:
        await answer(nobody, world)
    for question in questions:
        given = world.answers[question]
        assert (given.allowed, given.error_class) == (False, ErrorClass.FORBIDDEN)
        assert 'User "nobody" cannot' in given.message
    assert world.answers[mine] == replace(world.answers[mine], allowed=False, error_class=None)
    await client.patch(CONFIG_MAPS, made.key, merge_patch({"metadata": {"finalizers": None}}))


async def test_who_may_do_what(client: Client, namespace: str) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps", "pods/log"], "verbs": ["get"]}]
    await client.create(ROLES, {"metadata": {"name": "r"}, "rules": rules}, namespace=namespace)
    group = {"kind": "Group", "name": f"system:serviceaccounts:{namespace}", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    await client.create(
        BINDINGS, {"metadata": {"name": "r"}, "subjects": [group], "roleRef": role}, namespace=namespace
    )
    user = f"system:serviceaccount:{namespace}:manager"
    # By its groups, too: the server knows them, a review must be told.
    may, may_not = (
        MayThey(user, "get", "", "configmaps", namespace),
        MayThey(user, "delete", "", "configmaps", namespace),
    )
    logs, pods = MayThey(user, "get", "", "pods", namespace, "log"), MayThey(user, "get", "", "pods", namespace)
    mine = MayI("delete", "apps", "deployments", namespace)

    async def allowed() -> dict[Question, Answer] | None:
        world = World(utc_now(), live=True)
        for question in (may, may_not, logs, pods, mine):
            world.ask(question)
        await answer(client, world)
        # The questions are asked one by one, and the role may begin to count between two of them.
        return world.answers if world.answers[may].allowed and world.answers[logs].allowed else None

    answers = await eventually(allowed)
    assert not answers[may_not].allowed
    assert answers[may_not].error_class is None
    assert not answers[pods].allowed
    assert answers[mine].allowed
    assert "RoleBinding" in answers[may].message


async def test_thinking_goes_on_until_nothing_more_is_asked(client: Client, namespace: str) -> None:
    made = await client.create(CONFIG_MAPS, config_map("a", {"next": "b"}), namespace=namespace)
    other = await client.create(CONFIG_MAPS, config_map("b", {"next": "end"}), namespace=namespace)
    world = await world_of(client, namespace)
    thoughts: list[str] = []

    def think(world: World) -> str:
        """Follow the pointers, as far as they are known."""
        name = "a"
        while name != "end":
            item = world.find("", "ConfigMap", namespace, name)
            assert item is not None
            body = world.body(item)
            if body is None:
                break
            name = body["data"]["next"]
        thoughts.append(name)
        return name

    assert await until_resolved(client, world, think) == "end"
    assert thoughts == ["a", "b", "end"]
    assert world.wanted == set()
    assert {FullObject(made.meta.uid), FullObject(other.meta.uid)} == set(world.answers)


async def test_thinking_that_never_ends_is_ended(client: Client, namespace: str) -> None:
    world = await world_of(client, namespace)
    rounds: list[int] = []

    def think(world: World) -> int:
        rounds.append(len(rounds))
        world.ask(MayI(f"verb{len(rounds)}", "", "pods", namespace))
        return len(rounds)

    assert await until_resolved(client, world, think, rounds_max=3) == 4
    assert len(world.answers) == 3


async def test_a_dump_answers_nothing(client: Client) -> None:
    world = World(utc_now(), live=False)

    def think(world: World) -> object:
        return world.ask(MayI("get", "", "pods", ""))

    assert await until_resolved(client, world, think) is None
    assert not world.answers
