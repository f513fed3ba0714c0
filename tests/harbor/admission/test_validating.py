"""Validating webhooks: who is asked, about what, and what an answer does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from pilotage_harbor.admission.webhook_client import Failed
from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.apimachinery.users import LOOPBACK
from pilotage_sim.loop import virtual
from tests.harbor.admission.support import CONFIGURATIONS, URL, Webhook, configure, rule, webhook
from tests.harbor.housekeeping.support import CONFIG_MAPS, DEFINITIONS, SECRETS, World, definition, owner

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json

MERGE = "application/merge-patch+json"


async def refusal(world: World, name: str = "one") -> StatusError:
    with pytest.raises(StatusError) as caught:
        await world.create(CONFIG_MAPS, name)
    return caught.value


@virtual
async def test_the_review_of_a_create() -> None:
    hook = Webhook()
    async with World(post=hook) as world:
        await configure(world, "Validating")
        created = await world.create(CONFIG_MAPS, "one", data={"a": "b"})
        (request,) = hook.requests
        assert request.pop("uid")
        shown = request.pop("object")
        assert shown["metadata"]["uid"] == created["metadata"]["uid"]
        assert shown["data"] == {"a": "b"}
        version = {"group": "", "version": "v1"}
        assert request == {
            "kind": {**version, "kind": "ConfigMap"},
            "resource": {**version, "resource": "configmaps"},
            "requestKind": {**version, "kind": "ConfigMap"},
            "requestResource": {**version, "resource": "configmaps"},
            "name": "one",
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": {"username": "tester", "groups": ["system:masters"]},
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        }
        assert hook.urls == [f"{URL}?timeout=10s"]


@virtual
async def test_update_and_delete_show_the_old_object() -> None:
    hook = Webhook()
    async with World(post=hook) as world:
        await world.create(CONFIG_MAPS, "one", data={"a": "old"})
        await configure(world, "Validating")
        await world.ask("PATCH", "/api/v1/namespaces/default/configmaps/one", {"data": {"a": "new"}}, MERGE)
        await world.delete(CONFIG_MAPS, "one", policy="Foreground")
        update, delete = hook.requests[:2]
        assert (update["operation"], update["oldObject"]["data"], update["object"]["data"]) == (
            "UPDATE",
            {"a": "old"},
            {"a": "new"},
        )
        assert (delete["operation"], delete["oldObject"]["data"], delete["object"]) == ("DELETE", {"a": "new"}, None)
        assert delete["options"] == {
            "kind": "DeleteOptions",
            "apiVersion": "meta.k8s.io/v1",
            "propagationPolicy": "Foreground",
        }


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        (
            {"allowed": False, "status": {"message": "not today", "code": 403, "reason": "Forbidden"}},
            (403, "Forbidden", 'admission webhook "check.webhook.test" denied the request: not today'),
        ),
        (
            {"allowed": False},
            (400, "", 'admission webhook "check.webhook.test" denied the request without explanation'),
        ),
        (
            {"allowed": False, "status": {"reason": "Broken", "code": 200}},
            (400, "Broken", 'admission webhook "check.webhook.test" denied the request: Broken'),
        ),
        (
            {"allowed": True, "uid": "another"},
            (
                500,
                "InternalError",
                (
                    'Internal error occurred: failed calling webhook "check.webhook.test": '
                    'received invalid webhook response: expected response.uid="UID", got "another"'
                ),
            ),
        ),
        (
            {"allowed": True, "patch": "W10=", "patchType": "JSONPatch"},
            (
                500,
                "InternalError",
                (
                    'Internal error occurred: failed calling webhook "check.webhook.test": '
                    "received invalid webhook response: validating webhook may not return response.patch"
                ),
            ),
        ),
    ],
    ids=["message", "nothing", "reason", "another uid", "a patch"],
)
def test_what_a_refusal_says(answer: Json, want: tuple[int, str, str]) -> None:
    @virtual
    async def run() -> None:
        hook = Webhook(lambda _: answer)
        async with World(post=hook) as world:
            await configure(world, "Validating")
            error = await refusal(world)
            message = error.message.replace(hook.requests[0]["uid"], "UID")
            assert (error.code, error.reason, message) == want
            assert await world.names(CONFIG_MAPS) == []

    run()


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({}, True),
        ({"rules": [rule(operations=["UPDATE", "DELETE"])]}, False),
        ({"rules": [rule(operations=["UPDATE"]), rule(operations=["CREATE"])]}, True),
        ({"rules": [rule(apiGroups=["apps"])]}, False),
        ({"rules": [rule(apiGroups=["*"], apiVersions=["*"], resources=["*"])]}, True),
        ({"rules": [rule(apiVersions=["v2"])]}, False),
        ({"rules": [rule(resources=["secrets"])]}, False),
        ({"rules": [rule(resources=["configmaps/status"])]}, False),
        ({"rules": [rule(resources=["configmaps/*"])]}, True),
        ({"rules": [rule(resources=["*/*"])]}, True),
        ({"rules": [rule(scope="Namespaced")]}, True),
        ({"rules": [rule(scope="Cluster")]}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
        ({"objectSelector": {"matchLabels": {"app": "x"}}}, True),
        ({"objectSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}, False),
        ({"matchConditions": [{"name": "a", "expression": "object.metadata.name == 'one'"}]}, True),
        ({"matchConditions": [{"name": "a", "expression": "request.userInfo.username != 'tester'"}]}, False),
        ({"matchConditions": [{"name": "a", "expression": "oldObject != null"}]}, False),
        (
            {
                "matchConditions": [
                    {"name": "a", "expression": "object.data.nothing == 'x'"},
                    {"name": "b", "expression": "false"},
                ]
            },
            False,
        ),
        (
            {"matchConditions": [{"name": "a", "expression": "object.nothing == 'x'"}], "failurePolicy": "Ignore"},
            False,
        ),
    ],
)
def test_who_is_asked_about_a_create(changes: Json, asked: bool) -> None:
    @virtual
    async def run() -> None:
        hook = Webhook()
        async with World(post=hook) as world:
            await configure(world, "Validating", webhook(**changes))
            await world.create(CONFIG_MAPS, "one", labels={"app": "x"})
            assert bool(hook.requests) is asked

    run()


@virtual
async def test_a_condition_that_fails_refuses_the_write() -> None:
    async with World(post=Webhook()) as world:
        conditions = [{"name": "a", "expression": "object.nothing == 'x'"}]
        await configure(world, "Validating", webhook(matchConditions=conditions))
        error = await refusal(world)
        assert (error.code, error.message) == (
            403,
            (
                "configmaps \"one\" is forbidden: expression 'object.nothing == 'x'' resulted in error: "
                "no such key: nothing"
            ),
        )


@virtual
async def test_it_need_not_work_if_its_failure_is_ignored() -> None:
    class Down(Webhook):
        async def __call__(self, url: str, authorities: str, body: bytes) -> tuple[int, bytes]:
            raise Failed("dial tcp 127.0.0.1:1: connect: connection refused")

    async with World(post=Down()) as world:
        await configure(world, "Validating", webhook(failurePolicy="Ignore"))
        await world.create(CONFIG_MAPS, "one")
        await configure(world, "Validating", webhook(), name="strict")
        error = await refusal(world, "two")
        assert (error.code, error.message) == (
            500,
            (
                'Internal error occurred: failed calling webhook "check.webhook.test": failed to call webhook: '
                f'Post "{URL}?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
            ),
        )


@virtual
async def test_it_is_given_only_its_time() -> None:
    class Slow(Webhook):
        async def __call__(self, url: str, authorities: str, body: bytes) -> tuple[int, bytes]:
            await asyncio.sleep(100)
            raise AssertionError

    async with World(post=Slow()) as world:
        await configure(world, "Validating", webhook(timeoutSeconds=3))
        before = world.core.now()
        error = await refusal(world)
        assert world.core.now() - before == 3
        assert error.message.endswith(f'Post "{URL}?timeout=3s": context deadline exceeded')


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (404, b"", "the server could not find the requested resource"),
        (500, b"oh no", 'an error on the server ("oh no") has prevented the request from succeeding'),
        (418, b'{"kind":"Status","message":"a teapot"}', "a teapot"),
    ],
)
def test_an_answer_that_is_none(status: int, body: bytes, words: str) -> None:
    answer = status, body

    class Broken(Webhook):
        async def __call__(self, url: str, authorities: str, body: bytes) -> tuple[int, bytes]:
            return answer

    @virtual
    async def run() -> None:
        async with World(post=Broken()) as world:
            await configure(world, "Validating")
            assert (await refusal(world)).message.endswith(f"failed to call webhook: {words}")

    run()


@virtual
async def test_a_service_cannot_be_reached() -> None:
    async with World(post=Webhook()) as world:
        client = {"service": {"name": "hook", "namespace": "default", "path": "/check"}}
        await configure(world, "Validating", webhook(clientConfig=client))
        assert (await refusal(world)).message.endswith(
            'Post "https://hook.default.svc:443/check?timeout=10s": service "hook" not found'
        )


@virtual
async def test_all_are_asked_at_once_and_one_no_is_enough() -> None:
    class Slow(Webhook):
        async def __call__(self, url: str, authorities: str, body: bytes) -> tuple[int, bytes]:
            await asyncio.sleep(1)
            return await super().__call__(url, authorities, body)

    hook = Slow(lambda request: {"allowed": request["name"] != "one", "status": {"message": "no"}})
    async with World(post=hook) as world:
        await configure(world, "Validating", *(webhook(f"{name}.webhook.test") for name in "abc"))
        before = world.core.now()
        error = await refusal(world)
        assert error.message == 'admission webhook "a.webhook.test" denied the request: no'
        assert world.core.now() - before == 1
        assert len(hook.requests) == 3


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_configurations_themselves_are_never_asked_about(kind: str) -> None:
    @virtual
    async def run() -> None:
        hook = Webhook(lambda _: {"allowed": False})
        async with World(post=hook) as world:
            everything = rule(apiGroups=["*"], apiVersions=["*"], resources=["*/*"])
            await configure(world, kind, webhook(rules=[everything]))
            await world.ask("DELETE", f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations/checks")
            await world.create(CONFIG_MAPS, "one")
            assert hook.requests == []

    run()


async def raw_create(world: World, **query: list[str]) -> ServerResponse:
    """The whole answer to a create."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
    path = "/api/v1/namespaces/default/configmaps"
    answer = await world.handle(Call("POST", path, query, {}, msgspec.json.encode(body), LOOPBACK))
    assert isinstance(answer, ServerResponse)
    return answer


