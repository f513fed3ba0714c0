"""Hostile input is refused as kube-apiserver refuses it: soon, and never with an internal error.

The words were recorded from kube-apiserver 1.36, but for those of limits that are harbor's own: the depth of a body,
and the length of a quantity.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from pilotage_harbor.api import Harbor
from pilotage_harbor.apimachinery.calls import Call
from pilotage_harbor.apimachinery.users import MASTERS, UserInfo
from pilotage_harbor.builtin.quantity import canonical, parse
from pilotage_harbor.core import Core
from pilotage_harbor.patching import PatchError, json_patch
from pilotage_harbor.patching.json_patch import COPIED_BYTES_MAX
from pilotage_harbor.schema import cel, from_openapi, validate
from pilotage_harbor.schema.cel_text import find, find_all
from pilotage_harbor.schema.decode import quantity_problem
from pilotage_harbor.schema.formats import FORMATS, is_duration
from pilotage_harbor.schema.patterns import compile_pattern
from pilotage_harbor.verbs.bodies import depth_problem_untrusted, from_json_untrusted, from_yaml_untrusted
from pilotage_harbor.verbs.yaml_text import DEPTH_MAX, load_untrusted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pilotage_harbor.kinds import Json

NINES = "9" * 5000
LONG = "9" * 200_000
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/widgets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
APPLY, JSON_PATCH, YAML = "application/apply-patch+yaml", "application/json-patch+json", "application/yaml"


class Server:
    def __init__(self) -> None:
        self.harbor = Harbor(Core(None, now=lambda: 1e9, seed=1))

    async def ask(
        self, method: str, path: str, body: Any = b"", media: str = "application/json", **query: str
    ) -> tuple[int, Json]:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        options = {name: [value] for name, value in query.items()}
        user = UserInfo("tester", groups=(MASTERS,))
        answer = await self.harbor.handle(Call(method, path, options, {"content-type": media}, raw, user))
        return answer.status, json.loads(answer.body)  # type: ignore[union-attr]

    async def until_served(self, path: str) -> None:
        call = Call("GET", path, {}, {}, b"", UserInfo("tester", groups=(MASTERS,)))
        while (await self.harbor.handle(call)).status != 200:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0)

    async def refusal(self, *args: Any, **query: str) -> tuple[int, str]:
        status, body = await self.ask(*args, **query)
        return status, body.get("message", "")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    await server.harbor.start()
    await server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
    yield server
    await server.harbor.stop()


# patterns: these tests end, or run into the time-out


def test_a_pattern_cannot_keep_the_server_busy():
    schema = from_openapi({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}})
    assert validate(schema, {"a": "a" * 40 + "!"})
    assert not validate(schema, {"a": "a" * 40})


def test_nor_can_one_in_a_rule():
    text = "a" * 40 + "!"
    assert (find(text, "^(a+)+$"), find("xay", "a")) == ("", "a")
    assert find_all(text, "^(a+)+$") == []
    assert (find_all("a1b22", "[0-9]+"), find_all("a1b22", "[0-9]+", 1)) == (["1", "22"], ["1"])


def test_what_go_has_and_python_has_not():
    assert compile_pattern(r"^\p{Greek}+$").search("αβγ")


def test_long_texts_of_digits_take_time_in_proportion():
    assert not is_duration(LONG + "!")
    assert is_duration("1s" * 100_000 + "!")  # what is found in it counts
    assert not is_duration(LONG)
    assert is_duration("1h2.5m")
    assert is_duration("2 weeks")
    assert quantity_problem(LONG + "!") is not None
    assert parse(LONG) is None
    assert canonical(LONG) == LONG


# quantities


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1e400", "10e399"),
        ("-1e400", "-10e399"),
        ("1e40", "10e39"),
        ("1e-400", "1e-3"),
        ("9" * 30, "9" * 30),
        ("9" * 900, "9" * 900),
        ("1.5e3", "1500"),
        ("0." + "9" * 500, "1"),
    ],
)
async def test_very_large_quantities_are_kept(server: Server, text: str, shown: str):
    limits = {"metadata": {"name": "a"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": text}}]}}
    status, body = await server.ask("POST", "/api/v1/namespaces/default/limitranges", limits)
    assert (status, body["spec"]["limits"][0]["max"]) == (201, {"cpu": shown})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (json.dumps("1e" + "9" * 500), "unable to parse quantity's suffix"),
        ('"1e1000"', "unable to parse quantity's suffix"),
        (json.dumps(NINES), "quantities must match the regular expression"),
        (NINES, "cannot unmarshal number"),
        ("1e400", "cannot unmarshal number"),
    ],
)
async def test_those_without_measure_are_refused(server: Server, value: str, words: str):
    body = (
        '{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"b","resources":{"limits":{"cpu":%s}}}]}}'
    )
    status, message = await server.refusal("POST", "/api/v1/namespaces/default/pods", (body % value).encode())
    assert (status, words in message) == (400, True), message


def test_a_rule_is_told_of_a_quantity_without_measure():
    schema = from_openapi(
        {"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-validations": [
            {"rule": "isQuantity(self)"}]}}}
    )  # fmt: skip
    assert validate(schema, {"a": "1e999999999"})
    assert not validate(schema, {"a": "1e400"})


# numbers of more digits than Python converts


@pytest.mark.parametrize("version", [NINES, str(2**64), "0" * 5000])
async def test_versions_out_of_range(server: Server, version: str):
    words = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": value out of range'
    listed = await server.refusal("GET", CONFIG_MAPS, resourceVersion=version)
    assert listed == (400, f"invalid resource version: {words}")
    assert await server.refusal("GET", CONFIG_MAPS, resourceVersion=version, watch="1") == (500, words)
    assert await server.refusal("GET", f"{CONFIG_MAPS}/a", resourceVersion=version) == (500, words)


async def test_the_largest_version_is_only_too_large(server: Server):
    assert (await server.refusal("GET", CONFIG_MAPS, resourceVersion=str(2**64 - 1)))[0] == 504


@pytest.mark.parametrize("path", [f"/metadata/finalizers/{NINES}", f"/metadata/finalizers/{NINES}/x"])
async def test_an_index_out_of_range(server: Server, path: str):
    await server.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a", "finalizers": ["x.y/z"]}})
    patch = [{"op": "replace", "path": path, "value": "x"}]
    status, message = await server.refusal("PATCH", f"{CONFIG_MAPS}/a", patch, JSON_PATCH)
    assert (status, message) == (422, "the server rejected our request due to an error in our request")


@pytest.mark.parametrize("number", [NINES, str(2**63)])
@pytest.mark.parametrize("schedule", ["{} * * * *", "*/{} * * * *", "1-{} * * * *"])
async def test_a_schedule_out_of_range(server: Server, schedule: str, number: str):
    words = f'failed to parse int from {number}: strconv.Atoi: parsing "{number}": value out of range'
    assert (await _cron(server, schedule.format(number))).endswith(f": {words}")


async def test_schedules_that_are_nearly_right(server: Server):
    assert "end of range (9223372036854775807) above maximum (59)" in await _cron(server, f"{2**63 - 1} * * * *")
    assert 'parsing "²": invalid syntax' in await _cron(server, "² * * * *")
    assert "step of range should be a positive number: */00" in await _cron(server, "*/00 * * * *")


async def _cron(server: Server, schedule: str) -> str:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}
    spec = {"schedule": schedule, "jobTemplate": {"spec": {"template": template}}}
    path = "/apis/batch/v1/namespaces/default/cronjobs"
    status, message = await server.refusal("POST", path, {"metadata": {"name": "a"}, "spec": spec})
    assert status == 422
    return message


async def test_a_number_out_of_range_in_a_body(server: Server):
    for number in (NINES, "1e400"):
        body = f'{{"metadata":{{"name":"a","generation":{number}}}}}'.encode()
        status, message = await server.refusal("POST", CONFIG_MAPS, body)
        assert (status, "cannot unmarshal number" in message) == (400, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [("ipv4", f"1.1.1.{NINES}"), ("cidr", f"1.1.1.1/{NINES}"), ("email", "(" * 5000), ("ipv4", "1.1.1.256")],
)
def test_formats_that_python_would_not_read(name: str, text: str):
    assert not FORMATS[name](text)


def test_formats_with_many_zeros_are_read():
    assert FORMATS["ipv4"](f"1.1.1.{'0' * 5000}1")


async def test_a_number_that_is_no_float_in_a_custom_resource(server: Server):
    rules = [{"rule": "self > 0.0"}]
    number = {"type": "number", "multipleOf": 0.5, "x-kubernetes-validations": rules}
    await server.ask("POST", DEFINITIONS, _definition({"type": "object", "properties": {"spec": number}}))
    await server.until_served(WIDGETS)
    body = '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":%s}'
    assert (await server.ask("POST", WIDGETS, (body % "1e308").encode()))[0] == 422
    status, message = await server.refusal("POST", WIDGETS, (body % ("9" * 400)).encode())
    assert (status, "cannot unmarshal number" in message) == (400, True)


# patches


def test_a_patch_cannot_copy_without_end():
    size = 300_000 - 2  # and the quotes
    doc = {"data": {"a": "x" * size}}
    copy = [{"op": "copy", "from": "/data/a", "path": "/data/b"}]
    times = COPIED_BYTES_MAX // 300_000
    assert json_patch(doc, copy * times)["data"]["b"] == "x" * size
    with pytest.raises(PatchError) as refused:
        json_patch(doc, copy * (times + 1))
    assert refused.value.code == 422
    assert refused.value.why.endswith(f"is {300_000 * (times + 1)}, exceeding the limit {COPIED_BYTES_MAX}")


def test_doubling_by_copies_ends():
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60
    with pytest.raises(PatchError):
        json_patch({"a": ["x"]}, doubling)


# YAML


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("2001-99-99", "2001-99-99"),
        ("!!timestamp 2020-01-01", "2020-01-01"),
        ("!!binary aGk=", "hi"),
        ("!!set {a, b}", {"a": None, "b": None}),
        ("!!omap [a: 1]", [{"a": 1}]),
        ("!!str 5", "5"),
        ("'5'", "5"),
        ("!foo x", "x"),
        ("!!python/name:os.system x", "x"),
        ("yes", True),
        ("y", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("=", "="),
        ("1:30", "1:30"),
        ("190:20:30.15", "190:20:30.15"),
        ("0o17", 15),
        ("017", 15),
        ("089", 89),
        ("0o8", "0o8"),
        ("0b11", 3),
        ("0x1F", 31),
        ("-0x1F", -31),
        ("1_000", 1000),
        ("+1", 1),
        ("0", 0),
        ("-", [None]),
        ("1.", 1),
        ("1e3", 1000),
        ("1.5", 1.5),
        ("685.230_15e+03", 685230.15),
        (str(2**64), 2**64),
        ("1e400", "1e400"),
        (NINES, NINES),
        ("0x" + "f" * 5000, "0x" + "f" * 5000),
        ("{1: a, true: b, 1.5: c, 2020-01-01: d}", {"1": "a", "true": "b", "1.5": "c", "2020-01-01": "d"}),
        ("{<<: {a: b, c: d}, c: e}", {"a": "b", "c": "e"}),
        ("{<<: [{a: b}, {a: c}]}", {"a": "b"}),
        ("{'<<': 5}", {"<<": 5}),
        ("!!int 0x1F", 31),
        ("!!float 1", 1),
        ("!!bool yes", True),
        ("!!seq x", "x"),
        ("[&a {x: 1}, *a]", [{"x": 1}, {"x": 1}]),
    ],
)
def test_yaml_means_what_it_means_in_go(text: str, value: Any):
    loaded = load_untrusted(text.encode()).value
    assert (loaded, type(loaded)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("!!float x", "cannot decode !!str `x` as a !!float"),
        ("!!int x", "cannot decode !!str `x` as a !!int"),
        ("!!int 1:30", "cannot decode !!str `1:30` as a !!int"),
        ("!!bool x", "cannot decode !!str `x` as a !!bool"),
        ("!!null x", "cannot decode !!str `x` as a !!null"),
        ("!!binary '*'", "!!binary value contains invalid base64 data"),
        (".inf", "unsupported value: +Inf"),
        (".nan", "unsupported value: NaN"),
        ("{~: a}", "unsupported map key of type"),
        ("{[1]: a}", "invalid map key"),
        ("{<<: 5}", "map merge requires map or sequence of maps as the value"),
        ("&a [*a]", "anchor 'a' value contains itself"),
        ("*a", "unknown anchor 'a' referenced"),
    ],
)
async def test_yaml_that_means_nothing(server: Server, text: str, words: str):
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: {text}\n".encode()
    status, message = await server.refusal("POST", CONFIG_MAPS, body, YAML)
    assert (status, words in message) == (400, True), message
    assert (await server.refusal("PATCH", f"{CONFIG_MAPS}/a", body, APPLY, fieldManager="m"))[0] == 400


def test_merging_cannot_go_on_without_end():
    keys = ", ".join(f"k{at}: 1" for at in range(1000))
    with pytest.raises(ValueError, match="excessive aliasing"):
        load_untrusted(f"a: &a {{{keys}}}\nb: {{<<: [{', '.join(['*a'] * 1000)}]}}".encode())


@pytest.mark.parametrize(("method", "path"), [("POST", CONFIG_MAPS), ("PATCH", f"{CONFIG_MAPS}/a")])
async def test_a_small_body_does_not_stand_for_a_large_object(server: Server, method: str, path: str):
    text = f"a: &a {'x' * 50_000}\n" + "".join(f"  k{at}: *a\n" for at in range(100))
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  {text}".encode()
    media = YAML if method == "POST" else APPLY
    status, message = await server.refusal(method, path, body, media, fieldManager="m")
    assert (status, "yaml: document contains excessive aliasing" in message) == (400, True), message


# depth


def depth_problem(body: bytes) -> str:
    return depth_problem_untrusted(body, json.loads(body))


@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}")])
def test_the_depth_of_json_is_bounded(left: str, right: str):
    def nested(levels: int) -> bytes:
        return (left * levels + "1" + right * levels).encode()

    assert depth_problem(nested(DEPTH_MAX)) == ""
    assert depth_problem(nested(DEPTH_MAX + 1)) == f"invalid character '{left[0]}' exceeded max depth"


def test_brackets_side_by_side_or_in_texts_do_not_count():
    assert depth_problem(b"[" + b"{}," * 2000 + b"[]]") == ""
    body = json.dumps({"a": "[" * 2000, 'b"[\\': "\\" + "{" * 2000}).encode()
    assert from_json_untrusted(body)[0]["a"] == "[" * 2000


@pytest.mark.parametrize("levels", [DEPTH_MAX - 2, 900])
@pytest.mark.parametrize("shape", ["list", "object"])
async def test_deep_bodies_are_refused_or_taken_but_never_fail(server: Server, shape: str, levels: int):
    spec: Any = 1
    for _ in range(levels - 1):
        spec = [spec] if shape == "list" else {"a": spec}
    schema = {"type": "object", "properties": {"spec": {"x-kubernetes-preserve-unknown-fields": True}}}
    status, said = await server.ask("POST", DEFINITIONS, _definition(schema))
    assert status == 201, said
    await server.until_served(WIDGETS)
    obj = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}
    raw = json.dumps(obj).encode()
    for method, path, body, media in (
        ("POST", WIDGETS, raw, "application/json"),
        ("POST", WIDGETS, raw, YAML),
        ("PATCH", f"{WIDGETS}/a", raw, APPLY),
        ("PATCH", f"{WIDGETS}/a", b"---\n" + raw, APPLY),
    ):
        status, message = await server.refusal(method, path, body, media, dryRun="All", fieldManager="m")
        if levels > DEPTH_MAX:
            assert (status, "exceeded max depth" in message) == (400, True)
        else:
            assert status == 201, message


def _definition(schema: Json) -> Json:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
    }


def test_deep_yaml_is_loaded_up_to_the_bound():
    body = b"[" * (DEPTH_MAX - 1) + b"]" * (DEPTH_MAX - 1)
    assert from_yaml_untrusted(body).value != []


# reviews

ACCESS = "/apis/authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (f"{ACCESS}/selfsubjectaccessreviews", {"spec": [1]},
         "array into Go struct field SelfSubjectAccessReview.spec of type v1.SelfSubjectAccessReviewSpec"),
        (f"{ACCESS}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": "x"}},
         ("string into Go struct field SelfSubjectAccessReviewSpec.spec.resourceAttributes of type"
          " v1.ResourceAttributes")),
        (f"{ACCESS}/subjectaccessreviews", {"spec": {"groups": 5, "user": "a", "resourceAttributes": {}}},
         "number into Go struct field SubjectAccessReviewSpec.spec.groups of type []string"),
        (f"{ACCESS}/subjectaccessreviews", {"metadata": [1], "spec": {"resourceAttributes": {}}},
         "array into Go struct field SubjectAccessReview.metadata of type v1.ObjectMeta"),
        (f"{ACCESS}/namespaces/default/localsubjectaccessreviews", {"spec": [1]},
         "array into Go struct field LocalSubjectAccessReview.spec of type v1.SubjectAccessReviewSpec"),
        (f"{ACCESS}/selfsubjectrulesreviews", {"spec": {"namespace": 5}},
         "number into Go struct field SelfSubjectRulesReviewSpec.spec.namespace of type string"),
        ("/apis/authentication.k8s.io/v1/selfsubjectreviews", {"metadata": [1]},
         "array into Go struct field SelfSubjectReview.metadata of type v1.ObjectMeta"),
        ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"audiences": 5, "token": "x"}},
         "number into Go struct field TokenReviewSpec.spec.audiences of type []string"),
    ],
)  # fmt: skip
async def test_a_review_of_the_wrong_types(server: Server, path: str, body: Json, words: str):
    status, message = await server.refusal("POST", path, body)
    kind = words.split("field ")[1].split(".")[0].removesuffix("Spec")
    kind = "LocalSubjectAccessReview" if "localsubject" in path else kind
    said = f'{kind} in version "v1" cannot be handled as a {kind}: json: cannot unmarshal {words}'
    assert (status, message) == (400, said)


async def test_nulls_in_a_review_are_nothing(server: Server):
    spec = {"user": "a", "groups": [None], "extra": {"a": None}, "resourceAttributes": {"verb": None}, "uid": None}
    status, body = await server.ask("POST", f"{ACCESS}/subjectaccessreviews", {"metadata": None, "spec": spec})
    assert (status, body["status"]["allowed"]) == (201, False)


# rules


def _items(**rule: str) -> Any:
    items = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [rule]}
    return from_openapi({"type": "object", "properties": {"items": items}})


ENDLESS = "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"


def test_a_rule_that_takes_too_long_breaks_the_object():
    causes = validate(_items(rule=ENDLESS), {"items": [*range(300)]})
    words = "no further validation rules will be run due to call cost exceeds limit for rule"
    assert [(cause.field, cause.reason) for cause in causes] == [("items", "FieldValueInvalid")]
    assert f"'operation cancelled: actual cost limit exceeded': {words}: {ENDLESS}" in causes[0].message


def test_a_message_that_takes_too_long_is_not_shown():
    schema = _items(rule="false", message="no", messageExpression=f"{ENDLESS} ? 'a' : 'b'")
    (cause,) = validate(schema, {"items": [*range(300)]})
    assert cause.message.endswith("no")


def test_texts_of_rules_are_not_kept_for_ever():
    assert cel._program.cache_info().maxsize == 1024
