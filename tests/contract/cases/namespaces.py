"""Namespaces: what a new one is, how one ends, what is in the way."""

from __future__ import annotations

from tests.contract.case import Theme
from tests.contract.cases.deleting import HOLD, options
from tests.contract.kit import Kit
from tests.contract.objects import CM, LEASES, cm, lease, obj, with_pod

theme = Theme("ns")

theme.creates("new", "/namespaces", obj("v1", "Namespace", "ns-made", meta={"labels": {"x": "y"}}))
theme.creates("name too long", "/namespaces", obj("v1", "Namespace", "x" * 64))
theme.creates("name with a dot", "/namespaces", obj("v1", "Namespace", "a.b"))
theme.creates(
    "label of its own name is kept right",
    "/namespaces",
    obj("v1", "Namespace", "ns-labelled", meta={"labels": {"kubernetes.io/metadata.name": "other"}}),
)
theme.creates(
    "finalizer invalid", "/namespaces", obj("v1", "Namespace", "ns-finalized", spec={"finalizers": ["plain"]})
)
theme.asks("default", "GET", "/api/v1/namespaces/default")
theme.asks("kube-system", "GET", "/api/v1/namespaces/kube-system")
theme.asks("deletion of default is forbidden", "DELETE", "/api/v1/namespaces/default")
theme.asks("deletion of kube-system is forbidden", "DELETE", "/api/v1/namespaces/kube-system")
theme.asks("collection cannot be deleted", "DELETE", "/api/v1/namespaces")
theme.asks("names of built-in ones", "GET", "/api/v1/namespaces?fieldSelector=metadata.name%3Dkube-public")


@theme.case()
async def already_exists(kit: Kit) -> None:
    await kit.create("/namespaces", obj("v1", "Namespace", kit.ns))


@theme.case()
async def labels_can_change(kit: Kit) -> None:
    await kit.patch("/namespaces", kit.ns, {"metadata": {"labels": {"x": "y", "kubernetes.io/metadata.name": None}}})


@theme.case()
async def empty_goes(kit: Kit) -> None:
    await kit.delete("/namespaces", kit.ns)
    await kit.until_gone("/namespaces", kit.ns)


@theme.case()
async def uid_of_another(kit: Kit) -> None:
    await kit.delete("/namespaces", kit.ns, options(preconditions={"uid": "00000000-0000-0000-0000-000000000001"}))


@theme.case()
async def takes_its_content(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.quiet.create(LEASES, lease("a"))
    await kit.delete("/namespaces", kit.ns, options(propagationPolicy="Background"))
    await kit.until_gone("/namespaces", kit.ns)
    await kit.get(CM, "a")
    await kit.get(LEASES, "a")


@theme.case(facts=(7,))
async def terminating_takes_nothing_new(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", finalizers=HOLD))
    await kit.quiet.delete("/namespaces", kit.ns)
    await kit.create(CM, cm("b"))
    await kit.apply(CM, "b", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}})
    await kit.put(LEASES, "b", lease("b"))
    await kit.patch(CM, "a", {"data": {"still": "changeable"}})
    await kit.quiet.patch(CM, "a", {"metadata": {"finalizers": None}})
    await kit.until_gone("/namespaces", kit.ns)


@theme.case(facts=(15,))
async def says_what_it_waits_for(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", finalizers=HOLD))
    await kit.quiet.delete("/namespaces", kit.ns)

    async def told() -> bool:
        status = (await kit.quiet.get("/namespaces", kit.ns)).body["status"]
        return len(status.get("conditions", ())) == 5

    await kit.until("its conditions are there", told)
    await kit.get("/namespaces", kit.ns)
    await kit.quiet.patch(CM, "a", {"metadata": {"finalizers": None}})
    await kit.until_gone("/namespaces", kit.ns)


@theme.case(facts=(14,))
async def pods_go_first(kit: Kit) -> None:
    """While a pod remains, nothing else is deleted."""
    await with_pod(kit, "p", meta={"finalizers": HOLD})
    await kit.quiet.create(CM, cm("a"))
    await kit.quiet.delete("/namespaces", kit.ns)

    async def told() -> bool:
        status = (await kit.quiet.get("/namespaces", kit.ns)).body["status"]
        return len(status.get("conditions", ())) == 5

    await kit.until("its conditions are there", told)
    await kit.picking(lambda b: sorted((c["type"], c["status"], c["reason"]) for c in b["status"]["conditions"])).get(
        "/namespaces", kit.ns
    )
    await kit.get(CM, "a")
    await kit.quiet.patch("pods", "p", {"metadata": {"finalizers": None}})
    await kit.until_gone("/namespaces", kit.ns)
    await kit.get(CM, "a")


@theme.case()
async def deleted_twice(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", finalizers=HOLD))
    await kit.picking(lambda b: [b["kind"], b["status"]["phase"], b["spec"]]).delete("/namespaces", kit.ns)
    answer = await kit.probing.delete("/namespaces", kit.ns)
    kit.note("second", [answer.status, answer.body["kind"]])
    await kit.quiet.patch(CM, "a", {"metadata": {"finalizers": None}})
    await kit.until_gone("/namespaces", kit.ns)


@theme.case()
async def own_finalizer(kit: Kit) -> None:
    """A finalizer in metadata keeps an empty namespace, too, beside the one of its spec."""
    await kit.quiet.patch("/namespaces", kit.ns, {"metadata": {"finalizers": HOLD}})
    await kit.quiet.delete("/namespaces", kit.ns)

    async def emptied() -> bool:
        return "finalizers" not in (await kit.quiet.get("/namespaces", kit.ns)).body["spec"]

    await kit.until("the finalizer of its spec is gone", emptied)
    await kit.picking(lambda b: [b["metadata"]["finalizers"], b["spec"], b["status"]["phase"]]).get(
        "/namespaces", kit.ns
    )
    await kit.quiet.patch("/namespaces", kit.ns, {"metadata": {"finalizers": None}})
    await kit.until_gone("/namespaces", kit.ns)


@theme.case()
async def finalize_subresource(kit: Kit) -> None:
    made = await kit.quiet.get("/namespaces", kit.ns)
    body = made.body
    body["spec"]["finalizers"] = ["kubernetes", "example.com/more"]
    await kit.put("/namespaces", kit.ns, body, "finalize")
    await kit.put("/namespaces", kit.ns, obj("v1", "Namespace", kit.ns, spec={"finalizers": []}))


@theme.case()
async def recreated(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.quiet.delete("/namespaces", kit.ns)
    await kit.until_gone("/namespaces", kit.ns)
    await kit.create("/namespaces", obj("v1", "Namespace", kit.ns))
    await kit.get(CM, "a")
