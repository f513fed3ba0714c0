"""Custom resources: pruning, defaulting, validation by schema and by rules, ratcheting, printer columns."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import TABLE, Kit
from tests.contract.objects import FREE, INT, STRING, Kind, props

theme = Theme("cr")

SCHEMA = props(
    count={"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 2},
    ratio={"type": "number", "exclusiveMinimum": True, "minimum": 0},
    name={"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
    mode={"type": "string", "enum": ["fast", "slow"]},
    flag={"type": "boolean"},
    list={"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
    set={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    byKey={
        "type": "array",
        "items": {"type": "object", "required": ["k"], "properties": {"k": STRING, "v": INT}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    },
    map={"type": "object", "additionalProperties": INT, "maxProperties": 2},
    port={"x-kubernetes-int-or-string": True},
    day={"type": "string", "format": "date"},
    time={"type": "string", "format": "date-time"},
    ip={"type": "string", "format": "ipv4"},
    uid={"type": "string", "format": "uuid"},
    mail={"type": "string", "format": "email"},
    span={"type": "string", "format": "duration"},
    small={"type": "integer", "format": "int32"},
    bytes={"type": "string", "format": "byte"},
    maybe={"type": "string", "nullable": True},
    nested={"type": "object", "required": ["must"], "properties": {"must": STRING, "inner": props(n=INT)}},
    either={"type": "object", "properties": {"a": INT, "b": INT}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    some={"type": "integer", "anyOf": [{"minimum": 100}, {"maximum": 10}]},
    every={"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 3}]},
    unlike={"type": "integer", "not": {"minimum": 5}},
    embedded={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    free=FREE,
)

SPECS: dict[str, Any] = {
    "all good": {
        "count": 4,
        "name": "abc",
        "mode": "fast",
        "list": ["x"],
        "map": {"a": 1},
        "port": "http",
        "maybe": None,
    },
    "unknown fields are pruned": {
        "count": 4,
        "gone": 1,
        "nested": {"must": "x", "gone": 2, "inner": {"n": 1, "gone": 3}},
        "free": {"stays": 1},
    },
    "below the minimum": {"count": 0},
    "above the maximum": {"count": 12},
    "not a multiple": {"count": 3},
    "exclusive minimum": {"ratio": 0},
    "integer for a number": {"ratio": 1},
    "float for an integer": {"count": 2.5},
    "float that is whole": {"count": 4.0},
    "text for an integer": {"count": "4"},
    "integer for text": {"name": 4},
    "list for an object": {"nested": []},
    "object for a list": {"list": {}},
    "null for an integer": {"count": None},
    "text too short": {"name": "a"},
    "text too long": {"name": "abcdef"},
    "pattern": {"name": "AB"},
    "enum": {"mode": "sideways"},
    "too few items": {"list": []},
    "too many items": {"list": ["a", "b", "c"]},
    "item of a wrong type": {"list": ["a", 1]},
    "set with duplicates": {"set": ["a", "b", "a"]},
    "keys with duplicates": {"byKey": [{"k": "a", "v": 1}, {"k": "a", "v": 2}]},
    "key missing": {"byKey": [{"v": 1}]},
    "map values": {"map": {"a": "x"}},
    "too many properties": {"map": {"a": 1, "b": 2, "c": 3}},
    "int or string of neither": {"port": True},
    "int or string": {"port": 80},
    "formats": {
        "day": "2001-02-30",
        "time": "yesterday",
        "ip": "1.2.3",
        "uid": "x",
        "mail": "nobody",
        "span": "long",
        "bytes": "!",
    },
    "formats good": {
        "day": "2001-02-03",
        "time": "2001-02-03T04:05:06Z",
        "ip": "1.2.3.4",
        "span": "3m",
        "mail": "a@example.com",
        "bytes": "eA==",
    },
    "int32 too large": {"small": 5_000_000_000},
    "required inside": {"nested": {}},
    "one of neither": {"either": {}},
    "one of both": {"either": {"a": 1, "b": 2}},
    "any of none": {"some": 50},
    "all of one": {"every": 5},
    "not": {"unlike": 7},
    "several at once": {"count": 0, "name": "A", "mode": "x", "nested": {}},
    "embedded without kind": {"embedded": {"metadata": {"name": "x"}}},
    "embedded": {
        "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "unknown": 1}, "spec": {"x": 1}}
    },
    "embedded with a bad name": {"embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "Not Valid"}}},
    "spec of a wrong type": "text",
    "large integer": {"free": {"n": 9007199254740993}},
    "deep free content": {"free": {"a": [{"b": [1, 2, {"c": None}]}]}},
}


async def table_kind(kit: Kit) -> Kind:
    """The definition of the table's kind, created by the first case that needs it."""
    shared = kit.in_namespace("cr-table")
    kind = Kind(shared, SCHEMA)
    answer = await kit.probing.create("/apiextensions.k8s.io/v1/customresourcedefinitions", kind.definition)
    assert answer.status in (201, 409), answer.body
    await kind.established()
    await kind.listed("v1")
    return kind