@pytest.mark.parametrize("side_effects", ["None", "NoneOnDryRun"])
def test_a_dry_run_asks_those_without_side_effects(side_effects: str) -> None:
    @virtual
    async def run() -> None:
        hook = Webhook()
        async with World(post=hook) as world:
            await configure(world, "Validating", webhook(sideEffects=side_effects))
            answer = await raw_create(world, dryRun=["All"])
            assert answer.status == 201
            assert hook.requests[0]["dryRun"] is True
            assert hook.requests[0]["options"]["dryRun"] == ["All"]

    run()


@virtual
async def test_warnings_reach_the_client() -> None:
    async with World(post=Webhook(lambda _: {"allowed": True, "warnings": ["careful"]})) as world:
        await configure(world, "Validating")
        assert (await raw_create(world)).headers["Warning"] == '299 - "careful"'


@virtual
async def test_the_collector_is_asked_about_too() -> None:
    hook = Webhook(lambda request: {"allowed": request["operation"] != "DELETE" or request["name"] != "child"})
    async with World(post=hook) as world:
        top = await world.create(CONFIG_MAPS, "top")
        await world.create(SECRETS, "child", owners=[owner(top)])
        await configure(world, "Validating", webhook(rules=[rule(resources=["secrets"])]))
        await world.delete(CONFIG_MAPS, "top")
        await world.settle()
        assert await world.get(SECRETS, "child") is not None
        user = hook.requests[0]["userInfo"]["username"]
        assert user == "system:serviceaccount:kube-system:generic-garbage-collector"


@virtual
async def test_another_version_of_the_same_objects_is_shown_as_the_rule_names_it() -> None:
    hook = Webhook()
    async with World(post=hook) as world:
        versions = definition()["spec"]["versions"]
        versions.append({**versions[0], "name": "v2", "storage": False})
        await world.ask("POST", DEFINITIONS, definition(versions=versions))
        await world.settle()
        widgets = rule(apiGroups=["example.com"], apiVersions=["v2"], resources=["widgets"])
        exact = webhook("exact.webhook.test", rules=[widgets], matchPolicy="Exact")
        await configure(world, "Validating", webhook(rules=[widgets]), exact)
        await world.create("widgets", "one", spec={"size": 1})
        (request,) = hook.requests
        assert request["kind"]["version"] == "v2"
        assert request["requestKind"]["version"] == "v1"
        assert request["object"]["apiVersion"] == "example.com/v2"
        assert request["object"]["spec"] == {"size": 1}
