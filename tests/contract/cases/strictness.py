"""Field validation: fields that are unknown or given twice, with each level of strictness."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.cases.custom import table_kind
from tests.contract.kit import Kit
from tests.contract.objects import CM, DEPLOYMENTS, cm, deployment

theme = Theme("strict")


def unknown() -> Any:
    body = deployment("a")
    body["nonsense"] = 1
    body["spec"]["replica"] = 2
    body["spec"]["template"]["spec"]["containers"][0]["imag"] = "x"
    return body


TWICE = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"a"},"data":{"k":"1","k":"2"}}'

for _level in ("Strict", "Warn", "Ignore", "", "Sometimes"):
    theme.creates(f"unknown {_level or 'default'}", DEPLOYMENTS, unknown(), fieldValidation=_level or None)
    theme.asks(
        f"twice {_level or 'default'}",
        "POST",
        "/api/v1/namespaces/{ns}/configmaps" + (f"?fieldValidation={_level}" if _level else ""),
        TWICE,
    )

theme.asks(
    "case matters",
    "POST",
    "/api/v1/namespaces/{ns}/configmaps?fieldValidation=Strict",
    {"metadata": {"name": "a"}, "Data": {}},
)


@theme.case()
async def update(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    for level in ("Strict", "Warn", "Ignore"):
        await kit.put(CM, "a", cm("a") | {"nonsense": 1}, fieldValidation=level)


@theme.case()
async def merge_patch(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    for level in ("Strict", "Warn", "Ignore"):
        await kit.patch(CM, "a", {"nonsense": 1}, fieldValidation=level)


@theme.case()
async def merge_patch_with_a_key_twice(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    for level in ("Strict", "Warn", "Ignore"):
        await kit.patch(CM, "a", b'{"data":{"k":"1","k":"2"}}', fieldValidation=level)


@theme.case()
async def json_patch(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    for level in ("Strict", "Warn", "Ignore"):
        await kit.json_patch(CM, "a", [{"op": "add", "path": "/nonsense", "value": 1}], fieldValidation=level)


@theme.case()
async def json_patch_with_unknown_members(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    for level in ("Strict", "Warn"):
        await kit.json_patch(CM, "a", [{"op": "add", "path": "/data/x", "value": "1", "foo": 1}], fieldValidation=level)


@theme.case()
async def strategic_patch(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    for level in ("Strict", "Warn", "Ignore"):
        await kit.strategic(CM, "a", {"nonsense": 1}, fieldValidation=level)


@theme.case()
async def apply(kit: Kit) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "nonsense": 1}
    for level in ("Strict", "Warn", "Ignore"):
        await kit.apply(CM, "a", body, fieldValidation=level)


@theme.case()
async def custom_resources(kit: Kit) -> None:
    kind = await table_kind(kit)
    body = kind.object("a", {"count": 2, "gone": 1, "nested": {"must": "x", "inner": {"gone": 1}}}, other=1)
    for level in ("Strict", "Warn", "Ignore", None):
        await kit.create(kind.resource, body, fieldValidation=level, dryRun="All")


@theme.case()
async def custom_resources_metadata(kit: Kit) -> None:
    kind = await table_kind(kit)
    body = kind.object("a", {}, meta={"nonsense": 1})
    for level in ("Strict", "Warn", "Ignore"):
        await kit.create(kind.resource, body, fieldValidation=level, dryRun="All")


@theme.case()
async def custom_resources_with_a_key_twice(kit: Kit) -> None:
    kind = await table_kind(kit)
    raw = f'{{"apiVersion":"{kind.group}/v1","kind":"Thing","metadata":{{"name":"a"}},"spec":{{"count":2,"count":4}}}}'
    for level in ("Strict", "Warn", "Ignore"):
        await kit.send("POST", kit.path(kind.resource) + f"?dryRun=All&fieldValidation={level}", raw.encode())


@theme.case()
async def custom_resources_patched(kit: Kit) -> None:
    kind = await table_kind(kit)
    await kit.quiet.create(kind.resource, kind.object("a", {"count": 2}))
    for level in ("Strict", "Warn"):
        await kit.patch(kind.resource, "a", {"spec": {"gone": 1}}, fieldValidation=level)
        await kit.apply(kind.resource, "a", kind.object("a", {"gone": 1}), fieldValidation=level)


@theme.case()
async def yaml_with_a_key_twice(kit: Kit) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n  k: w\n"
    for level in ("Strict", "Warn", "Ignore"):
        await kit.send("POST", kit.path(CM) + f"?dryRun=All&fieldValidation={level}", body, type="application/yaml")