def table(name: str, spec: Any) -> None:
    async def run(kit: Kit) -> None:
        kind = await table_kind(kit)
        await kit.create(kind.resource, kind.object("a", spec))

    theme.add(name, run)


for _name, _spec in SPECS.items():
    table(_name, _spec)


@theme.case()
async def metadata_is_validated(kit: Kit) -> None:
    kind = await table_kind(kit)
    await kit.create(kind.resource, kind.object("Not_Valid", {}))
    await kit.create(kind.resource, kind.object("a", {}, meta={"labels": {"a b": "c"}}))
    await kit.create(kind.resource, kind.object("a", {}, meta={"unknown": 1}))
    await kit.create(kind.resource, kind.object("a", {}, meta={"labels": {"a": 1}}))


@theme.case()
async def api_version_and_kind_must_fit(kit: Kit) -> None:
    kind = await table_kind(kit)
    await kit.create(kind.resource, kind.object("a", {}) | {"kind": "Other"})
    await kit.create(kind.resource, kind.object("a", {}) | {"apiVersion": "v1"})
    await kit.create(kind.resource, {"metadata": {"name": "a"}})
    await kit.create(kind.resource, kind.object("a", {}) | {"apiVersion": kind.group + "/v9"})


@theme.case()
async def unknown_fields_at_the_root(kit: Kit) -> None:
    kind = await table_kind(kit)
    await kit.create(kind.resource, kind.object("a", {}, gone=1))


@theme.case()
async def version_cannot_be_absent_in_an_update(kit: Kit) -> None:
    kind = await table_kind(kit)
    made = await kit.quiet.create(kind.resource, kind.object("a", {"count": 2}))
    body = made.body
    body["spec"]["count"] = 4
    await kit.put(kind.resource, "a", body)
    body["spec"]["count"] = 6
    await kit.put(kind.resource, "a", body)


@theme.case()
async def generation_of_a_kind_without_status(kit: Kit) -> None:
    kind = await table_kind(kit)
    shown = kit.picking(lambda b: b["metadata"])
    await shown.create(kind.resource, kind.object("a", {"count": 2}))
    await shown.patch(kind.resource, "a", {"metadata": {"labels": {"a": "b"}}})
    await shown.patch(kind.resource, "a", {"spec": {"count": 4}})
    await shown.patch(kind.resource, "a", {"spec": {"count": 4}})


@theme.case()
async def object_larger_than_the_store_takes(kit: Kit) -> None:
    kind = await Kind(kit, subresources={"status": {}}).served()
    refused = kit.picking(lambda body: body if "code" in body else "taken")
    text = "x" * (900 * 1024)
    await refused.create(kind.resource, kind.object("a", {"text": text * 2}))
    made = await refused.create(kind.resource, kind.object("a", {"text": text}))
    await refused.patch(kind.resource, "a", {"spec": {"more": text}})
    await refused.json_patch(kind.resource, "a", [{"op": "copy", "from": "/spec/text", "path": "/spec/more"}])
    await refused.apply(kind.resource, "a", kind.object("a", {"more": text}))
    await refused.put(kind.resource, "a", made.body | {"spec": {"text": text * 2}})
    await refused.patch(kind.resource, "a", {"status": {"more": text}}, "status")
    await refused.create(kind.resource, kind.object("dry", {"text": text * 2}), dryRun="All")


