"""CustomResourceDefinitions themselves: validation, defaulting, deletion."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.cases.deleting import HOLD
from tests.contract.kit import Kit
from tests.contract.objects import CRDS, FREE, INT, STRING, Kind, props

theme = Theme("crd")


def refused(name: str, schema: Any = None, *, change: Any = None, **how: Any) -> None:
    """A case of one definition that is sent, and no more; nothing is stored, since it is a dry run."""

    async def run(kit: Kit) -> None:
        kind = Kind(kit, schema, **how)
        definition = kind.definition
        if change is not None:
            change(definition)
        await kit.create(CRDS, definition, dryRun="All")

    theme.add(name, run)


def version(name: str = "v1", *, storage: bool = True, served: bool = True, **more: Any) -> Any:
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": FREE}, **more}


def set_(path: str, value: Any) -> Any:
    """A change of one field of a definition; None removes it."""

    def change(definition: Any) -> None:
        at = definition
        *way, last = [int(p) if p.isdigit() else p for p in path.split(".")]
        for part in way:
            at = at[part]
        if value is None:
            del at[last]
        else:
            at[last] = value

    return change


refused("taken", props(n=INT))
refused("without schema", change=set_("spec.versions.0.schema", None))
refused("name that does not fit", change=set_("metadata.name", "others.example.com"))
refused("without group", change=set_("spec.group", None))
refused("group without a dot", change=set_("spec.group", "plain"))
refused("without versions", change=set_("spec.versions", []))
refused("no storage version", versions=[version(storage=False)])
refused("two storage versions", versions=[version("v1"), version("v2")])
refused("version twice", versions=[version("v1"), version("v1", storage=False)])
refused("version name invalid", versions=[version("1.0")])
refused("scope unknown", scope="Galactic")
refused("kind invalid", change=set_("spec.names.kind", "not a kind"))
refused("plural in upper case", change=set_("spec.names.plural", "Things"))
refused("short name invalid", names={"shortNames": ["Not_Valid"]})
refused(
    "protected group", change=lambda d: (d["metadata"].update(name="things.k8s.io"), d["spec"].update(group="k8s.io"))
)
refused("type missing", {"properties": {"n": INT}})
refused("type unknown", props(n={"type": "wild"}))
refused("root not an object", change=set_("spec.versions.0.schema.openAPIV3Schema", {"type": "string"}))
refused("items missing", props(list={"type": "array"}))
refused("items a list", props(list={"type": "array", "items": [INT]}))
refused(
    "properties and additional properties", {"type": "object", "properties": {"a": INT}, "additionalProperties": INT}
)
refused("additional properties false", {"type": "object", "properties": {"a": INT}, "additionalProperties": False})
refused("reference", props(n={"$ref": "#/definitions/x", "type": "integer"}))
refused("unique items", props(list={"type": "array", "items": INT, "uniqueItems": True}))
refused("default of a wrong type", props(n={"type": "integer", "default": "text"}))
refused("default that is invalid", props(n={"type": "integer", "default": 5, "maximum": 3}))
refused("default of an unknown field", props(o={"type": "object", "properties": {"a": INT}, "default": {"b": 1}}))
refused("pattern malformed", props(s={"type": "string", "pattern": "("}))
refused("format unknown is fine", props(s={"type": "string", "format": "moon-phase"}))
refused(
    "list map without keys", props(list={"type": "array", "items": props(k=STRING), "x-kubernetes-list-type": "map"})
)
refused(
    "list map key not required",
    props(
        list={
            "type": "array",
            "items": props(k=STRING),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        }
    ),
)
refused("list type unknown", props(list={"type": "array", "items": INT, "x-kubernetes-list-type": "bag"}))
refused("set of objects", props(list={"type": "array", "items": props(k=STRING), "x-kubernetes-list-type": "set"}))
refused("map type on a list", props(list={"type": "array", "items": INT, "x-kubernetes-map-type": "atomic"}))
refused("int or string with a type", props(n={"type": "integer", "x-kubernetes-int-or-string": True}))
refused("embedded resource", props(o={"type": "object", "x-kubernetes-embedded-resource": True}))
refused("preserve false", props(o={"type": "object", "x-kubernetes-preserve-unknown-fields": False}))
refused("type inside any of", props(n={"type": "integer", "anyOf": [{"type": "integer"}]}))
refused("property only in all of", props(o={"type": "object", "allOf": [{"properties": {"a": {"minimum": 1}}}]}))
refused(
    "metadata restricted",
    change=set_(
        "spec.versions.0.schema.openAPIV3Schema",
        {
            "type": "object",
            "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}},
        },
    ),
)
refused(
    "metadata name restricted",
    change=set_(
        "spec.versions.0.schema.openAPIV3Schema",
        {
            "type": "object",
            "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}},
        },
    ),
)
refused("rule malformed", props(n={"type": "integer", "x-kubernetes-validations": [{"rule": "self >"}]}))
refused("rule of a wrong type", props(n={"type": "integer", "x-kubernetes-validations": [{"rule": "self + 1"}]}))
refused(
    "rule with unknown field",
    {"type": "object", "properties": {"n": INT}, "x-kubernetes-validations": [{"rule": "self.m > 1"}]},
)
refused("rule empty", props(n={"type": "integer", "x-kubernetes-validations": [{"rule": ""}]}))
refused(
    "rule too costly",
    props(
        list={
            "type": "array",
            "items": {"type": "array", "items": STRING},
            "x-kubernetes-validations": [{"rule": "self.all(a, a.all(b, self.all(c, c.all(d, b == d))))"}],
        }
    ),
)
refused(
    "rule message with line break",
    props(n={"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "message": "a\nb"}]}),
)
refused(
    "rule reason unknown",
    props(n={"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "reason": "Because"}]}),
)
refused(
    "scale path wrong",
    subresources={"scale": {"specReplicasPath": "replicas", "statusReplicasPath": ".status.replicas"}},
)
refused(
    "scale path outside of spec",
    subresources={"scale": {"specReplicasPath": ".status.a", "statusReplicasPath": ".spec.b"}},
)
refused("printer column wrong type", additionalPrinterColumns=[{"name": "N", "type": "wild", "jsonPath": ".spec.n"}])
refused("printer column without path", additionalPrinterColumns=[{"name": "N", "type": "string"}])
refused("selectable field absent", props(n=INT), selectableFields=[{"jsonPath": ".spec.m"}])
refused("conversion unknown", spec={"conversion": {"strategy": "Magic"}})
refused("conversion webhook without one", spec={"conversion": {"strategy": "Webhook"}})
refused("unknown field", change=set_("spec.nonsense", 1))
refused("preserve unknown fields at the top", spec={"preserveUnknownFields": True})
refused(
    "categories and short names",
    names={"categories": ["all", "mine"], "shortNames": ["th", "thg"], "listKind": "ThingBag"},
)
refused("deprecated version", versions=[version(deprecated=True, deprecationWarning="use v2")])
refused("status in create is dropped", change=lambda d: d.update(status={"storedVersions": ["v9"]}))


def shown(body: Any) -> Any:
    """A definition's answer without its long schema."""
    if body.get("kind") != "CustomResourceDefinition":
        return body
    status = body.get("status", {})
    return {
        "kind": body["kind"],
        "finalizers": body["metadata"].get("finalizers"),
        "generation": body["metadata"].get("generation"),
        "names": body["spec"]["names"],
        "versions": [each["name"] for each in body["spec"]["versions"]],
        "accepted": status.get("acceptedNames"),
        "stored": status.get("storedVersions"),
        "conditions": sorted(
            ({k: c[k] for k in ("type", "status", "reason", "message")} for c in status.get("conditions") or ()),
            key=str,
        ),
    }


