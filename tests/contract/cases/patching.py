"""Patches: merge, JSON and strategic ones."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import JSON, JSON_PATCH, MERGE, STRATEGIC, Kit
from tests.contract.objects import (
    CM,
    DEPLOYMENTS,
    Kind,
    cm,
    container,
    deployment,
    obj,
    props,
    service,
    with_service_account,
)

theme = Theme("patch")


def merges(name: str, *patches: Any, managed: bool = False, facts: tuple[int, ...] = ()) -> None:
    """A case of merge patches to one ConfigMap."""

    async def run(kit: Kit) -> None:
        await kit.quiet.create(CM, cm("a", {"n": "1", "m": "2"}, labels={"l": "1"}, finalizers=["example.com/a"]))
        for patch in patches:
            await kit.patch(CM, "a", patch)

    theme.add(f"merge {name}", run, facts=facts, managed=managed)


merges("sets and removes", {"data": {"n": "3", "m": None, "new": "4"}}, managed=True)
merges("nothing", {})
merges("null removes a map", {"data": None})
merges("null of what is absent", {"data": {"absent": None}})
merges("replaces a list whole", {"metadata": {"finalizers": ["example.com/b"]}}, facts=(6,))
merges("wrong type", {"data": {"n": 5}})
merges("map into text", {"data": "text"})
merges("a list", [1, 2])
merges("a text", "text")
merges("malformed", b"{")
merges("empty body", b"")
merges("name", {"metadata": {"name": "b"}})
merges("namespace", {"metadata": {"namespace": "b"}})
merges("uid of another", {"metadata": {"uid": "00000000-0000-0000-0000-000000000001"}}, facts=(6,))
merges("old resource version", {"metadata": {"resourceVersion": "1"}, "data": {"n": "3"}}, facts=(6,))
merges("creation timestamp", {"metadata": {"creationTimestamp": None}})
merges("kind", {"kind": "Pod"})
merges("api version", {"apiVersion": "v9"})
merges("unknown field", {"data": {"n": "3"}, "unknown": 1})
merges("invalid", {"metadata": {"labels": {"l": "not valid"}}})
merges("deletion timestamp", {"metadata": {"deletionTimestamp": "2001-02-03T04:05:06Z"}})


@theme.case(facts=(6,))
async def merge_with_the_version(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("a", finalizers=["example.com/a", "example.com/b"]))
    patch = {"metadata": {"finalizers": ["example.com/b"], "resourceVersion": made.rv, "uid": made.uid}}
    await kit.patch(CM, "a", patch)
    await kit.patch(CM, "a", patch)


@theme.case()
async def merge_of_what_is_absent(kit: Kit) -> None:
    await kit.patch(CM, "a", {"data": {"n": "3"}})


@theme.case()
async def merge_dry_run(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.patch(CM, "a", {"data": {"n": "3"}}, dryRun="All")
    await kit.get(CM, "a")


@theme.case()
async def merge_of_a_list_in_a_deployment(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    containers = [{"name": "other", "image": "example.com/other:1"}]
    await kit.patch(DEPLOYMENTS, "a", {"spec": {"template": {"spec": {"containers": containers}}}})


@theme.case(managed=True)
async def merge_of_a_custom_resource(kit: Kit) -> None:
    kind = await Kind(kit, props(n={"type": "integer"}, list={"type": "array", "items": {"type": "string"}})).served()
    await kit.quiet.create(kind.resource, kind.object("a", {"n": 1, "list": ["x"]}), fieldManager="maker")
    await kit.patch(kind.resource, "a", {"spec": {"list": ["y", "z"], "unknown": 1}})
    await kit.patch(kind.resource, "a", {"spec": {"n": "text"}})
    await kit.patch(kind.resource, "a", {"spec": None})


@theme.case()
async def patch_with_plain_json(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.patch(CM, "a", {"data": {"n": "3"}}, type=JSON)


@theme.case()
async def patch_without_a_type(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.send("PATCH", kit.path(CM, "a"), b'{"data": {"n": "3"}}', type="")


@theme.case()
async def patch_with_a_charset(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.patch(CM, "a", {"data": {"n": "3"}}, type=f"{MERGE}; charset=utf-8")


@theme.case()
async def patch_of_a_collection(kit: Kit) -> None:
    await kit.send("PATCH", kit.path(CM), {"data": {"n": "3"}}, type=MERGE)


@theme.case()
async def force_without_apply(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.patch(CM, "a", {"data": {"n": "3"}}, force="true")


def operates(name: str, *operations: Any, facts: tuple[int, ...] = ()) -> None:
    """A case of one JSON patch to one ConfigMap."""

    async def run(kit: Kit) -> None:
        made = cm(
            "a",
            {"n": "1", "m": "2"},
            annotations={"a/b": "c"},
            finalizers=["example.com/a", "example.com/b"],
        )
        await kit.quiet.create(CM, made)
        await kit.json_patch(CM, "a", operations[0] if len(operations) == 1 else [*operations])

    theme.add(f"json {name}", run, facts=facts)


operates("replace", [{"op": "replace", "path": "/data/n", "value": "3"}])
operates("add and remove", [{"op": "add", "path": "/data/x", "value": "3"}, {"op": "remove", "path": "/data/m"}])
operates(
    "move and copy",
    [{"op": "move", "from": "/data/n", "path": "/data/x"}, {"op": "copy", "from": "/data/m", "path": "/data/y"}],
)
operates(
    "test that holds",
    [{"op": "test", "path": "/data/n", "value": "1"}, {"op": "replace", "path": "/data/n", "value": "3"}],
)
operates(
    "test that fails",
    [{"op": "test", "path": "/data/n", "value": "9"}, {"op": "replace", "path": "/data/n", "value": "3"}],
)
operates(
    "tests the finalizer that it removes",
    [
        {"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/a"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ],
    facts=(6,),
)
operates(
    "tests another finalizer",
    [
        {"op": "test", "path": "/metadata/finalizers/1", "value": "example.com/a"},
        {"op": "remove", "path": "/metadata/finalizers/1"},
    ],
    facts=(6,),
)
operates("append to a list", [{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/c"}])
operates("insert into a list", [{"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/c"}])
operates("index out of range", [{"op": "remove", "path": "/metadata/finalizers/7"}])
operates("remove of what is absent", [{"op": "remove", "path": "/data/absent"}])
operates("replace of what is absent", [{"op": "replace", "path": "/data/absent", "value": "1"}])
operates("add under what is absent", [{"op": "add", "path": "/absent/x", "value": "1"}])
operates(
    "escaped path",
    [
        {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "new"},
    ],
)
operates("unknown operation", [{"op": "twist", "path": "/data/n"}])
operates("without a path", [{"op": "remove"}])
operates("without a value", [{"op": "add", "path": "/data/x"}])
operates("path without a slash", [{"op": "remove", "path": "data"}])
operates("no list", {"op": "remove", "path": "/data/n"})
operates("malformed", b"[{")
operates("of nothing", [])
operates("whole document", [{"op": "replace", "path": "", "value": {"x": 1}}])
operates("wrong type", [{"op": "replace", "path": "/data/n", "value": 5}])
operates("test of null", [{"op": "test", "path": "/data/absent", "value": None}])


@theme.case()
async def json_with_too_many_operations(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.json_patch(CM, "a", [{"op": "add", "path": "/data/x", "value": "3"}] * 10_001)


def merges_by_key(
    name: str, patch: Any, *, resource: str = DEPLOYMENTS, body: Any = None, managed: bool = False
) -> None:
    """A case of one strategic merge patch, of a Deployment unless another object is given."""

    async def run(kit: Kit) -> None:
        first = container(
            env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], ports=[{"containerPort": 80}], args=["x"]
        )
        second = {"name": "side", "image": "example.com/side:1"}
        made = body or deployment(
            "a", template={"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [first, second]}}
        )
        answer = await kit.quiet.create(resource, made)
        assert answer.status == 201, answer
        shown = (
            kit if body else kit.picking(lambda b: {"metadata": b["metadata"], "spec": b["spec"]} if "spec" in b else b)
        )
        await shown.strategic(resource, "a", patch)

    theme.add(f"strategic {name}", run, managed=managed)


def in_pod(**spec: Any) -> Any:
    """A patch to the pods of a Deployment."""
    return {"spec": {"template": {"spec": spec}}}


merges_by_key(
    "merges containers by name", in_pod(containers=[{"name": "side", "image": "example.com/side:2"}]), managed=True
)
merges_by_key("adds a container", in_pod(containers=[{"name": "third", "image": "example.com/third:1"}]))
merges_by_key("deletes a container", in_pod(containers=[{"name": "side", "$patch": "delete"}]))
merges_by_key(
    "replaces the list", in_pod(containers=[{"$patch": "replace"}, {"name": "only", "image": "example.com/only:1"}])
)
merges_by_key(
    "merges env by name",
    in_pod(containers=[{"name": "main", "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}]),
)
merges_by_key("orders elements", in_pod(**{"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}]}))
merges_by_key("replaces an atomic list", in_pod(containers=[{"name": "main", "args": ["y", "z"]}]))
merges_by_key("without the merge key", in_pod(containers=[{"image": "example.com/x:1"}]))
merges_by_key("null removes", {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": None}]}}}})
merges_by_key(
    "replaces a map", {"spec": {"template": {"metadata": {"labels": {"$patch": "replace", "app": "a", "only": "me"}}}}}
)
merges_by_key("retains keys", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})
merges_by_key("strategy without retain keys", {"spec": {"strategy": {"type": "Recreate"}}})
merges_by_key("unknown directive", in_pod(containers=[{"name": "main", "$patch": "twist"}]))
merges_by_key("malformed", b"{")
merges_by_key("wrong type", {"spec": {"replicas": "many"}})
merges_by_key(
    "deletes from a primitive list",
    {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
    resource=CM,
    body=cm("a", finalizers=["example.com/a", "example.com/b"]),
)
merges_by_key(
    "merges finalizers",
    {"metadata": {"finalizers": ["example.com/c"]}},
    resource=CM,
    body=cm("a", finalizers=["example.com/a"]),
)
merges_by_key(
    "merges ports by number",
    {"spec": {"ports": [{"port": 81, "name": "other"}, {"port": 80, "name": "first"}]}},
    resource="services",
    body=service("a", clusterIP="None"),
)
merges_by_key(
    "merges owners by uid",
    {"metadata": {"ownerReferences": [{"uid": "00000000-0000-0000-0000-000000000001", "$patch": "delete"}]}},
    resource=CM,
    body=cm("a"),
)


@theme.case()
async def strategic_of_a_custom_resource(kit: Kit) -> None:
    kind = await Kind(kit).served()
    await kit.quiet.create(kind.resource, kind.object("a", {"n": 1}))
    await kit.strategic(kind.resource, "a", {"spec": {"n": 2}})


@theme.case()
async def strategic_of_service_account_secrets(kit: Kit) -> None:
    await with_service_account(kit)
    await kit.quiet.create("serviceaccounts", obj("v1", "ServiceAccount", "a", imagePullSecrets=[{"name": "x"}]))
    await kit.strategic("serviceaccounts", "a", {"imagePullSecrets": [{"name": "y"}]})
    await kit.send("PATCH", kit.path("serviceaccounts", "a"), {"imagePullSecrets": [{"name": "z"}]}, type=STRATEGIC)
    await kit.send("PATCH", kit.path("serviceaccounts", "a"), [], type=JSON_PATCH)