DEFAULTED = props(
    n={"type": "integer", "default": 7},
    s={"type": "string", "default": "x", "nullable": True},
    o={"type": "object", "default": {"a": 1}, "properties": {"a": INT, "b": {"type": "integer", "default": 2}}},
    list={"type": "array", "items": {"type": "object", "properties": {"d": {"type": "integer", "default": 3}}}},
    map={
        "type": "object",
        "additionalProperties": {"type": "object", "properties": {"d": {"type": "integer", "default": 4}}},
    },
    deep={"type": "object", "properties": {"d": {"type": "integer", "default": 5}}},
)


@theme.case()
async def defaults(kit: Kit) -> None:
    kind = await Kind(kit, DEFAULTED).served()
    await kit.create(kind.resource, kind.object("empty", {}))
    await kit.create(kind.resource, kind.object("none"))
    await kit.create(kind.resource, kind.object("nulls", {"n": None, "s": None, "o": None}))
    await kit.create(
        kind.resource, kind.object("nested", {"o": {}, "list": [{}, {"d": 9}], "map": {"k": {}}, "deep": {}})
    )
    await kit.patch(kind.resource, "empty", {"spec": {"n": None}})


RULES = {
    "type": "object",
    "properties": {
        "min": INT,
        "max": INT,
        "fixed": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
        },
        "names": {
            "type": "array",
            "maxItems": 10,
            "items": {
                "type": "string",
                "maxLength": 20,
                "x-kubernetes-validations": [{"rule": "self.startsWith('a')"}],
            },
        },
        "sum": {
            "type": "integer",
            "x-kubernetes-validations": [
                {"rule": "self % 2 == 0", "messageExpression": "self < 0 ? 'not below zero' : 'even is wanted'"}
            ],
        },
        "kind": {
            "type": "string",
            "x-kubernetes-validations": [
                {"rule": "self in ['x', 'y']", "reason": "FieldValueForbidden", "message": "not that"}
            ],
        },
        "path": {
            "type": "object",
            "properties": {"a": INT},
            "x-kubernetes-validations": [{"rule": "has(self.a)", "fieldPath": ".a", "reason": "FieldValueRequired"}],
        },
        "grows": {
            "type": "integer",
            "x-kubernetes-validations": [
                {"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": True}
            ],
        },
        "quantity": {
            "type": "string",
            "maxLength": 20,
            "x-kubernetes-validations": [{"rule": "isQuantity(self) && quantity(self).isLessThan(quantity('2Gi'))"}],
        },
        "url": {
            "type": "string",
            "maxLength": 50,
            "x-kubernetes-validations": [{"rule": "isURL(self) && url(self).getScheme() == 'https'"}],
        },
        "when": {
            "type": "string",
            "format": "date-time",
            "x-kubernetes-validations": [{"rule": "self < timestamp('2020-01-01T00:00:00Z')"}],
        },
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.min) || !has(self.max) || self.min <= self.max", "message": "min must not be above max"}
    ],
}


async def rules_kind(kit: Kit) -> Kind:
    """The kind with rules, created by the first case that needs it."""
    kind = Kind(kit.in_namespace("cr-rules"), RULES)
    answer = await kit.probing.create("/apiextensions.k8s.io/v1/customresourcedefinitions", kind.definition)
    assert answer.status in (201, 409), answer.body
    await kind.established()
    await kind.listed("v1")
    return kind


def judged(name: str, *specs: Any) -> None:
    async def run(kit: Kit) -> None:
        kind = await rules_kind(kit)
        for number, spec in enumerate(specs):
            await kit.create(kind.resource, kind.object(f"a{number}", spec))

    theme.add(f"rule {name}", run)


judged("between fields", {"min": 1, "max": 2}, {"min": 3, "max": 2}, {"min": 3})
judged("on items", {"names": ["ab", "ba", "ca"]})
judged("message expression", {"sum": 3})
judged("reason", {"kind": "z"})
judged("field path", {"path": {}})
judged("quantity", {"quantity": "1Gi"}, {"quantity": "3Gi"}, {"quantity": "x"})
judged("url", {"url": "https://example.com/a"}, {"url": "http://example.com"}, {"url": ":"})
judged("time", {"when": "2019-01-01T00:00:00Z"}, {"when": "2021-01-01T00:00:00Z"})
judged("with a schema error as well", {"min": "x", "kind": "z"})
judged("several fail", {"min": 3, "max": 2, "sum": 1, "kind": "z"})


