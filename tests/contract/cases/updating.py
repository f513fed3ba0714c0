"""Updating by PUT: optimistic locking, what may not change, generation, no-ops."""

from __future__ import annotations

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import CM, DEPLOYMENTS, LEASES, Kind, cm, deployment, lease, obj, props, secret

theme = Theme("update")


@theme.case(managed=True)
async def whole_object(kit: Kit) -> None:
    made = await kit.create(CM, cm("a", {"n": "1"}))
    body = made.body
    body["data"] = {"m": "2"}
    await kit.put(CM, "a", body)


@theme.case()
async def with_an_old_version(kit: Kit) -> None:
    made = await kit.create(CM, cm("a", {"n": "1"}))
    await kit.patch(CM, "a", {"data": {"n": "2"}})
    body = made.body
    body["data"] = {"n": "3"}
    await kit.put(CM, "a", body)


@theme.case()
async def without_a_version(kit: Kit) -> None:
    await kit.create(CM, cm("a", {"n": "1"}))
    await kit.put(CM, "a", cm("a", {"n": "2"}))


@theme.case()
async def without_a_version_where_one_is_needed(kit: Kit) -> None:
    kind = await Kind(kit, props(n={"type": "integer"})).served()
    await kit.create(kind.resource, kind.object("a", {"n": 1}))
    await kit.put(kind.resource, "a", kind.object("a", {"n": 2}))


@theme.case()
async def version_zero(kit: Kit) -> None:
    await kit.create(CM, cm("a", {"n": "1"}))
    await kit.put(CM, "a", cm("a", {"n": "2"}, resourceVersion="0"))


@theme.case()
async def version_that_is_no_number(kit: Kit) -> None:
    await kit.create(CM, cm("a", {"n": "1"}))
    await kit.put(CM, "a", cm("a", {"n": "2"}, resourceVersion="abc"))


@theme.case()
async def no_change_keeps_the_version(kit: Kit) -> None:
    made = await kit.create(CM, cm("a", {"n": "1"}))
    await kit.put(CM, "a", made.body)


@theme.case()
async def of_what_is_absent(kit: Kit) -> None:
    await kit.put(CM, "a", cm("a"))
    await kit.put(CM, "a", cm("a", resourceVersion="5"))
    await kit.put(CM, "a", cm("a", uid="00000000-0000-0000-0000-000000000009"))


@theme.case()
async def of_what_is_absent_creates_some_kinds(kit: Kit) -> None:
    await kit.put(LEASES, "a", lease("a", holderIdentity="me"))
    await kit.put("services", "a", obj("v1", "Service", "a", spec={"clusterIP": "None", "ports": [{"port": 1}]}))
    await kit.put("endpoints", "a", obj("v1", "Endpoints", "a"))


@theme.case()
async def lease_with_a_version_that_is_absent(kit: Kit) -> None:
    body = lease("a")
    body["metadata"]["resourceVersion"] = "5"
    await kit.put(LEASES, "a", body)


@theme.case()
async def name_that_differs_from_the_path(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.put(CM, "a", cm("b"))


@theme.case()
async def name_left_out(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.put(CM, "a", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"n": "2"}})


@theme.case()
async def namespace_that_differs(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.put(CM, "a", cm("a", namespace="elsewhere"))


@theme.case(facts=(6,))
async def uid_of_another(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.put(CM, "a", cm("a", uid="00000000-0000-0000-0000-000000000001"))


@theme.case()
async def server_fields_cannot_be_changed(kit: Kit) -> None:
    made = await kit.create(CM, cm("a"))
    body = made.body
    body["metadata"]["creationTimestamp"] = "2001-02-03T04:05:06Z"
    body["metadata"]["generation"] = 77
    body["metadata"]["selfLink"] = "/x"
    body["metadata"]["deletionTimestamp"] = "2001-02-03T04:05:06Z"
    await kit.put(CM, "a", body)


@theme.case()
async def generation_counts_changes_of_the_spec(kit: Kit) -> None:
    made = await kit.create(DEPLOYMENTS, deployment("a"))
    body = made.body
    body["metadata"]["labels"] = {"x": "y"}
    made = await kit.picking(lambda b: b["metadata"]).put(DEPLOYMENTS, "a", body)
    body = made.body
    body["spec"]["replicas"] = 3
    made = await kit.picking(lambda b: b["metadata"]).put(DEPLOYMENTS, "a", body)
    body = made.body
    body["status"] = {"replicas": 3}
    await kit.picking(lambda b: [b["metadata"]["generation"], b["status"]]).put(DEPLOYMENTS, "a", body)


@theme.case()
async def immutable_config_map(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a") | {"immutable": True})
    await kit.put(CM, "a", cm("a", {"n": "2"}) | {"immutable": True})
    await kit.put(CM, "a", cm("a") | {"immutable": False})
    await kit.put(CM, "a", cm("a", labels={"x": "y"}) | {"immutable": True})


@theme.case()
async def immutable_secret_type(kit: Kit) -> None:
    await kit.quiet.create("secrets", secret("a", {}))
    await kit.put("secrets", "a", secret("a", {}, type="example.com/other"))


@theme.case()
async def immutable_selector(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    changed = deployment("a")
    changed["spec"]["selector"]["matchLabels"] = {"app": "b"}
    changed["spec"]["template"]["metadata"]["labels"] = {"app": "b"}
    await kit.put(DEPLOYMENTS, "a", changed)


@theme.case()
async def dry_run(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"n": "1"}))
    await kit.put(CM, "a", cm("a", {"n": "2"}), dryRun="All")
    await kit.get(CM, "a")


@theme.case()
async def of_a_collection(kit: Kit) -> None:
    await kit.send("PUT", kit.path(CM), cm("a"))


@theme.case()
async def invalid(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.put(CM, "a", cm("a", labels={"a b": "c"}))


@theme.case()
async def wrong_kind(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.put(CM, "a", obj("v1", "Secret", "a"))


@theme.case(managed=True)
async def managed_fields_emptied(kit: Kit) -> None:
    """An empty list of entries resets who owns what."""
    made = await kit.quiet.create(CM, cm("a", {"n": "1"}), fieldManager="first")
    body = made.body
    body["metadata"]["managedFields"] = [{}]
    await kit.put(CM, "a", body, fieldManager="second")
