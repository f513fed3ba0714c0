"""Conversion webhooks: a kind whose versions differ, read, written, watched and deleted in each of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.apimachinery.users import LOOPBACK
from pilotage_sim.loop import virtual
from tests.harbor.housekeeping.support import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.kinds import Json

MERGE = "application/merge-patch+json"
OLD, NEW = "example.com/v1beta1", "example.com/v1"


class Converting:
    """A `Post` that moves spec.old to spec.new on the way from v1beta1 to v1, and back."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.change: Callable[[Json], Json] = lambda response: response

    async def __call__(self, url: str, authorities: str, body: bytes) -> tuple[int, bytes]:
        await asyncio.sleep(0)
        request = msgspec.json.decode(body)["request"]
        target = request["desiredAPIVersion"]
        self.asked.append(len(request["objects"]))
        for each in request["objects"]:
            each["apiVersion"] = target
            spec = each.setdefault("spec", {})
            before, after = ("old", "new") if target == NEW else ("new", "old")
            if before in spec:
                spec[after] = spec.pop(before)
        response = {"uid": request["uid"], "convertedObjects": request["objects"], "result": {"status": "Success"}}
        return 200, msgspec.json.encode({"response": self.change(response)})


def at(version: str, name: str = "") -> str:
    return f"/apis/{version}/namespaces/default/widgets" + (f"/{name}" if name else "")


def widget(version: str, name: str = "a", **spec: Any) -> Json:
    return {"apiVersion": version, "kind": "Widget", "metadata": {"name": name}, "spec": spec}


async def define(world: World) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": "v1beta1", "served": True, "storage": False, "schema": schema},
        {"name": "v1", "served": True, "storage": True, "schema": schema},
    ]
    hook = {"clientConfig": {"url": "https://webhook.test/convert"}, "conversionReviewVersions": ["v1"]}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": hook},
        },
    }
    await world.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    await world.settle(10)


@virtual
async def test_each_version_reads_and_writes_in_its_own_words() -> None:
    async with World(post=Converting()) as world:
        await define(world)
        created = await world.ask("POST", at(OLD), widget(OLD, old=1))
        assert created["spec"] == {"old": 1}
        assert (await world.ask("GET", at(NEW, "a")))["spec"] == {"new": 1}
        patched = await world.ask("PATCH", at(OLD, "a"), {"spec": {"old": 2}}, MERGE)
        assert (patched["apiVersion"], patched["spec"]) == (OLD, {"old": 2})
        assert (await world.ask("GET", at(NEW, "a")))["spec"] == {"new": 2}
        await world.ask("PUT", at(NEW, "a"), {**await world.ask("GET", at(NEW, "a")), "spec": {"new": 3}})
        listed = await world.ask("GET", at(OLD))
        assert [each["spec"] for each in listed["items"]] == [{"old": 3}]
        await world.ask("DELETE", at(OLD, "a"))
        assert (await world.ask("GET", at(NEW)))["items"] == []


@virtual
async def test_what_is_stored_already_is_converted_together_and_once() -> None:
    hook = Converting()
    async with World(post=hook) as world:
        await define(world)
        hook.change = lambda _: {}  # no client needs v1beta1 for these, so it does not matter
        for name in "abc":
            await world.ask("POST", at(NEW), widget(NEW, name, new=1))
        hook.change = lambda response: response
        hook.asked.clear()
        for _ in range(2):
            assert [each["spec"] for each in (await world.ask("GET", at(OLD)))["items"]] == [{"old": 1}] * 3
        assert hook.asked == [3]


@virtual
async def test_a_watch_sees_the_version_that_it_asked_for() -> None:
    async with World(post=Converting()) as world:
        await define(world)
        await world.ask("POST", at(NEW), widget(NEW, "a", new=1))
        watch = await world.handle(Call("GET", at(OLD), {"watch": ["1"]}, {}, b"", LOOPBACK))
        assert not isinstance(watch, ServerResponse)
        await world.ask("POST", at(NEW), widget(NEW, "b", new=2))
        events = [msgspec.json.decode(line) for line in await watch.chunks()]
        watch.close()
        assert [(each["type"], each["object"]["spec"]) for each in events] == [
            ("ADDED", {"old": 1}),
            ("ADDED", {"old": 2}),
        ]


@virtual
async def test_a_watch_ends_when_nobody_can_say_how_its_version_looks() -> None:
    hook = Converting()
    async with World(post=hook) as world:
        await define(world)
        watch = await world.handle(Call("GET", at(OLD), {"watch": ["1"]}, {}, b"", LOOPBACK))
        assert not isinstance(watch, ServerResponse)
        hook.change = lambda _: {"result": {"status": "Failure", "message": "no"}}
        await world.ask("POST", at(NEW), widget(NEW, new=1))
        assert await watch.chunks() == []


def moved(response: Json) -> Json:
    response["convertedObjects"][0]["metadata"]["name"] = "other"
    return response


@virtual
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r | {"result": {"status": "Failure", "message": "cannot do that"}}, "failed: cannot do that"),
        (lambda r: r | {"uid": "other"}, 'failed: expected response.uid="'),
        (lambda r: r | {"convertedObjects": []}, "returned 0 objects, expected 1"),
        (moved, "index 0: must have the same name: a != other"),
    ],
)
async def test_one_that_fails_fails_what_needs_it(change: Callable[[Json], Json], words: str) -> None:
    hook = Converting()
    async with World(post=hook) as world:
        await define(world)
        hook.change = change
        await world.ask("POST", at(NEW), widget(NEW, new=1))
        with pytest.raises(StatusError) as caught:
            await world.ask("GET", at(OLD, "a"))
        assert caught.value.code == 500
        assert caught.value.message.startswith("conversion webhook for example.com/v1, Kind=Widget ")
        assert words in caught.value.message
        with pytest.raises(StatusError):
            await world.ask("POST", at(OLD), widget(OLD, "b", old=1))
        assert [each["metadata"]["name"] for each in (await world.ask("GET", at(NEW)))["items"]] == ["a"]
