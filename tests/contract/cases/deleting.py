"""Deleting: preconditions, propagation, grace, finalizers, collections."""

from __future__ import annotations

import datetime
from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import CM, cm, job, obj, pod, secret, with_pod, with_service_account

theme = Theme("delete")

OTHER = "00000000-0000-0000-0000-000000000001"
HOLD = ["example.com/hold"]


def options(**fields: Any) -> Any:
    """DeleteOptions."""
    return {"apiVersion": "v1", "kind": "DeleteOptions", **fields}


def deletes(name: str, body: Any, *, facts: tuple[int, ...] = (), held: bool = False, **query: Any) -> None:
    """A case of one delete of a ConfigMap, and a read of what remains."""

    async def run(kit: Kit) -> None:
        await kit.quiet.create(CM, cm("a", finalizers=HOLD) if held else cm("a"))
        await kit.delete(CM, "a", body, **query)
        await kit.get(CM, "a")

    theme.add(name, run, facts=facts)


deletes("plain", None)
deletes("held by a finalizer", None, held=True, facts=(1, 3))
deletes("options without a kind", {"propagationPolicy": "Background"})
deletes("options of another kind", {"apiVersion": "v1", "kind": "ConfigMap"})
deletes("options of meta", {"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"})
deletes("options malformed", b"{")
deletes("options with an unknown field", options(nonsense=1))
deletes("uid of another", options(preconditions={"uid": OTHER}), facts=(6,))
deletes("version of another", options(preconditions={"resourceVersion": "1"}), facts=(6,))
deletes("background", options(propagationPolicy="Background"))
deletes("propagation unknown", options(propagationPolicy="Sideways"))
deletes("propagation and orphan dependents", options(propagationPolicy="Background", orphanDependents=True))
deletes("orphan dependents false", options(orphanDependents=False))
deletes("grace for what has none", options(gracePeriodSeconds=30), held=True, facts=(3,))
deletes("grace negative", options(gracePeriodSeconds=-1))
deletes("propagation by query", None, propagationPolicy="Background")
deletes("grace by query", None, gracePeriodSeconds="x")
deletes("dry run", options(dryRun=["All"]))
deletes("dry run by query", None, dryRun="All")
deletes("dry run of held", options(dryRun=["All"]), held=True)
deletes("dry run unknown", options(dryRun=["Some"]))

theme.asks("of what is absent", "DELETE", "/api/v1/namespaces/{ns}/configmaps/none", facts=(8,))
theme.asks(
    "of what is absent with a uid",
    "DELETE",
    "/api/v1/namespaces/{ns}/configmaps/none",
    options(preconditions={"uid": OTHER}),
)


@theme.case(facts=(6,))
async def right_uid_and_version(kit: Kit) -> None:
    made = await kit.create(CM, cm("a"))
    await kit.delete(CM, "a", options(preconditions={"uid": made.uid, "resourceVersion": made.rv}))
    await kit.get(CM, "a")


@theme.case(facts=(6,))
async def uid_of_the_one_before(kit: Kit) -> None:
    first = await kit.create(CM, cm("a"))
    await kit.delete(CM, "a")
    await kit.create(CM, cm("a"))
    await kit.delete(CM, "a", options(preconditions={"uid": first.uid}))