async def condition(kit: Kit, name: str, kind: str, status: str) -> None:
    """Wait for a condition of a definition."""

    async def has() -> bool:
        got = await kit.quiet.get(CRDS, name)
        return any(
            c["type"] == kind and c["status"] == status for c in got.body.get("status", {}).get("conditions") or ()
        )

    await kit.until(f"{name} has {kind}={status}", has)


@theme.case()
async def becomes_established(kit: Kit) -> None:
    kind = Kind(kit, props(n=INT))
    await kit.create(CRDS, kind.definition)
    await condition(kit, kind.name, "Established", "True")
    await kit.get(CRDS, kind.name)


@theme.case()
async def defaults_of_names(kit: Kit) -> None:
    kind = Kind(kit, props(n=INT))
    kind.definition["spec"]["names"] = {"plural": "things", "kind": "Thing"}
    await kit.picking(shown).create(CRDS, kind.definition)
    await condition(kit, kind.name, "Established", "True")
    await kit.picking(shown).get(CRDS, kind.name)


@theme.case()
async def names_that_conflict(kit: Kit) -> None:
    first = await Kind(kit, names={"shortNames": ["tg"]}).served()
    second = Kind(kit, plural="others", kind="Thing", names={"shortNames": ["tg"]})
    second.definition["spec"]["names"]["singular"] = "other"
    await kit.quiet.create(CRDS, second.definition)
    await condition(kit, second.name, "NamesAccepted", "False")
    await kit.picking(shown).get(CRDS, second.name)
    await kit.picking(shown).get(CRDS, first.name)
    await kit.list(second.resource)


