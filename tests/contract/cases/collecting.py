"""The garbage collector: which objects are kept, which are deleted, in which order."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.cases.deleting import HOLD, options
from tests.contract.kit import Kit
from tests.contract.objects import CM, LEASES, Kind, cm, lease, obj, owner, props

theme = Theme("gc")

OTHER = "00000000-0000-0000-0000-000000000001"
META = "metadata"


async def family(kit: Kit, *, block: bool = True, held_owner: bool = False, held_child: bool = False) -> Any:
    """An owner and a child."""
    made = await kit.quiet.create(CM, cm("owner", finalizers=HOLD if held_owner else []))
    reference = owner(made.body, blockOwnerDeletion=block)
    child = await kit.quiet.create(
        LEASES,
        lease("child")
        | {META: {"name": "child", "finalizers": HOLD if held_child else [], "ownerReferences": [reference]}},
    )
    assert child.status == 201, child.body
    return made


async def deleting(kit: Kit, resource: str, name: str) -> None:
    async def is_deleting() -> bool:
        got = await kit.quiet.get(resource, name)
        return got.status == 200 and "deletionTimestamp" in got.body[META]

    await kit.until(f"{name} is being deleted", is_deleting)


@theme.case()
async def background_takes_the_child(kit: Kit) -> None:
    await family(kit)
    await kit.delete(CM, "owner", options(propagationPolicy="Background"))
    await kit.until_gone(LEASES, "child")
    await kit.get(CM, "owner")


@theme.case()
async def default_is_background(kit: Kit) -> None:
    await family(kit)
    await kit.delete(CM, "owner")
    await kit.until_gone(LEASES, "child")


@theme.case(facts=(4, 11))
async def foreground_waits_for_the_child(kit: Kit) -> None:
    await family(kit, held_child=True)
    await kit.delete(CM, "owner", options(propagationPolicy="Foreground"))
    await deleting(kit, LEASES, "child")
    await kit.get(CM, "owner")
    await kit.get(LEASES, "child")
    await kit.quiet.patch(LEASES, "child", {META: {"finalizers": None}})
    await kit.until_gone(CM, "owner")


@theme.case(facts=(11,))
async def foreground_does_not_wait_for_what_does_not_block(kit: Kit) -> None:
    await family(kit, block=False, held_child=True)
    await kit.delete(CM, "owner", options(propagationPolicy="Foreground"))
    await kit.until_gone(CM, "owner")
    await deleting(kit, LEASES, "child")
    await kit.get(LEASES, "child")


@theme.case(facts=(12,))
async def foreground_takes_children_though_the_owner_is_held(kit: Kit) -> None:
    await family(kit, held_owner=True)
    await kit.delete(CM, "owner", options(propagationPolicy="Foreground"))
    await kit.until_gone(LEASES, "child")

    async def alone() -> bool:
        return bool((await kit.quiet.get(CM, "owner")).body[META]["finalizers"] == HOLD)

    await kit.until("only its own finalizer holds the owner", alone)
    await kit.get(CM, "owner")


@theme.case()
async def background_leaves_children_while_the_owner_is_held(kit: Kit) -> None:
    await family(kit, held_owner=True)
    await kit.delete(CM, "owner", options(propagationPolicy="Background"))
    await kit.get(LEASES, "child")
    await kit.quiet.patch(CM, "owner", {META: {"finalizers": None}})
    await kit.until_gone(LEASES, "child")


@theme.case(facts=(4,))
async def orphan_leaves_the_child(kit: Kit) -> None:
    await family(kit)
    await kit.delete(CM, "owner", options(propagationPolicy="Orphan"))
    await kit.until_gone(CM, "owner")
    await kit.get(LEASES, "child")


@theme.case()
async def orphan_dependents_true(kit: Kit) -> None:
    await family(kit)
    await kit.picking(lambda b: b[META].get("finalizers")).delete(CM, "owner", options(orphanDependents=True))
    await kit.until_gone(CM, "owner")
    await kit.get(LEASES, "child")


@theme.case(facts=(4,))
async def foreground_adds_its_finalizer(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("owner", finalizers=HOLD))
    await kit.picking(lambda b: b[META].get("finalizers")).delete(CM, "owner", options(propagationPolicy="Foreground"))

    async def alone() -> bool:
        return bool((await kit.quiet.get(CM, "owner")).body[META]["finalizers"] == HOLD)

    await kit.until("without children its finalizer goes by itself", alone)


@theme.case(facts=(9,))
async def a_live_owner_keeps_it(kit: Kit) -> None:
    first = await kit.quiet.create(CM, cm("first"))
    second = await kit.quiet.create(CM, cm("second"))
    await kit.quiet.create(
        LEASES, lease("child") | {META: {"name": "child", "ownerReferences": [owner(first.body), owner(second.body)]}}
    )
    await kit.quiet.delete(CM, "first")

    async def stripped() -> bool:
        return len((await kit.quiet.get(LEASES, "child")).body[META]["ownerReferences"]) == 1

    await kit.until("the dead reference is gone", stripped)
    await kit.get(LEASES, "child")


@theme.case(facts=(9,))
async def a_wrong_uid_dangles(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("owner"))
    reference = owner(made.body) | {"uid": OTHER}
    await kit.create(LEASES, lease("child") | {META: {"name": "child", "ownerReferences": [reference]}})
    await kit.until_gone(LEASES, "child")
    await kit.get(CM, "owner")


@theme.case(facts=(9,))
async def a_new_owner_of_the_same_name_does_not_save_it(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("owner"))
    await kit.quiet.delete(CM, "owner")
    await kit.quiet.create(CM, cm("owner"))
    await kit.quiet.create(LEASES, lease("child") | {META: {"name": "child", "ownerReferences": [owner(made.body)]}})
    await kit.until_gone(LEASES, "child")


@theme.case(facts=(10,))
async def an_owner_in_another_namespace_counts_as_absent(kit: Kit) -> None:
    other = f"{kit.ns[:50]}-x"
    await kit.quiet.create("/namespaces", obj("v1", "Namespace", other))
    made = await kit.quiet.in_namespace(other).create(CM, cm("owner"))
    await kit.quiet.create(LEASES, lease("child") | {META: {"name": "child", "ownerReferences": [owner(made.body)]}})
    await kit.until_gone(LEASES, "child")


@theme.case(facts=(10,))
async def a_cluster_scoped_dependent_of_a_namespaced_owner_stays(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("owner"))
    role = obj(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "gc-dependent",
        meta={"ownerReferences": [owner(made.body)]},
        rules=[],
    )
    await kit.quiet.create("/rbac.authorization.k8s.io/v1/clusterroles", role)
    witness = lease("witness") | {META: {"name": "witness", "ownerReferences": [owner(made.body)]}}
    await kit.quiet.create(LEASES, witness)
    await kit.quiet.delete(CM, "owner")
    await kit.until_gone(LEASES, "witness")
    await kit.get("/rbac.authorization.k8s.io/v1/clusterroles", "gc-dependent")


@theme.case()
async def a_cluster_scoped_owner(kit: Kit) -> None:
    roles = "/rbac.authorization.k8s.io/v1/clusterroles"
    made = await kit.quiet.create(roles, obj("rbac.authorization.k8s.io/v1", "ClusterRole", "gc-owner", rules=[]))
    await kit.quiet.create(LEASES, lease("child") | {META: {"name": "child", "ownerReferences": [owner(made.body)]}})
    await kit.quiet.delete(roles, "gc-owner")
    await kit.until_gone(LEASES, "child")


@theme.case()
async def grandchildren_go_as_well(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("owner"))
    child = await kit.quiet.create(CM, cm("child", ownerReferences=[owner(made.body)]))
    await kit.quiet.create(CM, cm("grandchild", ownerReferences=[owner(child.body)]))
    await kit.quiet.delete(CM, "owner")
    await kit.until_gone(CM, "child")
    await kit.until_gone(CM, "grandchild")


@theme.case()
async def foreground_reaches_grandchildren(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("owner"))
    child = await kit.quiet.create(CM, cm("child", ownerReferences=[owner(made.body, blockOwnerDeletion=True)]))
    await kit.quiet.create(
        CM, cm("grandchild", finalizers=HOLD, ownerReferences=[owner(child.body, blockOwnerDeletion=True)])
    )
    await kit.quiet.delete(CM, "owner", options(propagationPolicy="Foreground"))
    await deleting(kit, CM, "grandchild")
    await kit.get(CM, "owner")
    await kit.get(CM, "child")
    await kit.quiet.patch(CM, "grandchild", {META: {"finalizers": None}})
    await kit.until_gone(CM, "owner")


@theme.case()
async def a_circle_of_foreground_deletions_ends(kit: Kit) -> None:
    first = await kit.quiet.create(CM, cm("first"))
    second = await kit.quiet.create(CM, cm("second", ownerReferences=[owner(first.body, blockOwnerDeletion=True)]))
    await kit.quiet.patch(CM, "first", {META: {"ownerReferences": [owner(second.body, blockOwnerDeletion=True)]}})
    await kit.quiet.delete(CM, "first", options(propagationPolicy="Foreground"))
    await kit.until_gone(CM, "first")
    await kit.until_gone(CM, "second")


@theme.case()
async def a_child_with_a_finalizer_is_left_deleting(kit: Kit) -> None:
    await family(kit, held_child=True)
    await kit.quiet.delete(CM, "owner")
    await deleting(kit, LEASES, "child")
    await kit.get(LEASES, "child")


@theme.case()
async def custom_resources_as_owners(kit: Kit) -> None:
    kind = await Kind(kit, props(n={"type": "integer"})).served()
    made = await kit.quiet.create(kind.resource, kind.object("owner", {"n": 1}))
    await kit.quiet.create(LEASES, lease("child") | {META: {"name": "child", "ownerReferences": [owner(made.body)]}})
    await kit.quiet.delete(kind.resource, "owner")
    await kit.until_gone(LEASES, "child")


@theme.case(facts=(19,))
async def a_slice_goes_only_with_a_service_that_owns_it(kit: Kit) -> None:
    slices = "discovery.k8s.io/v1/endpointslices"
    made = await kit.quiet.create(
        "services", obj("v1", "Service", "s", spec={"clusterIP": "None", "ports": [{"port": 80}]})
    )
    for name, references in (("owned", [owner(made.body)]), ("labelled", [])):
        meta = {"labels": {"kubernetes.io/service-name": "s"}, "ownerReferences": references}
        body = obj("discovery.k8s.io/v1", "EndpointSlice", name, meta=meta, addressType="IPv4", endpoints=[])
        assert (await kit.quiet.create(slices, body)).status == 201
    await kit.quiet.delete("services", "s")
    await kit.until_gone(slices, "owned")
    await kit.get(slices, "labelled")