@theme.case(facts=(6,))
async def precondition_of_a_deleting_object(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", finalizers=HOLD))
    await kit.quiet.delete(CM, "a")
    await kit.delete(CM, "a", options(preconditions={"uid": OTHER}))


@theme.case(facts=(1,))
async def twice(kit: Kit) -> None:
    """The second changes nothing, not even the version."""
    await kit.create(CM, cm("a", finalizers=HOLD))
    await kit.delete(CM, "a")
    await kit.delete(CM, "a")


@theme.case(facts=(1,))
async def finalizers_cannot_be_added_to_a_deleting_object(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", finalizers=HOLD))
    await kit.quiet.delete(CM, "a")
    await kit.patch(CM, "a", {"metadata": {"finalizers": [*HOLD, "example.com/new"]}})
    await kit.patch(CM, "a", {"metadata": {"finalizers": ["example.com/new"]}})


@theme.case(facts=(1, 2))
async def the_last_finalizer(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", finalizers=[*HOLD, "example.com/second"]))
    await kit.delete(CM, "a")
    await kit.patch(CM, "a", {"metadata": {"finalizers": ["example.com/second"]}})
    await kit.patch(CM, "a", {"metadata": {"finalizers": []}, "data": {"last": "words"}})
    await kit.get(CM, "a")


@theme.case(facts=(1,))
async def finalizers_in_any_order(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", finalizers=["example.com/a", "example.com/b"]))
    await kit.quiet.delete(CM, "a")
    await kit.json_patch(CM, "a", [{"op": "remove", "path": "/metadata/finalizers/0"}])
    made = await kit.quiet.get(CM, "a")
    body = made.body
    body["metadata"]["finalizers"] = []
    await kit.put(CM, "a", body)
    await kit.get(CM, "a")


@theme.case(facts=(1,))
async def nothing_brings_it_back(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("a", finalizers=HOLD))
    await kit.quiet.delete(CM, "a")
    await kit.patch(CM, "a", {"metadata": {"deletionTimestamp": None}})
    await kit.put(CM, "a", cm("a", finalizers=HOLD))
    kit.note("uid", made.uid)


@theme.case()
async def other_fields_of_a_deleting_object(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", finalizers=HOLD))
    await kit.quiet.delete(CM, "a")
    await kit.patch(CM, "a", {"data": {"x": "y"}, "metadata": {"labels": {"l": "1"}}})


@theme.case(facts=(2,))
async def the_last_finalizer_is_removed_by_a_valid_object_only(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", finalizers=HOLD))
    await kit.quiet.delete(CM, "a")
    await kit.patch(CM, "a", {"metadata": {"finalizers": None, "labels": {"not valid": "x"}}})
    await kit.get(CM, "a")


@theme.case()
async def dry_run_of_the_last_finalizer(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", finalizers=HOLD))
    await kit.quiet.delete(CM, "a")
    await kit.patch(CM, "a", {"metadata": {"finalizers": None}}, dryRun="All")
    await kit.get(CM, "a")


@theme.case(facts=(4,))
async def policy_rewritten_by_a_second_delete(kit: Kit) -> None:
    """A dependent that is not removed keeps the owner in foreground deletion until a delete with another policy."""
    made = await kit.quiet.create(CM, cm("owner", finalizers=HOLD))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": made.uid, "blockOwnerDeletion": True}
    await kit.quiet.create(CM, cm("child", finalizers=HOLD, ownerReferences=[reference]))
    shown = kit.picking(lambda b: b["metadata"].get("finalizers"))
    await shown.delete(CM, "owner", options(propagationPolicy="Foreground"))
    await shown.delete(CM, "owner", options(propagationPolicy="Background", preconditions={"uid": made.uid}))
    await shown.delete(CM, "owner", options(propagationPolicy="Foreground"))
    await shown.delete(CM, "owner")


@theme.case(facts=(4,))
async def foreground_then_background_unsticks(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": made.uid, "blockOwnerDeletion": True}
    await kit.quiet.create(CM, cm("child", finalizers=HOLD, ownerReferences=[reference]))
    await kit.delete(CM, "owner", options(propagationPolicy="Foreground"))
    await kit.delete(CM, "owner", options(propagationPolicy="Background", preconditions={"uid": made.uid}))
    await kit.get(CM, "owner")


async def grace_of(kit: Kit, name: str, what: str) -> None:
    """Seconds between now and the pod's deletion time, rounded to ten."""
    found = await kit.quiet.get("pods", name)
    if found.status == 404:
        kit.note(what, "gone")
        return
    meta = found.body["metadata"]
    end = datetime.datetime.fromisoformat(meta["deletionTimestamp"])
    left = (end - datetime.datetime.now(datetime.UTC)).total_seconds()
    kit.note(what, [meta["deletionGracePeriodSeconds"], round(left, -1)])


@theme.case(facts=(3,))
async def pod_on_a_node_is_given_its_grace(kit: Kit) -> None:
    await with_pod(kit, "p", nodeName="far")
    await kit.delete("pods", "p")
    await grace_of(kit, "p", "default")


@theme.case(facts=(3,))
async def pod_grace_can_only_shrink(kit: Kit) -> None:
    await with_pod(kit, "p", nodeName="far", terminationGracePeriodSeconds=100)
    for grace in (60, 90, 20, 0):
        await kit.quiet.delete("pods", "p", options(gracePeriodSeconds=grace))
        await grace_of(kit, "p", f"after {grace}")


@theme.case(facts=(3,))
async def pod_without_a_node_goes_at_once(kit: Kit) -> None:
    await with_pod(kit, "p")
    await kit.delete("pods", "p")
    await kit.get("pods", "p")


@theme.case(facts=(3,))
async def pod_that_ended_goes_at_once(kit: Kit) -> None:
    await with_pod(kit, "p", nodeName="far")
    await kit.quiet.patch("pods", "p", {"status": {"phase": "Succeeded"}}, "status")
    await kit.delete("pods", "p")
    await kit.get("pods", "p")


@theme.case(facts=(23,))
async def pod_by_force(kit: Kit) -> None:
    await with_pod(kit, "p", nodeName="far")
    await kit.delete("pods", "p", options(gracePeriodSeconds=0))
    await kit.get("pods", "p")


@theme.case(facts=(3,))
async def pod_with_a_finalizer(kit: Kit) -> None:
    await with_pod(kit, "p", meta={"finalizers": HOLD}, nodeName="far")
    await kit.quiet.delete("pods", "p", options(gracePeriodSeconds=30))
    await grace_of(kit, "p", "graceful")
    await kit.quiet.delete("pods", "p", options(gracePeriodSeconds=0))
    await grace_of(kit, "p", "by force")
    await kit.picking(lambda b: b["metadata"]).patch("pods", "p", {"metadata": {"finalizers": None}})
    await kit.get("pods", "p")


@theme.case(facts=(3,))
async def pod_removing_its_finalizer_within_the_grace(kit: Kit) -> None:
    await with_pod(kit, "p", meta={"finalizers": HOLD}, nodeName="far")
    await kit.quiet.delete("pods", "p", options(gracePeriodSeconds=30))
    await kit.picking(lambda b: b["metadata"]).patch("pods", "p", {"metadata": {"finalizers": None}})
    await kit.picking(lambda b: b["metadata"]).get("pods", "p")


@theme.case()
async def pod_grace_of_its_spec(kit: Kit) -> None:
    await with_pod(kit, "p", nodeName="far", terminationGracePeriodSeconds=100)
    await kit.quiet.delete("pods", "p")
    await grace_of(kit, "p", "of the spec")


@theme.case(facts=(5,))
async def job_orphans_by_default(kit: Kit) -> None:
    made = await kit.quiet.create("batch/v1/jobs", job("a"))
    controller = {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": made.uid, "controller": True}
    await kit.quiet.create(CM, cm("child", ownerReferences=[controller]))
    await kit.picking(lambda b: [b["kind"], (b.get("metadata") or {}).get("finalizers")]).delete("batch/v1/jobs", "a")
    await kit.until_gone("batch/v1/jobs", "a")
    await kit.picking(lambda b: b["metadata"]).get(CM, "child")


@theme.case()
async def a_collection(kit: Kit) -> None:
    for name in "ab":
        await kit.quiet.create("secrets", secret(name, {}))
    await kit.delete("secrets")
    await kit.list("secrets")


@theme.case()
async def a_collection_with_finalizers(kit: Kit) -> None:
    await kit.quiet.create("secrets", secret("a", {}) | {"metadata": {"name": "a", "finalizers": HOLD}})
    await kit.quiet.create("secrets", secret("b", {}))
    await kit.delete("secrets")
    await kit.list("secrets")


@theme.case()
async def a_collection_dry_run(kit: Kit) -> None:
    await kit.quiet.create("secrets", secret("a", {}))
    await kit.delete("secrets", options=options(dryRun=["All"]))
    await kit.list("secrets")


@theme.case()
async def a_collection_with_a_uid(kit: Kit) -> None:
    await kit.quiet.create("secrets", secret("a", {}))
    await kit.delete("secrets", options=options(preconditions={"uid": OTHER}))
    await kit.list("secrets")


@theme.case()
async def a_collection_with_a_limit(kit: Kit) -> None:
    for name in "abc":
        await kit.quiet.create("secrets", secret(name, {}))
    await kit.delete("secrets", limit=2)
    await kit.picking(lambda b: [i["metadata"]["name"] for i in b["items"]]).list("secrets")


@theme.case()
async def a_collection_of_nothing(kit: Kit) -> None:
    await kit.delete("secrets")


@theme.case()
async def a_collection_of_services(kit: Kit) -> None:
    await kit.quiet.create("services", obj("v1", "Service", "a", spec={"clusterIP": "None"}))
    await kit.delete("services")
    await kit.list("services")


@theme.case()
async def a_collection_of_pods(kit: Kit) -> None:
    await with_service_account(kit)
    await kit.quiet.create("pods", pod("p", nodeName="far"))
    await kit.quiet.create("pods", pod("q"))
    await kit.delete("pods", options=options(gracePeriodSeconds=5))
    await kit.picking(
        lambda b: [[i["metadata"]["name"], i["metadata"].get("deletionGracePeriodSeconds")] for i in b["items"]]
    ).list("pods")