@theme.case(facts=(16,))
async def deleting_takes_the_instances(kit: Kit) -> None:
    kind = await Kind(kit, props(n=INT)).served()
    await kit.quiet.create(kind.resource, kind.object("a", {"n": 1}))
    await kit.picking(shown).delete(CRDS, kind.name)
    await kit.until_gone(CRDS, kind.name)
    await kind.listed("v1", 404)
    await kit.list(kind.resource)


@theme.case(facts=(16,))
async def deleting_waits_for_finalizers(kit: Kit) -> None:
    kind = await Kind(kit, props(n=INT)).served()
    await kit.quiet.create(kind.resource, kind.object("a", {"n": 1}, meta={"finalizers": HOLD}))
    await kit.quiet.delete(CRDS, kind.name)

    async def marked() -> bool:
        got = await kit.quiet.get(kind.resource, "a")
        return "deletionTimestamp" in got.body["metadata"]

    await kit.until("the instance is being deleted", marked)
    await condition(kit, kind.name, "Terminating", "True")
    await kit.picking(shown).get(CRDS, kind.name)
    await kit.create(kind.resource, kind.object("b", {"n": 1}))
    await kit.patch(kind.resource, "a", {"metadata": {"finalizers": None}})
    await kit.until_gone(CRDS, kind.name)


@theme.case()
async def recreated_has_no_old_instances(kit: Kit) -> None:
    kind = await Kind(kit, props(n=INT)).served()
    await kit.quiet.create(kind.resource, kind.object("a", {"n": 1}))
    await kit.quiet.delete(CRDS, kind.name)
    await kit.until_gone(CRDS, kind.name)
    await kind.listed("v1", 404)
    await kind.served()
    await kit.list(kind.resource)


@theme.case()
async def two_versions(kit: Kit) -> None:
    kind = Kind(kit, versions=[version("v1beta1", storage=False), version("v1")])
    await kind.served("v1beta1", "v1")
    await kit.create(kind.at("v1beta1"), kind.object("a", {"n": 1}, version="v1beta1"))
    await kit.get(kind.at("v1"), "a")
    await kit.list(kind.at("v1beta1"))
    await kit.create(kind.at("v1"), kind.object("b", {"n": 1}, version="v1beta1"))


@theme.case()
async def version_that_is_not_served(kit: Kit) -> None:
    kind = Kind(kit, versions=[version("v1beta1", storage=False, served=False), version("v1")])
    await kind.served("v1")
    await kit.list(kind.at("v1beta1"))


@theme.case()
async def version_that_is_deprecated(kit: Kit) -> None:
    kind = Kind(
        kit,
        versions=[
            version("v1beta1", storage=False, deprecated=True),
            version("v1", deprecated=True, deprecationWarning="v1 is old"),
        ],
    )
    await kind.served("v1beta1", "v1")
    await kit.list(kind.at("v1beta1"))
    await kit.list(kind.at("v1"))


@theme.case()
async def version_added_and_stored(kit: Kit) -> None:
    kind = await Kind(kit, versions=[version("v1")]).served()
    await kit.quiet.create(kind.resource, kind.object("a", {"n": 1}))
    await kit.quiet.patch(CRDS, kind.name, {"spec": {"versions": [version("v1", storage=False), version("v2")]}})
    await kind.listed("v2")
    await kit.get(kind.at("v2"), "a")
    await kit.picking(lambda b: b["status"]["storedVersions"]).get(CRDS, kind.name)
    await kit.patch(CRDS, kind.name, {"spec": {"versions": [version("v2")]}})


