"""Server-side apply: ownership, conflicts, removal, lists by key."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import APPLY, Kit
from tests.contract.objects import CM, DEPLOYMENTS, Kind, cm, container, deployment, obj, props, service

theme = Theme("apply")


def config(**data: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


@theme.case(managed=True)
async def creates(kit: Kit) -> None:
    await kit.apply(CM, "a", config(n="1"))


@theme.case(managed=True)
async def twice_the_same_changes_nothing(kit: Kit) -> None:
    await kit.apply(CM, "a", config(n="1"))
    await kit.apply(CM, "a", config(n="1"))


@theme.case(managed=True)
async def removes_what_is_left_out(kit: Kit) -> None:
    await kit.apply(CM, "a", config(n="1", m="2"))
    await kit.apply(CM, "a", config(n="1"))


@theme.case(managed=True)
async def keeps_what_others_own(kit: Kit) -> None:
    await kit.apply(CM, "a", config(n="1"))
    await kit.apply(CM, "a", config(m="2"), manager="bob")
    await kit.apply(CM, "a", config(), manager="alice")


@theme.case(managed=True)
async def conflict_with_an_applier(kit: Kit) -> None:
    await kit.apply(CM, "a", config(n="1"))
    await kit.apply(CM, "a", config(n="2"), manager="bob")
    await kit.apply(CM, "a", config(n="2"), manager="bob", force="true")


@theme.case(managed=True)
async def conflict_with_an_update(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"n": "1", "m": "1"}), fieldManager="maker")
    await kit.apply(CM, "a", config(n="2", m="2"))
    await kit.apply(CM, "a", config(n="2", m="2"), force="true")


@theme.case(managed=True)
async def same_value_is_shared(kit: Kit) -> None:
    await kit.apply(CM, "a", config(n="1"))
    await kit.apply(CM, "a", config(n="1"), manager="bob")
    await kit.apply(CM, "a", config(), manager="alice")


@theme.case(managed=True)
async def conflicts_with_several(kit: Kit) -> None:
    await kit.apply(CM, "a", config(n="1"))
    await kit.apply(CM, "a", config(m="1"), manager="bob")
    # The message names them in any order.
    brief = kit.picking(lambda b: [b["reason"], sorted(b["message"].replace(": ", "\n").split("\n")), b["details"]])
    await brief.apply(CM, "a", config(n="2", m="2"), manager="carol")


@theme.case(managed=True)
async def update_takes_ownership(kit: Kit) -> None:
    await kit.apply(CM, "a", config(n="1", m="1"))
    await kit.patch(CM, "a", {"data": {"n": "2"}}, fieldManager="editor")
    await kit.apply(CM, "a", config(n="3", m="1"))
    await kit.apply(CM, "a", config(m="1"))


@theme.case(managed=True)
async def update_and_apply_of_one_manager(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"n": "1"}), fieldManager="alice")
    await kit.apply(CM, "a", config(n="2"))


@theme.case()
async def without_a_manager(kit: Kit) -> None:
    await kit.apply(CM, "a", config(n="1"), manager="")


@theme.case()
async def with_managed_fields(kit: Kit) -> None:
    body = config(n="1")
    body["metadata"]["managedFields"] = [{"manager": "x"}]
    await kit.apply(CM, "a", body)


@theme.case()
async def without_kind(kit: Kit) -> None:
    await kit.apply(CM, "a", {"metadata": {"name": "a"}})


@theme.case()
async def wrong_kind(kit: Kit) -> None:
    await kit.apply(CM, "a", obj("v1", "Secret", "a"))


@theme.case()
async def without_a_name(kit: Kit) -> None:
    await kit.apply(CM, "a", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"n": "1"}})


@theme.case()
async def another_name(kit: Kit) -> None:
    await kit.apply(CM, "a", obj("v1", "ConfigMap", "b"))


@theme.case()
async def yaml(kit: Kit) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v # words\n"
    await kit.apply(CM, "a", body)


@theme.case()
async def yaml_malformed(kit: Kit) -> None:
    await kit.apply(CM, "a", b"a: b: c")


@theme.case()
async def yaml_with_a_key_twice(kit: Kit) -> None:
    await kit.apply(CM, "a", b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n  k: w\n")


@theme.case()
async def unknown_field(kit: Kit) -> None:
    await kit.apply(CM, "a", config(n="1") | {"unknown": 1})


@theme.case()
async def wrong_type(kit: Kit) -> None:
    await kit.apply(CM, "a", config() | {"data": {"n": 1}})


@theme.case()
async def as_cbor_that_is_none(kit: Kit) -> None:
    await kit.patch(CM, "a", config(n="1"), type="application/apply-patch+cbor", fieldManager="alice")


@theme.case()
async def resource_version_of_what_is_absent(kit: Kit) -> None:
    body = config(n="1")
    body["metadata"]["resourceVersion"] = "5"
    await kit.apply(CM, "a", body)


@theme.case()
async def resource_version_that_is_old(kit: Kit) -> None:
    made = await kit.quiet.apply(CM, "a", config(n="1"))
    await kit.quiet.apply(CM, "a", config(n="2"))
    body = config(n="3")
    body["metadata"]["resourceVersion"] = made.rv
    await kit.apply(CM, "a", body)


@theme.case()
async def uid_of_another(kit: Kit) -> None:
    await kit.quiet.apply(CM, "a", config(n="1"))
    body = config(n="2")
    body["metadata"]["uid"] = "00000000-0000-0000-0000-000000000001"
    await kit.apply(CM, "a", body)


@theme.case()
async def dry_run(kit: Kit) -> None:
    await kit.apply(CM, "a", config(n="1"), dryRun="All")
    await kit.get(CM, "a")


@theme.case()
async def in_an_absent_namespace(kit: Kit) -> None:
    await kit.in_namespace("never-made").apply(CM, "a", config(n="1"))


@theme.case(managed=True)
async def containers_by_name(kit: Kit) -> None:
    def pods(*containers: Any) -> Any:
        return deployment("a", template={"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [*containers]}})

    shown = kit.picking(lambda b: b if "spec" not in b else {"metadata": b["metadata"], "spec": b["spec"]})
    await shown.apply(DEPLOYMENTS, "a", pods(container(env=[{"name": "A", "value": "1"}])))
    sidecar = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "example.com/side:1"}]}}},
    }
    await shown.apply(DEPLOYMENTS, "a", sidecar, manager="bob")
    await shown.apply(DEPLOYMENTS, "a", pods(container(image="example.com/app:2")))
    await shown.apply(DEPLOYMENTS, "a", sidecar | {"spec": {}}, manager="bob")


@theme.case(managed=True)
async def replicas_fought_over(kit: Kit) -> None:
    shown = kit.picking(
        lambda b: (
            b
            if "spec" not in b
            else {"managedFields": b["metadata"].get("managedFields"), "replicas": b["spec"]["replicas"]}
        )
    )
    await shown.apply(DEPLOYMENTS, "a", deployment("a", replicas=1))
    await kit.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 5}}, "scale", fieldManager="scaler")
    await shown.apply(DEPLOYMENTS, "a", deployment("a", replicas=1))
    await shown.apply(DEPLOYMENTS, "a", deployment("a"))


@theme.case(managed=True)
async def ports_by_key(kit: Kit) -> None:
    shown = kit.picking(
        lambda b: (
            b if "spec" not in b else {"managedFields": b["metadata"].get("managedFields"), "ports": b["spec"]["ports"]}
        )
    )

    def ports(*numbers: int) -> Any:
        return service("a", clusterIP="None", ports=[{"name": f"p{n}", "port": n} for n in numbers])

    await shown.apply("services", "a", ports(80))
    await shown.apply("services", "a", ports(81) | {"spec": {"ports": [{"name": "p81", "port": 81}]}}, manager="bob")
    await shown.apply("services", "a", ports(82))


@theme.case()
async def duplicate_keys_in_a_list(kit: Kit) -> None:
    spec = {"containers": [container(), container()]}
    await kit.apply(DEPLOYMENTS, "a", deployment("a", template={"metadata": {"labels": {"app": "a"}}, "spec": spec}))


@theme.case(managed=True)
async def finalizers_are_a_set(kit: Kit) -> None:
    shown = kit.picking(lambda b: b["metadata"])
    await kit.quiet.create(CM, cm("a", finalizers=["example.com/a"]), fieldManager="maker")
    body = obj("v1", "ConfigMap", "a", meta={"finalizers": ["example.com/b"]})
    await shown.apply(CM, "a", body)
    await shown.apply(CM, "a", obj("v1", "ConfigMap", "a"))


@theme.case(managed=True)
async def status_by_subresource(kit: Kit) -> None:
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"replicas": 9},
        "status": {
            "replicas": 2,
            "conditions": [{"type": "Available", "status": "True", "reason": "R", "message": "m"}],
        },
    }
    await kit.quiet.create(DEPLOYMENTS, deployment("a"), fieldManager="maker")
    shown = kit.picking(lambda b: [b["metadata"], b["spec"]["replicas"], b["status"]])
    await shown.apply(DEPLOYMENTS, "a", body, "status")


@theme.case(managed=True)
async def custom_resource_with_list_types(kit: Kit) -> None:
    item = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}
    kind = Kind(
        kit,
        props(
            map={"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
            set={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            atomic={"type": "array", "items": {"type": "string"}},
            whole={
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
            },
        ),
    )
    await kind.served()
    first = {"map": [{"k": "a", "v": 1}], "set": ["a"], "atomic": ["a"], "whole": {"x": 1}}
    second = {"map": [{"k": "b", "v": 2}], "set": ["b"]}
    await kit.apply(kind.resource, "a", kind.object("a", first))
    await kit.apply(kind.resource, "a", kind.object("a", second), manager="bob")
    await kit.apply(kind.resource, "a", kind.object("a", {"atomic": ["b"], "whole": {"y": 1}}), manager="carol")
    await kit.apply(kind.resource, "a", kind.object("a", {"set": ["a"]}))


@theme.case(managed=True)
async def custom_resource_without_schema(kit: Kit) -> None:
    kind = await Kind(kit).served()
    await kit.apply(kind.resource, "a", kind.object("a", {"list": [1, 2], "map": {"x": {"y": 1}}}))
    await kit.apply(kind.resource, "a", kind.object("a", {"list": [3], "map": {"x": {"z": 1}}}), manager="bob")
    await kit.apply(kind.resource, "a", kind.object("a", {"map": {"x": {"z": 1}}}), manager="bob")


@theme.case(managed=True)
async def custom_resource_with_defaults(kit: Kit) -> None:
    kind = await Kind(kit, props(n={"type": "integer"}, d={"type": "integer", "default": 7})).served()
    await kit.apply(kind.resource, "a", kind.object("a", {"n": 1}))
    await kit.apply(kind.resource, "a", kind.object("a", {"n": 1, "d": 8}))


@theme.case()
async def media_type_with_a_charset(kit: Kit) -> None:
    await kit.patch(CM, "a", config(n="1"), type=f"{APPLY}; charset=utf-8", fieldManager="alice")


@theme.case()
async def null_values(kit: Kit) -> None:
    await kit.apply(CM, "a", config(n="1") | {"binaryData": None})


@theme.case()
async def to_a_deleting_object(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"n": "1"}, finalizers=["example.com/a"]), fieldManager="maker")
    await kit.quiet.delete(CM, "a")
    await kit.apply(CM, "a", config(m="2"))
