"""Deletes, on the real server: exactly what was meant, with what becomes of its dependents, and whether it is gone."""

import pytest

from pilotage.kube import (
    PODS,
    Absent,
    Client,
    Foreign,
    Json,
    Object,
    ObjectKey,
    Propagation,
    Resource,
    Throttled,
    merge_patch,
    without_finalizer,
)
from tests.support.kinds import (
    BUDGETS,
    CONFIG_MAPS,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    SERVICES,
    config_map,
    delete,
    pod,
)
from tests.support.waiting import until

FINALIZER = "example.com/held"
BACKGROUND = Propagation.BACKGROUND


async def running_pod(client: Client, namespace: str, name: str, **metadata: object) -> Object:
    created = await client.create(PODS, pod(name, **metadata), namespace=namespace)
    running = await until(client, PODS, created.key, lambda obj: obj and obj.get("status", "phase") == "Running")
    assert running is not None
    return running


# Whether it is gone


async def test_a_delete_says_whether_the_object_is_gone(client: Client, namespace_for_pods: str) -> None:
    namespace = namespace_for_pods
    service = {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}}
    cases: list[tuple[str, Resource, Json]] = [
        ("of most kinds", CONFIG_MAPS, config_map("x")),
        ("held by a finalizer", CONFIG_MAPS, config_map("held", finalizers=[FINALIZER])),
        ("answered with its last state", SERVICE_ACCOUNTS, {"metadata": {"name": "x"}}),
        ("answered with its last state, too", SERVICES, service),
        ("a pod that is not to wait", PODS, pod("x")),
    ]
    said, found = {}, {}
    for case, resource, body in cases:
        created = await client.create(resource, body, namespace=namespace)
        answer = await client.delete(
            resource, created.key, uid=created.meta.uid, propagation=BACKGROUND, grace_seconds=0
        )
        said[case] = answer is None
        assert answer is None or (answer.meta.uid == created.meta.uid and answer.meta.terminating)
        try:
            await client.get(resource, created.key)
            found[case] = True
        except Absent:
            found[case] = False
    assert said == {case: not there for case, there in found.items()}
    assert [case for case, there in found.items() if there] == ["held by a finalizer"]
    held = await client.get(CONFIG_MAPS, ObjectKey(namespace, "held"))
    assert (await delete(client, CONFIG_MAPS, held)) is not None  # again: it stays
    await client.patch(CONFIG_MAPS, held.key, without_finalizer(held, FINALIZER) or merge_patch({}))


async def test_a_running_pod_and_a_namespace_stay_for_a_while(client: Client, namespace_for_pods: str) -> None:
    namespace = namespace_for_pods
    leaving = await delete(client, PODS, await running_pod(client, namespace, "x"))
    assert leaving is not None
    assert leaving.meta.deletion_grace_period_seconds == 30
    hurried = await running_pod(client, namespace, "y")
    gone = client.delete(PODS, hurried.key, uid=hurried.meta.uid, propagation=BACKGROUND, grace_seconds=0)
    assert await gone is None
    leaving = await delete(client, NAMESPACES, await client.get(NAMESPACES, ObjectKey("", namespace)))
    assert leaving is not None
    assert leaving.meta.terminating


# Propagation to dependents


async def family(client: Client, namespace: str) -> tuple[Object, ObjectKey]:
    """An owner, and the key of its child, which the garbage collector has seen."""
    owner = await client.create(CONFIG_MAPS, config_map("owner"), namespace=namespace)
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner.meta.uid,
        "blockOwnerDeletion": True,
    }
    # One whose owner is gone already: once it is collected, the collector has processed everything before it.
    child = await client.create(CONFIG_MAPS, config_map("child", ownerReferences=[reference]), namespace=namespace)
    orphan = config_map("orphan", ownerReferences=[reference | {"name": "none", "uid": "none"}])
    last = await client.create(CONFIG_MAPS, orphan, namespace=namespace)
    await until(client, CONFIG_MAPS, last.key, lambda obj: obj is None)
    return owner, child.key


async def test_in_the_background_the_owner_goes_first(client: Client, namespace: str) -> None:
    owner, child = await family(client, namespace)
    assert await client.delete(CONFIG_MAPS, owner.key, uid=owner.meta.uid, propagation=BACKGROUND) is None
    with pytest.raises(Absent):
        await client.get(CONFIG_MAPS, owner.key)
    await until(client, CONFIG_MAPS, child, lambda obj: obj is None)