@theme.case()
async def stored_versions_can_be_cleared(kit: Kit) -> None:
    kind = await Kind(kit, versions=[version("v1")]).served()
    await kit.quiet.patch(CRDS, kind.name, {"spec": {"versions": [version("v1", storage=False), version("v2")]}})
    await kind.listed("v2")
    await kit.picking(shown).patch(CRDS, kind.name, {"status": {"storedVersions": ["v2"]}}, "status")
    await kit.patch(CRDS, kind.name, {"status": {"storedVersions": []}}, "status")


@theme.case()
async def what_may_not_change(kit: Kit) -> None:
    kind = await Kind(kit).served()
    await kit.patch(CRDS, kind.name, {"spec": {"scope": "Cluster"}})
    await kit.patch(CRDS, kind.name, {"spec": {"group": "other.example.com"}})
    await kit.patch(CRDS, kind.name, {"spec": {"names": {"kind": "Other"}}})


@theme.case()
async def cluster_scoped(kit: Kit) -> None:
    kind = await Kind(kit, props(n=INT), scope="Cluster").served()
    await kit.create(kind.resource, kind.object("a", {"n": 1}))
    await kit.create(kind.resource, kind.object("b", {"n": 1}, meta={"namespace": kit.ns}))
    await kit.list(kind.resource)
    await kit.send("GET", f"/apis/{kind.group}/v1/namespaces/{kit.ns}/things/a")


@theme.case()
async def schema_changed_while_there_are_objects(kit: Kit) -> None:
    """Objects that were valid before can be read, and changed where the change itself is valid."""
    kind = await Kind(kit, props(n=INT, m=INT)).served()
    await kit.quiet.create(kind.resource, kind.object("a", {"n": 50, "m": 1}, meta={"finalizers": HOLD}))
    root = {"type": "object", "properties": {"spec": props(n={"type": "integer", "maximum": 10}, m=INT)}}
    await kit.quiet.patch(CRDS, kind.name, {"spec": {"versions": [version() | {"schema": {"openAPIV3Schema": root}}]}})

    async def new_schema() -> bool:
        return (await kit.probing.create(kind.resource, kind.object("b", {"n": 50}), dryRun="All")).status == 422

    await kit.until("the new schema is enforced", new_schema)
    await kit.get(kind.resource, "a")
    await kit.patch(kind.resource, "a", {"spec": {"m": 2}})
    await kit.patch(kind.resource, "a", {"spec": {"n": 51}})
    await kit.delete(kind.resource, "a")
    await kit.patch(kind.resource, "a", {"metadata": {"finalizers": None}})
    await kit.get(kind.resource, "a")


@theme.case()
async def conversion_webhook(kit: Kit) -> None:
    """The webhook moves spec.old to spec.new on the way from v1beta1 to v1, and back."""

    def convert(request: Any) -> Any:
        target = request["desiredAPIVersion"]
        converted = []
        for each in request["objects"]:
            each["apiVersion"] = target
            spec = each.get("spec") or {}
            one, other = ("old", "new") if target.endswith("/v1") else ("new", "old")
            if one in spec:
                spec[other] = spec.pop(one)
            converted.append(each)
        return {"convertedObjects": converted, "result": {"status": "Success"}}

    hook = kit.server.hooks.hook("convert", convert)
    conversion = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": hook.client_config},
    }
    kind = Kind(kit, versions=[version("v1beta1", storage=False), version("v1")], spec={"conversion": conversion})
    await kind.served("v1beta1", "v1")
    await kit.create(kind.at("v1beta1"), kind.object("a", {"old": 1}, version="v1beta1"))
    await kit.get(kind.at("v1"), "a")
    await kit.get(kind.at("v1beta1"), "a")
    await kit.list(kind.at("v1beta1"))


@theme.case()
async def conversion_webhook_that_fails(kit: Kit) -> None:
    hook = kit.server.hooks.hook(
        "convert-not", lambda _: {"result": {"status": "Failure", "message": "cannot do that"}}
    )
    conversion = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": hook.client_config},
    }
    kind = Kind(kit, versions=[version("v1beta1", storage=False), version("v1")], spec={"conversion": conversion})
    await kind.served("v1")
    await kit.quiet.create(kind.at("v1"), kind.object("a", {"new": 1}))
    await kit.get(kind.at("v1beta1"), "a")