@theme.case()
async def rule_on_transition(kit: Kit) -> None:
    kind = await rules_kind(kit)
    await kit.create(kind.resource, kind.object("a", {"fixed": "x", "grows": 2}))
    await kit.patch(kind.resource, "a", {"spec": {"fixed": "y"}})
    await kit.patch(kind.resource, "a", {"spec": {"grows": 1}})
    await kit.patch(kind.resource, "a", {"spec": {"grows": 3}})
    await kit.patch(kind.resource, "a", {"spec": {"fixed": None}})
    await kit.patch(kind.resource, "a", {"spec": {"fixed": "z"}})


def own_words(table: Any) -> Any:
    """The columns, without the descriptions of those that every kind has: harbor keeps no prose."""
    return [
        column | {"description": ""} if column["name"] in ("Name", "Age") else column
        for column in table["columnDefinitions"]
    ]


@theme.case()
async def columns(kit: Kit) -> None:
    extra = [
        {"name": "Count", "type": "integer", "jsonPath": ".spec.count", "description": "how many"},
        {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
        {"name": "When", "type": "date", "jsonPath": ".spec.when"},
        {"name": "Flag", "type": "boolean", "jsonPath": ".spec.flag"},
        {"name": "Ratio", "type": "number", "jsonPath": ".spec.ratio"},
        {"name": "First", "type": "string", "jsonPath": ".spec.list[0].name"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    ]
    kind = await Kind(kit, additionalPrinterColumns=extra).served()
    conditions = [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]
    spec = {
        "count": 3,
        "mode": "fast",
        "flag": True,
        "ratio": 0.5,
        "list": [{"name": "x"}],
        "when": "2001-02-03T04:05:06Z",
    }
    await kit.quiet.create(kind.resource, kind.object("a", spec, status={"conditions": conditions}))
    await kit.quiet.create(kind.resource, kind.object("b", {}))

    def shown(body: Any) -> Any:
        rows = [
            [
                cell
                for cell, column in zip(row["cells"], body["columnDefinitions"], strict=True)
                if column["name"] != "When"
            ]
            for row in body["rows"]
        ]
        return [own_words(body), rows]

    await kit.picking(shown).accepting(TABLE).list(kind.resource)


@theme.case()
async def columns_by_default(kit: Kit) -> None:
    kind = await Kind(kit).served()
    await kit.quiet.create(kind.resource, kind.object("a", {}))
    await kit.picking(lambda b: [own_words(b), b["rows"][0]["cells"][0]]).accepting(TABLE).list(kind.resource)


@theme.case()
async def lists_in_all_namespaces_and_continue(kit: Kit) -> None:
    kind = await table_kind(kit)
    for name in "abc":
        await kit.quiet.create(kind.resource, kind.object(name, {}, meta={"labels": {"own": kit.ns[:60]}}))
    names = kit.picking(lambda b: [i["metadata"]["name"] for i in b["items"]])
    page = await names.list(kind.resource, limit=2)
    await names.list(kind.resource, **{"continue": page.body["metadata"]["continue"]})
    await names.list(f"/{kind.resource}", labelSelector=f"own={kit.ns[:60]}")


@theme.case()
async def list_kind_and_collection_delete(kit: Kit) -> None:
    kind = await table_kind(kit)
    await kit.quiet.create(kind.resource, kind.object("a", {"count": 2}))
    await kit.list(kind.resource)
    await kit.delete(kind.resource)
    await kit.list(kind.resource)


@theme.case()
async def delete_answers_with_a_status(kit: Kit) -> None:
    kind = await table_kind(kit)
    await kit.quiet.create(kind.resource, kind.object("a", {"count": 2}))
    await kit.delete(kind.resource, "a")
    await kit.delete(kind.resource, "a")


@theme.case()
async def wrong_media_type(kit: Kit) -> None:
    kind = await table_kind(kit)
    await kit.send("POST", kit.path(kind.resource), b"x", type="text/plain")
    await kit.send("POST", kit.path(kind.resource), b"{", type="application/json")