async def test_in_the_foreground_the_owner_waits_for_its_dependents(client: Client, namespace: str) -> None:
    owner, child = await family(client, namespace)
    held = await client.patch(CONFIG_MAPS, child, merge_patch({"metadata": {"finalizers": [FINALIZER]}}))
    answer = await client.delete(CONFIG_MAPS, owner.key, uid=owner.meta.uid, propagation=Propagation.FOREGROUND)
    assert answer is not None
    assert answer.meta.finalizers == ("foregroundDeletion",)
    leaving = await until(client, CONFIG_MAPS, child, lambda obj: obj and obj.meta.terminating)
    assert leaving is not None
    assert leaving.meta.uid == held.meta.uid
    assert (await client.get(CONFIG_MAPS, owner.key)).meta.terminating
    await client.patch(CONFIG_MAPS, child, without_finalizer(leaving, FINALIZER) or merge_patch({}))
    await until(client, CONFIG_MAPS, owner.key, lambda obj: obj is None)


async def test_orphans_stay_and_lose_their_owner(client: Client, namespace: str) -> None:
    owner, child = await family(client, namespace)
    answer = await client.delete(CONFIG_MAPS, owner.key, uid=owner.meta.uid, propagation=Propagation.ORPHAN)
    assert answer is not None
    assert answer.meta.finalizers == ("orphan",)
    await until(client, CONFIG_MAPS, owner.key, lambda obj: obj is None)
    left = await client.get(CONFIG_MAPS, child)
    assert left.meta.owner_references == ()
    assert not left.meta.terminating


# Preconditions


async def test_the_next_object_of_the_same_name_is_never_taken(client: Client, namespace: str) -> None:
    first = await client.create(CONFIG_MAPS, config_map("x"), namespace=namespace)
    await delete(client, CONFIG_MAPS, first)
    second = await client.create(CONFIG_MAPS, config_map("x"), namespace=namespace)
    with pytest.raises(Foreign):
        await delete(client, CONFIG_MAPS, first)
    assert (await client.get(CONFIG_MAPS, first.key)).to_dict() == second.to_dict()


async def test_a_collection_is_deleted_as_selected(client: Client, namespace: str) -> None:
    for name, app in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")):
        await client.create(CONFIG_MAPS, config_map(name, labels={"app": app}), namespace=namespace)

    async def left() -> list[str]:
        return [obj.meta.name for obj in (await client.list(CONFIG_MAPS, namespace, labels="app")).items]

    await client.delete_collection(CONFIG_MAPS, namespace, propagation=BACKGROUND, labels="app=a", dry_run=True)
    assert await left() == ["a1", "a2", "b1", "b2"]
    await client.delete_collection(CONFIG_MAPS, namespace, propagation=BACKGROUND, labels="app=a")
    assert await left() == ["b1", "b2"]
    await client.delete_collection(CONFIG_MAPS, namespace, propagation=BACKGROUND, fields="metadata.name=b1")
    assert await left() == ["b2"]


# Evictions


async def test_an_eviction_is_a_delete_that_a_budget_can_forbid(client: Client, namespace_for_pods: str) -> None:
    namespace = namespace_for_pods
    guarded = await running_pod(client, namespace, "guarded", labels={"app": "guarded"})
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
    budget = await client.create(BUDGETS, {"metadata": {"name": "x"}, "spec": spec}, namespace=namespace)
    await until(client, BUDGETS, budget.key, lambda obj: obj and obj.get("status", "currentHealthy") == 1)
    with pytest.raises(Throttled) as forbidden:
        await client.evict(guarded.key, uid=guarded.meta.uid)
    assert [cause.reason for cause in forbidden.value.causes] == ["DisruptionBudget"]
    assert str(forbidden.value) == (
        f"POST /api/v1/namespaces/{namespace}/pods/guarded/eviction: "
        "Cannot evict pod as it would violate the pod's disruption budget."
    )
    assert not (await client.get(PODS, guarded.key)).meta.terminating
    free = await running_pod(client, namespace, "free")
    with pytest.raises(Foreign):
        await client.evict(free.key, uid=guarded.meta.uid)
    await client.evict(free.key, uid=free.meta.uid, grace_seconds=0)
    await until(client, PODS, free.key, lambda obj: obj is None)
