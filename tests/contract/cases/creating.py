"""Creating: names, metadata that a client may not set, dry runs, what is in the way."""

from __future__ import annotations

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import CM, cm, obj, secret

theme = Theme("create")

RBAC = "rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/roles"

theme.creates("minimal", CM, cm("a"))
theme.creates("without api version and kind", CM, {"metadata": {"name": "a"}, "data": {"k": "v"}})
theme.creates("without metadata", CM, {"apiVersion": "v1", "kind": "ConfigMap"})
theme.creates("without name", CM, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})
theme.creates("generate name", CM, {"metadata": {"generateName": "some-"}})
theme.creates("generate name that is long", CM, {"metadata": {"generateName": "x" * 70}})
theme.creates("name and generate name", CM, {"metadata": {"name": "a", "generateName": "some-"}})
theme.creates("name in upper case", CM, cm("Upper"))
theme.creates("name with underscore", CM, cm("a_b"))
theme.creates("name too long", CM, cm("x" * 254))
theme.creates("name with dots", CM, cm("a.b.c"))
theme.creates("name with slash", CM, cm("a/b"))
theme.creates("namespace of another", CM, cm("a", namespace="elsewhere"))
theme.creates("namespace empty in body", CM, cm("a", namespace=""))
theme.creates("wrong kind", CM, obj("v1", "Secret", "a"))
theme.creates("wrong api version", CM, obj("v2", "ConfigMap", "a"))
theme.creates("kind of another group", CM, obj("apps/v1", "Deployment", "a"))
theme.creates("unknown kind", CM, obj("v1", "Nonsense", "a"))
theme.creates("kind without api version", CM, {"kind": "ConfigMap", "metadata": {"name": "a"}})
theme.creates("with resource version", CM, cm("a", resourceVersion="5"))
theme.creates("with uid", CM, cm("a", uid="00000000-0000-0000-0000-000000000001"))
theme.creates("with creation timestamp", CM, cm("a", creationTimestamp="2001-02-03T04:05:06Z"))
theme.creates(
    "with deletion timestamp", CM, cm("a", deletionTimestamp="2001-02-03T04:05:06Z", deletionGracePeriodSeconds=5)
)
theme.creates("with generation", CM, cm("a", generation=7))
theme.creates("with self link", CM, cm("a", selfLink="/somewhere"))
theme.creates("label key invalid", CM, cm("a", labels={"a b": "c"}))
theme.creates("label value invalid", CM, cm("a", labels={"a": "b c"}))
theme.creates("label value too long", CM, cm("a", labels={"a": "x" * 64}))
theme.creates("label prefix invalid", CM, cm("a", labels={"Not_A_Domain/x": "y"}))
theme.creates("annotation key invalid", CM, cm("a", annotations={"a b": "anything goes here"}))
theme.creates("annotations too large", CM, cm("a", annotations={"a": "x" * (256 * 1024 + 1)}))
theme.creates("finalizer invalid", CM, cm("a", finalizers=["not a name"]))
theme.creates("finalizer without domain", CM, cm("a", finalizers=["plain"]))
theme.creates("finalizers orphan and foreground", CM, cm("a", finalizers=["orphan", "foregroundDeletion"]))
theme.creates(
    "owner without uid", CM, cm("a", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}])
)
theme.creates("owner without kind", CM, cm("a", ownerReferences=[{"apiVersion": "v1", "name": "p", "uid": "0"}]))
theme.creates(
    "owner that is an event",
    CM,
    cm("a", ownerReferences=[{"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "0"}]),
)
theme.creates(
    "two controlling owners",
    CM,
    cm(
        "a",
        ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in "pq"],
    ),
)
theme.creates("metadata of a wrong type", CM, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": "text"})
theme.creates("labels of a wrong type", CM, cm("a", labels={"a": 5}))
theme.creates("labels null", CM, cm("a", labels=None, annotations=None, finalizers=None))
theme.creates("dry run", CM, cm("a"), dryRun="All")
theme.creates("dry run unknown", CM, cm("a"), dryRun="Some")
theme.creates("field manager too long", CM, cm("a"), fieldManager="m" * 129)
theme.creates("field manager not printable", CM, cm("a"), fieldManager="m\n")
theme.creates("unknown query parameter", CM, cm("a"), whatever="1")
theme.creates("pretty", CM, cm("a"), pretty="true")
theme.creates("secret data", "secrets", secret("a", {"k": "dg=="}, stringData={"s": "text"}))


@theme.case()
async def already_exists(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"first": "yes"}))
    await kit.create(CM, cm("a", {"second": "yes"}))
    await kit.get(CM, "a")


@theme.case(facts=(7,))
async def name_is_terminating(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", finalizers=["example.com/hold"]))
    await kit.quiet.delete(CM, "a")
    await kit.create(CM, cm("a"))


@theme.case(facts=(7,))
async def namespace_is_absent(kit: Kit) -> None:
    await kit.in_namespace("never-made").create(CM, cm("a"))


@theme.case()
async def generated_names_differ(kit: Kit) -> None:
    first = await kit.quiet.create(CM, {"metadata": {"generateName": "g-"}})
    second = await kit.quiet.create(CM, {"metadata": {"generateName": "g-"}})
    kit.note("differ", first.body["metadata"]["name"] != second.body["metadata"]["name"])


@theme.case()
async def dry_run_stores_nothing(kit: Kit) -> None:
    await kit.create(CM, cm("a"), dryRun="All")
    await kit.get(CM, "a")


@theme.case()
async def dry_run_of_a_taken_name(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.create(CM, cm("a"), dryRun="All")


@theme.case(managed=True)
async def field_manager_by_query(kit: Kit) -> None:
    await kit.create(CM, cm("a"), fieldManager="somebody")


@theme.case(managed=True)
async def field_manager_by_user_agent(kit: Kit) -> None:
    await kit.with_headers({"User-Agent": "tool/v1.2 (linux) extra"}).create(CM, cm("a"))


@theme.case(managed=True)
async def managed_fields_given(kit: Kit) -> None:
    entry = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {}},
    }
    await kit.create(CM, cm("a", managedFields=[entry]))


@theme.case(managed=True)
async def managed_fields_given_wrong(kit: Kit) -> None:
    await kit.create(CM, cm("a", managedFields=[{"manager": "m", "operation": "Nonsense", "apiVersion": "v1"}]))


@theme.case()
async def yaml_body(kit: Kit) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n"
    await kit.send("POST", kit.path(CM), body, type="application/yaml")


@theme.case()
async def in_all_namespaces(kit: Kit) -> None:
    await kit.send("POST", "/api/v1/configmaps", cm("a", namespace=kit.ns))


@theme.case()
async def generate_name_that_is_invalid(kit: Kit) -> None:
    brief = kit.picking(lambda b: [b["code"], b["reason"], [cause["field"] for cause in b["details"]["causes"]]])
    await brief.create(CM, {"metadata": {"generateName": "Some_"}})


@theme.case()
async def resource_versions_that_are_none(kit: Kit) -> None:
    """A create may say that it knows of no version: with 0, with nothing, or with what is no number."""
    for name, version in (("zero", "0"), ("empty", ""), ("word", "abc"), ("zeros", "000"), ("negative", "-1")):
        await kit.create(CM, cm(name, resourceVersion=version))
    for version in ("1", "007"):
        await kit.create(CM, cm("some", resourceVersion=version))
    await kit.apply(CM, "applied", cm("applied", resourceVersion="0"))
    await kit.put(ROLES, "put-zero", obj(RBAC, "Role", "put-zero", meta={"resourceVersion": "0"}, rules=[]))
    await kit.put(ROLES, "put-some", obj(RBAC, "Role", "put-some", meta={"resourceVersion": "7"}, rules=[]))
