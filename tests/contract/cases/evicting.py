"""Evictions: budgets guard them, and only them."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import obj, with_pod

theme = Theme("evict")
PDB = "policy/v1/poddisruptionbudgets"


def eviction(name: str = "p", api: str = "policy/v1", **options: Any) -> Any:
    body = obj(api, "Eviction", name)
    return body | {"deleteOptions": options} if options else body


async def ready_pod(kit: Kit, name: str = "p") -> str:
    """A pod that runs, on a node without a kubelet."""
    made = await with_pod(kit, name, meta={"labels": {"app": "a"}}, nodeName="far")
    await kit.quiet.patch(
        "pods", name, {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, "status"
    )
    return str(made["metadata"]["uid"])


async def budget(kit: Kit, allowed: int, name: str = "b", *, observed: bool = True, **spec: Any) -> None:
    """A budget as its controller would have left it."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}, **spec}
    made = await kit.quiet.create(PDB, obj("policy/v1", "PodDisruptionBudget", name, spec=spec))
    assert made.status == 201, made.body
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 1 + allowed,
        "desiredHealthy": 1,
        "expectedPods": 1 + allowed,
        "observedGeneration": 1 if observed else 0,
    }
    answer = await kit.quiet.patch(PDB, name, {"status": status}, "status")
    assert answer.status == 200, answer.body


def left(body: Any) -> Any:
    meta = body.get("metadata", {})
    return [body["kind"], body.get("reason"), meta.get("deletionGracePeriodSeconds")]


@theme.case()
async def without_a_budget(kit: Kit) -> None:
    await ready_pod(kit)
    await kit.create("pods", eviction(), "p", "eviction")
    await kit.picking(left).get("pods", "p")


@theme.case(facts=(20,))
async def budget_allows_none(kit: Kit) -> None:
    await ready_pod(kit)
    await budget(kit, 0)
    await kit.create("pods", eviction(), "p", "eviction")
    await kit.picking(left).get("pods", "p")


@theme.case(facts=(20,))
async def delete_ignores_the_budget(kit: Kit) -> None:
    await ready_pod(kit)
    await budget(kit, 0)
    await kit.picking(left).delete("pods", "p")


@theme.case(facts=(20,))
async def budget_allows_one(kit: Kit) -> None:
    await ready_pod(kit, "p")
    await ready_pod(kit, "q")
    await budget(kit, 1)
    await kit.create("pods", eviction("p"), "p", "eviction")
    await kit.picking(lambda b: [b["status"]["disruptionsAllowed"], sorted(b["status"].get("disruptedPods", {}))]).get(
        PDB, "b"
    )
    await kit.create("pods", eviction("q"), "q", "eviction")


@theme.case(facts=(20,))
async def budget_not_yet_observed(kit: Kit) -> None:
    await ready_pod(kit)
    await budget(kit, 1, observed=False)
    await kit.create("pods", eviction(), "p", "eviction")


@theme.case(facts=(20,))
async def two_budgets(kit: Kit) -> None:
    await ready_pod(kit)
    await budget(kit, 1, "b")
    await budget(kit, 1, "c")
    await kit.create("pods", eviction(), "p", "eviction")


@theme.case(facts=(20,))
async def budget_of_others(kit: Kit) -> None:
    await ready_pod(kit)
    await budget(kit, 0, selector={"matchLabels": {"app": "other"}})
    await kit.create("pods", eviction(), "p", "eviction")


@theme.case(facts=(20,))
async def pod_that_is_not_ready(kit: Kit) -> None:
    await with_pod(kit, "p", meta={"labels": {"app": "a"}})
    await budget(kit, 0)
    await kit.create("pods", eviction(), "p", "eviction")


@theme.case(facts=(20,))
async def unhealthy_pods_always(kit: Kit) -> None:
    await with_pod(kit, "p", meta={"labels": {"app": "a"}}, nodeName="far")
    await kit.quiet.patch("pods", "p", {"status": {"phase": "Running"}}, "status")
    await budget(kit, 0, unhealthyPodEvictionPolicy="AlwaysAllow")
    await kit.create("pods", eviction(), "p", "eviction")


@theme.case(facts=(6, 20))
async def uid_of_another(kit: Kit) -> None:
    await ready_pod(kit)
    await kit.create("pods", eviction(preconditions={"uid": "00000000-0000-0000-0000-000000000001"}), "p", "eviction")


@theme.case()
async def grace(kit: Kit) -> None:
    await ready_pod(kit)
    await kit.create("pods", eviction(gracePeriodSeconds=5), "p", "eviction")
    await kit.picking(left).get("pods", "p")


@theme.case()
async def dry_run(kit: Kit) -> None:
    await ready_pod(kit)
    await budget(kit, 1)
    await kit.create("pods", eviction(dryRun=["All"]), "p", "eviction")
    await kit.picking(left).get("pods", "p")
    await kit.picking(lambda b: b["status"]["disruptionsAllowed"]).get(PDB, "b")


@theme.case()
async def of_what_is_absent(kit: Kit) -> None:
    await kit.create("pods", eviction(), "p", "eviction")


@theme.case()
async def name_that_differs(kit: Kit) -> None:
    await ready_pod(kit)
    await kit.create("pods", eviction("q"), "p", "eviction")


@theme.case()
async def wrong_kind(kit: Kit) -> None:
    await ready_pod(kit)
    await kit.create("pods", obj("v1", "Pod", "p"), "p", "eviction")
    await kit.create("pods", eviction(api="policy/v1beta1"), "p", "eviction")


@theme.case()
async def get_is_no_method(kit: Kit) -> None:
    await kit.get("pods", "p", "eviction")
