"""Mutating webhooks: the order, the patches, and being asked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_sim.loop import virtual
from tests.harbor.admission.support import Webhook, configure, patch, rule, webhook
from tests.harbor.housekeeping.support import CONFIG_MAPS, World

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json

CLUSTER_ROLES = "clusterroles"


def append(letter: str, obj: Json) -> Json:
    """An answer that puts a letter behind those that are there."""
    text = (obj.get("data") or {}).get("order", "")
    return patch({"op": "add", "path": "/data", "value": {"order": text + letter}})


class Letters(Webhook):
    """Many webhooks in one: each appends the letter that its URL ends with."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = ""

    async def __call__(self, url: str, authorities: str, body: bytes) -> tuple[int, bytes]:
        letter = url.partition("?")[0][-1]
        self.asked += letter
        self.answer = lambda request: append(letter, request["object"])
        return await super().__call__(url, authorities, body)


def letter(name: str, **changes: object) -> Json:
    return webhook(f"{name}.webhook.test", clientConfig={"url": f"https://webhook.test/{name}"}, **changes)


@virtual
async def test_a_patch_changes_what_is_stored() -> None:
    hook = Webhook(lambda _: patch({"op": "add", "path": "/metadata/labels", "value": {"by": "webhook"}}))
    async with World(post=hook) as world:
        await configure(world, "Mutating")
        created = await world.create(CONFIG_MAPS, "one", data={"a": "b"})
        assert created["metadata"]["labels"] == {"by": "webhook"}
        assert created["data"] == {"a": "b"}
        assert "uid" not in hook.requests[0]["object"]["metadata"], "it is assigned later"
        assert created["metadata"]["uid"]
        assert created["metadata"]["creationTimestamp"]


@virtual
async def test_what_a_patch_leaves_out_is_defaulted_again() -> None:
    hook = Webhook(lambda _: patch({"op": "remove", "path": "/type"}))
    async with World(post=hook) as world:
        await configure(world, "Mutating", webhook(rules=[rule(resources=["secrets"])]))
        created = await world.create("secrets", "one", type="example.com/other")
        assert created["type"] == "Opaque"


@virtual
async def test_they_are_asked_in_the_order_of_their_names() -> None:
    hook = Letters()
    async with World(post=hook) as world:
        await configure(world, "Mutating", letter("c"), letter("b"), name="first")
        await configure(world, "Mutating", letter("a"), name="second")
        created = await world.create(CONFIG_MAPS, "one")
        assert created["data"] == {"order": "cba"}


@virtual
async def test_one_that_wishes_so_is_asked_again_if_a_later_one_changes_something() -> None:
    hook = Letters()
    async with World(post=hook) as world:
        again = {"reinvocationPolicy": "IfNeeded"}
        await configure(world, "Mutating", letter("a", **again), letter("b"), letter("c", **again))
        created = await world.create(CONFIG_MAPS, "one")
        assert hook.asked == "abca"
        assert created["data"] == {"order": "abca"}


@virtual
async def test_nobody_is_asked_again_if_nothing_changes() -> None:
    hook = Webhook()
    async with World(post=hook) as world:
        await configure(world, "Mutating", letter("a", reinvocationPolicy="IfNeeded"), letter("b"))
        await world.create(CONFIG_MAPS, "one")
        assert len(hook.requests) == 2


@virtual
async def test_validating_ones_see_what_mutating_ones_have_made() -> None:
    hook = Letters()
    async with World(post=hook) as world:
        await configure(world, "Mutating", letter("a"))
        await configure(world, "Validating")
        with pytest.raises(StatusError, match="may not return"):  # it answers with a patch
            await world.create(CONFIG_MAPS, "one")
        assert hook.requests[1]["object"]["data"] == {"order": "a"}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            patch({"op": "remove", "path": "/data/nothing"}),
            "Internal error occurred: remove operation does not apply: doc is missing path",
        ),
        (
            {"allowed": True, "patch": "W10="},
            (
                'failed calling webhook "check.webhook.test": received invalid webhook response: '
                "webhook returned response.patch but not response.patchType"
            ),
        ),
        (
            {**patch({"op": "test", "path": "/kind", "value": "ConfigMap"}), "patchType": "Other"},
            'failed calling webhook "check.webhook.test": unsupported patch type "Other"',
        ),
        (
            {"allowed": True, "patch": "bm9uc2Vuc2U=", "patchType": "JSONPatch"},
            'failed calling webhook "check.webhook.test": received undecodable patch in webhook response',
        ),
    ],
    ids=["does not apply", "no type", "another type", "no patch"],
)
def test_a_patch_that_is_none(answer: Json, words: str) -> None:
    @virtual
    async def run() -> None:
        async with World(post=Webhook(lambda _: answer)) as world:
            await configure(world, "Mutating")
            with pytest.raises(StatusError) as caught:
                await world.create(CONFIG_MAPS, "one")
            assert caught.value.code == 500
            assert words in caught.value.message
            assert await world.names(CONFIG_MAPS) == []

    run()


@virtual
async def test_a_delete_cannot_be_changed() -> None:
    hook = Webhook()
    async with World(post=hook) as world:
        await world.create(CONFIG_MAPS, "one")
        await configure(world, "Mutating")
        hook.answer = lambda _: patch({"op": "add", "path": "/x", "value": 1})
        with pytest.raises(StatusError, match="attempted to modify the object, which is not supported"):
            await world.delete(CONFIG_MAPS, "one")
        assert await world.names(CONFIG_MAPS) == ["one"]


@virtual
async def test_a_change_of_the_scale_is_seen_and_patched_as_one() -> None:
    hook = Webhook(lambda _: patch({"op": "replace", "path": "/spec/replicas", "value": 5}))
    async with World(post=hook) as world:
        rules = [rule(apiGroups=["apps"], resources=["deployments/scale"])]
        await configure(world, "Mutating", webhook(rules=rules))
        pods = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "image"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pods}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
        deployments = "/apis/apps/v1/namespaces/default/deployments"
        await world.ask("POST", deployments, body)
        change = {"spec": {"replicas": 3}}
        scaled = await world.ask("PATCH", f"{deployments}/d/scale", change, "application/merge-patch+json")
        assert scaled["spec"] == {"replicas": 5}
        seen = hook.requests[0]
        assert seen["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        assert (seen["object"]["kind"], seen["object"]["spec"]) == ("Scale", {"replicas": 3})
        assert seen["oldObject"]["spec"] == {"replicas": 1}
        assert (await world.ask("GET", f"{deployments}/d"))["spec"]["replicas"] == 5
